"""evaluate: the same numbers for a policy in any form, and a clear word on what it cannot judge."""

import json
import re

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import poem
from poem.errors import InputError, LogError, MismatchError
from poem.estimators.intervals import METHODS, ONLY_FOR
from poem.evaluation.comparison import ALL

LABELS = ("c", "a", "d", "b")  # not in the order of the alphabet
WITH_MODEL = [name for name, estimator in ALL.items() if estimator.needs_model]
WITHOUT_MODEL = [name for name, estimator in ALL.items() if not estimator.needs_model]
NAN = float("nan")


def a_policy(seed, *, k=4, d=3, scale=0.6, labels=LABELS):
    weights = scale * np.random.default_rng(seed).normal(size=(d + 1, k))
    return poem.Policy(poem.MultiClass(k), weights, True, tuple(labels)[:k])


def logged(logger, X, *, context=None, seed=0, **options):
    """A log of what a policy does; the second class costs more, and so do large first features."""
    rng = np.random.default_rng(seed)
    context = np.arange(len(X)) if context is None else context
    seen = X[context]
    y = logger.sample(seen, rng)
    cost = y[:, 0] if y.ndim == 2 else y == logger.labels[1]
    return poem.BanditLog(
        X,
        y,
        loss=rng.random(len(y)) + cost + 0.3 * np.tanh(seen[:, 0]),
        log_propensity=logger.log_prob(seen, y),
        context=context,
        labels=logger.labels,
        **options,
    )


LOGGER, POLICY, OTHER = a_policy(1), a_policy(2), a_policy(3)


@pytest.fixture(scope="module")
def log():
    """600 rows, each of another context."""
    return logged(LOGGER, np.random.default_rng(0).normal(size=(600, 3)))


@pytest.fixture(scope="module")
def replayed():
    """500 rows in 200 contexts, in any order."""
    rng = np.random.default_rng(5)
    return logged(LOGGER, rng.normal(size=(200, 3)), context=rng.integers(0, 200, 500))


@pytest.fixture(scope="module")
def label_rows():
    """400 rows of three yes/no labels, and a policy for them."""
    rng = np.random.default_rng(6)
    logger, policy = (poem.Policy(poem.MultiLabel(3), rng.normal(size=(4, 3)), True, ("a", "b", "c")) for _ in "ab")
    return logged(logger, rng.normal(size=(400, 3))), policy


def numbers(evaluation, names=tuple(ALL), policy="policy"):
    """Value, ends and standard error of some lines."""
    lines = [evaluation[policy, name] for name in names]
    return np.array([[line.value, line.low, line.high, line.stderr, line.difference] for line in lines])


def same(one, other, names=tuple(ALL)):
    np.testing.assert_allclose(numbers(one, names), numbers(other, names), rtol=1e-9, atol=1e-9)
    for name in names:
        assert one["policy", name].verdict == other["policy", name].verdict


