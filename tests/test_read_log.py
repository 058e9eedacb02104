"""Files and data frames of every kind → the same BanditLog, and back."""

import bz2
import gzip
import json
import tarfile
from datetime import UTC, date, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from test_datasets import SHARED

import poem
from poem.errors import InputError, LogError, MismatchError, ReadError
from poem.readers import read_contexts, read_raw
from poem.readers.checked import contexts_by_row
from poem.readers.detect import format_of

ROWS = [
    {"a": 1.0, "b": 0.0, "c": 2.5, "output": 2, "loss": 0.5, "propensity": 0.25},
    {"a": 0.0, "b": 3.0, "c": 0.0, "output": 1, "loss": -1.0, "propensity": 0.5},
    {"a": 0.5, "b": 0.25, "c": -4.0, "output": 3, "loss": 0.0, "propensity": 1.0},
    {"a": 1.0, "b": 1.0, "c": 1.0, "output": 2, "loss": 2.0, "propensity": 0.125},
]
TABLE = pa.Table.from_pylist(ROWS)
FEATURES = ("a", "b", "c")


def dense(log):
    return log.X.toarray() if sp.issparse(log.X) else log.X


def partition(values):
    """Which rows are of one group, whatever the groups are called."""
    return None if values is None else np.equal.outer(values, values).tolist()


def assert_same(one, two, names=True):
    """Expect two logs of the same decisions."""
    np.testing.assert_array_equal(dense(one), dense(two))
    for name in ("y", "loss", "log_propensity", "context"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert one.labels == two.labels
    assert list(map(type, one.labels)) == list(map(type, two.labels))
    assert (one.outcome, one.propensities) == (two.outcome, two.propensities)
    for name in ("group", "logger"):
        assert partition(getattr(one, name)) == partition(getattr(two, name))
    np.testing.assert_array_equal(one.time, two.time)
    if names:
        assert one.feature_names == two.feature_names


def assert_equal(one, two):
    """Expect two logs that are the same in every bit, and in what made them."""
    assert_same(one, two)
    assert one.fingerprint() == two.fingerprint()
    assert one.features == two.features
    assert sp.issparse(one.X) == sp.issparse(two.X)


@pytest.fixture
def expected():
    columns = {name: TABLE.column(name).to_numpy() for name in TABLE.column_names}
    X = np.column_stack([columns[name] for name in FEATURES])
    loss, propensity = columns["loss"], columns["propensity"]
    return poem.BanditLog(X, columns["output"], loss=loss, propensity=propensity, feature_names=FEATURES)


# ---- the same data in every format ----------------------------------------------------------------


def nonzero(row):
    return {name: row[name] for name in FEATURES if row[name]}


def as_csv():
    lines = [",".join(TABLE.column_names), *(",".join(str(value) for value in row.values()) for row in ROWS)]
    return "\n".join(lines) + "\n"


def as_jsonl():
    return "".join(json.dumps(row) + "\n" for row in ROWS)


def as_vw():
    return "".join(
        f"{row['output']}:{row['loss']}:{row['propensity']} | {' '.join(f'{k}:{v}' for k, v in nonzero(row).items())}\n"
        for row in ROWS
    )


def as_dsjson():
    return "".join(
        json.dumps(
            {
                "_label_cost": row["loss"],
                "_label_probability": row["propensity"],
                "_labelIndex": row["output"] - 1,
                "c": nonzero(row),
            }
        )
        + "\n"
        for row in ROWS
    )


def as_svmlight():
    return "".join(
        f"0 {' '.join(f'{i}:{row[name]}' for i, name in enumerate(FEATURES) if row[name])}\n" for row in ROWS
    )


TEXTS = {".csv": as_csv, ".jsonl": as_jsonl, ".vw": as_vw, ".dsjson": as_dsjson}
FRAMES = {
    "arrow": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "stream": lambda table: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
    "pandas": lambda table: table.to_pandas(),
    "pandas index": lambda table: table.to_pandas().set_index(np.arange(len(table)) * 7),
    "polars": pl.from_arrow,
}


def write(path, content):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda c: pa.compress(c, "zstd", asbytes=True)}
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(pack.get(path.suffix, bytes)(content))
    return path


