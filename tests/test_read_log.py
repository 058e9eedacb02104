"""What the columns of a table become in a BanditLog."""

import warnings
from datetime import UTC, date, datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest
from same_logs import FEATURES, ROWS, TABLE, assert_equal, assert_same, dense, frame, partition, written

import poem
from poem.errors import InputError, LogError, ReadError

# ---- columns ---------------------------------------------------------------------------------------


def test_columns_are_named(expected):
    renamed = TABLE.rename_columns(["a", "b", "c", "action", "cost", "p"])
    assert_same(poem.read_log(renamed, output="action", loss="cost", propensity="p"), expected)


def test_a_reward_is_a_negated_loss():
    log = poem.read_log(frame(loss=None, reward=[1, 0, 0, 1]))
    assert log.outcome == "reward"
    assert log.loss.tolist() == [-1.0, 0.0, 0.0, -1.0]
    clicks = poem.read_log(frame(loss=None, click=[True, False, False, True]), reward="click")
    np.testing.assert_array_equal(clicks.loss, log.loss)


def test_the_outcome_that_is_not_named_is_no_feature():
    log = poem.read_log(frame(reward=[1, 0, 0, 1]), reward="reward")
    assert log.outcome == "reward"
    assert log.feature_names == FEATURES


@pytest.mark.parametrize(
    ("context", "names"),
    [
        (["b", "a"], ("b", "a")),
        ("a", ("a",)),
        ("[ab]", ("a", "b")),
        (["c", "*b*"], ("c", "b")),
        ([], ()),
    ],
)
def test_contexts_are_named_by_names_or_patterns(context, names):
    assert poem.read_log(TABLE, columns=poem.Columns(context=context)).feature_names == names


def test_columns_are_left_out_by_names_or_patterns():
    assert poem.read_log(TABLE, columns=poem.Columns(ignore=["a"])).feature_names == ("b", "c")
    assert poem.read_log(TABLE, columns=poem.Columns(ignore="[bc]")).feature_names == ("a",)


def test_a_name_with_brackets_is_first_of_all_a_name():
    table = frame(**{"x[0]": [1, 2, 3, 4], "x[1]": [1, 1, 1, 1]})
    assert poem.read_log(table, columns=poem.Columns(context=["x[0]"])).feature_names == ("x[0]",)
    assert poem.read_log(table, columns=poem.Columns(ignore=["x[0]"])).feature_names == (*FEATURES, "x[1]")


def test_a_log_may_have_no_context():
    log = poem.read_log(TABLE.drop(list(FEATURES)))
    assert (len(log), log.n_features) == (4, 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"loss": "losss"}, "has no column 'losss' for loss. Did you mean 'loss'?"),
        ({"output": "Output"}, "has no column 'Output' for output. Did you mean 'output'?"),
        ({"propensity": "propensty"}, "Did you mean 'propensity'?"),
        ({"group": "user"}, "has no column 'user' for group. It has 'a', 'b'"),
        ({"time": 7}, "has no column 7 for time"),
        ({"context": "z*"}, "has no column 'z*' for context"),
        ({"ignore": ["z"]}, "has no column 'z' for ignore"),
        ({"output": ["a", "bb"]}, "has no column 'bb' for output. Did you mean 'b'?"),
        ({"context": ["a", "loss"]}, "'loss' cannot be both context and something else"),
        ({"loss": "a", "reward": "b"}, "name one column only"),
        ({"propensity_unit": "percents"}, "must be one of probability, percent, log; found 'percents'"),
    ],
)
def test_mistaken_names_are_met_with_the_right_ones(arguments, message):
    with pytest.raises(InputError) as error:
        poem.read_log(TABLE, columns=poem.Columns(**arguments))
    assert message in str(error.value)


def test_a_role_is_named_once():
    with pytest.raises(InputError, match=r"loss is named twice: loss='a' and Columns\(loss='b'\)"):
        poem.read_log(TABLE, loss="a", columns=poem.Columns(loss="b"))
    with pytest.raises(InputError, match=r"has no column \['a'\] for loss"):
        poem.read_log(TABLE, loss=["a"])


@pytest.mark.parametrize("wrong", [{"columns": {"loss": "a"}}, {"features": {"scale": True}}])
def test_groups_of_arguments_have_types_of_their_own(wrong):
    with pytest.raises(InputError, match=r"must be a poem\..*found dict"):
        poem.read_log(TABLE, **wrong)


def test_columns_and_arguments_name_roles_alike():
    renamed = TABLE.rename_columns([{"loss": "cost"}.get(name, name) for name in TABLE.column_names])
    assert_same(poem.read_log(renamed, columns=poem.Columns(loss="cost")), poem.read_log(renamed, loss="cost"))


