"""An error says what is wrong, what was found, and what to do."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from refusals import refuses

import poem
from poem.errors import InputError, LearningError, LogError, MismatchError, PoemError

NAN, INF = float("nan"), float("inf")


def with_value(values, position, value):
    changed = np.array(values, dtype=float)
    changed[position] = value
    return changed


# ---- X ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize(
    "form", [np.array, sp.csr_array, sp.csc_array, pd.DataFrame, pl.DataFrame], ids=lambda f: f.__name__
)
def test_contexts_must_be_finite(rows, make_log, form, value):
    with refuses(LogError, "X must be finite", "row 17, column 2", "1 such", "Impute or drop"):
        make_log(X=form(with_value(rows.X, (17, 2), value)))


def test_a_missing_value_of_a_frame_is_found(rows, make_log):
    frame = pl.DataFrame({"a": [1, None] * 20})
    with refuses(LogError, "X must be finite", "row 1, column 0", "20 such", "Impute or drop"):
        make_log(X=frame)


def test_huge_finite_contexts_are_fine(make_log):
    assert make_log(X=np.full((40, 3), 1e308)).n_features == 3


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_column_of_strings_is_named(rows, make_log, library):
    frame = library.DataFrame({"age": rows.X[:, 0], "city": ["Ulm"] * 40})
    with refuses(LogError, "X must be numeric", "column 'city' holds", "string", "Encode it first"):
        make_log(X=frame)


def test_contexts_of_objects_are_refused(make_log):
    with refuses(LogError, "X must be a numeric matrix", "found list"):
        make_log(X=[["a", "b"]] * 40)


def test_contexts_of_complex_numbers_are_refused(rows, make_log):
    with refuses(LogError, "X must be"):
        make_log(X=rows.X + 1j)
    with refuses(LogError, "X must be numeric", "complex128", "Convert it to float64"):
        make_log(X=sp.csr_array(rows.X + 1j))


def test_contexts_with_one_or_three_dimensions_are_refused(rows, make_log):
    with refuses(LogError, "X must have two dimensions", "found 1", "Reshape"):
        make_log(X=rows.X[:, 0])
    with refuses(LogError, "X must have two dimensions", "found 3", "Reshape"):
        make_log(X=rows.X[:, :, None])


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_a_series_in_place_of_contexts_is_refused(rows, make_log, library):
    with refuses(LogError, "X must"):
        make_log(X=library.Series(rows.X[:, 0]))


def test_columns_of_the_same_name_are_refused(rows, make_log):
    with pytest.raises(PoemError):
        make_log(X=pd.DataFrame(rows.X, columns=["a", "a", "b"]))


def test_feature_names_must_match_the_columns(make_log):
    with refuses(MismatchError, "X has 3 columns, but 2 feature names", "Pass X"):
        make_log(feature_names=["a", "b"])


# ---- loss, propensity, lengths ------------------------------------------------------------------


@pytest.mark.parametrize("value", [NAN, INF, -INF])
@pytest.mark.parametrize("name", ["loss", "reward", "propensity"])
def test_losses_and_propensities_must_be_finite(rows, make_log, name, value):
    column = with_value(rows.propensity, [17, 20], value)
    changes = {"loss": None, "reward": column} if name == "reward" else {name: column}
    with refuses(LogError, f"{name} must be finite", f"row 17 has {value}", "2 such rows", "Drop"):
        make_log(**changes)


@pytest.mark.parametrize("value", [NAN, INF, -INF, 0.1])
def test_log_propensity_must_be_finite_and_not_positive(rows, make_log, value):
    column = with_value(np.log(rows.propensity), 17, value)
    with refuses(LogError, "log_propensity must be finite", f"row 17 has {value}", "1 such row", "Drop"):
        make_log(propensity=None, log_propensity=column)


@pytest.mark.parametrize("value", [0.0, -0.25, 1.5, -1e-300])
def test_propensity_must_be_a_positive_probability(rows, make_log, value):
    column = with_value(rows.propensity, 17, value)
    with refuses(
        LogError, "propensity must be in (0, 1]", f"row 17 has {value}", "1 such row", "Drop such rows or fix"
    ):
        make_log(propensity=column)


def test_propensity_is_never_guessed(make_log):
    with refuses(LogError, "propensity is missing", "never guessed", "pass propensity="):
        make_log(propensity=None)


def test_propensity_and_log_propensity_are_not_passed_together(rows, make_log):
    with refuses(LogError, "propensity= or log_propensity=, not both"):
        make_log(log_propensity=np.log(rows.propensity))


def test_a_log_needs_a_loss(make_log):
    with refuses(LogError, "exactly one of loss=", "reward=", "found neither"):
        make_log(loss=None)


def test_loss_and_reward_are_not_passed_together(rows, make_log):
    with refuses(LogError, "exactly one of loss=", "reward=", "found both"):
        make_log(reward=rows.loss)


def test_losses_must_be_numbers(make_log):
    with refuses(LogError, "loss must be numbers", "found list"):
        make_log(loss=["cheap"] * 40)
    with refuses(LogError, "reward must be numbers", "1 for yes, 0 for no"):
        make_log(loss=None, reward=["yes", "no"] * 20)


@pytest.mark.parametrize("name", ["loss", "reward", "propensity", "log_propensity", "group"])
def test_lengths_must_agree(rows, make_log, name):
    drop = {"reward": {"loss": None}, "log_propensity": {"propensity": None}}.get(name, {})
    with refuses(LogError, f"{name} must have one value for each of the 40 rows", "found shape (39,)"):
        make_log(**drop, **{name: np.full(39, -0.5 if name == "log_propensity" else 0.5)})


def test_contexts_and_outputs_must_agree_in_length(rows, make_log):
    with refuses(LogError, "X has 39 rows and y has 40", "Pass rows that match", "context="):
        make_log(X=rows.X[:39])


def test_context_must_have_one_whole_number_a_row(make_log):
    with refuses(LogError, "context must be 40 whole numbers", "int64 of shape (39,)"):
        make_log(context=np.zeros(39, dtype=int))
    with refuses(LogError, "context must be 40 whole numbers", "found float64"):
        make_log(context=np.zeros(40))


@pytest.mark.parametrize("value", [-1, 40])
def test_context_must_point_into_the_contexts(make_log, value):
    seen = np.arange(40)
    seen[17] = value
    with refuses(LogError, "context must be a row of X, from 0 to 39", f"row 17 has {value}"):
        make_log(context=seen)


def test_groups_must_not_be_nan(rows, make_log):
    with refuses(LogError, "group must not be NaN", "Give rows without a group"):
        make_log(group=with_value(rows.group, 3, NAN))


def test_groups_must_not_be_missing(make_log):
    with refuses(LogError, "group"):
        make_log(group=np.array(["a", None] * 20, dtype=object))


# ---- y ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [2, -1, 0.5, NAN])
def test_label_sets_hold_0_and_1_only(rows, make_log, value):
    y = with_value(rows.labels, (17, 1), value)
    with refuses(LogError, "must hold 0 and 1 only", "row 17, column 1 is", str(value), "pass y as a vector"):
        make_log(y=y)


def test_a_class_that_labels_do_not_name_is_refused(rows, make_log):
    y = rows.y.copy()
    y[:] = 0
    y[17] = 5
    with refuses(LogError, "class that is not known", "row 17 is 5", "[0, 1, 2]", "Drop such rows or name all classes"):
        make_log(y=y, labels=[0, 1, 2])


def test_a_missing_class_is_refused_with_and_without_labels(make_log):
    y = np.array(["a", None] * 20, dtype=object)
    for labels in (None, ["a", "b"]):
        with refuses(LogError, "y is missing in row 1 (20 such rows)", "Drop such rows"):
            make_log(y=y, labels=labels)


def test_a_class_must_not_be_nan(rows, make_log):
    with refuses(LogError, "y must not be NaN", "row 17 is nan", "Drop such rows"):
        make_log(y=with_value(rows.y, 17, NAN))


def test_labels_must_be_distinct(make_log):
    with refuses(LogError, "labels must be distinct", "found 4 of which 3 differ"):
        make_log(labels=[0, 1, 2, 2])


def test_labels_must_match_the_label_columns(rows, make_log):
    with refuses(LogError, "y has 2 label columns, but 3 labels", "Pass one column for each label"):
        make_log(y=rows.labels, labels=["a", "b", "c"])


def test_outputs_with_three_dimensions_are_refused(rows, make_log):
    with refuses(LogError, "y must be a vector of classes or a matrix", "found 3 dimensions", "Pass (n,)"):
        make_log(y=rows.labels[:, :, None])


def test_outputs_without_columns_are_refused(make_log):
    with refuses(LogError, "at least one label column; found none"):
        make_log(y=np.zeros((40, 0)))


def test_dates_are_not_classes(make_log):
    with refuses(LogError, "y must hold numbers or strings", "datetime64", "Convert it to strings"):
        make_log(y=np.arange(40).astype("datetime64[D]"))


def test_an_empty_log_is_refused():
    with refuses(LogError, "the log is empty", "at least one logged decision"):
        poem.BanditLog(np.zeros((0, 3)), [], loss=[], propensity=[])


# ---- fit: logs from which nothing can be learnt ---------------------------------------------------


def test_one_distinct_output_is_not_enough(rows, make_log):
    with refuses(LearningError, "every row has the same output", "different outputs were tried"):
        poem.fit(make_log(y=np.zeros(40, dtype=int), labels=[0, 1]))
    with refuses(LearningError, "every row has the same output"):
        poem.fit(make_log(y=np.tile([0, 1], (40, 1))))


def test_a_loss_without_variance_says_nothing(make_log):
    with refuses(LearningError, "every row has the same loss (0.5)", "Check that the right column"):
        poem.fit(make_log(loss=np.full(40, 0.5)))


def test_training_rows_without_variance_of_the_loss_say_nothing(make_log):
    log = make_log(loss=with_value(np.zeros(40), 17, 1.0))
    held = [seed for seed in range(20) if 17 in log.split(0.25, np.random.default_rng([seed, 0]))[1].context]
    with refuses(LearningError, "every one of the 30 training rows has the same loss (0.0)", "hold out fewer"):
        poem.fit(log, lam="auto", seed=held[0])


def test_a_deterministic_logging_policy_is_refused(make_log):
    with refuses(LearningError, "every propensity is 1", "deterministic", "pass force=True"):
        poem.fit(make_log(propensity=np.ones(40)))


def test_a_deterministic_logging_policy_can_be_forced(make_log):
    found = poem.fit(make_log(propensity=np.ones(40)), lam=0.01, selection=poem.Selection(force=True, guard=False))
    assert np.all(np.isfinite(found.policy.weights))


def test_fewer_than_16_rows_are_refused(make_log):
    with refuses(LearningError, "the log has 15 rows", "at least 16", "Collect more rows"):
        poem.fit(make_log().take(np.arange(15)))
    assert poem.fit(make_log().take(np.arange(16)), lam=0.1, selection=poem.Selection(guard=False)).n_train == 12


# ---- fit: arguments -------------------------------------------------------------------------------


@pytest.mark.parametrize("lam", [-1.0, NAN, INF, [0.1, -2.0], [], [[0.1, 0.2]], "large", ["large"]], ids=repr)
def test_lam_must_be_auto_or_finite_and_not_negative(make_log, lam):
    with refuses(InputError, "lam must be", "found"):
        poem.fit(make_log(), lam=lam)


@pytest.mark.parametrize("l2", [-1.0, NAN, INF])
def test_l2_must_be_finite_and_not_negative(make_log, l2):
    with refuses(InputError, "l2", str(l2)):
        poem.fit(make_log(), l2=l2, lam=0.1)


@pytest.mark.parametrize("bounds", [(1.0, 0.0), (0.5, 0.5), (NAN, 1.0), (0.0, NAN), (0.0, INF)], ids=repr)
def test_loss_bounds_must_be_finite_and_in_order(make_log, bounds):
    with refuses(InputError, "loss_bounds must be finite with the lower one first", f"found {bounds}"):
        poem.fit(make_log(), loss_bounds=bounds)


@pytest.mark.parametrize("bounds", [(0.0, 0.5), (0.5, 1.0)], ids=repr)
def test_loss_bounds_must_hold_for_the_log(rows, make_log, bounds):
    extremes = f"go from {rows.loss.min():g} to {rows.loss.max():g}"
    with refuses(InputError, "loss_bounds= is", extremes, "Pass bounds that hold for every possible loss"):
        poem.fit(make_log(), loss_bounds=bounds)


@pytest.mark.parametrize("bounds", ["wide", (0.0,), (0.0, 1.0, 2.0), None], ids=repr)
def test_loss_bounds_must_be_auto_or_a_pair(make_log, bounds):
    with refuses(InputError, "loss_bounds must be 'auto' or (lowest, highest)", "found"):
        poem.fit(make_log(), loss_bounds=bounds)


@pytest.mark.parametrize("estimator", [poem.IPS, poem.SNIPS])
def test_clip_must_be_above_0_or_a_known_rule(estimator):
    for clip in (0.0, -1.0, NAN):
        with refuses(InputError, "clip must be above 0", f"found {clip}", "Use None for no clipping"):
            estimator(clip=clip)
    with refuses(InputError, "clip must be a number, None, 'auto' or 'max'", "found 'much'"):
        estimator(clip="much")


def test_a_clip_rule_needs_a_log(make_log):
    log = make_log()
    with refuses(InputError, "clip='auto' must be set by calibration", "Pass a number or None"):
        poem.IPS().estimate(np.zeros(3), np.ones(3))
    assert np.isfinite(poem.estimate(poem.uniform_policy(log), log, poem.IPS()).value)


@pytest.mark.parametrize("lam", ["auto", 0.1])
def test_zero_jobs_are_refused(make_log, lam):
    with refuses(InputError, "n_jobs must not be 0", "Pass 1"):
        poem.fit(make_log(), n_jobs=0, lam=lam)


@pytest.mark.parametrize("select_by", ["loss", 3], ids=repr)
def test_select_by_must_be_known(make_log, select_by):
    with refuses(InputError, "select_by must be 'dr', 'ips', 'snips' or an estimator", f"found {select_by!r}"):
        poem.fit(make_log(), selection=poem.Selection(select_by=select_by))


def test_start_must_have_the_shape_of_the_weights(make_log):
    log = make_log()
    with refuses(MismatchError, "start has weights of shape (3, 3)", "needs (4, 3)"):
        poem.fit(log, start=np.zeros((3, 3)))
    with refuses(
        MismatchError, "start does not fit the log: it has an intercept, and fit_intercept is False", "of the same kind"
    ):
        poem.fit(log, start=poem.uniform_policy(log), fit_intercept=False)
    with refuses(InputError, "start must be finite", "NaN"):
        poem.fit(log, start=np.full((4, 3), NAN))


@pytest.mark.parametrize("validation", [0.0, 1.0, -0.5, 2.5, NAN, 0, 1, -3, True], ids=repr)
def test_validation_is_a_share_between_0_and_1_or_a_number_of_folds_above_1(make_log, validation):
    parts = "validation must be a share between 0 and 1", "a number of folds above 1, a log, or None"
    with refuses(InputError, *parts, f"found {validation}"):
        poem.fit(make_log(), selection=poem.Selection(validation=validation))


def test_validation_by_a_word_is_auto_only(make_log):
    with refuses(InputError, "validation must be 'auto', a number, a log, or None", "found 'folds'"):
        poem.fit(make_log(), selection=poem.Selection(validation="folds"))


def test_there_are_no_more_folds_than_units(rows, make_log):
    with refuses(InputError, "folds must be from 2 to the number of independent units, 5", "found 11"):
        poem.fit(make_log(group=rows.group), selection=poem.Selection(validation=11))  # half of the units certify
    with refuses(InputError, "folds must be from 2 to the number of independent units, 10", "found 11"):
        poem.fit(make_log(group=rows.group), selection=poem.Selection(validation=11), certify=False)


@pytest.mark.parametrize("confidence", [0.0, 0.4, 1.0, 95, "much", NAN, None], ids=repr)
def test_confidence_is_at_least_a_half_and_below_1(make_log, confidence):
    with refuses(InputError, "confidence must be at least 0.5 and below 1", f"found {confidence!r}", "Use 0.95"):
        poem.fit(make_log(), selection=poem.Selection(confidence=confidence))


def test_the_logging_policy_must_be_of_the_same_kind(make_log):
    log = make_log()
    with refuses(MismatchError, "logging_policy does not fit the log: it has an intercept"):
        poem.fit(log, logging_policy=poem.uniform_policy(log), fit_intercept=False)
    with refuses(MismatchError, "logging_policy has weights of shape (3, 3)", "needs (4, 3)"):
        poem.fit(log, logging_policy=np.zeros((3, 3)))


def test_the_validation_log_must_be_of_the_same_kind(rows, make_log):
    for other in (make_log(X=rows.X[:, :2]), make_log(labels=range(4)), make_log(y=np.eye(3, dtype=int)[rows.y])):
        with refuses(MismatchError, "validation log has other outputs or features", "Build both alike"):
            poem.fit(make_log(), selection=poem.Selection(validation=other))


@pytest.mark.parametrize("seed", [-1, 0.5, None])
def test_the_seed_must_be_a_whole_number(make_log, seed):
    with refuses(InputError, "seed must be", f"found {seed}"):
        poem.fit(make_log(), lam=0.1, seed=seed)


# ---- a policy and data that do not belong together ------------------------------------------------


@pytest.fixture
def frame(rows):
    return pd.DataFrame(rows.X, columns=["a", "b", "c"])


@pytest.fixture
def policy(frame, rows):
    return poem.supervised(frame, rows.y)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_a_policy_wants_contexts_of_its_own_width(policy, rows, make_log, form):
    narrow = form(rows.X[:, :2])
    for use in (policy.predict, policy.marginals, policy.variation, lambda X: policy.sample(X, 0)):
        with refuses(MismatchError, "X has 2 features; the policy was made for 3", "same columns as in training"):
            use(narrow)
    with refuses(MismatchError, "X has 2 features; the policy was made for 3"):
        policy.log_prob_of(make_log(X=narrow))


def test_a_policy_names_the_column_that_is_missing(policy, frame):
    with refuses(MismatchError, "X lacks the column 'a' (and 1 more)", "it has ['c']", "trained on"):
        policy.predict(frame[["c"]])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_policy_puts_reordered_columns_into_order(policy, frame, rows, library):
    reordered = frame[["c", "a", "b"]].assign(extra=1.0)
    if library == "polars":
        reordered = pl.DataFrame({name: reordered[name].to_numpy() for name in reordered})
    np.testing.assert_array_equal(policy.marginals(reordered), policy.marginals(rows.X))


def test_a_log_with_reordered_columns_is_never_scored_by_position(policy, frame, make_log):
    expected = policy.log_prob_of(make_log(X=frame))
    try:
        found = policy.log_prob_of(make_log(X=frame[["c", "a", "b"]]))
    except MismatchError:
        return
    np.testing.assert_allclose(found, expected)


def test_a_policy_wants_one_output_for_each_context(policy, rows):
    for use in (policy.log_prob, policy.expected_loss, policy.map_loss):
        with refuses(MismatchError, "X has 40 rows and y has 39", "one output for each row"):
            use(rows.X, rows.y[:39])


def test_a_policy_knows_its_classes(policy, rows):
    for use in (policy.log_prob, policy.expected_loss, policy.map_loss):
        with refuses(LogError, "class that is not known", "row 17 is 9", "known are [0, 1, 2]"):
            use(rows.X, np.where(np.arange(40) == 17, 9, rows.y))


def test_a_policy_refuses_outputs_of_another_kind(policy, rows):
    with refuses(PoemError, "y "):
        policy.log_prob(rows.X, rows.labels)
    with refuses(LogError, "classes are a vector", "2 dimensions"):
        policy.log_prob(rows.X, np.eye(3, dtype=int)[rows.y])


def test_a_policy_refuses_a_log_of_other_outputs(policy, make_log):
    with refuses(
        MismatchError,
        "the log's outputs are one of 4 classes, [0, 1, 2, 3]",
        "the policy's are one of 3 classes, [0, 1, 2]",
        "Build the log with",
    ):
        poem.estimate(policy, make_log(labels=range(4)))


def test_a_policy_wants_at_least_one_context(policy):
    with refuses(MismatchError, "X has no rows", "at least one context"):
        policy.predict(np.zeros((0, 3)))


@pytest.mark.parametrize("alpha", [-1.0, NAN, INF])
def test_a_temperature_is_finite_and_not_negative(policy, alpha):
    with refuses(InputError, "alpha must be finite and not negative", f"found {alpha}"):
        policy.at_temperature(alpha)


def test_a_constant_policy_needs_a_known_class(make_log):
    with refuses(LogError, "class that is not known", "is 9", "known are [0, 1, 2]"):
        poem.constant_policy(make_log(), 9)


# ---- optimizers, estimates, supervised, simulate --------------------------------------------------


@pytest.mark.parametrize("name", ["batch_size", "max_batches", "min_epochs", "check_every", "patience"])
def test_adagrad_counts_from_one(name):
    with refuses(InputError, f"{name} must be at least 1, and a whole number; found 0"):
        poem.AdaGrad(**{name: 0})


@pytest.mark.parametrize("step", [0.0, -1.0, NAN])
def test_adagrad_wants_a_step_above_0(step):
    with refuses(InputError, "step must be", f"found {step}"):
        poem.AdaGrad(step=step)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1, NAN])
def test_an_interval_wants_a_level_between_0_and_1(level):
    found = poem.Estimate(value=0.0, stderr=1.0, n=10, units=10, mean_weight=1.0, clipped_share=0.0, effective_n=10.0)
    with refuses(InputError, "level must be between 0 and 1", f"found {level}", "Use 0.95"):
        found.interval(level)


def test_supervised_wants_lengths_that_agree(rows):
    for y in (rows.y, rows.labels):
        with refuses(LogError, "X has 39 rows and y has 40", "Pass rows that match"):
            poem.supervised(rows.X[:39], y)


@pytest.mark.parametrize("C", [0.0, -1.0, NAN])
def test_supervised_wants_a_penalty_above_0(rows, C):
    with refuses(InputError, "C must be above 0", f"found {C}"):
        poem.supervised(rows.X, rows.y, C=C)


def test_supervised_wants_rows(rows):
    with refuses(InputError, "no rows"):
        poem.supervised(rows.X[:0], rows.y[:0])


@pytest.mark.parametrize("length", [39, 41])
def test_simulate_wants_lengths_that_agree(policy, rows, length):
    with refuses(InputError, "X has 40 rows", f"y has {length}"):
        poem.simulate(rows.X, np.resize(rows.y, length), policy, rng=0)


def test_simulate_wants_at_least_one_replay(policy, rows):
    with refuses(InputError, "replay must be at least 1", "found 0"):
        poem.simulate(rows.X, rows.y, policy, replay=0, rng=0)


def test_simulate_wants_a_known_loss(policy, rows):
    with refuses(InputError, "loss must be 'hamming', 'zero-one', 'f1' or a function", "found 'hinge'"):
        poem.simulate(rows.X, rows.y, policy, loss="hinge", rng=0)


def test_simulate_wants_known_classes(policy, rows):
    with refuses(LogError, "class that is not known", "row 0 is 9"):
        poem.simulate(rows.X, np.full(40, 9), policy, rng=0)