@pytest.mark.parametrize("suffix", TEXTS)
def test_text_formats_give_the_same_log(tmp_path, expected, suffix):
    assert_same(poem.read_log(write(tmp_path / f"log{suffix}", TEXTS[suffix]())), expected)


@pytest.mark.parametrize("form", FRAMES)
def test_frames_give_the_same_log(expected, form):
    assert_same(poem.read_log(FRAMES[form](TABLE)), expected)


def test_parquet_gives_the_same_log(tmp_path, expected):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    assert_same(poem.read_log(tmp_path / "log.parquet"), expected)


@pytest.mark.parametrize("beside", ["log.csv", "log.csv.gz", "log.jsonl", "log.parquet"])
def test_svmlight_takes_the_rest_from_a_table_beside_it(tmp_path, expected, beside):
    write(tmp_path / "log.svm", as_svmlight())
    rest = TABLE.drop(list(FEATURES))
    if beside.endswith(".parquet"):
        pq.write_table(rest, tmp_path / beside)
    elif beside.endswith(".jsonl"):
        write(tmp_path / beside, "".join(json.dumps(row) + "\n" for row in rest.to_pylist()))
    else:
        write(tmp_path / beside, rest.to_pandas().to_csv(index=False))
    log = poem.read_log(tmp_path / "log.svm")
    assert sp.issparse(log.X)
    assert_same(log, expected, names=False)


def test_svmlight_takes_the_rest_from_a_table_that_is_named(tmp_path, expected):
    write(tmp_path / "log.svm", as_svmlight())
    pq.write_table(TABLE.drop(list(FEATURES)), tmp_path / "rest.parquet")
    assert_same(poem.read_log(tmp_path / "log.svm", side=tmp_path / "rest.parquet"), expected, names=False)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("suffix", TEXTS)
def test_marks_and_line_ends_change_nothing(tmp_path, expected, suffix, end, mark):
    content = mark + TEXTS[suffix]().replace("\n", end)
    path = tmp_path / f"log{suffix}"
    path.write_bytes(content.encode())
    assert_same(poem.read_log(path), expected)


@pytest.mark.parametrize("compressed", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize("suffix", TEXTS)
def test_compressed_files_are_read(tmp_path, expected, suffix, compressed):
    assert_same(poem.read_log(write(tmp_path / f"log{suffix}{compressed}", TEXTS[suffix]())), expected)


def test_compression_is_known_by_content_not_by_name(tmp_path, expected):
    (tmp_path / "log.csv").write_bytes(gzip.compress(as_csv().encode()))
    assert_same(poem.read_log(tmp_path / "log.csv"), expected)
    (tmp_path / "plain.csv.gz").write_text(as_csv())
    assert_same(poem.read_log(tmp_path / "plain.csv.gz"), expected)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_files_compressed_in_several_pieces_are_read_whole(tmp_path, expected, pack):
    half = len(as_csv()) // 2
    (tmp_path / "log.csv.gz").write_bytes(pack(as_csv()[:half].encode()) + pack(as_csv()[half:].encode()))
    assert_same(poem.read_log(tmp_path / "log.csv.gz"), expected)


def test_compressed_parquet_is_read(tmp_path, expected):
    pq.write_table(TABLE, tmp_path / "log.parquet")
    (tmp_path / "log.parquet.gz").write_bytes(gzip.compress((tmp_path / "log.parquet").read_bytes()))
    assert_same(poem.read_log(tmp_path / "log.parquet.gz"), expected)


def test_a_column_may_be_called_like_the_first_bytes_of_bz2(tmp_path):
    path = write(tmp_path / "log.csv", as_csv().replace("a,", "BZh9,", 1))
    assert poem.read_log(path).feature_names == ("BZh9", "b", "c")


# ---- which format ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [*TEXTS, ".svm"])
@pytest.mark.parametrize("compressed", ["", ".gz"])
def test_formats_are_known_by_content(tmp_path, suffix, compressed):
    content = as_svmlight() if suffix == ".svm" else TEXTS[suffix]()
    names = {".csv": "csv", ".jsonl": "jsonl", ".svm": "svmlight", ".vw": "vw", ".dsjson": "dsjson"}
    assert format_of(write(tmp_path / f"part-0{compressed}", content)) == names[suffix]


def test_parquet_is_known_by_content(tmp_path):
    pq.write_table(TABLE, tmp_path / "part-0")
    assert format_of(tmp_path / "part-0") == "parquet"


@pytest.mark.parametrize(
    ("first", "name"),
    [
        ("1 2:0.5:0.3 4 | a b", "vw"),
        ("shared | a", "vw"),
        ("| a b", "vw"),
        ("a|b|c", "csv"),
        ("|a|b", "csv"),
        ("\ufeff{}", "jsonl"),
        ('{"a": 1}\n{"_label_cost": 1}', "dsjson"),
        ("1,2 0:1", "svmlight"),
        ("item_id,position,click,propensity_score", "obd"),
        ('"item_id";"position";"click";"propensity_score"', "obd"),
        ("item_id,position_x,click,propensity_score", "csv"),
    ],
)
def test_first_lines_tell_the_format(tmp_path, first, name):
    assert format_of(write(tmp_path / "log", first + "\n")) == name


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".tsv", ".json", ".ndjson", ".pq", ".libsvm"])
def test_suffixes_tell_the_format(tmp_path, suffix):
    names = {".pq": "parquet", ".libsvm": "svmlight", ".json": "jsonl", ".ndjson": "jsonl"}
    assert format_of(write(tmp_path / f"log{suffix}", "x")) == names.get(suffix, "csv")


