"""The share of a policy's own probabilities in the loss model that judges it, and the variance that luck hides."""

import json
from dataclasses import replace

import numpy as np
import pytest
from easy_logs import a_policy, easy_log, logged_by
from scipy import stats

import poem
from poem.compute import Threads
from poem.data import folds_of
from poem.estimators import Rows, Terms, bootstrap
from poem.evaluation import JudgedLog
from poem.evaluation.opinion import Opinion
from poem.models import Boosting, CrossFitted, LossModel, Strengths, fit_for_estimates
from poem.policies import judge_all

BOUNDS = (0.0, 1.0)
CLASSES = poem.MultiClass(3)
MODELS = {
    "linear": Strengths(0.1),
    "hidden truth": Strengths(0.1, truth=0.1),
    "boosted": Strengths(0.1, boosting=Boosting(False, 0.1, 4, 2, 3, ahead=True)),
    "boosted hidden truth": Strengths(0.1, boosting=Boosting(True, 0.1, 4, 2, 3, ahead=True)),
}
COLUMNS = ("log_ratio", "loss", "log_propensity", "predicted", "expected", "repeated")
every_model = pytest.mark.parametrize("kind", MODELS)

pytestmark = pytest.mark.usefixtures("one_blas_thread")


def fitted(log, kind, shared):
    """A loss model per fold, of a strength that no log was asked for."""
    fold = folds_of(log, 2, 0)
    models = tuple(fit_for_estimates(log.take(fold != part), MODELS[kind], BOUNDS, Threads()) for part in range(2))
    assert {model.name for model in models} == {kind}
    return CrossFitted(models, fold, shared)


def judged(policy, log, model):
    judge = JudgedLog(log, BOUNDS, model, Threads())
    return judge.rows(judge_all(policy, log)[0]), judge.opinions


def true_classes(X):
    return np.argmax(X @ np.array([[2.0, 0.0, -2.0], [0.0, 2.0, 0.0]]), axis=1)


def a_world(rows, seed):
    """Contexts with a right class each, logged by a weak policy; a better one that is to be judged."""
    rng = np.random.default_rng([seed, 51])
    X = rng.normal(size=(rows, 2))
    weak, good = (poem.Policy(CLASSES, scale * GOOD, True, (0, 1, 2)) for scale in (0.3, 2.0))
    return X, true_classes(X), poem.simulate(X, true_classes(X), weak, replay=1, rng=rng), good


GOOD = np.array([[1.0, -0.2, -1.0], [0.2, 1.0, 0.1], [0.0, 0.3, 0.0]])


@every_model
def test_dr_stays_unbiased_with_a_share_of_the_policy(kind):
    off, moved = [], []
    for seed in range(80):
        X, y, log, good = a_world(80, seed)
        with_share, without = (
            poem.evaluate(good, log, "DR", model=fitted(log, kind, shared), loss_bounds=BOUNDS)["policy", "DR"].value
            for shared in (True, False)
        )
        off.append(with_share - good.expected_loss(X, y))
        moved.append(with_share - without)
    for errors in (off, moved):
        assert abs(np.mean(errors)) < 3.0 * np.std(errors) / np.sqrt(len(errors))
    assert np.std(moved) > 0.0


@pytest.mark.parametrize("kind", ["linear", "boosted"])  # here, a hidden truth knows as much as the policy
def test_a_policy_that_knows_the_losses_makes_its_own_estimate_narrower(kind):
    _, _, log, good = a_world(150, 5)
    found = [poem.evaluate(good, log, "DR", model=fitted(log, kind, shared)) for shared in (True, False)]
    assert found[0]["policy", "DR"].stderr < found[1]["policy", "DR"].stderr
    assert 0.05 < found[0].shares["policy"] <= 1.0
    assert found[1].shares == {}


def test_intervals_cover_the_truth():
    inside = []
    for seed in range(150):
        X, y, log, good = a_world(100, seed + 1000)
        line = poem.evaluate(good, log, "DR", model=fitted(log, "linear", True), loss_bounds=BOUNDS)["policy", "DR"]
        inside.append(line.low <= good.expected_loss(X, y) <= line.high)
    assert np.mean(inside) > 0.9