@pytest.mark.parametrize(
    ("role", "elsewhere"),
    [
        ("output", "action"),
        ("output", "Item_ID"),
        ("loss", "cost"),
        ("loss", "click"),
        ("propensity", "pscore"),
        ("propensity", "prob"),
    ],
)
def test_what_other_tools_call_a_column_is_suggested_but_not_taken(role, elsewhere):
    names = [elsewhere if name == role else name for name in TABLE.column_names]
    with pytest.raises(ReadError, match=f"known to be the {role}.*Did you mean '{elsewhere}'.*--{role}"):
        poem.read_log(TABLE.rename_columns(names))


def test_a_loss_and_a_reward_must_be_decided_on():
    with pytest.raises(ReadError, match="there is a reward as well"):
        poem.read_log(frame(reward=[1, 0, 0, 1]))


def test_a_log_is_a_path_or_a_frame():
    with pytest.raises(InputError, match="a log is a path or a data frame; found list"):
        poem.read_log(ROWS)
    with pytest.raises(LogError, match="the log must be an Arrow data frame; found Series"):
        poem.read_log(pd.Series([1, 2]))


# ---- propensities ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "change"), [("percent", lambda p: 100.0 * p), ("log", np.log), ("probability", lambda p: p)]
)
def test_propensities_have_units(expected, unit, change):
    table = frame(propensity=change(TABLE.column("propensity").to_numpy()))
    log = poem.read_log(table, columns=poem.Columns(propensity_unit=unit))
    np.testing.assert_allclose(log.log_propensity, expected.log_propensity)


def test_propensities_may_be_missing(tmp_path):
    log = poem.read_log(TABLE.drop(["propensity"]), propensity="missing")
    assert log.propensities == "missing"
    assert np.isnan(log.log_propensity).all()
    assert_equal(poem.read_log(poem.write_log(log, tmp_path / "log.parquet")), log)


def test_distributions_with_candidates_stand_for_the_propensity(expected):
    table = frame(
        propensity=None,
        candidates=[[1, 2], [1], [3, 1, 2], [3, 2]],
        distribution=[[0.75, 0.25], [1.0], [0.5, 0.25, 0.25], [0.875, 0.125]],
    )
    np.testing.assert_allclose(np.exp(poem.read_log(table).log_propensity), [0.25, 1.0, 0.5, 0.125])


def test_candidates_and_outputs_are_the_same_by_what_they_say():
    distribution = [[0.75, 0.25], [1.0], [0.5, 0.5], [0.875, 0.125]]
    table = frame(propensity=None, candidates=[["1", "2"], ["1"], ["3", "1"], ["3", "2"]], distribution=distribution)
    np.testing.assert_allclose(np.exp(poem.read_log(table).log_propensity), [0.25, 1.0, 0.5, 0.125])


def test_distributions_without_candidates_are_in_the_order_of_the_labels():
    table = frame(propensity=None, distribution=[[0.5, 0.25, 0.25]] * 4)
    np.testing.assert_allclose(np.exp(poem.read_log(table).log_propensity), [0.25, 0.5, 0.25, 0.25])
    wide = frame(propensity=None, distribution=[[0.1, 0.2, 0.3, 0.4]] * 4)
    log = poem.read_log(wide, labels=[4, 3, 2, 1])
    np.testing.assert_allclose(np.exp(log.log_propensity), [0.3, 0.4, 0.2, 0.3])


# ---- outputs ---------------------------------------------------------------------------------------


def labels_of(output, **options):
    return poem.read_log(frame(output=output), **options).labels


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        (["v", "u", "v", "w"], ("u", "v", "w")),
        ([2, 1, 2, 2], (1, 2)),
        ([2.0, 1.0, 2.0, 2.0], (1, 2)),
        ([0.5, 1.0, 0.5, 1.0], (0.5, 1.0)),
        ([True, False, True, True], (False, True)),
        (pa.array(["v", "u", "v", "w"], pa.large_string()), ("u", "v", "w")),
        (pa.array(["v", "u", "v", "w"], pa.string_view()), ("u", "v", "w")),
        (pa.array(["v", "u", "v", "w"]).dictionary_encode(), ("u", "v", "w")),
        (pa.array([2, 1, 2, 2]).dictionary_encode(), (1, 2)),
        (pa.array([2**63, 1, 1, 1], pa.uint64()), (1, 2**63)),
        (pa.array([2, 1, 2, 2], pa.decimal128(20, 0)), (1, 2)),
        (pd.Categorical(["v", "u", "v", "v"], categories=["u", "v", "never"]), ("u", "v")),
    ],
)
def test_outputs_are_strings_or_numbers(values, labels):
    found = labels_of(pa.array(values) if not isinstance(values, pa.Array) else values)
    assert found == labels
    assert list(map(type, found)) == list(map(type, labels))