def test_the_format_that_is_given_wins(tmp_path, expected):
    assert_same(poem.read_log(write(tmp_path / "log.txt", as_jsonl()), format="jsonl"), expected)
    with pytest.raises(InputError, match=r"must be one of parquet, csv.*found 'xlsx'"):
        poem.read_log(tmp_path / "log.txt", format="xlsx")


# ---- CSV ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", "\t", ";", "|"])
def test_delimiters_are_found(tmp_path, expected, delimiter):
    path = write(tmp_path / "log.csv", as_csv().replace(",", delimiter))
    assert_same(poem.read_log(path), expected)
    assert_same(poem.read_log(path, delimiter=delimiter), expected)


def test_delimiters_in_quotes_do_not_count(tmp_path):
    content = '"a,b,c,d,e";output;loss;propensity\n1;u;0;0.5\n'
    assert poem.read_log(write(tmp_path / "log.csv", content)).feature_names == ("a,b,c,d,e",)


def test_other_delimiters_are_given(tmp_path, expected):
    path = write(tmp_path / "log.csv", as_csv().replace(",", "^"))
    assert_same(poem.read_log(path, delimiter="^"), expected)
    for wrong in ("::", "é", '"', ""):
        with pytest.raises(InputError, match="one character of ASCII"):
            poem.read_log(path, delimiter=wrong)
    with pytest.raises(InputError, match=r"delimiter is for csv and obd; log\.jsonl is jsonl"):
        poem.read_log(write(tmp_path / "log.jsonl", as_jsonl()), delimiter=";")


def test_quoted_line_ends_stay_in_their_values(tmp_path):
    content = 'output,loss,propensity,text\nu,0,0.5,"a\nb"\nv,1,0.5,"c ""d"""\n'
    log = poem.read_log(write(tmp_path / "log.csv", content))
    assert log.feature_names == ("text=a\nb", 'text=c "d"')


def test_types_are_found_in_the_whole_file(tmp_path):
    lines = ["output,loss,propensity,x", *["u,0,1,"] * 100_000, "v,0.5,0.5,late"]
    log = poem.read_log(write(tmp_path / "log.csv", "\n".join(lines)))
    assert log.loss[-1] == 0.5
    assert log.feature_names == ("x=late",)


def test_an_empty_field_is_a_missing_one(tmp_path):
    content = "output,loss,propensity,x,group\nu,0,0.5,,\nv,1,0.5,k,g\nv,1,0.5,k,\n"
    log = poem.read_log(write(tmp_path / "log.csv", content))
    assert log.feature_names == ("x=k",)
    assert dense(log).tolist() == [[0.0], [1.0], [1.0]]
    assert len(set(log.group.tolist())) == 3


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_saved_indexes_are_no_features(tmp_path, expected, name):
    lines = as_csv().splitlines()
    numbered = [f"{name},{lines[0]}", *(f"{i},{line}" for i, line in enumerate(lines[1:]))]
    assert_same(poem.read_log(write(tmp_path / "log.csv", "\n".join(numbered))), expected)