def test_the_share_of_a_fold_does_not_depend_on_its_losses():
    _, _, log, good = a_world(200, 1)
    model = fitted(log, "linear", False)
    rows, _ = judged(good, log, model)
    inside = model.fold == 0
    changed = np.where(inside, -1.0 - rows.loss, rows.loss)
    repeated = np.square(good.marginals(log.X)).sum(axis=1)
    one, other = (
        Opinion.of(replace(rows, loss=loss, repeated=repeated), model.fold, 2, 1.0) for loss in (rows.loss, changed)
    )
    assert one.shares[0] == other.shares[0]
    assert one.shares[1] != other.shares[1]


def test_what_is_predicted_is_between_the_model_and_the_policy():
    _, _, log, good = a_world(200, 2)
    (plain, _), (rows, opinions) = (judged(good, log, fitted(log, "hidden truth", shared)) for shared in (False, True))
    chance = good.marginals(log.X)
    own = -chance[np.arange(len(log)), log.y]
    share = (rows.predicted - plain.predicted) / (own - plain.predicted)
    fold = folds_of(log, 2, 0)
    for part in range(2):
        np.testing.assert_allclose(share[fold == part], share[fold == part][0], rtol=1e-6)
    expected = plain.expected + share * (-np.square(chance).sum(axis=1) - plain.expected)
    np.testing.assert_allclose(rows.expected, expected, rtol=1e-6, atol=1e-9)
    assert share.mean() == pytest.approx(opinions["policy"].share, rel=1e-6)


def test_a_fold_without_rows_takes_the_share_of_all_rows():
    _, _, log, good = a_world(200, 2)
    rows, _ = judged(good, log, fitted(log, "linear", True))
    fold = folds_of(log, 3, 0)
    whole = Opinion.of(rows, np.zeros(len(log), dtype=np.int64), 2, 1.0)
    assert whole.shares[0] == whole.share == 0.0 < whole.shares[1]
    some = replace(rows, scatter=None, **{name: getattr(rows, name)[fold < 2] for name in COLUMNS})
    assert Opinion.of(some, fold[fold < 2], 2, 1.0).shares == Opinion.of(some, fold[fold < 2], 3, 1.0).shares[:2]


def test_a_policy_that_knows_nothing_gets_no_share():
    log = easy_log(contexts=600)
    wrong = np.full((len(log), 3), 1.0 / 3.0)
    found = poem.evaluate({"flat": wrong}, log, "DR")
    assert found.shares["flat"] < 0.2


def test_label_sets_and_models_that_were_asked_for_are_left_as_they_are():
    log, policy = easy_log(contexts=300), a_policy(CLASSES, seed=5)
    assert poem.evaluate(policy, log, "DR", model="linear").shares == {}
    labels = poem.MultiLabel(3)
    sets = logged_by(a_policy(labels), lambda x, y, rng: rng.random(len(y)), contexts=100)
    assert poem.evaluate(a_policy(labels, seed=5), sets, "DR").shares == {}


def test_an_evaluation_says_what_share_a_policy_has():
    _, _, log, good = a_world(150, 5)
    found = poem.evaluate(good, log, "DR", model=fitted(log, "linear", True))
    assert f"share of policies' own probabilities in it: policy {100 * found.shares['policy']:.0f}%" in repr(found)
    assert json.loads(found.to_json())["shares"] == found.shares


# ---- variance that luck hides -----------------------------------------------------------------------


def some_rows(ratio, scatter):
    loss, predicted = -np.array([1.0, 0.0, 1.0, 0.0]), -np.array([0.9, 0.1, 0.5, 0.5])
    return Rows(np.log(ratio), loss, np.zeros(4), predicted, np.zeros(4), scatter=scatter)


def luck(estimator, rows, unit=None):
    """The variance that is added."""
    return estimator.terms(rows).by_unit(unit).stderr_of_luck() ** 2


def test_rows_that_weigh_much_and_are_predicted_well_by_luck_add_variance():
    ratio, scatter = np.array([3.0, 1.0, 0.5, 0.5]), np.full(4, 0.13)
    rows = some_rows(ratio, scatter)
    more = np.sum(ratio**2 * (scatter - (rows.loss - rows.predicted) ** 2))
    assert more > 0.0
    for unit in (None, np.array([0, 1, 1, 0])):
        assert luck(poem.DoublyRobust(), rows, unit) == pytest.approx(more / 16.0)
        assert luck(poem.SelfNormalisedDR(), rows, unit) == pytest.approx(more / ratio.sum() ** 2)
        assert luck(poem.IPS(None), rows, unit) == 0.0
        assert luck(poem.DoublyRobust(), some_rows(ratio[::-1], scatter), unit) == 0.0
        assert luck(poem.DoublyRobust(), some_rows(ratio, None), unit) == 0.0
    assert luck(poem.SelfNormalisedDR(), some_rows(np.full(4, 1e-300), scatter)) == 0.0