def test_polars_categories_are_outputs_and_features():
    kinds = pl.Enum(["u", "v", "w"])
    table = pl.from_arrow(TABLE).with_columns(
        output=pl.Series(["v", "u", "v", "v"], dtype=kinds), a=pl.Series(["k", "k", "l", None], dtype=pl.Categorical)
    )
    log = poem.read_log(table)
    assert log.labels == ("u", "v")
    assert log.feature_names == ("b", "c", "a=k", "a=l", "a is missing")
    np.testing.assert_array_equal(dense(log)[:, 2:], [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])


def test_labels_name_all_outputs_in_their_order():
    log = poem.read_log(TABLE, labels=[3, 2, 1, 0])
    assert (log.labels, log.y.tolist()) == ((3, 2, 1, 0), [1, 2, 0, 1])
    assert poem.read_log(TABLE, labels=np.arange(4)).labels == (0, 1, 2, 3)
    assert {type(label) for label in poem.read_log(TABLE, labels=np.arange(4)).labels} == {int}


def test_labels_of_another_type_mean_the_same():
    assert poem.read_log(TABLE, labels=["1", "2", "3"]).y.tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize(("labels", "message"), [(7, "found int"), ([["a"]], "found"), ([None], "None"), ([1, 1], "1")])
def test_labels_must_be_distinct_strings_or_numbers(labels, message):
    with pytest.raises(InputError, match=message):
        poem.read_log(TABLE, labels=labels)


LABEL_SETS = [["u", "v"], [], ["w"], ["v"]]


@pytest.mark.parametrize("kind", [pa.list_(pa.string()), pa.large_list(pa.string_view()), pa.list_(pa.large_string())])
def test_label_sets_are_lists(kind):
    log = poem.read_log(frame(output=pa.array(LABEL_SETS, kind)))
    assert log.labels == ("u", "v", "w")
    assert log.y.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_label_sets_are_columns_of_0_and_1():
    log = poem.read_log(frame(output=None, u=[1, 0, 0, 0], v=[True, False, False, True]), output=["u", "v"])
    assert (log.labels, log.y.tolist()) == (("u", "v"), [[1, 1], [0, 0], [0, 0], [0, 1]])
    turned = poem.read_log(frame(output=None, u=[1, 0, 0, 0], v=[1, 0, 0, 1]), output=["u", "v"], labels=["v", "u"])
    assert (turned.labels, turned.y.tolist()) == (("v", "u"), [[1, 1], [0, 0], [0, 0], [1, 0]])


@pytest.mark.parametrize("labels", [None, [0, 1, 2], ["u", "v", "w"]])
def test_label_sets_are_lists_of_0_and_1(labels):
    log = poem.read_log(frame(output=[[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]]), labels=labels)
    assert log.labels == tuple(labels or range(3))
    assert log.y.tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 1, 0]]


def test_lists_of_two_are_0_and_1_for_each_label(tmp_path, make_log):
    log = poem.read_log(frame(output=[[1, 0], [0, 0], [1, 1], [0, 1]]))
    assert log.y.tolist() == [[1, 0], [0, 0], [1, 1], [0, 1]]
    both = make_log(y=np.ones((40, 2)))
    assert_equal(written(both, tmp_path), both)


# ---- who and when ----------------------------------------------------------------------------------

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "time",
    [
        ["2026-11-16T12:00:00Z"] * 4,
        ["2026-11-16 12:00:00"] * 4,
        ["2026-11-16T13:00:00+01:00"] * 4,
        ["2026-11-16T12:00:00.000000000"] * 4,
        [datetime(2026, 11, 16, 12)] * 4,
        [datetime(2026, 11, 16, 12, tzinfo=UTC)] * 4,
        pa.array([int(NOON)] * 4).cast(pa.timestamp("s", "Asia/Tokyo")),
        pa.array([int(NOON) * 10**9] * 4).cast(pa.timestamp("ns")),
        pa.array(["2026-11-16T12:00:00Z"] * 4).dictionary_encode(),
        [NOON] * 4,
    ],
)
def test_times_are_seconds(time):
    assert poem.read_log(frame(time=time)).time.tolist() == [NOON] * 4


def test_dates_are_times():
    days = [date(2026, 11, day) for day in (16, 17, 18, 19)]
    log = poem.read_log(frame(day=days), columns=poem.Columns(time="day"))
    assert np.diff(log.time).tolist() == [86400.0] * 3
    milliseconds = poem.read_log(frame(day=pa.array(days, pa.date64())), columns=poem.Columns(time="day"))
    np.testing.assert_array_equal(milliseconds.time, log.time)


