"""Propensities that were not logged, and those of several loggers."""

import copy
import json
import pickle
import re

import numpy as np
import pytest
from refusals import refuses

import poem
from poem.data.folds import folds_of
from poem.errors import InputError, LogError, PoemError

KINDS = ["labels", "classes"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def a_policy(kind, seed, *, d=3, scale=0.7):
    structure = poem.MultiLabel(3) if kind == "labels" else poem.MultiClass(3)
    weights = scale * np.random.default_rng(seed).normal(size=(d + 1, 3))
    return poem.Policy(structure, weights, True, ("x", "y", "z"))


def loss_of(x, y):
    """0 or 1, so that the worst logged loss is 1 in any log."""
    first = y[:, 0] == 1 if y.ndim == 2 else y == "x"
    return np.asarray(first == (x[:, 0] > 0), dtype=float)


def a_log(kind, n=2000, *, seed=0, **options):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    logger = a_policy(kind, 1)
    y = logger.sample(X, rng)
    known = options.pop("known", True)
    given = {"log_propensity": logger.log_prob(X, y)} if known else {"propensity": "missing"}
    return poem.BanditLog(X, y, loss=loss_of(X, y), labels=logger.labels, **given, **options)


@pytest.fixture(scope="module")
def estimated():
    """What is found for a log of each kind with known propensities."""
    return {kind: poem.estimate_propensities(a_log(kind, 4000)) for kind in KINDS}


# ---- a log without propensities -------------------------------------------------------------------


@every_kind
def test_a_log_says_that_its_propensities_are_missing(kind):
    log = a_log(kind, 40, known=False)
    assert log.propensities == "missing"
    assert re.search(r"propensity +missing\n?", repr(log))
    assert np.isnan(log.log_propensity).all()
    assert a_log(kind, 40).propensities == "logged"
    assert re.search(r"propensity +logged: median", repr(a_log(kind, 40)))


@pytest.mark.parametrize("use", ["fit", "estimate", "evaluate", "learner", "fit's validation"])
def test_a_log_without_propensities_is_refused_with_a_hint(use):
    log, policy = a_log("classes", 60, known=False), a_policy("classes", 2)
    with refuses(LogError, "no propensities", "never guessed silently", "poem.estimate_propensities(log)"):
        if use == "fit":
            poem.fit(log)
        elif use == "estimate":
            poem.estimate(policy, log)
        elif use == "evaluate":
            poem.evaluate(policy, log)
        elif use == "learner":
            y = np.array(log.labels)[log.y]
            poem.CRMLearner().fit(log.X, y, loss=log.loss, propensity="missing")
        else:
            poem.fit(a_log("classes", 60), selection=poem.Selection(validation=log), lam=0.1)


@pytest.mark.parametrize("value", ["Missing", "none", "estimated"])
def test_any_other_word_is_no_propensity(value):
    with refuses(LogError, "propensity must be numbers"):
        poem.BanditLog(np.eye(3), [0, 1, 0], loss=[0.0, 1.0, 0.0], propensity=value)


def test_missing_propensities_and_logged_ones_exclude_each_other():
    with refuses(LogError, "propensity= or log_propensity=, not both"):
        poem.BanditLog(np.eye(3), [0, 1, 0], loss=[0.0, 1.0, 0.0], propensity="missing", log_propensity=[-1.0] * 3)


# ---- estimating them ------------------------------------------------------------------------------


@every_kind
def test_estimates_are_near_to_a_logistic_logger(estimated, kind):
    found = estimated[kind]
    truth = a_log(kind, 4000)
    assert found.mean_log_error == pytest.approx(
        np.mean(np.abs(found.log.log_propensity - truth.log_propensity)), rel=1e-12
    )
    assert found.mean_log_error < 0.08
    assert found.calibration_error < 0.02
    assert found.log_loss == pytest.approx(-truth.log_propensity.mean(), abs=0.02)
    assert np.all(found.log.log_propensity <= 0.0)
    assert np.isfinite(found.log.log_propensity).all()
    np.testing.assert_array_equal(found.log.loss, truth.loss)


@every_kind
def test_calibration_covers_every_output_of_every_row(estimated, kind):
    bins = estimated[kind].bins
    # Three labels or three classes in each of 4000 rows.
    assert sum(one.count for one in bins) == 3 * 4000
    assert all(0.0 <= one.observed <= 1.0 for one in bins)
    predicted = [one.predicted for one in bins]
    assert predicted == sorted(predicted)
    by_hand = sum(one.count * abs(one.predicted - one.observed) for one in bins) / (3 * 4000)
    assert estimated[kind].calibration_error == pytest.approx(by_hand)


@every_kind
def test_estimates_do_not_need_the_logged_ones(kind):
    known, unknown = (poem.estimate_propensities(a_log(kind, 300, known=known), C=1.0) for known in (True, False))
    np.testing.assert_array_equal(known.log.log_propensity, unknown.log.log_propensity)
    assert known.mean_log_error is not None
    assert unknown.mean_log_error is None
    assert "off the logged ones by" in repr(known)
    assert "off the logged ones" not in repr(unknown)


@pytest.mark.parametrize("grouped", [False, True])
def test_no_row_is_predicted_by_a_model_that_saw_it(grouped):
    # More features than rows: a model that saw a coin toss would know its result.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 120)), rng.integers(0, 2, 80)
    rows = np.repeat(np.arange(80), 3 if grouped else 1)
    log = poem.BanditLog(
        X[rows], y[rows], loss=rng.random(len(rows)), propensity="missing", group=rows if grouped else None
    )
    memorised = poem.supervised(X, y, C=1.0).log_prob(X, y)
    assert np.mean(memorised) > -0.1
    assert poem.estimate_propensities(log, C=1.0).log_loss > np.log(2.0)


def test_each_fold_has_the_model_of_the_others():
    log = a_log("classes", 200)
    found = poem.estimate_propensities(log, C=0.5, folds=3, seed=4)
    fold, y = folds_of(log, 3, 4), np.array(log.labels)[log.y]
    for part in range(3):
        mine = fold == part
        policy = poem.supervised(log.X[~mine], y[~mine], C=0.5, labels=log.labels)
        np.testing.assert_allclose(found.log.log_propensity[mine], policy.log_prob(log.X[mine], y[mine]), rtol=1e-9)


def test_the_strength_is_chosen_on_held_out_rows():
    rng = np.random.default_rng(0)
    noise = poem.BanditLog(
        rng.normal(size=(100, 30)), rng.integers(0, 2, 100), loss=rng.random(100), propensity="missing"
    )
    assert poem.estimate_propensities(noise).C <= 0.01
    X = 5.0 * rng.normal(size=(300, 2))
    clear = poem.BanditLog(X, (X[:, 0] > 0).astype(int), loss=rng.random(300), propensity="missing")
    assert poem.estimate_propensities(clear).C >= 10.0


def test_classes_that_were_hardly_ever_chosen_keep_a_probability():
    rng = np.random.default_rng(0)
    y = np.zeros(60, dtype=int)
    y[:3] = [1, 2, 2]
    log = poem.BanditLog(rng.normal(size=(60, 2)), y, loss=rng.random(60), propensity="missing", labels=range(4))
    found = poem.estimate_propensities(log, C=1.0)
    assert np.all(np.isfinite(found.log.log_propensity))


@every_kind
def test_all_that_is_made_from_estimates_says_so(estimated, kind):
    log = estimated[kind].log
    assert log.propensities == "estimated"
    assert re.search(r"propensity +estimated: median", repr(log))
    assert repr(estimated[kind]).startswith("PropensityFit: estimated for 4,000 rows")
    found = poem.evaluate(a_policy(kind, 2), log, ["IPS", "SNIPS"])
    assert found.propensities == "estimated"
    assert "propensities estimated, not logged" in repr(found)
    assert json.loads(found.to_json())["propensities"] == "estimated"
    assert "propensities estimated, not logged" in found.plot().axes[0].get_xlabel()
    fitted = poem.fit(log.take(np.arange(400)), lam=0.1)
    assert "propensities are estimated, not logged" in repr(fitted)
    assert fitted.policy.record.propensities == "estimated"


def test_a_fit_that_was_selected_on_estimates_says_so(estimated):
    log = estimated["classes"].log
    fitted = poem.fit(a_log("classes", 400), selection=poem.Selection(validation=log.take(np.arange(400))), lam=0.1)
    assert "estimated, not logged" in repr(fitted)


def test_a_fit_on_logged_propensities_does_not_say_estimated():
    assert "estimated, not logged" not in repr(poem.fit(a_log("classes", 400), lam=0.1))


@every_kind
def test_evaluation_with_estimates_is_near_to_that_with_logged_ones(estimated, kind):
    by_estimates = poem.evaluate(a_policy(kind, 2), estimated[kind].log, "SNIPS").lines[0]
    by_logged = poem.evaluate(a_policy(kind, 2), a_log(kind, 4000), "SNIPS").lines[0]
    assert by_estimates.value == pytest.approx(by_logged.value, abs=3.0 * by_logged.stderr)
    assert by_estimates.value != by_logged.value


def test_the_calibration_can_be_drawn(estimated, tmp_path):
    figure = estimated["classes"].plot()
    figure.savefig(tmp_path / "calibration.png")
    assert (tmp_path / "calibration.png").stat().st_size > 3000
    points = figure.axes[0].collections[0].get_offsets()
    assert len(points) == len(estimated["classes"].bins)


@pytest.mark.parametrize("folds", [0, 1, 41, 2.5])
def test_folds_are_from_2_to_the_number_of_units(folds):
    with refuses(InputError, "folds must be from 2 to the number of independent units, 40", f"found {folds}"):
        poem.estimate_propensities(a_log("classes", 40), folds=folds)


def test_the_strength_must_be_above_0():
    with refuses(InputError, "C must be above 0; found -1"):
        poem.estimate_propensities(a_log("classes", 40), C=-1)


def test_only_logs_have_propensities_to_estimate():
    with pytest.raises(InputError, match="found str"):
        poem.estimate_propensities("log.csv")


# ---- parts, joins and copies ----------------------------------------------------------------------


@pytest.fixture
def marked():
    """A log with estimated propensities, two loggers and groups."""
    log = a_log("classes", 60, logger=["old", "new"] * 30, group=np.repeat(np.arange(20), 3))
    return log.with_propensities(np.full(60, -1.0), "estimated")


def test_parts_keep_where_propensities_come_from_and_who_logged(marked):
    even = marked.take(np.arange(0, 60, 2))
    assert even.propensities == "estimated"
    assert set(even.logger) == {"old"}
    masked = marked.take(marked.logger == "new")
    assert masked.propensities == "estimated"
    assert set(masked.logger) == {"new"}
    for part in (*marked.split(0.25, 0), *marked.shards(3), marked.deduplicated()):
        assert part.propensities == "estimated"
        original = {tuple(x): name for x, name in zip(marked.X, marked.logger, strict=True)}
        assert [original[tuple(part.X[c])] for c in part.context] == part.logger.tolist()


def test_missing_propensities_stay_missing_in_parts():
    log = a_log("classes", 60, known=False)
    for part in (log.take(np.arange(10)), *log.split(0.5, 0), poem.BanditLog.concat([log, log])):
        assert part.propensities == "missing"


def test_joined_logs_keep_where_propensities_come_from_and_who_logged(marked):
    joined = poem.BanditLog.concat([marked, marked.take([1, 3])])
    assert joined.propensities == "estimated"
    assert joined.logger.tolist() == ["old", "new"] * 30 + ["new", "new"]


def test_logged_and_estimated_propensities_are_not_joined():
    log = a_log("classes", 60)
    others = {
        "estimated": log.with_propensities(log.log_propensity, "estimated"),
        "missing": a_log("classes", 60, known=False),
    }
    for name, other in others.items():
        with refuses(InputError, "the same propensities", f"found logged and {name}"):
            poem.BanditLog.concat([log, other])
    with refuses(InputError, "the same loggers"):
        poem.BanditLog.concat([log, a_log("classes", 60, logger=["a"] * 60)])


@pytest.mark.parametrize(
    "make", [lambda log: pickle.loads(pickle.dumps(log)), copy.deepcopy, copy.copy], ids=["pickle", "deepcopy", "copy"]
)
def test_a_copied_log_keeps_where_propensities_come_from_and_who_logged(marked, make):
    again = make(marked)
    assert again.propensities == "estimated"
    assert again.logger.tolist() == marked.logger.tolist()
    assert not again.logger.flags.writeable
    np.testing.assert_array_equal(again.log_propensity, marked.log_propensity)
    assert repr(again) == repr(marked)
    with pytest.raises(AttributeError, match="never changes"):
        again.propensities = "logged"
    policy = a_policy("classes", 2)
    assert poem.evaluate(policy, again).to_json() == poem.evaluate(policy, marked).to_json()


@pytest.mark.parametrize(
    ("logger", "message"),
    [
        (["a"] * 39, "logger must have one value for each of the 40 rows"),
        (["a", None] * 20, "logger must not be None"),
        ([1.0, float("nan")] * 20, "logger must not be NaN"),
        (np.array(["a", 3] * 20, dtype=object), "logger mixes types"),
    ],
    ids=["length", "None", "NaN", "types"],
)
def test_loggers_are_checked_like_groups(logger, message):
    with refuses(LogError, message):
        a_log("classes", 40, logger=logger)


def test_a_log_prints_its_loggers():
    assert re.search(r"logger +a, b", repr(a_log("classes", 40, logger=["b", "a"] * 20)))


# ---- several loggers ------------------------------------------------------------------------------

OLD, NEW = a_policy("classes", 3), a_policy("classes", 4)
LOGGERS = {"old": OLD, "new": NEW}
POLICY = a_policy("classes", 5)


def of_two(X, names, seed, *, loggers=LOGGERS):
    """A log in which each row was chosen by the logger of its name."""
    rng = np.random.default_rng(seed)
    drawn = {name: policy.sample(X, rng) for name, policy in loggers.items()}
    y = np.array([drawn[name][row] for row, name in enumerate(names)])
    logs = {name: policy.log_prob(X, y) for name, policy in loggers.items()}
    log_propensity = np.array([logs[name][row] for row, name in enumerate(names)])
    return poem.BanditLog(X, y, loss=loss_of(X, y), log_propensity=log_propensity, logger=names, labels=("x", "y", "z"))


@pytest.fixture(scope="module")
def two():
    """A third of 180 rows by one logger, the rest by another."""
    return of_two(np.random.default_rng(0).normal(size=(180, 3)), ["old", "new", "new"] * 60, 1)


def at_logged(policy, log):
    return np.exp(policy.log_prob_of(log))


def test_balanced_propensities_are_those_of_the_mixture(two):
    mixture = at_logged(OLD, two) / 3.0 + at_logged(NEW, two) * 2.0 / 3.0
    found = poem.balanced(two, LOGGERS)
    np.testing.assert_allclose(np.exp(found.log_propensity), mixture, rtol=1e-12)
    assert found.propensities == "balanced"
    assert found.logger is two.logger
    # The same from arrays, and from any mapping that also has others.
    arrays = {name: at_logged(policy, two) for name, policy in LOGGERS.items()}
    again = poem.balanced(two, arrays | {"unused": POLICY})
    np.testing.assert_allclose(again.log_propensity, found.log_propensity, rtol=1e-12)


def test_balanced_propensities_of_one_logger_are_its_own(two):
    alone = two.take(two.logger == "new")
    np.testing.assert_allclose(poem.balanced(alone, LOGGERS).log_propensity, alone.log_propensity, rtol=1e-9)


def test_loggers_may_be_numbers():
    log = of_two(np.random.default_rng(0).normal(size=(40, 3)), np.array([7, 8] * 20), 1, loggers={7: OLD, 8: NEW})
    mixture = (at_logged(OLD, log) + at_logged(NEW, log)) / 2.0
    np.testing.assert_allclose(np.exp(poem.balanced(log, {7: OLD, 8: NEW}).log_propensity), mixture, rtol=1e-12)
    assert list(poem.evaluate(POLICY, log, "IPS", loggers={7: OLD, 8: NEW}).by_logger) == [7, 8]


def test_known_loggers_supply_propensities_that_were_not_logged(two):
    missing = poem.BanditLog(
        two.X, np.array(two.labels)[two.y], loss=two.loss, propensity="missing", logger=two.logger, labels=two.labels
    )
    np.testing.assert_allclose(
        poem.balanced(missing, LOGGERS).log_propensity, poem.balanced(two, LOGGERS).log_propensity, rtol=1e-12
    )


def test_evaluate_uses_the_balanced_weights(two):
    found = poem.evaluate(POLICY, two, loggers=LOGGERS)
    mixture = at_logged(OLD, two) / 3.0 + at_logged(NEW, two) * 2.0 / 3.0
    ratio = at_logged(POLICY, two) / mixture
    worst = two.loss.max()
    assert found["policy", "IPS"].value == pytest.approx(worst + np.mean(ratio * (two.loss - worst)), rel=1e-12)
    assert found["policy", "SNIPS"].value == pytest.approx(np.average(two.loss, weights=ratio), rel=1e-12)
    naive = poem.evaluate(POLICY, two)
    ratio = at_logged(POLICY, two) / np.exp(two.log_propensity)
    assert naive["policy", "SNIPS"].value == pytest.approx(np.average(two.loss, weights=ratio), rel=1e-12)


@pytest.mark.parametrize("loggers", [None, LOGGERS], ids=["naive", "balanced"])
def test_each_logger_is_also_judged_alone(two, loggers):
    found = poem.evaluate({"a": POLICY, "b": OLD}, two, loggers=loggers, against="b")
    assert sorted(found.by_logger) == ["new", "old"]
    for name, alone in found.by_logger.items():
        rows = two.take(two.logger == name)
        expected = poem.evaluate({"a": POLICY, "b": OLD}, rows, model=None, against="b")
        for line in expected.lines:
            mine = alone[line.policy, line.estimator]
            for field in ("value", "low", "high", "stderr", "bias_bound", "difference", "difference_low"):
                assert getattr(mine, field) == pytest.approx(getattr(line, field), rel=1e-9, nan_ok=True)
        assert alone.logged == expected.logged
        # The loss model is that of all rows, and its estimates are there too.
        assert np.isfinite(alone["a", "DR"].value)
    assert json.loads(found.to_json())["by_logger"].keys() == {"new", "old"}


def test_arrays_of_probabilities_are_cut_to_each_loggers_rows(two):
    by_policy = poem.evaluate(POLICY, two, loggers=LOGGERS)
    for given in (POLICY.marginals(two.X), at_logged(POLICY, two)):
        by_array = poem.evaluate(given, two, loggers=LOGGERS)
        for name, alone in by_array.by_logger.items():
            for line in alone.lines:
                expected = by_policy.by_logger[name]["policy", line.estimator]
                assert line.value == pytest.approx(expected.value, rel=1e-9)
                assert line.stderr == pytest.approx(expected.stderr, rel=1e-9)


def test_without_loggers_there_is_nothing_by_logger(two):
    assert poem.evaluate(POLICY, a_log("classes", 60), "IPS").by_logger == {}


def test_one_bad_logger_does_less_harm_with_balanced_weights():
    # The bad one hardly ever chooses what the new policy likes; where it does, its own weights are huge.
    good = poem.Policy(poem.MultiClass(3), np.zeros((4, 3)), True, ("x", "y", "z"))
    bad = poem.Policy(poem.MultiClass(3), np.vstack([np.zeros((3, 3)), [-5.0, 0.0, 0.0]]), True, ("x", "y", "z"))
    policy = poem.Policy(poem.MultiClass(3), np.vstack([np.zeros((3, 3)), [2.0, 0.0, 0.0]]), True, ("x", "y", "z"))
    loggers = {"good": good, "bad": bad}
    log = of_two(np.random.default_rng(0).normal(size=(3000, 3)), ["good", "bad"] * 1500, 2, loggers=loggers)
    names = ("IPS", "SNIPS")
    balanced, naive = poem.evaluate(policy, log, names, loggers=loggers), poem.evaluate(policy, log, names)
    for name in names:
        assert balanced["policy", name].stderr < 0.5 * naive["policy", name].stderr
    assert (
        balanced.diagnostics["policy"]["effective units"].value > naive.diagnostics["policy"]["effective units"].value
    )
    assert naive.by_logger["bad"].diagnostics["policy"].verdict == "don't"


def test_balanced_estimates_are_right_on_average():
    rng = np.random.default_rng(0)
    pool = rng.normal(size=(20, 3))
    losses = np.stack([loss_of(pool, np.repeat(label, 20)) for label in ("x", "y", "z")], axis=1)
    truth = float((POLICY.marginals(pool) * losses).sum(axis=1).mean())
    names = ["old", "new", "new"] * 50
    found = [
        poem.evaluate(
            POLICY, of_two(pool[rng.integers(0, 20, 150)], names, [seed, 1]), "IPS", loggers=LOGGERS, n_jobs=1
        )
        for seed in range(300)
    ]
    values = np.array([one["policy", "IPS"].value for one in found])
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert error < 0.01
    assert abs(values.mean() - truth) < 3.5 * error


def test_a_logger_that_did_not_make_its_rows_is_refused(two):
    with refuses(InputError, "logger new gives row", "the probability", "was logged", "Pass the policy that made"):
        poem.balanced(two, {"old": OLD, "new": POLICY})
    wrong = at_logged(OLD, two)
    row = int(np.flatnonzero(two.logger == "old")[5])
    wrong[row] *= 0.5
    expected = f"logger old gives row {row} the probability {wrong[row]:.4g}, but {2 * wrong[row]:.4g} was logged"
    with refuses(InputError, expected):
        poem.evaluate(POLICY, two, loggers={"old": wrong, "new": NEW})


def test_what_a_logger_would_do_on_rows_of_others_is_not_checked_against_them(two):
    # Only the rows that a logger made say anything about it.
    probabilities = at_logged(OLD, two)
    probabilities[two.logger == "new"] = 0.123
    assert len(poem.balanced(two, {"old": probabilities, "new": NEW})) == len(two)


@pytest.mark.parametrize("loggers", [{"old": OLD}, {}, {"Old": OLD, "new": NEW}], ids=["one", "none", "misspelt"])
def test_each_logger_needs_its_policy(two, loggers):
    missing = sorted({"old", "new"} - set(loggers))
    with refuses(InputError, "a policy for each logger of the log", f"there is none for {missing}"):
        poem.evaluate(POLICY, two, loggers=loggers)


def test_a_log_must_say_who_chose_each_row():
    with refuses(LogError, "does not say which logger chose each row", "logger="):
        poem.evaluate(POLICY, a_log("classes", 60), loggers=LOGGERS)
    with refuses(LogError, "does not say which logger chose each row"):
        poem.balanced(a_log("classes", 60), LOGGERS)


@pytest.mark.parametrize("loggers", [[OLD, NEW], "old", POLICY], ids=["list", "text", "policy"])
def test_loggers_of_a_wrong_kind_are_refused(two, loggers):
    with pytest.raises(PoemError, match="loggers"):
        poem.balanced(two, loggers)


def test_only_logs_can_be_balanced():
    with pytest.raises(InputError, match="found str"):
        poem.balanced("log.csv", LOGGERS)


def test_a_policy_for_other_outputs_is_no_logger(two):
    with pytest.raises(PoemError, match="outputs are"):
        poem.balanced(two, {"old": OLD, "new": a_policy("labels", 1)})


def test_both_answers_stand_side_by_side():
    rng = np.random.default_rng(30)
    X = rng.normal(size=(400, 3))
    logger = poem.Policy(poem.MultiClass(3), rng.normal(size=(4, 3)), True, (0, 1, 2))
    y = logger.sample(X, rng)
    log = poem.BanditLog(X, y, loss=rng.random(400), log_propensity=logger.log_prob(X, y), labels=range(3))
    fitted = poem.estimate_propensities(log)
    policy = np.full((400, 3), 1 / 3)
    found = poem.evaluate({"new": policy}, log, ["SNIPS"], estimated=fitted)
    assert found["new", "SNIPS"] == poem.evaluate({"new": policy}, log, ["SNIPS"])["new", "SNIPS"]
    alone = poem.evaluate({"new": policy}, fitted.log, ["SNIPS"])["new", "SNIPS"]
    assert found["new, p estimated", "SNIPS"].value == alone.value != found["new", "SNIPS"].value
    assert "new, p estimated" in repr(found)
    with pytest.raises(InputError, match="this very log"):
        poem.evaluate({"new": policy[:9]}, log.take(np.arange(9)), ["SNIPS"], estimated=fitted)