def test_a_policy_that_acts_like_the_logger_has_no_hidden_variance():
    _, _, log, good = a_world(200, 3)
    model = fitted(log, "linear", True)
    rows, _ = judged(good, log, model)
    squares = (rows.loss - rows.predicted) ** 2
    assert rows.scatter.sum() == pytest.approx(squares.sum())
    same = replace(rows, log_ratio=np.zeros(len(log)))
    assert luck(poem.DoublyRobust(), same) == pytest.approx(0.0, abs=1e-15)


def reach(line, interval):
    """How many standard errors an interval goes to each side."""
    return stats.norm.ppf(0.975) if interval == "normal" else stats.t(line.freedom).ppf(0.975)


@pytest.mark.parametrize("interval", ["t", "normal"])
def test_hidden_variance_is_part_of_the_standard_error_and_of_the_difference_to_what_was_logged(interval):
    _, _, log, good = a_world(60, 10)
    model = fitted(log, "linear", True)
    rows, _ = judged(good, log, model)
    terms, logged = poem.DoublyRobust().terms(rows).by_unit(None), Terms(rows.loss).by_unit(None)
    more = terms.stderr_of_luck()
    assert more > 0.1 * terms.stderr()
    line = poem.evaluate(good, log, "DR", model=model, loss_bounds=BOUNDS, interval=interval)["policy", "DR"]
    assert line.stderr == pytest.approx(np.hypot(terms.stderr(), more))
    assert line.high - line.value == pytest.approx(reach(line, interval) * line.stderr)
    wide = reach(line, interval) * np.hypot(terms.stderr_less(logged), more)
    assert line.difference_high - line.difference == pytest.approx(wide)


def test_differences_between_policies_and_bootstrap_intervals_do_not_count_luck():
    _, _, log, good = a_world(60, 10)
    model = fitted(log, "linear", True)
    policies = {"good": good, "other": a_policy(CLASSES, seed=5)}
    one, two = (poem.DoublyRobust().terms(judged(each, log, model)[0]).by_unit(None) for each in policies.values())
    assert one.stderr_of_luck() > 0.0
    options = {"against": "other", "interval": "normal", "loss_bounds": BOUNDS}
    line = poem.evaluate(policies, log, "DR", model=model, **options)["good", "DR"]
    wide = reach(line, "normal") * one.stderr_less(two)
    assert line.difference_high - line.difference == pytest.approx(wide)
    drawn = [bootstrap([sums], 200, seed=0).interval(0, sums, 0.025) for sums in (one, replace(one, luck=None))]
    assert drawn[0] == drawn[1]


def test_losses_that_are_all_the_same_scatter_nowhere():
    rows = Rows(np.zeros(4), np.zeros(4), np.zeros(4), np.zeros(4), np.zeros(4), repeated=np.ones(4))
    fold = np.array([0, 0, 1, 1])
    found = Opinion.of(rows, fold, 2, 1.0)
    assert found == Opinion((0.0, 0.0), 0.0, 0.0)
    np.testing.assert_array_equal(found.heard(rows, fold, 1.0).scatter, 0.0)


def test_candidates_are_drawn_twice_as_their_probabilities_say():
    rng = np.random.default_rng(0)
    X, y, counts = rng.normal(size=(40, 2)), rng.integers(0, 2, 40), rng.integers(2, 5, 40)
    log = poem.BanditLog(
        X, y, loss=rng.random(40), propensity=1.0 / counts, available=counts, actions=rng.normal(size=(counts.sum(), 2))
    )
    models = (LossModel(np.zeros((3, 3)), 0.5), LossModel(np.zeros((3, 3)), 0.5))
    flat = rng.random(counts.sum()) + 0.1
    starts = np.cumsum(counts) - counts
    flat /= np.repeat(np.add.reduceat(flat, starts), counts)
    rows, _ = judged(flat, log, CrossFitted(models, folds_of(log, 2, 0), True))
    np.testing.assert_allclose(rows.repeated, np.add.reduceat(flat**2, starts), rtol=1e-12)