def refuses(error, *parts):
    """Expect an error whose message holds all parts, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(re.escape(part) for part in parts))


class Probabilities:
    """Any object with predict_proba: gives back what it was made with."""

    def __init__(self, probabilities, classes=None):
        self.probabilities = probabilities
        if classes is not None:
            self.classes_ = classes

    def predict_proba(self, X):
        return self.probabilities


# ---- forms of a policy ----------------------------------------------------------------------------


def test_a_policy_is_judged_alike_in_every_form(replayed):
    found = poem.evaluate(POLICY, replayed)
    marginals = POLICY.marginals(replayed.X)
    same(poem.evaluate(marginals, replayed), found)
    same(poem.evaluate(marginals[replayed.context], replayed), found)
    same(poem.evaluate(Probabilities(marginals), replayed), found)
    at_logged = np.exp(POLICY.log_prob_of(replayed))
    same(poem.evaluate(at_logged, replayed), found, WITHOUT_MODEL)


def test_names_are_those_of_the_dict_or_made_up(log):
    one = poem.evaluate(POLICY, log, "SNIPS")
    many = poem.evaluate([POLICY, OTHER], log, "SNIPS")
    named = poem.evaluate({"new": POLICY, "other": OTHER}, log, "SNIPS")
    assert [list(found.diagnostics) for found in (one, many, named)] == [
        ["policy"],
        ["policy 1", "policy 2"],
        ["new", "other"],
    ]
    values = one["policy", "SNIPS"].value, many["policy 1", "SNIPS"].value, named["new", "SNIPS"].value
    assert len(set(values)) == 1
    assert named["other", "SNIPS"].value != values[0]


def test_the_most_probable_output_is_a_policy_too(log):
    certain = POLICY.at_temperature(1e6)
    one_hot = (POLICY.predict(log.X)[:, None] == np.array(LABELS)).astype(float)
    same(poem.evaluate(certain, log), poem.evaluate(one_hot, log))
    taken = POLICY.predict(log.X) == np.array(LABELS)[log.y]
    weight = np.where(taken, np.exp(-log.log_propensity), 0.0)
    assert poem.evaluate(certain, log)["policy", "SNIPS"].value == pytest.approx(np.average(log.loss, weights=weight))


@pytest.mark.parametrize("temperature", [3.0, 30.0, 300.0, 1500.0, 1e4, 1e6])
def test_a_policy_of_any_temperature_can_be_judged(log, temperature):
    # At 1500, weights such as 1e-200 are positive, but their squares are 0.
    found = poem.evaluate(POLICY.at_temperature(temperature), log)
    assert len(found.lines) == len(ALL)
    assert all(np.isfinite(line.value) for line in found.lines)


def test_a_classifier_whose_classes_are_in_another_order(log):
    X, y = np.asarray(log.X), np.array(LABELS)[log.y]
    model = LogisticRegression().fit(X, y)
    assert tuple(model.classes_) != LABELS
    order = [list(model.classes_).index(label) for label in LABELS]
    as_policy = poem.Policy(poem.MultiClass(4), np.vstack([model.coef_.T, model.intercept_])[:, order], True, LABELS)
    same(poem.evaluate(model, log), poem.evaluate(as_policy, log))


def test_a_classifier_of_some_classes_never_chooses_the_others(log):
    some = np.isin(log.y, [0, 2, 3])
    model = DecisionTreeClassifier(max_depth=2).fit(log.X[some], np.array(LABELS)[log.y[some]])
    assert list(model.classes_) == ["b", "c", "d"]
    matrix = np.zeros((len(log), 4))
    matrix[:, [3, 0, 2]] = model.predict_proba(log.X)
    same(poem.evaluate(model, log), poem.evaluate(matrix, log))


def test_classes_may_be_numbers():
    logger = a_policy(1, labels=(3, 10, 7, 5))
    log = logged(logger, np.random.default_rng(0).normal(size=(200, 3)))
    model = LogisticRegression().fit(log.X, np.array(log.labels)[log.y])
    expected = model.predict_proba(log.X)[:, [list(model.classes_).index(label) for label in log.labels]]
    same(poem.evaluate(model, log), poem.evaluate(expected, log))


def test_a_sparse_tree_classifier_can_be_judged(log):
    sparse = log._with(X=poem.BanditLog(sp.csr_array(log.X), log.y, loss=log.loss, propensity="missing").X)
    model = DecisionTreeClassifier(max_depth=2).fit(log.X, np.array(LABELS)[log.y])
    same(poem.evaluate(model, sparse, WITHOUT_MODEL), poem.evaluate(model, log, WITHOUT_MODEL), WITHOUT_MODEL)


def test_contexts_may_be_sparse_or_dense(replayed):
    sparse = poem.BanditLog(
        sp.csr_array(replayed.X),
        np.array(LABELS)[replayed.y],
        loss=replayed.loss,
        log_propensity=replayed.log_propensity,
        context=replayed.context,
        labels=LABELS,
    )
    same(poem.evaluate(POLICY, sparse), poem.evaluate(POLICY, replayed))


def test_an_array_of_rows_is_read_row_by_row_whatever_contexts_the_rows_saw(log):
    # As many rows as contexts, but in another order: row i of the array is row i of the log, as in (n,) arrays.
    shuffled = log.take(np.random.default_rng(3).permutation(len(log)))
    by_row = POLICY.marginals(shuffled.X[shuffled.context])
    same(poem.evaluate(by_row, shuffled), poem.evaluate(POLICY, shuffled))


def test_rows_of_one_context_with_different_probabilities_are_not_mixed_up(replayed):
    # Say, a policy that also saw something that is not in X.
    by_row = np.where(
        (np.arange(len(replayed)) % 2 == 0)[:, None],
        POLICY.marginals(replayed.X[replayed.context]),
        OTHER.marginals(replayed.X[replayed.context]),
    )
    with pytest.raises(MismatchError, match=r"row .* knows more than the log's X.*logged outputs alone"):
        poem.evaluate(by_row, replayed)
    at_logged = by_row[np.arange(len(replayed)), replayed.y]
    assert np.isfinite(poem.evaluate(at_logged, replayed)["policy", "SNIPS"].value)


def test_label_sets_are_judged_with_all_estimators(label_rows):
    log, policy = label_rows
    found = poem.evaluate(policy, log)
    assert [line.estimator for line in found.lines] == list(ALL)
    same(poem.evaluate(np.exp(policy.log_prob_of(log)), log), found, WITHOUT_MODEL)


# ---- estimators -----------------------------------------------------------------------------------


def test_estimators_by_name_and_by_object(log):
    everything = poem.evaluate(POLICY, log, "all")
    assert [line.estimator for line in everything.lines] == list(ALL)
    for name, estimator in ALL.items():
        by_name, by_object = poem.evaluate(POLICY, log, name), poem.evaluate(POLICY, log, estimator)
        assert [line.estimator for line in by_name.lines] == [line.estimator for line in by_object.lines] == [name]
        same(by_name, everything, [name])
        same(by_object, everything, [name])
    mixed = poem.evaluate(POLICY, log, ["DR", poem.SNIPS(None), poem.IPS(3.0)])
    assert [line.estimator for line in mixed.lines] == ["DR", "SNIPS", "clipped IPS"]
    ratio = np.minimum(np.exp(POLICY.log_prob_of(log) - log.log_propensity), 3.0)
    by_hand = log.loss.max() + np.mean(ratio * (log.loss - log.loss.max()))
    assert mixed["policy", "clipped IPS"].value == pytest.approx(by_hand, rel=1e-12)


def test_two_settings_of_one_estimator_both_stand_in_the_table(log):
    found = poem.evaluate(POLICY, log, [poem.IPS(1.5), poem.IPS(6.0)])
    assert len(found.lines) == 2
    assert found.lines[0].value != found.lines[1].value


def test_loss_models_are_left_out_with_a_note_for_arrays_of_logged_outputs(log):
    found = poem.evaluate({"new": np.exp(POLICY.log_prob_of(log)), "other": OTHER}, log)
    assert [line.estimator for line in found.lines if line.policy == "new"] == WITHOUT_MODEL
    assert [line.estimator for line in found.lines if line.policy == "other"] == list(ALL)
    assert found.skipped == ("new",)
    assert "no estimates from a loss model for new" in repr(found)


@pytest.mark.parametrize("estimators", ["all", "SNIPS", "DR", ["IPS", "SNDR"]], ids=str)
def test_nothing_is_said_to_be_left_out_when_nothing_was(log, estimators):
    found = poem.evaluate(POLICY, log, estimators)
    assert found.skipped == ()
    assert "no estimates" not in repr(found)


def test_without_a_model_there_is_no_model(log):
    found = poem.evaluate(POLICY, log, model=None)
    assert [line.estimator for line in found.lines] == WITHOUT_MODEL
    # All its probabilities are known; it is the model that is missing.
    assert "only the logged outputs' probabilities are known" not in repr(found)


@pytest.mark.parametrize("model", ["linear", Ridge(), DecisionTreeRegressor(max_depth=3, random_state=0)], ids=str)
def test_every_model_gives_doubly_robust_estimates_near_the_truth(log, model):
    # Mean loss: ½ by chance, 1 for the second class, 0.3·tanh(x₀) on average.
    truth = 0.5 + POLICY.marginals(log.X)[:, 1].mean() + 0.3 * np.tanh(log.X[:, 0]).mean()
    found = poem.evaluate(POLICY, log, ["IPS", "DR"], model=model, level=0.999)
    assert found["policy", "DR"].low < truth < found["policy", "DR"].high
    assert found["policy", "DR"].stderr < found["policy", "IPS"].stderr


def test_a_sparse_tree_regressor_can_be_a_loss_model(log):
    sparse = poem.BanditLog(
        sp.csr_array(log.X),
        np.array(LABELS)[log.y],
        loss=log.loss,
        log_propensity=log.log_propensity,
        labels=LABELS,
    )
    tree = DecisionTreeRegressor(max_depth=3, random_state=0)
    same(poem.evaluate(POLICY, sparse, "DR", model=tree), poem.evaluate(POLICY, log, "DR", model=tree), ["DR"])


# ---- differences ----------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_differences_are_paired(log, interval):
    near = poem.Policy(poem.MultiClass(4), POLICY.weights + 0.05 * OTHER.weights, True, LABELS)
    found = poem.evaluate({"new": POLICY, "near": near}, log, against="near", interval=interval)
    for name in ALL:
        new, base = found["new", name], found["near", name]
        assert new.difference == pytest.approx(new.value - base.value, abs=1e-12)
        assert np.isnan(base.difference)
        if new.bias_bound == base.bias_bound == 0.0:
            unpaired = np.hypot(new.high - new.low, base.high - base.low)
            assert new.difference_high - new.difference_low < 0.5 * unpaired
            assert new.difference_low <= new.difference <= new.difference_high


def test_a_policy_without_a_model_has_no_difference_to_its_model_estimates(log):
    found = poem.evaluate({"new": POLICY, "base": np.exp(OTHER.log_prob_of(log))}, log, against="base")
    assert np.isnan(found["new", "DR"].difference)
    assert np.isfinite(found["new", "IPS"].difference)
    repr(found)


def test_the_difference_to_the_log_is_to_its_mean_loss(log):
    found = poem.evaluate(POLICY, log)
    for line in found.lines:
        assert line.difference == pytest.approx(line.value - log.loss.mean(), abs=1e-12)


@pytest.mark.parametrize("interval", ["t", "normal", "bootstrap"])
def test_the_logging_policy_is_worth_what_was_logged(log, interval):
    found = poem.evaluate(LOGGER, log, ["IPS", "SNIPS"], interval=interval)
    for line in found.lines:
        assert line.value == pytest.approx(log.loss.mean(), rel=1e-12)
        assert line.difference == pytest.approx(0.0, abs=1e-12)
        assert line.difference_low == pytest.approx(0.0, abs=1e-9)
        assert line.difference_high == pytest.approx(0.0, abs=1e-9)
        assert line.verdict == "trust"
    assert found.logged.value == pytest.approx(log.loss.mean(), rel=1e-12)
    assert found.logged.stderr == pytest.approx(log.loss.std(ddof=1) / np.sqrt(len(log)), rel=1e-12)


def test_estimate_agrees_with_evaluate(replayed):
    found, line = poem.estimate(POLICY, replayed), poem.evaluate(POLICY, replayed)["policy", "SNIPS"]
    assert (found.value, found.stderr) == pytest.approx((line.value, line.stderr), rel=1e-12)
    assert found.interval() == pytest.approx((line.low, line.high), rel=1e-12)
    clipped, line = poem.estimate(POLICY, replayed, poem.IPS()), poem.evaluate(POLICY, replayed, "clipped IPS").lines[0]
    assert (clipped.value, clipped.stderr, clipped.bias_bound) == pytest.approx(
        (line.value, line.stderr, line.bias_bound), rel=1e-12
    )


def test_losses_may_be_shifted_and_scaled(log):
    found = poem.evaluate(POLICY, log)
    other = poem.evaluate(POLICY, log._with(loss=100.0 * log.loss - 40.0))
    for name in ALL:
        assert other["policy", name].value == pytest.approx(100.0 * found["policy", name].value - 40.0, rel=1e-4)
        assert other["policy", name].stderr == pytest.approx(100.0 * found["policy", name].stderr, rel=1e-3)


# ---- threads and seeds ----------------------------------------------------------------------------


def test_the_number_of_threads_changes_nothing():
    # More than one block of the bootstrap, and more than one piece of the layout.
    log = logged(LOGGER, np.random.default_rng(1).normal(size=(9000, 3)))
    one, two = (
        poem.evaluate({"a": POLICY, "b": OTHER}, log, interval="bootstrap", replicates=100, n_jobs=n) for n in (1, 2)
    )
    assert one.to_json() == two.to_json()


@pytest.mark.parametrize("interval", ["bootstrap", "truncated", "betting", "t"])
def test_a_seed_makes_it_reproducible(log, interval):
    first, again, other = (
        poem.evaluate(POLICY, log, interval=interval, replicates=200, seed=s).to_json() for s in (4, 4, 5)
    )
    assert first == again
    assert first != other


# ---- intervals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [method for method in METHODS if method != "clopper-pearson"])
def test_a_higher_level_is_wider(log, interval):
    narrow, wide = (poem.evaluate(POLICY, log, interval=interval, level=level) for level in (0.5, 0.99))
    bounded = 0
    for one, other in zip(narrow.lines, wide.lines, strict=True):
        assert one.value == other.value
        assert one.low <= one.value <= one.high
        if np.isfinite(other.high):
            bounded += 1
            assert other.low < one.low
            assert one.high < other.high
        if np.isfinite(other.difference_high):
            assert other.difference_low < one.difference_low < one.difference_high < other.difference_high
    assert bounded == (1 if interval in ONLY_FOR else len(ALL))
    assert (narrow.level, wide.level, narrow.interval) == (0.5, 0.99, interval)


def test_bounds_that_hold_for_any_n_are_wider(log):
    by_t = poem.evaluate(POLICY, log)
    for interval, name in (("bernstein", "clipped IPS"), ("truncated", "IPS")):
        line = poem.evaluate(POLICY, log, interval=interval)["policy", name]
        assert line.high - line.low > 1.2 * (by_t["policy", name].high - by_t["policy", name].low)
        assert line.high > by_t["policy", name].high


@pytest.mark.parametrize("interval", sorted(set(ONLY_FOR) - {"clopper-pearson"}))
def test_an_estimator_without_an_interval_has_an_empty_cell(log, interval):
    found = poem.evaluate(POLICY, log, ["IPS", "clipped IPS", "SNIPS"], interval=interval)
    text = repr(found)
    assert "inf" not in text
    other = "IPS" if interval == "bernstein" else "clipped IPS"
    assert f"{interval} intervals exist for {ONLY_FOR[interval]} only, not for {other}, SNIPS" in text
    assert found["policy", ONLY_FOR[interval]].high < np.inf
    assert found["policy", "SNIPS"].high == np.inf


@pytest.mark.parametrize("interval", ["truncated", "ls", "betting"])
def test_bounds_for_any_n_have_differences(log, interval):
    found = poem.evaluate({"a": POLICY, "b": OTHER}, log, "IPS", interval=interval, level=0.8)
    for line in found.lines:
        assert line.difference_low <= line.difference <= line.difference_high
    both = poem.evaluate({"a": POLICY, "b": OTHER}, log, "IPS", interval=interval, level=0.8, against="b")["a", "IPS"]
    one, two = poem.evaluate({"a": POLICY, "b": OTHER}, log, "IPS", interval=interval, level=0.9).lines
    assert both.difference_low == pytest.approx(one.low - two.high, rel=1e-9)  # the error is split between both
    assert both.difference_high == pytest.approx(one.high - two.low, rel=1e-9)


@pytest.mark.parametrize("interval", ["ls", "betting"])
def test_a_clearly_better_policy_is_proven_better(interval):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 2000)
    loss = (rng.random(2000) < np.where(y, 0.2, 0.8)).astype(float)
    log = poem.BanditLog(rng.normal(size=(2000, 1)), y, loss=loss, propensity=np.full(2000, 0.5), labels=range(2))
    line = poem.evaluate(np.tile([0.1, 0.9], (2000, 1)), log, "IPS", interval=interval).lines[0]
    assert line.low <= 0.26 <= line.high
    assert line.difference_low <= 0.26 - 0.5 <= line.difference_high < 0.0
    assert np.isnan(line.probability_better)


def test_differences_have_the_interval_that_was_asked_for(log):
    few = log.take(np.arange(12))  # where Student's t and the normal differ
    by_t, by_normal = (poem.evaluate(POLICY, few, "SNIPS", interval=name).lines[0] for name in ("t", "normal"))
    shrunk = (by_normal.high - by_normal.low) / (by_t.high - by_t.low)
    assert shrunk < 0.95
    ends = by_normal.difference_high - by_normal.difference_low, by_t.difference_high - by_t.difference_low
    assert ends[0] / ends[1] == pytest.approx(shrunk)


def test_the_bootstrap_agrees_with_the_standard_error(log):
    by_t, by_bootstrap = poem.evaluate(POLICY, log), poem.evaluate(POLICY, log, interval="bootstrap")
    for name in ALL:
        one, other = by_t["policy", name], by_bootstrap["policy", name]
        # A bias bound is in both; what is left are 600 rows and 1000 replicates.
        assert other.high - other.low == pytest.approx(one.high - one.low, rel=0.2)


@pytest.mark.parametrize("name", ["IPS", "SNIPS", "DR", "DRos", "clipped IPS"])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_the_one_sided_bound_is_between_the_value_and_the_end_of_the_interval(log, name, level):
    found = poem.evaluate(POLICY, log, level=level)
    line = found["policy", name]
    assert line.value < found.bound("policy", name, level) < line.high
    # With probability ½ it is below the value itself, plus what a held-back weight may hide behind a model.
    hidden = line.bias_above
    assert found.bound("policy", name, 0.5) == pytest.approx(line.value + hidden)


# ---- units ----------------------------------------------------------------------------------------


def test_copies_of_a_row_in_one_group_are_no_new_evidence():
    X = np.random.default_rng(0).normal(size=(300, 3))
    rows = logged(LOGGER, X)
    copies = np.repeat(np.arange(300), 4)
    columns = {"loss": rows.loss[copies], "log_propensity": rows.log_propensity[copies], "labels": LABELS}
    y = np.array(LABELS)[rows.y[copies]]
    naive = poem.BanditLog(X[copies], y, **columns)
    grouped = poem.BanditLog(X[copies], y, group=copies, **columns)
    once, apart, together = (poem.evaluate(POLICY, log) for log in (rows, naive, grouped))
    for name in ("IPS", "SNIPS"):
        assert together["policy", name].value == pytest.approx(once["policy", name].value, rel=1e-12)
        assert together["policy", name].stderr == pytest.approx(once["policy", name].stderr, rel=1e-9)
        assert apart["policy", name].stderr == pytest.approx(once["policy", name].stderr / 2.0, rel=0.01)
    for name in WITH_MODEL:
        assert together["policy", name].stderr > 1.5 * apart["policy", name].stderr
    assert together.logged.units == 300


@pytest.fixture(scope="module")
def one_group(log):
    return log._with(group=np.zeros(len(log), dtype=int))


@pytest.mark.parametrize("interval", ["t", "normal", "bootstrap", "bernstein"])
def test_one_group_gives_no_interval(one_group, interval):
    found = poem.evaluate(POLICY, one_group, model=None, interval=interval)
    for line in found.lines:
        assert (line.low, line.high) == (-np.inf, np.inf)
        assert (line.difference_low, line.difference_high) == (-np.inf, np.inf)
        assert line.verdict == "don't"
        assert found.bound("policy", line.estimator, 0.975) == np.inf
    assert "only 1 independent units" in repr(found)


def test_one_group_is_judged_as_far_as_it_can_be_by_default(one_group):
    # No loss model can be cross-fitted on one unit; what needs none can still be told.
    found = poem.evaluate(POLICY, one_group)
    assert found["policy", "SNIPS"].high == np.inf
    assert found.diagnostics["policy"].verdict == "don't"


def test_one_group_can_be_drawn_and_written(one_group, tmp_path):
    found = poem.evaluate(POLICY, one_group, model=None)
    found.plot().savefig(tmp_path / "unbounded.png")
    assert json.loads(found.to_json())["lines"][0]["high"] is None


@pytest.mark.parametrize("interval", ["t", "bootstrap"])
def test_one_row_of_support_gives_no_interval(log, interval):
    alone = np.zeros(len(log))
    alone[7] = 0.5
    found = poem.evaluate(alone, log, interval=interval)
    assert found["policy", "SNIPS"].value == pytest.approx(log.loss[7])
    assert found.diagnostics["policy"].verdict == "don't"
    line = found["policy", "SNIPS"]
    assert (line.low, line.high) == (-np.inf, np.inf)


def test_the_smallest_probabilities_do_no_harm(log):
    tiny = np.full(len(log), 1e-310)
    tiny[:100] *= np.arange(1, 101)
    found = poem.evaluate(tiny, log)
    assert found.diagnostics["policy"].verdict == "don't"


# ---- the table ------------------------------------------------------------------------------------


def test_the_table_has_every_line_and_the_verdict(log):
    found = poem.evaluate({"new": POLICY, "sharp": OTHER.at_temperature(20.0)}, log)
    text = repr(found)
    table = [line.split() for line in text.splitlines()]
    for line in found.lines:
        words = [line.policy, *line.estimator.split(), f"{line.value:.4g}"]
        assert any(row[: len(words)] == words for row in table)
    assert "95 % interval" in text
    assert "− logged" in text
    for name, diagnostics in found.diagnostics.items():
        assert f"{name}: {diagnostics.verdict}" in text
        assert all(reason in text for reason in diagnostics.reasons)
    assert "estimated" not in text


def test_a_line_is_found_by_its_names(log):
    found = poem.evaluate(POLICY, log, "SNIPS")
    assert found["policy", "SNIPS"] is found.lines[0]
    with refuses(InputError, "there is no line ('policy', 'IPS')", "there are [('policy', 'SNIPS')]"):
        _ = found["policy", "IPS"]


def test_a_one_sided_bound_is_by_the_chosen_method(log):
    found = poem.evaluate(POLICY, log, "clipped IPS", interval="bernstein", level=0.9)
    assert found.bound("policy", "clipped IPS", 0.95) == found["policy", "clipped IPS"].high
    with refuses(InputError, "evaluate with level=0.98 for a bound at 0.99"):
        found.bound("policy", "clipped IPS", 0.99)


def test_the_frame_has_a_row_for_each_line(log):
    found = poem.evaluate({"new": POLICY, "other": OTHER}, log)
    frame = found.to_frame()
    expected = ["policy", "estimator", "value", "low", "high", "stderr", "difference", "probability_better", "verdict"]
    assert set(expected) <= set(frame.columns)
    assert len(frame) == 2 * len(ALL)
    assert frame["value"].tolist() == [line.value for line in found.lines]
    assert found.to_dicts()[0] == frame.iloc[0].to_dict()


def test_json_holds_numbers_only(log):
    unbounded = np.zeros(len(log))
    unbounded[7] = 0.5
    found = poem.evaluate({"new": POLICY, "alone": unbounded, "base": OTHER}, log, against="base")

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    content = json.loads(found.to_json(), parse_constant=refuse)
    assert len(content["lines"]) == len(found.lines)
    assert content["against"] == "base"
    assert content["diagnostics"]["alone"]["verdict"] == "don't"
    lines = {(line["policy"], line["estimator"]): line for line in content["lines"]}
    assert lines["new", "SNIPS"]["value"] == found["new", "SNIPS"].value
    assert lines["alone", "SNIPS"]["high"] is None
    assert lines["base", "SNIPS"]["difference"] is None


def test_the_figure_can_be_saved(log, tmp_path):
    unbounded = np.zeros(len(log))
    unbounded[7] = 0.5
    figure = poem.evaluate({"new": POLICY, "alone": unbounded}, log).plot()
    figure.savefig(tmp_path / "evaluation.png")
    assert (tmp_path / "evaluation.png").stat().st_size > 5000
    ticks = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert any(tick.startswith("new (") and tick.endswith("): SNIPS") for tick in ticks)
    assert "alone (don't): IPS" in ticks


# ---- diagnostics ----------------------------------------------------------------------------------


def test_probability_on_classes_never_logged_is_named():
    X = np.random.default_rng(0).normal(size=(400, 3))
    logger = a_policy(1, k=3, labels=("a", "b", "c"))
    rows = logged(logger, X)
    log = poem.BanditLog(
        X,
        np.array(rows.labels)[rows.y],
        loss=rows.loss,
        log_propensity=rows.log_propensity,
        labels=("a", "b", "c", "new"),
    )
    far = np.hstack([0.1 * logger.marginals(X), np.full((400, 1), 0.9)])
    found = poem.evaluate(far, log)
    assert found.diagnostics["policy"].verdict == "don't"
    assert any(
        "90% of its probability is on outputs never logged" in why for why in found.diagnostics["policy"].reasons
    )
    assert "never logged" in repr(found)
    assert all(line.verdict == "don't" for line in found.lines)


def test_wrong_propensities_are_noticed(log):
    wrong = log._with(log_propensity=np.full(len(log), np.log(0.5)))
    found = poem.evaluate(LOGGER, wrong).diagnostics["policy"]
    assert found["mean weight"].verdict == "don't"
    assert any("wrong propensities or support" in why for why in found.reasons)


# ---- bad input ------------------------------------------------------------------------------------


def test_a_policy_for_other_outputs_is_refused(log, label_rows):
    with refuses(MismatchError, "the log's outputs are ['c', 'a', 'd', 'b']", "the policy's are", "'x'"):
        poem.evaluate(a_policy(1, labels="wxyz"), log)
    with refuses(MismatchError, "the log's outputs are", "the policy's are ['a', 'b', 'c']"):
        poem.evaluate(label_rows[1], log)


def test_a_policy_for_other_features_is_refused(log):
    with refuses(MismatchError, "X has 3 features; the policy was made for 5"):
        poem.evaluate(a_policy(1, d=5), log)


def test_a_classifier_of_unknown_classes_is_refused(log):
    model = LogisticRegression().fit(log.X, np.array(["c", "a", "zebra", "b"])[log.y])
    with refuses(MismatchError, "policy chooses ['zebra'], which this log does not know", "'c'"):
        poem.evaluate(model, log)


def test_a_classifier_of_the_wrong_shape_is_refused(log):
    marginals = POLICY.marginals(log.X)
    with refuses(MismatchError, "policy", "3"):
        poem.evaluate(Probabilities(marginals[:, :3] / marginals[:, :3].sum(axis=1, keepdims=True)), log)
    with refuses(MismatchError, "policy", "50"):
        poem.evaluate(Probabilities(marginals[:50]), log)
    with refuses(MismatchError, "policy", "4"):
        poem.evaluate(Probabilities(marginals, classes=["a", "b"]), log)


def test_a_classifier_is_for_classes(label_rows):
    log, _ = label_rows
    model = LogisticRegression().fit(log.X, log.y[:, 0])
    with refuses(MismatchError, "predict_proba", "this log holds label sets"):
        poem.evaluate(model, log)


@pytest.mark.parametrize("value", [-0.1, 1.2, NAN, float("inf")])
def test_probabilities_must_be_probabilities(log, value):
    at_logged, by_context = np.exp(POLICY.log_prob_of(log)), POLICY.marginals(log.X)
    at_logged[17], by_context[17, 2] = value, value
    for given in (at_logged, by_context, Probabilities(by_context)):
        with refuses(InputError, "new: probabilities must be in [0, 1]", f"row 17 has {value}", "1 such values"):
            poem.evaluate({"new": given}, log)


def test_logarithms_are_no_probabilities(log):
    with refuses(InputError, "probabilities must be in [0, 1]", "not scores or logarithms"):
        poem.evaluate(POLICY.log_prob_of(log), log)


def test_class_probabilities_add_up_to_1(log):
    matrix = POLICY.marginals(log.X)
    matrix[17] *= 0.5
    with refuses(InputError, "probabilities must add up to 1; row 17 adds up to 0.5"):
        poem.evaluate(matrix, log)


def test_a_policy_that_never_chooses_what_was_logged_is_refused(log):
    with refuses(MismatchError, "policy gives every logged output the probability 0", "Check"):
        poem.evaluate(np.zeros(len(log)), log)
    only_c = log.take(log.y == 0)
    with refuses(MismatchError, "policy gives every logged output the probability 0"):
        poem.evaluate(poem.constant_policy(log, "a"), only_c)


@pytest.mark.parametrize("length", [0, 599, 601])
def test_probabilities_must_be_as_many_as_rows(log, length):
    with refuses(MismatchError, "one probability for each of the 600 rows", f"found shape ({length},)"):
        poem.evaluate(np.full(length, 0.5), log)
    with refuses(MismatchError, f"has {length} rows; the log has 600 rows in 600 contexts"):
        poem.evaluate(np.full((length, 4), 0.25), log)


def test_a_matrix_must_have_a_column_for_each_class(log, label_rows):
    with refuses(MismatchError, "shape (600, 3)", "one column for each of its 4 labels"):
        poem.evaluate(np.full((600, 3), 1 / 3), log)
    with refuses(MismatchError, "shape (400, 3)", "class probabilities need a log of classes"):
        poem.evaluate(np.full((400, 3), 1 / 3), label_rows[0])


@pytest.mark.parametrize(
    "policy", ["best", object(), {"a": "best"}, [0, POLICY]], ids=["text", "object", "dict", "list"]
)
def test_what_is_no_policy_is_refused(log, policy):
    with pytest.raises(InputError, match=r"must be a policy, a classifier|must have one probability for each"):
        poem.evaluate(policy, log)


@pytest.mark.parametrize("policies", [[], {}, ()], ids=repr)
def test_there_must_be_a_policy(log, policies):
    with refuses(InputError, "there is no policy to evaluate"):
        poem.evaluate(policies, log)


@pytest.mark.parametrize("name", ["logged", 3, None], ids=repr)
def test_names_of_policies_are_texts_other_than_logged(log, name):
    with refuses(InputError, f"a policy cannot be named {name!r}"):
        poem.evaluate({name: POLICY}, log)


@pytest.mark.parametrize("estimators", ["ips", ["IPS", "DoubleRobust"], [3]], ids=repr)
def test_estimators_must_be_known(log, estimators):
    with refuses(InputError, "there is no estimator", "choose from IPS"):
        poem.evaluate(POLICY, log, estimators)


@pytest.mark.parametrize("estimators", [None, 5, [["IPS"]], poem.IPS], ids=repr)
def test_estimators_of_a_wrong_kind_are_refused(log, estimators):
    with pytest.raises(InputError, match="estimator"):
        poem.evaluate(POLICY, log, estimators)


def test_there_must_be_an_estimator(log):
    with refuses(InputError, "no estimator was given; choose from IPS"):
        poem.evaluate(POLICY, log, [])


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.5, 95, "95", NAN, None], ids=repr)
def test_the_level_is_between_0_and_1(log, level):
    with refuses(InputError, "level must be between 0 and 1", f"found {level!r}"):
        poem.evaluate(POLICY, log, level=level)
    with refuses(InputError, "level must be between 0 and 1", f"found {level!r}"):
        poem.evaluate(POLICY, log, "IPS").bound("policy", "IPS", level)


@pytest.mark.parametrize("interval", ["student", None, 3], ids=repr)
def test_the_interval_must_be_known(log, interval):
    with refuses(InputError, "interval must be one of t, normal, bootstrap", f"found {interval!r}"):
        poem.evaluate(POLICY, log, interval=interval)


def test_the_policy_to_compare_with_must_be_among_them(log):
    with refuses(InputError, "against must be one of logged, new", "found 'old'"):
        poem.evaluate({"new": POLICY}, log, against="old")


@pytest.mark.parametrize("model", ["forest", 3, LogisticRegression], ids=["name", "number", "class"])
def test_the_model_must_be_known(log, model):
    with pytest.raises(InputError, match="model must be 'linear', a scikit-learn regressor or None; found"):
        poem.evaluate(POLICY, log, model=model)


def test_a_regressor_is_no_model_for_label_sets(label_rows):
    log, policy = label_rows
    with refuses(InputError, "use model='linear' for labels"):
        poem.evaluate(policy, log, model=Ridge())


@pytest.mark.parametrize("folds", [1, 0, -2, 601, 2.0, "2"], ids=repr)
def test_folds_are_from_2_to_the_number_of_units(log, folds):
    with refuses(InputError, "folds must be from 2 to the number of independent units, 600", f"found {folds}"):
        poem.evaluate(POLICY, log, folds=folds)


@pytest.mark.parametrize("replicates", [5, 0])
def test_a_bootstrap_needs_replicates(log, replicates):
    with refuses(InputError, "replicates must be at least 100", f"found {replicates}"):
        poem.evaluate(POLICY, log, interval="bootstrap", replicates=replicates)


@pytest.mark.parametrize("options", [{"replicates": -1}, {"replicates": "x"}, {"seed": -1}, {"seed": None}], ids=str)
def test_whole_numbers_are_wanted(log, options):
    with refuses(InputError, "must be a whole number"):
        poem.evaluate(POLICY, log, **options)


def test_estimators_that_need_a_model_are_refused_without_one(log):
    with refuses(InputError, "DR need a loss model"):
        poem.evaluate(POLICY, log, ["DR"], model=None)


@pytest.mark.parametrize("n_jobs", [0, "2"], ids=repr)
def test_n_jobs_must_be_a_number_of_threads(log, n_jobs):
    with refuses(InputError, "n_jobs must"):
        poem.evaluate(POLICY, log, n_jobs=n_jobs)


def test_a_log_without_propensities_is_refused(log):
    missing = poem.BanditLog(log.X, log.y, loss=log.loss, propensity="missing", labels=range(4))
    with refuses(LogError, "this log has no propensities", "poem.estimate_propensities(log)"):
        poem.evaluate(POLICY, missing)


def test_arguments_in_the_wrong_order_are_named(log):
    with refuses(InputError, "evaluate takes (policies, log); found Policy as the log"):
        poem.evaluate(log, POLICY)
    with refuses(InputError, "evaluate takes (policies, log); found str as the log"):
        poem.evaluate(POLICY, "log.csv")


def test_policies_that_differ_by_rounding_are_neither_better_nor_worse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    log = poem.BanditLog(
        X, rng.integers(0, 3, 300), loss=rng.random(300), propensity=np.full(300, 1 / 3), labels=range(3)
    )
    weights = rng.normal(size=(3, 3))
    one = poem.Policy(poem.MultiClass(3), weights, True, log.labels)
    for shift in range(20):  # a constant in all scores changes nothing but the last bits
        other = poem.Policy(poem.MultiClass(3), weights + 0.1 * shift, True, log.labels)
        line = poem.evaluate({"one": one, "other": other}, log, against="other")["one", "DR"]
        assert (line.difference, line.difference_low, line.difference_high) == (0.0, 0.0, 0.0)
        assert line.probability_better == 0.5
