"""Loss models with trees: slopes against finite differences, predictions by hand, and the policies made of them."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import poem
from poem.compute import Threads
from poem.data import Layout
from poem.errors import InputError
from poem.evaluation import calibrate
from poem.learning.training import Training
from poem.models import Boosting, boosted, chosen_strengths, losses_on
from poem.models.boosting import base_of, slopes_of
from poem.models.race import can_boost

BOUNDS = (0.0, 1.0)
XOR = np.array([[0.0, 1.0, 0.6], [1.0, 0.0, 0.6]])  # the loss of each class, by whether the signs agree


def xor_log(seed=0, contexts=600, replay=1, groups=None):
    """Which class is right hangs on the product of two features: nothing linear can tell."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(contexts, 4))
    context = np.repeat(np.arange(contexts), replay)
    y = rng.integers(0, 3, size=len(context))
    loss = (rng.random(len(context)) < XOR[(X[context, 0] * X[context, 1] > 0).astype(int), y]).astype(float)
    kind = {"loss": loss, "propensity": np.full(len(y), 1 / 3), "context": context, "labels": (0, 1, 2)}
    return poem.BanditLog(X, y, **kind, group=None if groups is None else context % groups)


def label_log(seed=0, contexts=500):
    """The cost of each of three labels hangs on a threshold."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(contexts, 3))
    y = rng.integers(0, 2, size=(contexts, 3))
    cost = np.where(np.abs(X) < 0.7, 1.0, -1.0)
    return poem.BanditLog(X, y, loss=(y * cost).sum(axis=1), propensity=np.full(contexts, 1 / 8))


def true_loss(policy, seed=99):
    X = np.random.default_rng(seed).normal(size=(4000, 4))
    return float((policy.marginals(X) * XOR[(X[:, 0] * X[:, 1] > 0).astype(int)]).sum(axis=1).mean())


def entropy(slopes, columns):
    """Return the sum that the trees go down, from its definition."""
    layout, total = slopes.layout, 0.0
    for c in range(len(columns)):
        p = np.exp(columns[c] - columns[c].max())
        p /= p.sum()
        for i in np.flatnonzero(layout.context == layout.contexts[c]):
            goal, right = slopes.target[i], p[layout.y[i]]
            total -= goal * np.log(1.0 - right) + (1.0 - goal) * np.log(right)
    return total


def squares(slopes, columns, log, centre):
    """Return half the sum of squared errors, from its definition."""
    predicted = centre + columns[log.context, -1] + (log.y * columns[log.context, :-1]).sum(axis=1)
    return 0.5 * float(((predicted - log.loss) ** 2).sum())


@pytest.mark.parametrize("truth", [True, False])
def test_slopes_are_those_of_the_loss(truth):
    log = xor_log(contexts=12, replay=3) if truth else label_log(contexts=12)
    how = Boosting(truth, 1.0, 8, 4, 5)
    model = base_of(log, how, (float(log.loss.min()), float(log.loss.max())), Threads())
    slopes = slopes_of(log, how, model, (float(log.loss.min()), float(log.loss.max())), Threads())
    rng = np.random.default_rng(3)
    at = slopes.start + rng.normal(size=slopes.start.shape)
    found, curves = slopes.at(at)

    def value(columns):
        return entropy(slopes, columns) if truth else squares(slopes, columns, log, model.centre)

    assert np.all(curves > 0.0)
    free = range(3)  # "none" has a constant alone
    for context, column in [(0, 0), (5, 1), (11, 2)]:
        assert column in free
        step = np.zeros_like(at)
        step[context, column] = 1e-5
        slope = (value(at + step) - value(at - step)) / 2e-5
        assert found[context, column] == pytest.approx(slope, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("make", [xor_log, label_log])
def test_what_a_model_with_trees_predicts_is_the_sum_of_its_parts(make):
    log = make()
    bounds = (float(log.loss.min()), float(log.loss.max()))
    strengths = chosen_strengths(log, bounds, 0, Threads())
    assert strengths.boosting is not None
    assert strengths.boosting.ahead
    model = boosted(log, strengths.boosting, bounds, Threads())
    columns = log.X @ model.weights[:-1] + model.weights[-1] + model.forest.scores(log.X)
    if model.truth:
        p = np.exp(columns - columns.max(axis=1, keepdims=True))
        expected = 1.0 - (p / p.sum(axis=1, keepdims=True))[log.context, log.y]
    else:
        chosen = log.structure.indicators(log.y)
        expected = model.centre + columns[:, -1] + (chosen * columns[:, :-1]).sum(axis=1)
    layout = Layout(log, log.structure, True)
    losses = losses_on(layout, (model,), np.zeros(log.n_contexts, dtype=np.int64), bounds)
    scaled = losses.predicted * (bounds[1] - bounds[0]) + bounds[1]
    np.testing.assert_allclose(scaled, expected[layout.order], atol=1e-9)


def test_trees_are_not_taken_where_lines_do_as_well():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    y = rng.integers(0, 2, size=2000)
    loss = np.clip(0.5 + 0.1 * X[:, 0] * (2 * y - 1) + 0.05 * rng.normal(size=2000), 0, 1)
    log = poem.BanditLog(X, y, loss=loss, propensity=np.full(2000, 0.5))
    found = chosen_strengths(log, BOUNDS, 0, Threads()).boosting
    assert found is None or not found.ahead


def test_trees_are_not_tried_where_they_cost_too_much_or_nothing_can_be_learnt():
    assert can_boost(xor_log())
    assert not can_boost(xor_log(contexts=150))
    wide = poem.BanditLog(np.zeros((50, 2000)), np.arange(50) % 3, loss=np.zeros(50), propensity=np.full(50, 1 / 3))
    assert not can_boost(wide)
    constant = poem.BanditLog(np.ones((80, 2)), np.arange(80) % 2, loss=np.arange(80) % 2, propensity=np.full(80, 0.5))
    assert chosen_strengths(constant, BOUNDS, 0, Threads()).boosting is None


def test_the_number_of_threads_changes_no_tree():
    log = xor_log()
    how = chosen_strengths(log, BOUNDS, 0, Threads()).boosting
    assert how == chosen_strengths(log, BOUNDS, 0, Threads(3)).boosting
    assert boosted(log, how, BOUNDS, Threads()).forest == boosted(log, how, BOUNDS, Threads(3)).forest


@cache
def fitted(certify):
    """The default fit of a log that is large enough for it."""
    return poem.fit(xor_log(contexts=1500), loss_bounds=BOUNDS, certify=certify)


@pytest.mark.parametrize("certify", [True, False])
def test_the_default_learns_what_no_line_can(certify):
    found = fitted(certify)
    assert found.policy.forest is not None
    assert true_loss(found.policy) < 0.15  # 0.533 is logged


def test_no_line_can():
    linear = poem.fit(xor_log(contexts=1500), loss_bounds=BOUNDS, learners=("direct", "dr"), certify=False)
    assert true_loss(linear.policy) > 0.35


def test_what_is_certified_is_what_is_returned_and_its_gain_is_true():
    found = fitted(True)
    assert found.certificate.policy is found.policy or found.certificate.policy.forest == found.policy.forest
    np.testing.assert_array_equal(found.certificate.policy.weights, found.policy.weights)
    assert found.certificate.gain_at_least < 1.6 / 3 - true_loss(found.policy)


def test_trees_make_evaluation_sharper():
    log, policy = xor_log(seed=5, contexts=2000), fitted(False).policy
    trees, lines = (poem.evaluate(policy, log, "DR", loss_bounds=BOUNDS, model=model) for model in ("auto", "linear"))
    (ours,), (theirs,) = trees.lines, lines.lines
    assert ours.high - ours.low < 0.85 * (theirs.high - theirs.low)
    assert trees.model.startswith("boosted")
    assert ours.low < true_loss(policy) < ours.high


def test_a_policy_with_trees_can_be_the_logging_policy_of_the_next_round():
    first = fitted(False).policy.at_temperature(0.1)
    rng = np.random.default_rng(7)
    X = rng.normal(size=(1000, 4))
    y = first.sample(X, rng)
    loss = (rng.random(1000) < XOR[(X[:, 0] * X[:, 1] > 0).astype(int), y]).astype(float)
    log = poem.BanditLog(X, y, loss=loss, log_propensity=first.log_prob(X, y), labels=(0, 1, 2))
    found = poem.fit(log, loss_bounds=BOUNDS, logging_policy=first)
    assert found.policy is not None
    assert true_loss(found.policy) <= true_loss(first) + 0.02
    with pytest.raises(InputError, match="start has trees"):
        poem.fit(log, start=first)


def test_leaves_are_grown_on_other_units_than_the_objective_is_computed_on():
    log = xor_log(contexts=400, replay=2, groups=40)
    training = Training(log, log.structure, True, calibrate(log, poem.IPS(), BOUNDS))
    ground = training.with_leaves
    used = {group for group, context in zip(log.group, log.context, strict=True) if context in ground.layout.context}
    halves = [set(log.group[np.isin(log.context, ground.layout.context)]), used]
    assert halves[0] == halves[1]
    assert ground.forest.leafy > 0
    assert len(ground.layout) < len(log)
    # What the trees say does not change with the losses of the rows that the objective is computed on.
    rows = np.isin(log.context, ground.layout.context)
    other = poem.BanditLog(
        log.X,
        log.y,
        loss=np.where(rows, 1.0 - log.loss, log.loss),
        log_propensity=log.log_propensity,
        context=log.context,
        labels=log.labels,
        group=log.group,
    )
    again = Training(other, log.structure, True, training.calibration, strengths=training.strengths)
    assert again.with_leaves.forest == ground.forest


@pytest.mark.parametrize("make", [xor_log, label_log])
@pytest.mark.parametrize("trees", [True, False])
def test_models_of_halves_are_the_same_one_after_the_other_as_at_once(monkeypatch, make, trees):
    log = make()
    low, high = log.loss.min(), log.loss.max()
    calibration = calibrate(log, poem.IPS(), (low, high))
    strengths = chosen_strengths(log, (low, high), 0, Threads(), ranking=True)
    assert strengths.boosting is not None
    strengths = replace(strengths, boosting=replace(strengths.boosting, ahead=trees))
    found = []
    for large, threads in ((2**40, 1), (2**40, 2), (0, 1), (0, 2)):
        monkeypatch.setattr("poem.learning.training.LARGE", large)
        training = Training(log, log.structure, True, calibration, strengths=strengths, threads=Threads(threads))
        found.append(training.crossed[0])
        assert all((model.forest is not None) == trees for model in found[-1])
    for models in found[1:]:
        for one, two in zip(found[0], models, strict=True):
            np.testing.assert_array_equal(one.weights, two.weights)
            assert one.forest == two.forest


def test_learners_with_trees_can_be_asked_for_by_name():
    log = xor_log()
    found = poem.fit(log, learners=("trees", "leaves"), loss_bounds=BOUNDS, certify=False)
    assert {candidate.recipe.learner.start for candidate in found.table} == {"trees", "leaves"}


@pytest.mark.parametrize("learner", ["trees", "leaves"])
def test_a_learner_with_trees_certifies_nothing_where_no_tree_helps(learner):
    found = poem.fit(xor_log(contexts=150), learners=learner, loss_bounds=BOUNDS)
    assert not found.success
    assert "Not certified: no tree helps to predict the losses of this log." in found.explain()
    assert {candidate.problems for candidate in found.table if candidate.problems} == {("no trees",)}


def test_other_learners_go_on_where_no_tree_helps():
    found = poem.fit(xor_log(contexts=150), learners=["trees", "direct"], loss_bounds=BOUNDS, certify=False)
    assert found.chosen.recipe.learner.start == "direct"
    assert {one.recipe.learner.start for one in found.table if "no trees" in one.problems} == {"trees"}
