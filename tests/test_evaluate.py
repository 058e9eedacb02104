"""evaluate: the same numbers for a policy in any form, with any estimator."""

import numpy as np
import pytest
import scipy.sparse as sp
from evaluated_logs import LABELS, LOGGER, OTHER, POLICY, Probabilities, a_policy, logged
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import poem
from poem.errors import MismatchError
from poem.evaluation.comparison import ALL

WITHOUT_MODEL = [name for name, estimator in ALL.items() if not estimator.needs_model]


def numbers(evaluation, names=tuple(ALL), policy="policy"):
    """Value, ends and standard error of some lines."""
    lines = [evaluation[policy, name] for name in names]
    return np.array([[line.value, line.low, line.high, line.stderr, line.difference] for line in lines])


def same(one, other, names=tuple(ALL)):
    np.testing.assert_allclose(numbers(one, names), numbers(other, names), rtol=1e-9, atol=1e-9)
    for name in names:
        assert one["policy", name].verdict == other["policy", name].verdict


# ---- forms of a policy -----------------------------------------------------------------------------


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
    log = logged(logger, np.random.default_rng(0).normal(size=(190, 3)))
    model = LogisticRegression().fit(log.X, np.array(log.labels)[log.y])
    expected = model.predict_proba(log.X)[:, [list(model.classes_).index(label) for label in log.labels]]
    same(poem.evaluate(model, log), poem.evaluate(expected, log))


def test_a_sparse_tree_classifier_can_be_judged(log):
    sparse = log.replaced(X=poem.BanditLog(sp.csr_array(log.X), log.y, loss=log.loss, propensity="missing").X)
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


# ---- estimators ------------------------------------------------------------------------------------


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


# ---- differences -----------------------------------------------------------------------------------


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
    other = poem.evaluate(POLICY, log.replaced(loss=100.0 * log.loss - 40.0))
    for name in ALL:
        assert other["policy", name].value == pytest.approx(100.0 * found["policy", name].value - 40.0, rel=1e-4)
        assert other["policy", name].stderr == pytest.approx(100.0 * found["policy", name].stderr, rel=1e-3)


def test_policies_that_differ_by_rounding_are_neither_better_nor_worse():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(190, 2))
    log = poem.BanditLog(
        X, rng.integers(0, 3, 190), loss=rng.random(190), propensity=np.full(190, 1 / 3), labels=range(3)
    )
    weights = rng.normal(size=(3, 3))
    one = poem.Policy(poem.MultiClass(3), weights, True, log.labels)
    for shift in range(20):  # a constant in all scores changes nothing but the last bits
        other = poem.Policy(poem.MultiClass(3), weights + 0.1 * shift, True, log.labels)
        line = poem.evaluate({"one": one, "other": other}, log, against="other")["one", "DR"]
        assert (line.difference, line.difference_low, line.difference_high) == (0.0, 0.0, 0.0)
        assert line.probability_better == 0.5


# ---- threads and seeds -----------------------------------------------------------------------------


def test_the_number_of_threads_changes_nothing():
    # More than one block of the bootstrap, and more than one piece of the layout.
    log = logged(LOGGER, np.random.default_rng(1).normal(size=(9000, 3)))
    one, two = (
        poem.evaluate(
            {"a": POLICY, "b": OTHER}, log, interval="bootstrap", resampling=poem.Resampling(replicates=100), n_jobs=n
        )
        for n in (1, 2)
    )
    assert one.to_json() == two.to_json()


@pytest.mark.parametrize("interval", ["bootstrap", "truncated", "betting", "t"])
def test_a_seed_makes_it_reproducible(log, interval):
    first, again, other = (
        poem.evaluate(POLICY, log, interval=interval, resampling=poem.Resampling(replicates=200), seed=s).to_json()
        for s in (4, 4, 5)
    )
    assert first == again
    assert first != other


# ---- diagnostics -----------------------------------------------------------------------------------


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
    wrong = log.replaced(log_propensity=np.full(len(log), np.log(0.5)))
    found = poem.evaluate(LOGGER, wrong).diagnostics["policy"]
    assert found["mean weight"].verdict == "don't"
    assert any("wrong propensities or support" in why for why in found.reasons)


# ---- clipping, and who decides -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def far():
    """A policy that prefers a rare output, and a log large enough to judge it without clipping."""
    rng = np.random.default_rng(7)
    p = np.where(rng.random(6000) < 0.7, 0.9, 0.3)  # of the output 1: clip 3
    y = (rng.random(6000) >= p).astype(int)
    log = poem.BanditLog(
        rng.normal(size=(6000, 1)), y, loss=rng.random(6000), propensity=np.where(y == 0, p, 1.0 - p), labels=[0, 1]
    )
    return np.tile([0.1, 0.9], (6000, 1)), log


def test_clipping_counts_against_estimators_that_clip(far):
    found = poem.evaluate(far[0], far[1])
    finding = found.diagnostics["policy"]["clipped mass"]
    assert finding.value > 0.1
    assert (finding.verdict, finding.note) == ("trust", True)
    assert "not in DR, which decides" in repr(found)
    assert found.diagnostics["policy"].verdict == found["policy", "DR"].verdict == "trust"
    assert found["policy", "clipped IPS"].verdict in ("caution", "don't")


@pytest.mark.parametrize(
    ("estimators", "interval", "faulty"),
    [
        (["clipped IPS"], "t", True),
        (["SNIPS", "clipped IPS"], "t", False),
        ("all", "bernstein", True),
        ("all", "betting", False),
    ],
)
def test_clipping_is_a_fault_if_the_estimator_that_decides_clips(far, estimators, interval, faulty):
    found = poem.evaluate(far[0], far[1], estimators, interval=interval)
    finding = found.diagnostics["policy"]["clipped mass"]
    assert (finding.verdict != "trust") == faulty == (not finding.note)
