"""Is a log fit for learning? Each check fires where it should, and is quiet where it should be."""

import json
import tarfile
import tracemalloc
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp
from health_logs import K, made, parts, sets
from test_datasets import SHARED

import poem
from poem.errors import ReadError
from poem.evaluation import calibrate
from poem.health import inspect
from poem.health.facts import Facts, fingerprints
from poem.health.power import error_of_logged, error_of_others
from poem.readers import log_of, read_raw, write_log

ARCHIVE = SHARED / "obd_small_obp-0.4.1.tar.xz"


def frame(n=400, seed=0, **changes):
    """Return a raw table as a reader gives it; ``changes`` are columns."""
    X, y, loss, p = parts(seed, n=n)
    columns = {f"x{j}": X[:, j] for j in range(4)}
    columns |= {"output": [f"item {code}" for code in y], "loss": loss, "propensity": p[np.arange(n), y]}
    columns |= {name: change(columns[name]) if callable(change) else change for name, change in changes.items()}
    return pa.table({name: column for name, column in columns.items() if column is not None})


def raw(n=400, seed=0, roles=None, **changes):
    return read_raw(frame(n, seed, **changes), poem.Columns(**(roles or {})))


def at(rows, value):
    """Return a change of some rows of a column."""

    def change(column):
        return [value if row in rows else old for row, old in enumerate(list(column))]

    return change


# ---- a good log, and the report --------------------------------------------------------------------


def test_a_good_log_is_fit_and_says_so():
    health = inspect(made())
    assert health.verdict == "fit", health.reasons
    assert health.reasons == []
    assert "Verdict: fit for learning" in str(health)
    assert len(str(health).splitlines()) <= 45


def test_a_raw_log_says_the_same_as_its_checked_one():
    source = raw(2000)
    health, checked = inspect(source), inspect(log_of(source))
    assert health.verdict == checked.verdict == "fit"
    assert [finding.value for finding in health.findings] == [finding.value for finding in checked.findings]


def test_reports_are_valid_finite_json_with_all_that_was_found():
    health = inspect(raw(propensity=at({3}, 0.0)))
    data = json.loads(health.to_json(), parse_constant=pytest.fail)
    assert data["verdict"] == "unfit"
    assert [one["text"] for one in data["findings"]] == [finding.text for finding in health.findings]
    assert data["reasons"][0] in " ".join(str(health).split())


def test_reasons_are_ordered_by_how_bad_they_are():
    health = inspect(raw(propensity=at({3}, 0.0), row=list(range(400))))  # the latter looks like an id
    assert {finding.verdict for finding in health.problems} == {"unfit", "with care"}
    assert [finding.verdict for finding in health.problems] == sorted(
        (finding.verdict for finding in health.problems), key=("unfit", "with care").index
    )
    assert "propensity 0" in health.reasons[0]


def test_an_infinite_value_is_null_in_json():
    log = made(n=40).take([0] * 20)  # one context, all alike: no standard error is finite
    assert "Infinity" not in inspect(log).to_json()


# ---- what cannot be looked at ----------------------------------------------------------------------


@pytest.mark.parametrize("lacking", ["output", "loss"])
def test_a_table_without_outputs_or_losses_is_an_error(lacking):
    with pytest.raises(ReadError, match=lacking):
        inspect(raw(**{lacking: None}))


def test_a_table_without_rows_is_an_error():
    with pytest.raises(ReadError, match="no rows"):
        inspect(read_raw(frame().slice(0, 0)))


# ---- broken rows -----------------------------------------------------------------------------------