# ---- JSON -----------------------------------------------------------------------------------------


def test_nested_objects_become_columns_in_every_format(tmp_path):
    rows = [{"output": "u", "loss": 0.0, "propensity": 1.0, "user": {"age": 3, "home": {"city": "Ulm"}}}] * 2
    path = write(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "log.parquet")
    for source in (path, tmp_path / "log.parquet", table, pl.from_arrow(table)):
        assert poem.read_log(source).feature_names == ("user.age", "user.home.city=Ulm")


def test_one_object_on_several_lines_is_one_row(tmp_path):
    log = poem.read_log(write(tmp_path / "log.json", json.dumps(ROWS[0], indent=2)))
    assert (len(log), log.labels) == (1, (2,))


def test_brackets_in_strings_are_not_nesting(tmp_path):
    row = {"output": "u", "loss": 0.0, "propensity": 1.0, "text": "[{" * 200 + '"'}
    path = write(tmp_path / "log.jsonl", (json.dumps(row) + "\n") * 3)
    assert len(poem.read_log(path)) == 3


# ---- folders --------------------------------------------------------------------------------------


def parts(folder, tables, suffix=".parquet"):
    folder.mkdir(exist_ok=True)
    for number, table in enumerate(tables):
        writer = pq.write_table if suffix == ".parquet" else pa.csv.write_csv
        writer(table, folder / f"part-{number}{suffix}")
    return folder


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_part_files_are_one_log(tmp_path, expected, suffix):
    folder = parts(tmp_path / "log", [TABLE.slice(0, 1), TABLE.slice(1, 0), TABLE.slice(1, 3)], suffix)
    assert_same(poem.read_log(folder), expected)


def test_what_is_no_part_is_passed_over(tmp_path, expected):
    folder = parts(tmp_path / "log", [TABLE.slice(0, 2), TABLE.slice(2)])
    for name in ("_SUCCESS", ".part-0.parquet.crc", "_metadata.parquet", ".hidden.csv", "README.md"):
        (folder / name).write_text("no part")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part-9.parquet").write_text("no part")
    assert_same(poem.read_log(folder), expected)


def test_part_files_may_lie_in_inner_folders(tmp_path, expected):
    parts(tmp_path / "log", [])
    parts(tmp_path / "log" / "day=1", [TABLE.slice(0, 2)])
    parts(tmp_path / "log" / "day=2", [TABLE.slice(2)])
    assert_same(poem.read_log(tmp_path / "log"), expected)


def test_types_of_parts_are_joined_where_they_can_be(tmp_path, expected):
    whole = TABLE.slice(0, 1).set_column(0, "a", pa.array([1], pa.int8()))
    empty = TABLE.slice(1, 1).set_column(4, "loss", pa.array([-1], pa.int32()))
    assert_same(poem.read_log(parts(tmp_path / "log", [whole, empty, TABLE.slice(2)])), expected)


def test_parts_of_vowpal_wabbit_may_have_different_features(tmp_path, expected):
    lines = as_vw().splitlines(keepends=True)
    (tmp_path / "log").mkdir()
    for number, line in enumerate(lines):
        write(tmp_path / "log" / f"{number}.vw", line)
    assert_same(poem.read_log(tmp_path / "log"), expected)


def test_folders_of_svmlight_have_their_tables_beside_the_parts(tmp_path, expected):
    rest = TABLE.drop(list(FEATURES))
    folder = parts(tmp_path / "log", [rest.slice(0, 2), rest.slice(2)], ".csv")
    lines = as_svmlight().splitlines(keepends=True)
    for number in (0, 1):
        write(folder / f"part-{number}.svm", "".join(lines[2 * number : 2 * number + 2]))
    assert_same(poem.read_log(folder), expected, names=False)


def test_one_table_may_stand_beside_a_folder_of_svmlight(tmp_path, expected):
    pq.write_table(TABLE.drop(list(FEATURES)), tmp_path / "rest.parquet")
    (tmp_path / "log").mkdir()
    for number, line in enumerate(as_svmlight().splitlines()):
        write(tmp_path / "log" / f"{number}.svm", line)
    assert_same(poem.read_log(tmp_path / "log", side=tmp_path / "rest.parquet"), expected, names=False)