def test_fractions_of_seconds_are_kept():
    nanoseconds = pa.array([int(NOON) * 10**9 + 123_456_789] * 4).cast(pa.timestamp("ns"))
    assert poem.read_log(frame(time=nanoseconds)).time[0] == pytest.approx(NOON + 0.123456789, abs=1e-6)


def test_times_that_are_all_empty_are_none():
    assert poem.read_log(frame(time=pa.nulls(4, pa.string()))).time is None


def test_default_columns_can_be_ignored():
    log = poem.read_log(frame(time=["soon"] * 4, group=[1, 1, 2, 2]), columns=poem.Columns(ignore=["time", "group"]))
    assert (log.time, log.group, log.feature_names) == (None, None, FEATURES)


@pytest.mark.parametrize(
    "group",
    [
        ["k", "l", "k", None],
        [7, 8, 7, None],
        [7.5, 8.0, 7.5, float("nan")],
        [2**53, 2**53 + 1, 2**53, None],
        [b"\xff\x00", b"\x01", b"\xff\x00", None],
        [date(2026, 1, 1), date(2026, 1, 2), date(2026, 1, 1), None],
        pa.array(["k", "l", "k", None]).dictionary_encode(),
    ],
)
def test_rows_of_one_group_are_together_and_others_alone(group):
    log = poem.read_log(frame(group=group))
    assert partition(log.group) == partition(np.array([0, 1, 0, 2]))


def test_one_long_name_does_not_take_all_memory():
    n = 50_000
    names = pa.chunked_array([["k" * 100_000], pa.array(["l"]).take(pa.array(np.zeros(n - 1, dtype=int)))])
    columns = {"x": np.ones(n), "output": np.arange(n) % 2, "loss": np.ones(n), "propensity": np.ones(n)}
    log = poem.read_log(pa.table(columns | {"logger": names}))  # 20 GB, if each name had the room of the longest
    assert (len(log.logger[0]), log.logger[1]) == (100_000, "l")


def test_loggers_keep_their_names():
    assert poem.read_log(frame(logger=["k", "l", "k", "k"])).logger.tolist() == ["k", "l", "k", "k"]
    assert poem.read_log(frame(policy=[1, 2, 1, 1]), columns=poem.Columns(logger="policy")).logger.tolist() == [
        1,
        2,
        1,
        1,
    ]


# ---- numbers as text ---------------------------------------------------------------------------------

PRICES = ["1.5", "2", "-3e2", None]


def test_numbers_as_text_become_categories_with_a_warning():
    with pytest.warns(poem.errors.PoemWarning, match="stored as text become categories: 'price'") as told:
        log = poem.read_log(frame(price=PRICES))
    assert "price=1.5" in log.feature_names
    assert "store them as numbers" in str(told[0].message)
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    "column",
    [
        [1.5, 2.0, 3.0, None],
        ["1.5", "2", "three", "4"],
        ["007", "008", "009", "010"],
        ["0", "1", "1", "0"],
        pd.Categorical(["1", "2", "3", "4"]),
    ],
    ids=["numbers", "words", "codes", "two values", "categorical"],
)
def test_what_is_no_number_as_text_gives_no_warning(column):
    poem.read_log(frame(price=column))


def logged(column):
    n = len(column)
    return pd.DataFrame({"age": column, "output": [0, 1] * (n // 2), "loss": range(n), "propensity": 0.5})


def test_words_among_numbers_are_warned_of():
    with pytest.warns(
        poem.errors.PoemWarning, match=r"a column of numbers into categories: 'age' \('unknown'\)"
    ) as told:
        poem.read_log(logged([*map(str, range(29)), "unknown"]))
    assert "Leave such cells empty" in str(told[0].message)
    assert told[0].filename == __file__


@pytest.mark.parametrize(
    "column",
    [
        [*map(str, range(19)), *"abcdefghijk"],
        ["0", "1", "2", "3 or more", None] * 6,
        [f"{code:02}" for code in range(30)],
        [*map(str, range(10, 38)), None, None],
        pd.Categorical([*map(str, range(29)), "unknown"]),
    ],
    ids=["many words", "few numbers", "codes", "gaps", "categorical"],
)
def test_what_is_no_word_among_numbers_gives_no_warning(column):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="numbers that are stored as text")
        poem.read_log(logged(column))


@pytest.mark.parametrize("kind", ["one_hot", "hashed", "text"])
def test_what_the_encoding_names_gives_no_warning(kind):
    poem.read_log(frame(price=PRICES), features=poem.Encoding(**{kind: ["price"]}))