BROKEN = {
    "propensities of 0": ("propensity", 0.0),
    "negative propensities": ("propensity", -0.5),
    "propensities above 1": ("propensity", 1.5),
    "empty propensities": ("propensity", None),
    "missing loss": ("loss", np.nan),
    "empty outputs": ("output", None),
    "broken contexts": ("x1", np.inf),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_rows_are_counted_placed_and_left_out(name):
    column, value = BROKEN[name]
    health = inspect(raw(**{column: at({7, 30}, value)}))
    finding = health.of(name)
    assert finding.value == 2
    assert "the table, row 7" in finding.text
    assert finding.advice
    assert finding.verdict == "unfit"
    assert health.of("rows").value == health.of("contexts").value == 398
    assert inspect(raw()).of(name) is None


REFUSED_BY_READING = {
    "rewards as text": {"loss": lambda column: [str(value) for value in column]},
    "categories of text as losses": {"loss": lambda column: pa.array(map(str, column)).dictionary_encode()},
    "propensities as text": {"propensity": lambda column: [str(value) for value in column]},
    "one word among numbers": {"loss": lambda column: ["oops", *map(str, column[1:])]},
    "one row without an output": {"output": at({5}, None)},
    "one row without a loss": {"loss": at({5}, None)},
    "one row with a huge loss": {"loss": at({5}, 1e200)},
    "one row without a time": {"time": [None, *range(1, 400)]},
    "one row without a logger": {"logger": [None, *["a"] * 399]},
    "times as text": {"time": [str(row) for row in range(400)]},
    "lists of groups": {"group": [[1]] * 400},
    "an infinite feature": {"x1": at({5}, np.inf)},
}


@pytest.mark.parametrize("kind", REFUSED_BY_READING)
def test_what_reading_refuses_is_unfit(kind):
    source = raw(**REFUSED_BY_READING[kind])
    with pytest.raises(poem.PoemError):
        log_of(source)
    health = inspect(source)
    assert health.verdict == "unfit"
    assert all(finding.advice for finding in health.problems)


@pytest.mark.parametrize(
    "changes",
    [
        {"x1": at({5}, None)},
        {"group": [None, *range(399)]},
        {"loss": lambda column: pa.array(column).dictionary_encode()},
    ],
)
def test_what_reading_takes_is_not_unfit(changes):
    source = raw(**changes)
    assert len(log_of(source)) == 400
    assert inspect(source).fit


def test_rewards_as_text_are_said_to_be_so_with_advice():
    table = frame(loss=None).append_column("reward", pa.array(["0.5", "1"] * 200))
    health = inspect(read_raw(table))
    assert "'reward' holds its numbers as text" in health.reasons[0]
    assert "Store it as numbers" in health.reasons[0]
    assert health.of("rows").value == 400  # the rest of the report takes them for numbers
    with pytest.raises(ReadError, match=r"'reward' should hold numbers.*Store it as numbers"):
        poem.read_log(table)


@pytest.mark.parametrize("words", [["yes", "no"], ["true", "false"], ["1", "no"]])
def test_rewards_as_words_are_said_to_be_so_with_advice(words):
    table = frame(loss=None).append_column("reward", pa.array(words * 200))
    (reason,) = (one for one in inspect(read_raw(table)).reasons if "no reward" in one)
    assert f"such as {next(word for word in words if word != '1')!r}" in reason
    assert "1 for yes, 0 for no" in reason
    with pytest.raises(ReadError, match=r"'reward' should hold numbers.*1 for yes, 0 for no"):
        poem.read_log(table)


def test_rewards_that_are_missing_are_no_words():
    reason = inspect(raw(loss=None, reward=[None, 1.0] * 200)).reasons[0]
    assert "200 rows have no reward" in reason
    assert "yes" not in reason


def test_files_and_lines_are_named(tmp_path):
    lines = ["x,output,loss,propensity", *(f"{i % 7},{i % 2},{i % 3},0.5" for i in range(60))]
    lines[11] = "1,1,oops,0.5"
    (tmp_path / "log.csv").write_text("\n".join(lines))
    finding = inspect(read_raw(tmp_path / "log.csv")).of("missing loss")
    assert finding.value == 1
    assert "log.csv, row 10" in finding.text


def test_outputs_that_are_not_known_are_left_out():
    health = inspect(raw(), labels=[f"item {code}" for code in range(K - 1)])
    assert health.of("unknown outputs").value == np.sum(parts(n=400)[1] == K - 1)


def test_a_log_without_any_sound_row_is_unfit():
    health = inspect(raw(propensity=np.zeros(400)))
    assert health.verdict == "unfit"
    assert "no row of the log can be used" in str(health)


def test_broken_rows_do_not_take_the_context_of_others_with_them(tmp_path):
    log = made(n=200, contexts=20).deduplicated()
    whole = read_raw(write_log(log, tmp_path / "log.parquet"))
    losses = np.where(np.arange(200) < 20, np.nan, log.loss)  # mostly rows that hold the features of their context
    place = whole.table.column_names.index("loss")
    broken = replace(whole, table=whole.table.set_column(place, "loss", pa.array(losses)))
    health = inspect(broken)
    assert health.of("rows").value == 180
    assert health.of("contexts").value == inspect(log.take(np.arange(20, 200))).of("contexts").value


@pytest.mark.parametrize(("unit", "change"), [("percent", lambda p: p * 100.0), ("log", np.log)])
def test_other_units_are_recognised_and_then_used(unit, change):
    health = inspect(raw(propensity=change))
    assert f"--propensity-unit {unit}" in health.of("unit of propensities").advice
    assert health.verdict == "unfit"
    assert health.of("rows").value == 400
    assert inspect(raw(propensity=change, roles={"propensity_unit": unit})).verdict == "fit"


def test_missing_and_estimated_propensities_are_said():
    missing = inspect(raw(propensity=None))
    assert missing.verdict == "unfit"
    assert "--propensity estimate" in missing.of("missing propensities").advice
    assert inspect(raw(), missing=True).of("missing propensities") is not None
    log = made()
    estimated = log.with_propensities(log.log_propensity, "estimated")
    assert inspect(estimated).of("estimated").verdict == "with care"


@pytest.mark.parametrize("role", ["time", "group"])
def test_columns_that_cannot_be_used_are_said_and_not_used(role):
    health = inspect(raw(**{role: ["soon"] * 400 if role == "time" else [[1]] * 400}))
    assert health.of(f"no {role}").verdict == health.verdict == "unfit"
    assert "--ignore" in health.of(f"no {role}").advice
    assert health.of("rows").value == 400


def test_a_column_that_is_no_feature_makes_a_log_unreadable_not_an_error():
    health = inspect(raw(odd=[b"bytes"] * 400))
    assert health.verdict == "unfit"
    assert "'odd'" in health.of("readable").text


def test_numbers_as_text_are_said_to_become_categories():
    prices = [f"{row % 7}.5" for row in range(400)]
    finding = inspect(raw(price=prices)).of("numbers as categories")
    assert finding.verdict == "with care"
    assert "1 column holds numbers as text, which become categories: 'price'" in finding.text
    assert "--one-hot" in finding.advice
    codes = poem.Encoding(one_hot=["price"])
    assert inspect(raw(price=prices), encoding=codes).of("numbers as categories") is None


@pytest.mark.parametrize("word", ["unknown", "n/a", "3+"])
def test_words_among_numbers_are_named(word):
    ages = at({7, 50}, word)([f"{row % 40}" for row in range(400)])
    finding = inspect(raw(age=ages)).of("words among numbers")
    assert finding.verdict == "with care"
    assert finding.text == f"words turn a column of numbers into categories: 'age' ({word!r})"
    assert "--one-hot" in finding.advice
    codes = poem.Encoding(one_hot=["age"])
    assert inspect(raw(age=ages), encoding=codes).of("words among numbers") is None
    both = inspect(raw(age=ages, size=ages)).of("words among numbers")
    assert "2 columns of numbers" in both.text


def test_numbers_that_overflow_are_no_error():
    for changes in ({"loss": at({1, 2}, 1e300)}, {"propensity": np.full(400, 1e-320)}):
        json.loads(inspect(raw(**changes)).to_json(), parse_constant=pytest.fail)


# ---- refused logs ----------------------------------------------------------------------------------

REFUSED = {
    "deterministic": {"propensity": np.ones(40)},
    "one output": {"y": np.ones(40, dtype=int), "propensity": np.full(40, 0.5)},
    "one loss": {"loss": np.full(40, 2.0)},
    "no propensities": {"propensity": "missing"},
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_fit_refuses_is_unfit(kind, make_log):
    log = make_log(**REFUSED[kind])
    with pytest.raises(poem.PoemError):
        poem.fit(log)
    health = inspect(log)
    assert health.verdict == "unfit"
    assert [finding.verdict for finding in health.problems].count("unfit") == 1  # each reason is said once


def test_too_few_rows_are_unfit():
    assert inspect(made(n=10)).of("rows").verdict == "unfit"


def test_a_policy_that_hardly_explores_is_said():
    rng = np.random.default_rng(0)
    other = rng.random(2000) < 0.005
    log = poem.BanditLog(
        rng.normal(size=(2000, 2)), other.astype(int), loss=rng.random(2000), propensity=np.where(other, 0.005, 0.995)
    )
    assert inspect(log).of("determinism").verdict == "with care"


# ---- contents --------------------------------------------------------------------------------------


def test_outputs_that_were_never_or_hardly_ever_logged_are_said():
    X, y, loss, _ = parts(n=1000)
    y[:5] = K
    log = poem.BanditLog(X, y, loss=loss, propensity=np.full(1000, 0.1), labels=range(K + 3))
    health = inspect(log)
    assert health.of("never logged").value == 2
    assert health.of("rarely logged").value == 1
    assert inspect(made()).of("never logged") is None


def test_rewards_are_spoken_of_as_rewards():
    X, y, loss, p = parts()
    log = poem.BanditLog(X, y, reward=loss, propensity=p[np.arange(4000), y])
    health = inspect(log)
    assert health.of("reward").value == pytest.approx(loss.mean())
    assert f"mean reward of {loss.mean():.4g}" in health.of("detectable improvement").text
    assert "loss:" not in str(health)


def test_outliers_are_said_and_placed():
    rng = np.random.default_rng(0)
    loss = rng.normal(size=4000)
    assert inspect(made(loss=loss)).of("outliers") is None
    loss[17] = 1e6
    finding = inspect(made(loss=loss)).of("outliers")
    assert "row 17" in finding.text


def test_ids_and_constant_columns_are_said():
    ids = inspect(raw(user=[f"u{i}" for i in range(400)], number=np.arange(400), one=np.ones(400)))
    assert ids.of("ids").value == 2
    assert "'one'" in ids.of("constant features").text
    assert inspect(raw()).of("ids") is None
    checked = poem.BanditLog(
        np.column_stack([np.arange(40), np.ones(40)]),
        np.arange(40) % 3,
        loss=np.arange(40.0),
        propensity=np.full(40, 1 / 3),
    )
    assert inspect(checked).of("ids").value == inspect(checked).of("constant features").value == 1


SECONDS = 1.7e9 + np.arange(400) // 2  # since 1970


@pytest.mark.parametrize(
    "times",
    [SECONDS, SECONDS[::-1], SECONDS.astype(int) * 1000, SECONDS.astype(int) * 10**9, np.arange(400) // 2 + 0.5],
    ids=["seconds", "newest first", "milliseconds", "nanoseconds", "rising"],
)
def test_times_that_are_not_named_are_said(times):
    health = inspect(raw(when=times))
    assert health.of("times as features").text == "1 column looks like a time: 'when'"
    assert health.of("ids") is None
    assert "--time" in health.of("times as features").advice
    assert inspect(raw(roles={"time": "when"}, when=times)).of("times as features") is None
    checked = log_of(raw(when=times))
    assert inspect(checked).of("times as features").text == "1 column looks like a time: 'when'"


@pytest.mark.parametrize(
    "column",
    [np.arange(400), np.arange(400) // 8, np.full(400, 1.7e9), np.random.default_rng(0).random(400) * 4e9],
    ids=["row numbers", "few values", "one value", "large numbers"],
)
def test_what_is_no_time_is_not_called_one(column):
    for source in (raw(x4=column), log_of(raw(x4=column))):
        assert inspect(source).of("times as features") is None


def test_distinct_contexts_are_counted():
    log = made(n=2000, contexts=50)
    assert inspect(log).of("contexts").value == len(np.unique(log.X, axis=0)) == 50


def test_small_features_beside_large_ones_tell_contexts_apart():
    ids, hours = np.meshgrid([2.0**57, 2.0**57 + 64.0], [1.0, 2.0])
    X = np.column_stack([ids.ravel(), hours.ravel()])[np.arange(400) % 4]
    log = poem.BanditLog(X, np.arange(400) % 3, loss=np.arange(400.0), propensity=np.full(400, 1 / 3))
    assert inspect(log).of("contexts").value == 4


def test_fingerprints_are_equal_for_equal_rows_however_they_are_stored():
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, size=(3000, 5)) * 1.0
    X[::7] = 0.0
    stored = sp.csr_array(X)
    with_zeros = sp.csr_array((np.zeros(15000), np.tile(np.arange(5), 3000), np.arange(0, 15001, 5)), shape=X.shape)
    with_zeros.data[:] = np.where(rng.random(15000) < 0.5, 0.0, -0.0)
    with_zeros.data[X.ravel() != 0.0] = X[X != 0.0]
    keys = fingerprints(X)
    assert np.array_equal(keys, fingerprints(stored))
    assert np.array_equal(keys, fingerprints(with_zeros))
    assert np.array_equal(keys, fingerprints(np.where(X == 0.0, -0.0, X)))
    assert len(np.unique(keys)) == len(np.unique(X, axis=0))
    assert len(np.unique(fingerprints(np.array([[1.0, 2.0], [2.0, 1.0], [3.0, 0.0], [0.0, 3.0]])))) == 4


def test_a_column_far_out_takes_no_room():
    columns = np.arange(400) % 20
    columns[7] = 2**31 - 2
    X = sp.csr_array((np.ones(400), columns.astype(np.int32), np.arange(401, dtype=np.int32)), shape=(400, 2**31 - 1))
    rng = np.random.default_rng(0)
    log = poem.BanditLog(X, rng.integers(0, 3, 400), loss=rng.random(400), propensity=np.full(400, 1 / 3))
    tracemalloc.start()
    health = inspect(log)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6
    assert health.of("contexts").value == 21


# ---- dependence ------------------------------------------------------------------------------------


def test_copied_rows_are_caught_and_chance_is_not():
    log = made()
    copied = log.take(np.r_[np.arange(4000), np.arange(400)])
    assert inspect(copied).of("duplicates").verdict == "with care"
    assert inspect(copied).of("duplicates").value == pytest.approx(400 / 4400)
    by_chance = inspect(made(n=4000, contexts=5)).of("duplicates")
    assert by_chance.value > 0.9
    assert by_chance.verdict == "fit"


def test_groups_and_contexts_as_units():
    assert inspect(made(group=np.arange(4000) // 4)).of("groups").value == 1000
    assert inspect(made(group=np.arange(4000) // 400)).of("groups").verdict == "with care"
    replayed = made(n=2000, contexts=100).deduplicated()
    assert "100 contexts" in inspect(replayed).of("groups").text


# ---- time ------------------------------------------------------------------------------------------


def test_a_logging_policy_that_changes_half_way_is_caught():
    X, y, loss, p = parts()
    y[2000:], p[2000:] = (y[2000:] + 1) % K, np.roll(p[2000:], 1, axis=1)
    log = poem.BanditLog(X, y, loss=loss, propensity=p[np.arange(4000), y], time=np.arange(4000))
    finding = inspect(log).of("policy drift")
    assert finding.verdict == "with care"
    assert "--out-of-time" in finding.advice


def test_a_steady_log_has_no_drift():
    for seed in range(20):
        health = inspect(made(seed, n=1000, time=np.random.default_rng(seed).random(1000)))
        assert health.of("policy drift").verdict == health.of("loss drift").verdict == "fit"


def test_drift_of_the_loss_and_of_labels_is_caught():
    loss = np.random.default_rng(0).random(4000) + np.linspace(0, 1, 4000)
    assert inspect(made(loss=loss, time=np.arange(4000))).of("loss drift").verdict == "with care"
    X, y, loss, p = sets()
    order = np.argsort(y[:, 1] + np.random.default_rng(0).random(4000), kind="stable")
    times = np.empty(4000)
    times[order] = 1.6e9 + np.arange(4000)
    health = inspect(poem.BanditLog(X, y, loss=loss, propensity=p, time=times))
    assert health.of("policy drift").verdict == "with care"
    assert "2020-09-13" in health.of("span").text


# ---- what can be learnt ----------------------------------------------------------------------------


def test_power_is_that_of_policies_that_decide_otherwise():
    """The standard error of SNIPS over many logs, for policies that always choose one output in a context."""
    rng, values = np.random.default_rng(3), []
    cuts = rng.normal(size=(40, 4, K))
    for seed in range(40):
        X, y, loss, p = parts(seed, n=2000)
        weight = np.stack([(X @ cut).argmax(axis=1) == y for cut in cuts]) / p[np.arange(2000), y]
        values.append(weight @ loss / weight.sum(axis=1))
    truth = np.sqrt(np.mean(np.var(values, axis=0, ddof=1)))
    assert error_of_others(Facts(made(n=2000))) == pytest.approx(truth, rel=0.25)


def test_power_of_the_log_itself_counts_units():
    log = made(group=np.arange(4000) // 2)
    assert error_of_logged(Facts(log)) == pytest.approx(log.loss.std() / np.sqrt(4000), rel=0.1)
    twice = made(n=2000).take(np.repeat(np.arange(2000), 2)).with_groups(np.arange(4000) // 2)
    assert error_of_logged(Facts(twice)) == pytest.approx(error_of_logged(Facts(made(n=2000))), rel=1e-3)
    assert error_of_others(Facts(twice)) == pytest.approx(error_of_others(Facts(made(n=2000))), rel=1e-9)


def test_what_the_log_suggests_is_what_fit_would_take():
    log = made()
    health = inspect(log)
    calibration = calibrate(log, poem.IPS())
    assert health.of("clip").value == calibration.clip
    assert f"λ* = {calibration.lam_star:.4g}" in health.of("clip").text


def test_a_log_that_is_too_small_says_how_many_rows_are_needed():
    finding = inspect(made(n=60)).of("detectable improvement")
    assert finding.verdict == "with care"
    assert "rows" in finding.advice


# ---- real logs -------------------------------------------------------------------------------------


@pytest.mark.skipif(not ARCHIVE.is_file(), reason="the Open Bandit data are not on this machine")
@pytest.mark.parametrize("logger", ["random", "bts"])
def test_the_open_bandit_logs_have_right_propensities_and_too_few_clicks(logger, tmp_path):
    with tarfile.open(ARCHIVE) as tar:
        folder = [name for name in tar.getmembers() if name.name.startswith(f"obd/{logger}/all/")]
        tar.extractall(tmp_path, folder, filter="data")
    health = inspect(read_raw(tmp_path / "obd" / logger / "all"))
    assert health.verdict == "with care"
    assert all(finding.verdict == "fit" for finding in health.findings if finding.topic == "propensities")
    assert health.of("policy drift").verdict == (
        "fit" if logger == "random" else "with care"
    )  # Thompson sampling learns
    assert "mean reward of" in health.of("detectable improvement").text
    assert len(str(health).splitlines()) <= 45