def test_contexts_of_native_parts_are_not_mixed_up(tmp_path, make_log):
    (tmp_path / "logs").mkdir()
    seen = np.repeat(np.arange(20), 2)
    logs = [make_log(X=make_log().X[first : first + 20], context=seen) for first in (0, 20)]
    for number, log in enumerate(logs):
        poem.write_log(log, tmp_path / "logs" / f"{number}.parquet")
    assert_same(poem.read_log(tmp_path / "logs"), poem.BanditLog.concat(logs))


def test_native_parts_with_different_notes_are_refused(tmp_path, make_log, rows):
    (tmp_path / "logs").mkdir()
    poem.write_log(make_log(y=rows.y), tmp_path / "logs" / "0.parquet")
    poem.write_log(make_log(y=rows.y, labels=range(5)), tmp_path / "logs" / "1.parquet")
    with pytest.raises(ReadError, match=r"1\.parquet and 0\.parquet were written by poem with other labels.*concat"):
        poem.read_log(tmp_path / "logs")


# ---- columns --------------------------------------------------------------------------------------


def frame(**changes):
    columns = {name: TABLE.column(name).to_pylist() for name in TABLE.column_names} | changes
    return pa.table({name: column for name, column in columns.items() if column is not None})


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
    assert poem.read_log(TABLE, context=context).feature_names == names


def test_columns_are_left_out_by_names_or_patterns():
    assert poem.read_log(TABLE, ignore=["a"]).feature_names == ("b", "c")
    assert poem.read_log(TABLE, ignore="[bc]").feature_names == ("a",)


def test_a_name_with_brackets_is_first_of_all_a_name():
    table = frame(**{"x[0]": [1, 2, 3, 4], "x[1]": [1, 1, 1, 1]})
    assert poem.read_log(table, context=["x[0]"]).feature_names == ("x[0]",)
    assert poem.read_log(table, ignore=["x[0]"]).feature_names == (*FEATURES, "x[1]")


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
        poem.read_log(TABLE, **arguments)
    assert message in str(error.value)


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


# ---- propensities ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("unit", "change"), [("percent", lambda p: 100.0 * p), ("log", np.log), ("probability", lambda p: p)]
)
def test_propensities_have_units(expected, unit, change):
    table = frame(propensity=change(TABLE.column("propensity").to_numpy()))
    np.testing.assert_allclose(poem.read_log(table, propensity_unit=unit).log_propensity, expected.log_propensity)


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


# ---- outputs --------------------------------------------------------------------------------------


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
    assert log.feature_names == ("b", "c", "a=k", "a=l")
    np.testing.assert_array_equal(dense(log)[:, 2:], [[1, 0], [1, 0], [0, 1], [0, 0]])


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


# ---- who and when ---------------------------------------------------------------------------------


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
    log = poem.read_log(frame(day=days), time="day")
    assert np.diff(log.time).tolist() == [86400.0] * 3
    milliseconds = poem.read_log(frame(day=pa.array(days, pa.date64())), time="day")
    np.testing.assert_array_equal(milliseconds.time, log.time)


def test_fractions_of_seconds_are_kept():
    nanoseconds = pa.array([int(NOON) * 10**9 + 123_456_789] * 4).cast(pa.timestamp("ns"))
    assert poem.read_log(frame(time=nanoseconds)).time[0] == pytest.approx(NOON + 0.123456789, abs=1e-6)


def test_times_that_are_all_empty_are_none():
    assert poem.read_log(frame(time=pa.nulls(4, pa.string()))).time is None


def test_default_columns_can_be_ignored():
    log = poem.read_log(frame(time=["soon"] * 4, group=[1, 1, 2, 2]), ignore=["time", "group"])
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
    assert poem.read_log(frame(policy=[1, 2, 1, 1]), logger="policy").logger.tolist() == [1, 2, 1, 1]


# ---- written and read back ------------------------------------------------------------------------


def written(log, tmp_path):
    return poem.read_log(poem.write_log(log, tmp_path / "log.parquet"))


