"""Files and data frames of every kind → the same BanditLog."""

import bz2
import gzip
import json
import tarfile
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from same_logs import FEATURES, ROWS, TABLE, TEXTS, as_csv, as_jsonl, as_svmlight, as_vw, assert_same, dense, write
from test_datasets import SHARED

import poem
from poem.errors import InputError, ReadError
from poem.readers import FORMATS, format_named
from poem.readers.detect import format_of

# ---- the same data in every format -----------------------------------------------------------------

FRAMES = {
    "arrow": lambda table: table,
    "batch": lambda table: table.combine_chunks().to_batches()[0],
    "stream": lambda table: pa.RecordBatchReader.from_batches(table.schema, table.to_batches()),
    "pandas": lambda table: table.to_pandas(),
    "pandas index": lambda table: table.to_pandas().set_index(np.arange(len(table)) * 7),
    "polars": pl.from_arrow,
}


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


def test_paths_may_be_strings(tmp_path, expected):
    assert_same(poem.read_log(str(write(tmp_path / "log.csv", as_csv()))), expected)
    assert isinstance(poem.write_log(expected, str(tmp_path / "log.parquet")), Path)


# ---- which format ----------------------------------------------------------------------------------


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


def test_every_format_declares_itself():
    formats = {name: format_named(name) for name in FORMATS}
    suffixes = [suffix for one in formats.values() for suffix in one.suffixes]
    assert len(set(suffixes)) == len(suffixes)
    assert [name for name, one in formats.items() if one.write] == ["parquet"]
    assert {one.refines for one in formats.values()} <= {None, *FORMATS}


def test_parquet_is_known_by_its_first_bytes_whatever_its_name(tmp_path, expected):
    pq.write_table(TABLE, tmp_path / "log.csv")
    assert_same(poem.read_log(tmp_path / "log.csv"), expected)


@pytest.mark.parametrize("suffix", [".csv", ".CSV", ".tsv", ".json", ".ndjson", ".pq", ".libsvm"])
def test_suffixes_tell_the_format(tmp_path, suffix):
    names = {".pq": "parquet", ".libsvm": "svmlight", ".json": "jsonl", ".ndjson": "jsonl"}
    assert format_of(write(tmp_path / f"log{suffix}", "x")) == names.get(suffix, "csv")


def test_the_format_that_is_given_wins(tmp_path, expected):
    assert_same(poem.read_log(write(tmp_path / "log.txt", as_jsonl()), format="jsonl"), expected)
    with pytest.raises(InputError, match=r"must be one of csv, jsonl.*found 'xlsx'"):
        poem.read_log(tmp_path / "log.txt", format="xlsx")


# ---- CSV -------------------------------------------------------------------------------------------


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
        with pytest.raises(InputError, match="one ASCII character"):
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
    assert log.feature_names == ("x=late", "x is missing")


def test_an_empty_field_is_a_missing_one(tmp_path):
    content = "output,loss,propensity,x,group\nu,0,0.5,,\nv,1,0.5,k,g\nv,1,0.5,k,\n"
    log = poem.read_log(write(tmp_path / "log.csv", content))
    assert log.feature_names == ("x=k", "x is missing")
    assert dense(log).tolist() == [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0]]
    assert len(set(log.group.tolist())) == 3


@pytest.mark.parametrize("name", ["", "Unnamed: 0", "__index_level_0__"])
def test_saved_indexes_are_no_features(tmp_path, expected, name):
    lines = as_csv().splitlines()
    numbered = [f"{name},{lines[0]}", *(f"{i},{line}" for i, line in enumerate(lines[1:]))]
    assert_same(poem.read_log(write(tmp_path / "log.csv", "\n".join(numbered))), expected)


# ---- JSON ------------------------------------------------------------------------------------------


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


def test_actions_that_vary_are_known_by_their_index_on_request(tmp_path):
    line = (
        '{"_label_cost": %d, "_label_probability": 0.5, "_labelIndex": %d, "a": [1, 2], "p": [0.5, 0.5], '
        '"c": {"user": {"age": %d}, "_multi": [{"i": {"x": %d}}, {"i": {"x": 2}}]}}'
    )
    path = tmp_path / "log.dsjson"
    path.write_text("\n".join(line % (-number % 2, number % 2, number, number) for number in range(1, 5)))
    log = poem.read_log(path, actions_vary=True)
    assert log.labels == (1, 2)
    assert log.X.toarray().ravel().tolist() == [1, 2, 3, 4]


# ---- folders ---------------------------------------------------------------------------------------


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


# ---- the Open Bandit Dataset -----------------------------------------------------------------------

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
    assert np.diff(log.time) == pytest.approx([0.957, 1.0])  # and nobody is told that positions are categories


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
