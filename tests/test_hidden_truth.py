"""The hidden truth is multinomial logistic regression of what is seldom seen: which class is right, if any."""

import numpy as np
import pytest
import scipy.sparse as sp
from finite_differences import numeric_gradient
from scipy import optimize, special

import poem
from poem.compute.kernels import Threads
from poem.data import mean_square
from poem.data.layout import Layout
from poem.evaluation.calibration import calibrate
from poem.learning.training import Training
from poem.models import ContextLosses, LossModel
from poem.models.bounded import bounded_error, fit_bounded
from poem.models.held_out import held_out
from poem.models.linear import linear_error
from poem.models.truth import HiddenTruth, fit_truth
from poem.objectives.risk import Risk

UNIT = (0.0, 1.0)
CLASSES = 4
FORMS = {"dense": np.asarray, "CSR": sp.csr_array}
every_form = pytest.mark.parametrize("form", FORMS)


def truth_log(form="dense", *, contexts=150, replay=4, seed=0, wrong=1.0, right=0.0):
    """Uniform choices among classes of which one is right, and the probabilities that each is."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((contexts, 5)) < 0.7, rng.normal(size=(contexts, 5)), 0.0)
    probability = special.softmax(3.0 * X @ rng.normal(size=(5, CLASSES)), axis=1)
    truth = np.array([rng.choice(CLASSES, p=row) for row in probability])
    context = np.tile(np.arange(contexts), replay)
    y = rng.integers(0, CLASSES, len(context))
    loss = np.where(y == truth[context], right, wrong)
    log = poem.BanditLog(
        FORMS[form](X), y, loss=loss, propensity=np.full(len(y), 1 / CLASSES), context=context, labels=range(CLASSES)
    )
    return log, probability


def with_constant(X):
    X = X.toarray() if sp.issparse(X) else X
    return np.hstack([X, np.ones((len(X), 1))])


@every_form
def test_the_gradient_equals_finite_differences(form):
    log, _ = truth_log(form, contexts=20)
    log = log.replaced(loss=np.random.default_rng(2).random(len(log)))  # shares, not only mistakes
    problem = HiddenTruth(log, UNIT, Threads(2))
    problem.ridge = 0.3
    w = np.random.default_rng(1).normal(size=problem.shape)
    numeric = numeric_gradient(lambda v: problem(v)[0], w, 1e-6)
    numeric[:-1, -1] = problem.ridge * w[:-1, -1] / len(log)  # what is not a constant of "none" stays where it is
    assert np.linalg.norm(problem(w)[1] - numeric) <= 1e-6 * np.linalg.norm(numeric)


@every_form
def test_shares_are_the_chances_to_be_wrong_and_the_value_their_cross_entropy(form):
    log, _ = truth_log(form)
    problem = HiddenTruth(log, UNIT, Threads())
    assert problem.shape == (6, CLASSES + 1)
    w = np.random.default_rng(1).normal(size=problem.shape)
    layout = problem.layout
    right = special.softmax(with_constant(log.X)[layout.context] @ w, axis=1)[np.arange(len(log)), layout.y]
    np.testing.assert_allclose(problem.shares(w), 1.0 - right, rtol=1e-9)
    by_hand = -np.mean(np.where(layout.loss == 1.0, np.log1p(-right), np.log(right)))
    assert problem(w)[0] == pytest.approx(by_hand, rel=1e-9)


def test_where_all_choices_were_right_it_is_multinomial_logistic_regression():
    log, _ = truth_log()
    seen = log.take(log.loss == 0.0)
    ridge = 0.1 * mean_square(seen)
    X = with_constant(seen.X)[seen.context]
    found = fit_bounded(HiddenTruth, seen, 0.1, UNIT, Threads())
    np.testing.assert_array_equal(found[:-1, -1], 0.0)
    # One class more, which was never right and has a constant alone.
    shape, free = found.shape, np.ones(found.shape, dtype=bool)
    free[:-1, -1] = False

    def weights(values):
        full = np.zeros(shape)
        full[free] = values
        return full

    def entropy(values):
        w = weights(values)
        chosen = special.log_softmax(X @ w, axis=1)[np.arange(len(X)), seen.y]
        return 0.5 * ridge * np.sum(w**2) - chosen.sum()

    expected = weights(optimize.minimize(entropy, np.zeros(free.sum()), method="BFGS").x)
    np.testing.assert_allclose(found, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("bounds", [(0.0, 1.0), (-1.0, 0.0), (5.0, 8.0)])
def test_losses_of_any_range_are_shares_of_it(bounds):
    plain, _ = truth_log()
    log, _ = truth_log(right=bounds[0], wrong=bounds[1])
    expected, found = (
        fit_bounded(HiddenTruth, one, 0.1, ends, Threads()) for one, ends in ((plain, UNIT), (log, bounds))
    )
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-9)
    span = bounds[1] - bounds[0]
    assert HiddenTruth(log, bounds, Threads()).missed(found) == pytest.approx(
        span**2 * HiddenTruth(plain, UNIT, Threads()).missed(expected), rel=1e-6
    )


def test_more_rows_bring_it_nearer_to_the_truth():
    misses = []
    for contexts in (50, 200, 2000):
        log, probability = truth_log(contexts=contexts)
        strength, _ = bounded_error(HiddenTruth, log, held_out(log, 0), UNIT, Threads())
        found = special.softmax(with_constant(log.X) @ fit_bounded(HiddenTruth, log, strength, UNIT, Threads()), axis=1)
        misses.append(np.abs(found[:, :-1] - probability).mean())
    assert misses[2] < misses[1] < misses[0]
    assert misses[2] < 0.03


# ---- as a loss model -------------------------------------------------------------------------------


@every_form
@pytest.mark.parametrize("max_scores", [1 << 22, 40])
def test_its_mean_under_a_policy_is_the_sum_over_classes(form, max_scores):
    """In one shard and in many: on the scale of [−1, 0], a class has minus its chance to be right."""
    log, _ = truth_log(form, contexts=30)
    rng = np.random.default_rng(3)
    models = [LossModel(rng.normal(size=(6, CLASSES + 1)), 0.0, truth=True) for _ in range(2)]
    fold = np.arange(30) % 2
    layout = Layout(log, log.structure, True, max_scores)
    losses = ContextLosses(layout, models, fold, UNIT)
    right = np.stack([special.softmax(with_constant(log.X) @ one.weights, axis=1)[:, :-1] for one in models])
    right = right[fold, np.arange(30)]
    np.testing.assert_allclose(losses.predicted, -right[layout.context, layout.y], rtol=1e-9)
    w = rng.normal(size=(6, CLASSES))
    expected = -np.sum(special.softmax(with_constant(log.X) @ w, axis=1) * right, axis=1)
    wide = layout.design.widen(w)
    for shard in layout.shards:
        for piece in shard.pieces:
            scores = shard.design.block(piece.contexts.start, piece.contexts.stop).scores(wide, CLASSES)
            values = losses.of_piece(shard, piece)
            mine = layout.contexts[shard.first + piece.contexts.start : shard.first + piece.contexts.stop]
            mean = layout.structure.mean_under(scores, values)
            np.testing.assert_allclose(mean, expected[mine], rtol=1e-9)


@every_form
def test_a_doubly_robust_risk_with_it_has_the_gradient_of_finite_differences(form):
    log, _ = truth_log(form, contexts=20)
    layout = Layout(log, log.structure, True)
    model = LossModel(np.random.default_rng(3).normal(size=(6, CLASSES + 1)), 0.0, truth=True)
    losses = ContextLosses(layout, [model], np.zeros(20, dtype=np.int64), UNIT)
    risk = Risk(layout, layout.loss - 1.0, poem.DoublyRobust(3.0), lam=2.0, losses=losses)
    w = np.random.default_rng(4).normal(size=risk.shape)
    numeric = numeric_gradient(lambda v: risk(v)[0], w, 1e-6)
    assert np.linalg.norm(risk(w)[1] - numeric) <= 1e-5 * np.linalg.norm(numeric)


# ---- where it is used ------------------------------------------------------------------------------


def trained(log):
    return Training(log, log.structure, True, calibrate(log, poem.IPS()))


def test_it_is_the_model_and_the_start_where_one_class_is_right():
    log, probability = truth_log(contexts=300)
    training = trained(log)
    assert training.strengths.truth is not None
    assert training.strengths.logistic is None
    assert training.model.truth
    parts = held_out(log, 0)
    assert bounded_error(HiddenTruth, log, parts, UNIT, Threads())[1] < 0.7 * linear_error(log, parts, Threads())[1]
    policy = poem.Policy(log.structure, 16 * training.direct, True, log.labels)
    assert np.mean(policy.predict(log.X) == probability.argmax(axis=1)) > 0.9


def test_it_is_not_where_classes_have_losses_of_their_own():
    log, _ = truth_log(contexts=300)
    rng = np.random.default_rng(5)
    X = with_constant(log.X)[log.context]
    of_their_own = np.sum(X * rng.normal(size=(6, CLASSES)).T[log.y], axis=1) + 0.1 * rng.normal(size=len(log))
    training = trained(log.replaced(loss=of_their_own))
    assert training.strengths.truth is None
    assert not training.model.truth


def test_a_class_that_was_never_logged_is_never_right():
    """Where logged classes fail, nothing speaks for one of which nothing is known."""
    log, _ = truth_log()
    for part in (log.take(log.y != 2), log.take(log.y < 2)):
        never = np.setdiff1d(np.arange(CLASSES), part.y)
        plain = fit_bounded(HiddenTruth, part, 0.1, UNIT, Threads())
        x = with_constant(part.X)
        right, before = (special.softmax(x @ w, axis=1) for w in (fit_truth(part, 0.1, UNIT, Threads()).weights, plain))
        assert right[:, never].max() < 1e-9
        known = np.unique(part.y)
        np.testing.assert_allclose(right[:, known], before[:, known], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("chance", [0.2, 0.4])
def test_an_estimate_holds_where_a_class_was_never_logged(chance):
    """Half of the contexts have a right class in a few cases only, and the fourth class is always wrong."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5))
    mean = np.ones((600, CLASSES))
    mean[np.arange(600), X[:, 1:4].argmax(axis=1)] -= np.where(X[:, 0] > 0, 1.0, chance)
    context = np.repeat(np.arange(600), 4)
    y = rng.integers(0, 3, len(context))
    loss = (rng.random(len(context)) < mean[context, y]).astype(float)
    given = {"propensity": np.full(len(y), 1 / 3), "context": context, "labels": range(CLASSES)}
    found = poem.fit(poem.BanditLog(X, y, loss=loss, **given), loss_bounds=(0, 1))
    chosen = found.policy.marginals(X)
    assert chosen[:, 3].max() < 0.01
    low, high = found.chosen.validation.interval(0.99)
    assert low < np.sum(chosen * mean, axis=1).mean() < high


def test_label_sets_have_none():
    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, (200, 3))
    loss = np.count_nonzero(y != (X > 0), axis=1)
    assert trained(poem.BanditLog(X, y, loss=loss, propensity=np.full(200, 1 / 8))).strengths.truth is None