CHANGES = {
    "dense": {},
    "sparse": {"X": sp.csr_array(np.diag(np.arange(40.0)))},
    "no features": {"X": np.zeros((40, 0))},
    "repeated contexts": {"X": np.arange(12.0).reshape(4, 3), "context": np.arange(40) % 4},
    "repeated sparse contexts": {"X": sp.csr_array(np.diag([0.0, 1.0, 2.0, 3.0])), "context": np.arange(40)[::-1] % 4},
    "string labels": {"y": np.array(["u", "v"] * 20), "labels": ["w", "v", "u"]},
    "float labels": {"y": np.array([0.5, 2.0] * 20)},
    "labels of two types": {"y": np.array([1] * 40), "labels": [1, "v"]},
    "true and false": {"y": np.array([True, False] * 20)},
    "huge labels": {"y": np.array([-1] * 40), "labels": [-1, 2**64]},
    "groups of strings": {"group": np.repeat(["a", "b", "c", "d"], 10)},
    "groups of numbers": {"group": np.repeat([2**62, 2, 3, 4], 10)},
    "loggers and times": {"logger": np.repeat(["a", "b"], 20), "time": np.arange(40) / 7},
    "rewards": {"loss": None, "reward": np.arange(40) / 3},
    "names": {"feature_names": ["a", "é", "c"]},
    "tiny propensities": {"propensity": None, "log_propensity": np.linspace(-800.0, 0.0, 40)},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_log_is_read_back_equal(tmp_path, make_log, name):
    log = make_log(**CHANGES[name])
    assert_equal(written(log, tmp_path), log)


def test_label_sets_are_read_back_equal(tmp_path, make_log, rows):
    log = make_log(y=rows.labels, labels=["u", "v"])
    assert_equal(written(log, tmp_path), log)
    assert_equal(written(make_log(y=rows.labels), tmp_path), make_log(y=rows.labels))


def test_where_propensities_come_from_is_read_back(tmp_path, make_log):
    log = make_log()
    estimated = log.with_propensities(log.log_propensity, "estimated")
    assert_equal(written(estimated, tmp_path), estimated)
    missing = make_log(propensity="missing")
    assert_equal(written(missing, tmp_path), missing)
    poem.write_log(estimated, tmp_path / "log.parquet")
    assert poem.read_log(tmp_path / "log.parquet", propensity="missing").propensities == "missing"


def test_a_recipe_is_read_back(tmp_path):
    log = poem.read_log(frame(city=["Ulm", "Bonn", None, "Ulm"]), scale=True)
    assert log.features is not None
    assert_equal(written(log, tmp_path), log)


def test_contexts_that_no_row_saw_are_left_out(tmp_path, make_log):
    log = make_log().take([30, 3, 3])
    again = written(log, tmp_path)
    assert again.n_contexts == 2
    np.testing.assert_array_equal(again.X[again.context], log.X[log.context])


def test_a_frame_of_a_native_file_is_the_same_log(tmp_path, make_log):
    log = make_log(context=np.arange(40) // 2)
    poem.write_log(log, tmp_path / "log.parquet")
    again = poem.read_log(pq.read_table(tmp_path / "log.parquet"))
    np.testing.assert_array_equal(again.X[again.context], log.X[log.context])


def test_huge_context_ids_are_not_rounded(tmp_path, make_log):
    log = make_log(X=np.arange(6.0).reshape(2, 3), context=np.arange(40) % 2)
    table = pq.read_table(poem.write_log(log, tmp_path / "log.parquet"))
    huge = pa.array(2**53 + np.arange(40) % 2)
    at = table.column_names.index("context_id")
    assert_equal(poem.read_log(table.set_column(at, "context_id", huge)), log)


def test_features_by_row_follow_the_contexts(tmp_path, make_log):
    log = make_log(X=np.arange(12.0).reshape(4, 3), context=np.arange(40) % 4)
    raw = read_contexts(poem.write_log(log, tmp_path / "log.parquet"))
    np.testing.assert_array_equal(contexts_by_row(raw, raw.features), log.X[log.context])


def test_a_converted_log_keeps_its_raw_columns_and_roles(tmp_path):
    table = frame(city=["Ulm", "Bonn", None, "Ulm"], user=["k", "l", "k", "k"], note=["x"] * 4)
    given = {"output": "output", "group": "user"}
    raw = read_raw(table, given, ignore=["note"])
    path = poem.write_log(raw, tmp_path / "log.parquet")
    assert pq.read_table(path).column_names == [*TABLE.column_names, "city", "user"]
    assert pq.read_table(path).column("city").to_pylist() == ["Ulm", "Bonn", None, "Ulm"]
    again = poem.read_log(path)
    assert_equal(again, poem.read_log(table, group="user", ignore=["note"]))
    assert again.features.columns == ("a", "b", "c", "city")


@pytest.mark.parametrize("suffix", [*TEXTS, ".svm"])
def test_converted_logs_of_every_format_are_the_same_logs(tmp_path, suffix):
    write(tmp_path / f"log{suffix}", as_svmlight() if suffix == ".svm" else TEXTS[suffix]())
    if suffix == ".svm":
        pa.csv.write_csv(TABLE.drop(list(FEATURES)), tmp_path / "log.csv")
    raw = read_raw(tmp_path / f"log{suffix}")
    assert_equal(poem.read_log(poem.write_log(raw, tmp_path / "out.parquet")), poem.read_log(tmp_path / f"log{suffix}"))


def test_a_converted_log_can_be_read_with_other_roles(tmp_path):
    table = frame(user=["k", "l", "k", "k"], p=[50.0, 25.0, 100.0, 12.5])
    path = poem.write_log(read_raw(table, {"propensity": "p", "unit": "percent"}), tmp_path / "log.parquet")
    assert np.exp(poem.read_log(path).log_propensity).tolist() == pytest.approx([0.5, 0.25, 1.0, 0.125])
    log = poem.read_log(path, group="user")
    assert log.feature_names == FEATURES  # not the user as well
    with pytest.raises(ReadError, match="look like per cents"):
        poem.read_log(path, propensity="p")  # the unit was that of the file's own choice


# ---- the Open Bandit Dataset ------------------------------------------------------------------------

OBD = """,timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0
0,2019-11-24 00:00:10.043,1,2,0,0.25,81ce,0.0
1,2019-11-24 00:00:11,3,1,1,0.5,81ce,1.5
2,2019-11-24 00:00:12,1,3,0,0.25,9b27,0.0
"""


def write_obd(folder):
    (folder / "all.csv").write_text(OBD)
    (folder / "item_context.csv").write_text(",item_id,item_feature_0\n0,0,1\n1,1,2\n2,3,4\n3,2,5\n")
    return folder


@pytest.mark.parametrize("name", ["", "all.csv"])
def test_the_open_bandit_layout_is_read(tmp_path, name):
    log = poem.read_log(write_obd(tmp_path) / name)
    assert log.labels == (0, 1, 2, 3)  # of which two were shown
    assert log.y.tolist() == [1, 3, 1]
    assert (log.outcome, log.loss.tolist()) == ("reward", [0.0, -1.0, 0.0])
    assert np.exp(log.log_propensity).tolist() == [0.25, 0.5, 0.25]
    assert log.feature_names == ("position=1", "position=2", "position=3", "user_feature_0=81ce", "user_feature_0=9b27")
    assert np.diff(log.time) == pytest.approx([0.957, 1.0])


def test_the_open_bandit_layout_may_lack_its_items(tmp_path):
    (tmp_path / "all.csv").write_text(OBD)
    assert poem.read_log(tmp_path / "all.csv").labels == (1, 3)


@pytest.mark.parametrize("items", ["item_id,x\n,1\n1,2\n3,4\n", "x,y\n1,2\n", "item_id,x\n1,1\n1,2\n3,3\n"])
def test_tables_of_items_may_be_odd(tmp_path, items):
    write_obd(tmp_path)
    (tmp_path / "item_context.csv").write_text(items)
    assert poem.read_log(tmp_path / "all.csv").labels == (1, 3)


ARCHIVE = SHARED / "obd_small_obp-0.4.1.tar.xz"


@pytest.mark.skipif(not ARCHIVE.is_file(), reason="the Open Bandit data are not on this machine")
def test_the_open_bandit_data_are_read(tmp_path):
    with tarfile.open(ARCHIVE) as tar:
        members = [member for member in tar.getmembers() if member.name.startswith("obd/random/men/")]
        tar.extractall(tmp_path, members=members, filter="data")
    log = poem.read_log(tmp_path / "obd" / "random" / "men")
    assert len(log) == 10_000
    assert log.labels == tuple(range(34))
    assert log.loss.mean() < 0.0
    np.testing.assert_allclose(np.exp(log.log_propensity), 1 / 34, rtol=1e-6)
    assert [name for name in log.feature_names if name.startswith("position=")] == [
        "position=1",
        "position=2",
        "position=3",
    ]
    assert not any("affinity" in name for name in log.feature_names)


def test_paths_may_be_strings(tmp_path, expected):
    assert_same(poem.read_log(str(write(tmp_path / "log.csv", as_csv()))), expected)
    assert isinstance(poem.write_log(expected, str(tmp_path / "log.parquet")), Path)


def test_actions_that_vary_are_known_by_their_index_on_request(tmp_path):
    line = (
        '{"_label_cost": %d, "_label_probability": 0.5, "_labelIndex": %d, "a": [1, 2], "p": [0.5, 0.5], '
        '"c": {"user": {"age": %d}, "_multi": [{"i": {"x": %d}}, {"i": {"x": 2}}]}}'
    )
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(line % (-number % 2, number % 2, number, number) for number in range(1, 5)))
    with pytest.raises(poem.PoemError, match="--actions-vary"):
        poem.read_log(path)
    log = poem.read_log(path, actions_vary=True)
    assert log.labels == (1, 2)
    assert log.X.toarray().ravel().tolist() == [1, 2, 3, 4]


# ---- what goes from one file to another -----------------------------------------------------------


@pytest.fixture
def two_parts(tmp_path):
    """Two native files, each of which counts its contexts from 0."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "parts"
    folder.mkdir()
    logs = []
    for number in range(2):
        context = np.repeat(np.arange(5), 3)
        y = rng.permutation(np.arange(15) % 3)
        logs.append(
            poem.BanditLog(
                rng.random((5, 2)),
                y,
                loss=rng.random(15),
                propensity=np.full(15, 1 / 3),
                context=context,
                labels=range(3),
            )
        )
        poem.write_log(logs[-1], folder / f"part-{number}.parquet")
    return folder, poem.BanditLog.concat(logs)


def test_contexts_of_part_files_stay_apart_when_they_are_converted(two_parts, tmp_path):
    folder, joined = two_parts
    poem.write_log(read_raw(folder), tmp_path / "one.parquet")
    for found in (poem.read_log(folder), poem.read_log(tmp_path / "one.parquet")):
        assert found.n_contexts == 10
        assert np.array_equal(found.X[found.context], joined.X[joined.context])


def test_what_was_text_is_text_in_the_next_csv(tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("zip,output,loss,propensity\n01234,a,0,0.5\n0A1,b,1,0.5\n9000,b,1,0.5\n")
    second.write_text("zip,output,loss,propensity\n01234,a,0,0.5\n9000,b,1,0.5\n")
    features = poem.read_log(first).features
    log = poem.read_log(second, features=features)
    assert log.X.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]


def test_numbers_that_are_categories_stay_numbers(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("slot,output,loss,propensity\n1.0,a,0,0.5\n2.0,b,1,0.5\n")
    features = poem.read_log(path, one_hot=["slot"]).features
    assert poem.read_log(path, features=features).X.toarray().tolist() == [[1, 0], [0, 1]]


def test_a_log_of_another_recipe_is_not_judged(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"{x},{'ab'[x % 2]},{x % 2},0.5" for x in range(40)]
    path.write_text("x,output,loss,propensity\n" + "\n".join(rows))
    policy = poem.uniform_policy(poem.read_log(path, scale=True))
    with pytest.raises(MismatchError, match="in another way"):
        policy.log_prob_of(poem.read_log(path))
    assert np.allclose(policy.log_prob_of(poem.read_log(path, features=policy.features)), np.log(0.5))
    with pytest.raises(MismatchError):
        policy.with_floor(0.1, poem.uniform_policy(poem.read_log(path)))


def test_numbers_that_begin_with_0_are_names(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("zip,x,output,loss,propensity\n01234,0,007,0,0.5\n90000,0.5,8,1,0.5\n")
    log = poem.read_log(path)
    assert log.feature_names == ("x", "zip=01234", "zip=90000")
    assert log.labels == ("007", "8")
