"""Bad files and tables: an error says where, what was found and what to do."""

import bz2
import gzip
import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_tables import CSV, HEADER, SOUND, table, write
from refusals import refuses

import poem
from poem.errors import InputError, LogError, PoemError, ReadError

JSON = "".join(json.dumps(dict(zip(SOUND, row, strict=True))) + "\n" for row in zip(*SOUND.values(), strict=True))


def parquet(path, **changes):
    pq.write_table(table(**changes), path)
    return path


# ---- no rows ---------------------------------------------------------------------------------------

SUFFIXES = [".csv", ".jsonl", ".parquet", ".svm", ".vw", ".dsjson", ""]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_file(tmp_path, suffix):
    with refuses(ReadError, f"log{suffix} is empty", "Pass a file with at least one decision"):
        poem.read_log(write(tmp_path / f"log{suffix}", ""))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".svm", ".vw", ".dsjson"])
@pytest.mark.parametrize("content", ["\n\n", "  \n", "\r\n", "\ufeff"])
def test_a_blank_file(tmp_path, suffix, content):
    with refuses(ReadError, f"log{suffix}", "Pass"):
        poem.read_log(write(tmp_path / f"log{suffix}", content))


def test_a_compressed_file_of_nothing(tmp_path):
    with refuses(ReadError, "log.csv.gz is empty"):
        poem.read_log(write(tmp_path / "log.csv.gz", gzip.compress(b"")))


def test_only_column_names(tmp_path):
    with refuses(ReadError, "log.csv has no rows, only column names", "at least one decision"):
        poem.read_log(write(tmp_path / "log.csv", HEADER + "\n"))
    pq.write_table(table().slice(0, 0), tmp_path / "log.parquet")
    with refuses(ReadError, "log.parquet has no rows"):
        poem.read_log(tmp_path / "log.parquet")


@pytest.mark.parametrize("frame", [table().slice(0, 0), pa.table({}), pd.DataFrame(SOUND).iloc[:0]])
def test_frames_without_rows(frame):
    with refuses(ReadError, "the table has no rows"):
        poem.read_log(frame)


def test_a_file_that_is_not_there(tmp_path):
    with refuses(ReadError, "there is no file or folder", "nothing.csv", "Check the path"):
        poem.read_log(tmp_path / "nothing.csv")


def test_a_folder_without_files_of_a_known_kind(tmp_path):
    write(tmp_path / "README.md", "no log")
    with refuses(ReadError, "has no file of a known kind (.csv, .tsv, .jsonl"):
        poem.read_log(tmp_path)


# ---- cut off and damaged ---------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [0.02, 0.5, 0.99])
def test_truncated_parquet(tmp_path, kept):
    content = parquet(tmp_path / "whole.parquet").read_bytes()
    path = write(tmp_path / "log.parquet", content[: int(kept * len(content))])
    with refuses(ReadError, "log.parquet is not a whole Parquet file", "It may be cut off; copy or write it again"):
        poem.read_log(path)


def test_something_else_called_parquet(tmp_path):
    with refuses(ReadError, "log.parquet is not a whole Parquet file"):
        poem.read_log(write(tmp_path / "log.parquet", CSV))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lambda c: pa.compress(c, "zstd", asbytes=True)])
def test_truncated_compression(tmp_path, pack):
    content = pack((CSV + "4,u,0.123456,0.5\n" * 5000).encode())
    with refuses(ReadError, "log.csv.gz cannot be read", "cut off; copy it again"):
        poem.read_log(write(tmp_path / "log.csv.gz", content[:-12]))


def test_a_csv_line_cut_in_the_middle(tmp_path):
    with refuses(ReadError, "log.csv, row 2 has 3 columns where the first line has 4", "3,u,0", "is it cut off?"):
        poem.read_log(write(tmp_path / "log.csv", CSV[:-3]))


def test_a_csv_line_with_too_many_fields(tmp_path):
    with refuses(
        ReadError, "log.csv, row 1 has 5 columns", "2,v,1,0.5,9", "delimiter was taken to be ','", "fix the line"
    ):
        poem.read_log(write(tmp_path / "log.csv", CSV.replace("2,v,1,0.5", "2,v,1,0.5,9")))


def test_a_json_line_cut_in_the_middle(tmp_path):
    with refuses(ReadError, "log.jsonl, line 3", '{"x": 3.0', "one whole object", "fix or drop such lines"):
        poem.read_log(write(tmp_path / "log.jsonl", JSON[:-9]))


def test_a_vowpal_wabbit_line_cut_in_the_middle(tmp_path):
    with refuses(ReadError, "log.vw, line 2", "probability"):
        poem.read_log(write(tmp_path / "log.vw", "1:2:0.5 | a\n2:1:"))


def test_a_dsjson_line_cut_in_the_middle(tmp_path):
    with refuses(ReadError, "log.dsjson, line 1", "ends in the middle of its JSON", "leave the line out"):
        poem.read_log(write(tmp_path / "log.dsjson", '{"_label_cost": 1, "_label_probability": 0.5, "c": {'))


def test_an_svmlight_line_cut_in_the_middle(tmp_path):
    write(tmp_path / "log.csv", CSV)
    with refuses(ReadError, "log.svm, line 3 ('1 4:')", "cannot be read as LibSVM text", "Fix the line"):
        poem.read_log(write(tmp_path / "log.svm", "1 1:2\n0 2:1\n1 4:"))


def test_a_quote_that_is_never_closed(tmp_path):
    content = f"{HEADER},note\n" + '1,u,0,0.5,"a\n' + "2,v,1,0.5,b\n" * 3
    with refuses(
        ReadError, "log.csv, row 0, column 'note' begins with a quote that is never closed", "Close or remove"
    ):
        poem.read_log(write(tmp_path / "log.csv", content))


# ---- text ------------------------------------------------------------------------------------------


def test_a_wrong_delimiter(tmp_path):
    path = write(tmp_path / "log.csv", CSV.replace(",", "^"))
    with refuses(ReadError, "log.csv has one column only, 'x^output^loss^propensity'", "cut at ','", "--delimiter"):
        poem.read_log(path)
    with refuses(ReadError, "log.csv has one column only", "cut at ';'"):
        poem.read_log(write(tmp_path / "log.csv", CSV), delimiter=";")


def test_invalid_utf8_in_csv(tmp_path):
    with refuses(ReadError, "log.csv, row 1, column 'output' is not UTF-8", r"b'\xff'", "Save the file as UTF-8"):
        poem.read_log(write(tmp_path / "log.csv", CSV.encode().replace(b"2,v", b"2,\xff")))
    with refuses(ReadError, "log.csv: a column name is not UTF-8"):
        poem.read_log(write(tmp_path / "log.csv", b"\xff" + CSV.encode()))


def test_utf16(tmp_path):
    with refuses(ReadError, "log.csv is UTF-16. Save it as UTF-8"):
        poem.read_log(write(tmp_path / "log.csv", CSV.encode("utf-16")))


@pytest.mark.parametrize("found", [b'"v"', b'"output"'])
def test_invalid_utf8_in_json(tmp_path, found):
    content = JSON.encode().splitlines(keepends=True)
    content[1] = content[1].replace(found, b'"\xff"')
    with refuses(ReadError, "log.jsonl, line 2", r"b'\xff", "not UTF-8"):
        poem.read_log(write(tmp_path / "log.jsonl", b"".join(content)))


@pytest.mark.parametrize("suffix", [".vw", ".dsjson"])
def test_invalid_utf8_in_lines(tmp_path, suffix):
    with refuses(ReadError, f"log{suffix}, line 1", r"b'\xff", "not UTF-8"):
        poem.read_log(write(tmp_path / f"log{suffix}", b"1:2:0.5 | \xff\n"))


def test_invalid_utf8_in_parquet(tmp_path):
    bad = pa.Array.from_buffers(pa.string(), 3, [*pa.array(["a", "b", "a"]).buffers()[:2], pa.py_buffer(b"a\xffa")])
    parquet(tmp_path / "log.parquet", output=bad)
    with refuses(ReadError, "log.parquet, row 1, column 'output' is not UTF-8"):
        poem.read_log(tmp_path / "log.parquet")
    with refuses(ReadError, "the table, row 1, column 'output' is not UTF-8"):
        poem.read_log(table(output=bad))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".vw", ".dsjson", ".svm", ""])
def test_ten_megabytes_on_one_line(tmp_path, suffix):
    write(tmp_path / "log.csv", CSV)
    with pytest.raises(PoemError, match=f"log{suffix}"):
        poem.read_log(write(tmp_path / f"log{suffix}", b"abcdefghi " * 1_000_000))


def test_ten_megabytes_in_one_value_are_read(tmp_path):
    note, text = "word " * 2_000_000, poem.Encoding(text=["note"])
    row = dict(zip(SOUND, [1.0, "u", 0.5, 0.25], strict=True)) | {"note": note}
    assert len(poem.read_log(write(tmp_path / "log.jsonl", JSON + json.dumps(row) + "\n"), features=text)) == 4
    content = f"{HEADER},note\n1,u,0.5,0.25,{note}\n2,v,0.5,0.25,none\n"
    assert len(poem.read_log(write(tmp_path / "log.csv", content), features=text)) == 2


# ---- JSON ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("[1, 2]", ["line 4"]),
        ("7", ["line 4"]),
        ("null", ["line 4 is null", "one whole object"]),
        ('{"x": "one"}', ["line 4, column 'x' ('one')", "a field must have one type"]),
        ('{"x": 1, "x": 2}', ["line 4"]),
        ("{'x': 1}", ["line 4"]),
        ('{"x": ' + "[" * 200_000, ["line 4", "nested more than 100 deep", "Flatten"]),
        ('{"x": ' + '{"a":' * 200_000, ["line 4", "nested more than 100 deep"]),
    ],
)
def test_a_line_that_is_no_sound_object(tmp_path, line, parts):
    with refuses(ReadError, "log.jsonl, ", *parts):
        poem.read_log(write(tmp_path / "log.jsonl", JSON + line + "\n"))


def test_a_json_array(tmp_path):
    rows = [dict(zip(SOUND, row, strict=True)) for row in zip(*SOUND.values(), strict=True)]
    with refuses(ReadError, "log.json is a JSON array", "Write it as JSON lines"):
        poem.read_log(write(tmp_path / "log.json", json.dumps(rows)))


def test_hostile_json_does_not_end_the_process(tmp_path):
    code = (
        "import sys, poem\ntry:\n    poem.read_log(sys.argv[1])\nexcept poem.PoemError as error:\n    print('refused')"
    )
    for content in ("null\n", "\ufeff null\n" + JSON, '{"a": ' + "[\n" * 300_000):
        path = write(tmp_path / "log.jsonl", content)
        found = subprocess.run(
            [sys.executable, "-c", code, path], capture_output=True, text=True, timeout=60, check=False
        )
        assert (found.returncode, found.stdout) == (0, "refused\n"), found.stderr


# ---- columns ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "meaning"),
    [("output", "the output that was chosen"), ("loss", "what it cost"), ("propensity", "never guessed silently")],
)
def test_a_missing_column(tmp_path, role, meaning):
    with refuses(ReadError, f"log.parquet has no column that is known to be the {role}", meaning):
        poem.read_log(parquet(tmp_path / "log.parquet", **{role: None}))


def test_duplicate_column_names(tmp_path):
    twice = "has the column 'x' twice. Columns need different names; rename one"
    with refuses(ReadError, "log.csv " + twice):
        poem.read_log(write(tmp_path / "log.csv", "x," + CSV.replace("\n", "\n9,", 3)))
    doubled = pa.Table.from_arrays([*table().columns, pa.array([1, 2, 3])], names=[*SOUND, "x"])
    pq.write_table(doubled, tmp_path / "log.parquet")
    with refuses(ReadError, "log.parquet " + twice):
        poem.read_log(tmp_path / "log.parquet")
    with refuses(ReadError, "the table " + twice):
        poem.read_log(doubled)
    with refuses(LogError, "the log must be an Arrow data frame", "Duplicate column names", "a name of its own"):
        poem.read_log(pd.DataFrame(SOUND).set_axis(["x", "output", "loss", "x"], axis=1))


def test_duplicate_column_names_in_a_part(tmp_path):
    doubled = pa.Table.from_arrays([*table().columns, pa.array([1, 2, 3])], names=[*SOUND, "x"])
    for number in (0, 1):
        pq.write_table(doubled, tmp_path / f"{number}.parquet")
    with refuses(ReadError, "0.parquet has the column 'x' twice"):
        poem.read_log(tmp_path)


def test_structs_and_columns_of_one_name():
    with refuses(ReadError, "the table has the column 'u.age' twice"):
        poem.read_log(table(**{"u.age": [1, 2, 3], "u": [{"age": 1}] * 3}))


def test_mixed_types_in_a_column(tmp_path):
    path = write(tmp_path / "log.csv", CSV.replace("2,v,1,", "2,v,n.a.,"))
    with refuses(
        ReadError, "log.csv, column 'loss' should hold numbers and holds string (log.csv, row 1: 'n.a.')", "Fix"
    ):
        poem.read_log(path)
    with refuses(LogError, "the log must be an Arrow data frame", "column x", "Give each column one type"):
        poem.read_log(pd.DataFrame(SOUND | {"x": [1, "b", 3]}))


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"loss": [0.5, None, 1.0]}, ["row 1, column 'loss' is empty, NaN or infinite (1 such row)", "Drop or fix"]),
        ({"loss": [0.5, float("nan"), 1.0]}, ["row 1, column 'loss' is empty"]),
        ({"loss": pa.nulls(3)}, ["row 0, column 'loss' is empty", "(3 such rows)"]),
        ({"loss": [[0.5]] * 3}, ["column 'loss' should hold numbers and holds list<"]),
        ({"x": [1.0, None, float("inf")]}, ["row 2, column 'x' is infinite (1 such value)", "leave the column out"]),
        ({"x": [[1.0], [2.0, 3.0], [1.0]]}, ["row 1, column 'x' has a list of 2 numbers where 1 are expected", "fix"]),
        ({"x": [[1.0], [float("inf")], [1.0]]}, ["row 1, column 'x' is infinite"]),
        ({"x": [b"\xff"] * 3}, ["column 'x' holds binary, which cannot be a feature", "Leave it out"]),
        ({"output": ["u", None, "v"]}, ["row 1, column 'output': the output is empty. Drop such rows"]),
        ({"output": [1.0, float("nan"), 2.0]}, ["row 1, column 'output': the output is empty"]),
        ({"output": [1.0, 2.0, float("inf")]}, ["column 'output' has inf", "Store them as strings"]),
        ({"output": [1.0, 2.0, 2.0**60]}, ["column 'output' has 1.15292e+18", "cannot be told apart"]),
        ({"output": [["u"], ["v", None], []]}, ["row 1, column 'output': a label in the list is empty"]),
        ({"output": [["u"], [["v"]], []][:1] * 3, "x": [{"a": [{"b": 1}]}] * 3}, ["column 'x.a' holds list<"]),
        ({"output": [[["u"]]] * 3}, ["column 'output' holds list<", "an output is a string, a number, or a list"]),
        ({"output": [b"u"] * 3}, ["column 'output' holds binary; an output is a string"]),
        ({"logger": ["k", None, "l"]}, ["row 1, column 'logger' is empty. Each row needs its logger"]),
        ({"logger": [["k"]] * 3}, ["column 'logger' holds list<", "a logger is a string or a number"]),
        ({"group": [[1]] * 3}, ["column 'group' holds list<", "a group is a string or a number"]),
        ({"group": [1.0, 2.0, 2.0**60]}, ["column 'group' has 1.15292e+18", "cannot be told apart"]),
        ({"time": ["2026-11-16", "soon", "2026-11-17"]}, ["column 'time' should hold", "row 1: 'soon'", "ISO"]),
        ({"time": ["2026-11-16T08:00Z", "2026-11-16T08:00", None]}, ["row 1: '2026-11-16T08:00'", "all without one"]),
        ({"time": [[1]] * 3}, ["column 'time' should hold times and holds list<"]),
        ({"time": ["2026-11-16", None, "2026-11-17"]}, ["row 1, column 'time' is empty (1 such row)", "Drop"]),
        ({"time": [1.0, None, 2.0]}, ["row 1, column 'time' is empty"]),
    ],
)  # fmt: skip
def test_columns_that_are_wrong_in_a_row(tmp_path, changes, parts):
    path = parquet(tmp_path / "log.parquet", **changes)
    with refuses(ReadError, "log.parquet", *parts):
        poem.read_log(path)


def test_several_columns_of_output_hold_0_and_1(tmp_path):
    path = parquet(tmp_path / "log.parquet", output=None, u=[0, 2, 1], v=[0, 1, 1])
    with refuses(ReadError, "log.parquet, row 1, column 'u' has 2; several columns of output hold 0 and 1 only"):
        poem.read_log(path, output=["u", "v"])


def test_outputs_that_labels_do_not_name(tmp_path):
    path = parquet(tmp_path / "log.parquet")
    with refuses(
        ReadError, "log.parquet, row 1, column 'output' has the output 'v'", "not one of the 2", "(u, w)", "Drop"
    ):
        poem.read_log(path, labels=["u", "w"])
    path = parquet(tmp_path / "log.parquet", output=[[0, 1, 1], [1, 0, 0], [0, 0, 0]])
    with refuses(ReadError, "column 'output' has lists of 3 times 0 or 1, but 2 labels are known"):
        poem.read_log(path, labels=["u", "w"])


def test_more_labels_than_fit_in_memory():
    names = np.arange(100_000).astype(str).reshape(-1, 1).tolist()
    n = len(names)
    with refuses(
        ReadError, "column 'output' has 100,000 different labels in 100,000 rows", "Name a column of label sets"
    ):
        poem.read_log(table(x=np.zeros(n), output=names, loss=np.zeros(n), propensity=np.ones(n)))


def test_a_column_has_one_role(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("output,loss,propensity,x\na,0,0.5,1\nb,1,0.5,2\n")
    with pytest.raises(poem.PoemError, match="'loss' cannot be both loss and time"):
        poem.read_log(path, columns=poem.Columns(time="loss"))


# ---- propensities ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("propensity", "parts"),
    [
        ([25.0, 50.0, 100.0], ["column 'propensity' holds numbers from 25 to 100", "look like percentages", "percent"]),
        ([-1.4, -0.7, 0.0], ["column 'propensity' holds numbers from -1.4 to 0", "look like logarithms", "-unit log"]),
        (
            [0.25, 0.0, 1.0],
            ["row 1, column 'propensity' has the propensity 0", "above 0 (1 such row)", "Drop such rows"],
        ),
        ([0.25, -0.5, 1.0], ["row 1, column 'propensity' has the propensity -0.5"]),
        ([0.25, 0.5, 700.0], ["row 2, column 'propensity' has the propensity 700; no probability is above 1"]),
        ([0.25, None, 0.5], ["row 1, column 'propensity' is empty"]),
        (["0.25", "half", "0.5"], ["column 'propensity' should hold numbers", "row 1: 'half'"]),
    ],
)
def test_propensities_that_are_none(tmp_path, propensity, parts):
    with refuses(ReadError, "log.parquet", *parts):
        poem.read_log(parquet(tmp_path / "log.parquet", propensity=propensity))


def test_propensities_in_another_unit_than_is_said(tmp_path):
    path = parquet(tmp_path / "log.parquet")
    with refuses(ReadError, "log.parquet, row 0, column 'propensity' has the propensity 0.25; a logarithm"):
        poem.read_log(path, columns=poem.Columns(propensity_unit="log"))


@pytest.mark.parametrize(
    ("candidates", "distribution", "parts"),
    [
        ([["u", "v"], ["u"], ["u"]], None, ["row 1, column 'output': the output 'v' is not among the row"]),
        ([["u", "v"], ["u"], ["u"]], [[0.5, 0.5], [1.0], [1.0]], ["row 1, column 'output': the output 'v' is not"]),
        ("u", None, ["column 'candidates' should hold lists of candidates and holds"]),
        ([[["u"]]] * 3, None, ["column 'candidates' holds list<", "candidates are strings or numbers"]),
        ([["u", "v"]] * 3, [[0.5, 0.5], [0.5, 0.4], [1.0, 0.0]], ["row 1", "add up to 0.9, not to 1 (1 such row)"]),
        ([["u", "v"]] * 3, [[0.5, 0.5], [1.0, 0.0], [1.0, 0.0]], ["row 1, column 'distribution' has the propensity 0"]),
        ([["u", "v"]] * 3, [[1.5, -0.5], [0.0, 1.0], [1.0, 0.0]], ["row 0, column 'distribution' has the prop", "1.5"]),
        ([["u", "v"]] * 3, [[0.5, None]] * 3, ["row 0, column 'distribution': the probabilities add up to nan"]),
        ([["u", "v"]] * 3, [[1.0]] * 3, ["column 'candidates' should hold as many candidates"]),
        (None, [[1.0]] * 3, ["one probability for each of the 2 outputs", "--candidates"]),
        (None, [0.5] * 3, ["column 'distribution' should hold lists of probabilities and holds double"]),
    ],
)  # fmt: skip
def test_candidates_and_distributions(tmp_path, candidates, distribution, parts):
    propensity = SOUND["propensity"] if distribution is None else None
    candidates = [candidates] * 3 if isinstance(candidates, str) else candidates
    path = parquet(tmp_path / "log.parquet", candidates=candidates, distribution=distribution, propensity=propensity)
    with refuses(ReadError, "log.parquet", *parts):
        poem.read_log(path)


def test_distributions_are_over_single_outputs():
    with refuses(ReadError, "the outputs are label sets", "--propensity"):
        poem.read_log(table(output=[["u"], ["v"], []], propensity=None, distribution=[[0.5, 0.5]] * 3))


# ---- LibSVM ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("1 2:1 1:1", ["line 2 ('1 2:1 1:1')"]),
        ("1 a:1", ["line 2 ('1 a:1')"]),
        ("1 1:one", ["line 2 ('1 1:one')"]),
        ("yes 1:1", ["line 2 ('yes 1:1')"]),
        ("1 -1:1", ["line 2"]),
        ("1 4294967301:1", ["line 2 ('1 4294967301:1')", "to 2³¹ − 2"]),
        ("1 2147483647:1", ["line 2 ('1 2147483647:1')", "to 2³¹ − 2"]),
        ("1 1:nan", ["row 1, column 'features.value' is empty or NaN"]),
    ],
)
def test_svmlight_lines_that_are_wrong(tmp_path, line, parts):
    write(tmp_path / "log.csv", CSV)
    with refuses(ReadError, "log.svm", *parts):
        poem.read_log(write(tmp_path / "log.svm", f"1 1:2\n{line}\n1 2:1\n"))


def test_svmlight_without_its_table(tmp_path):
    path = write(tmp_path / "log.svm", "1 1:2\n")
    with refuses(ReadError, "log.svm holds contexts only", "log.csv or log.parquet", "--side"):
        poem.read_log(path)
    write(tmp_path / "log.csv", CSV)
    with refuses(ReadError, "log.svm has 1 row and log.csv has 3", "the same decisions in the same order"):
        poem.read_log(path)
    with refuses(InputError, "the table beside log.svm is LibSVM text itself"):
        poem.read_log(path, side=path)


def test_a_side_table_is_for_libsvm_only(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("output,loss,propensity,x\na,0,0.5,1\nb,1,0.5,2\n")
    with pytest.raises(poem.PoemError, match=r"is for LibSVM; log\.csv is csv"):
        poem.read_log(path, side=path)


# ---- folders ---------------------------------------------------------------------------------------


def test_parts_with_different_columns(tmp_path):
    parquet(tmp_path / "0.parquet")
    parquet(tmp_path / "1.parquet", y=[1, 2, 3])
    with refuses(ReadError, "1.parquet and 0.parquet have different columns: 'y' is in one of them only", "alike"):
        poem.read_log(tmp_path)


def test_parts_with_different_types(tmp_path):
    parquet(tmp_path / "0.parquet")
    parquet(tmp_path / "1.parquet", x=["a", "b", "c"])
    with refuses(ReadError, "0.parquet (double) and 1.parquet (string), column 'x'", "Write them alike"):
        poem.read_log(tmp_path)


def test_parts_of_different_formats(tmp_path):
    parquet(tmp_path / "0.parquet")
    write(tmp_path / "1.csv", CSV)
    with refuses(ReadError, "0.parquet is parquet and 1.csv is csv", "all files of a log must be of one kind"):
        poem.read_log(tmp_path)


def test_rows_are_named_by_their_parts(tmp_path):
    parquet(tmp_path / "0.parquet")
    parquet(tmp_path / "1.parquet", loss=[1.0, None, 2.0])
    with refuses(ReadError, "1.parquet, row 1, column 'loss' is empty"):
        poem.read_log(tmp_path)
    os.remove(tmp_path / "1.parquet")
    os.remove(tmp_path / "0.parquet")
    write(tmp_path / "0.jsonl", JSON)
    write(tmp_path / "1.jsonl", JSON.replace('"loss": 1.0', '"loss": null'))
    with refuses(ReadError, "1.jsonl, line 2, column 'loss' is empty"):
        poem.read_log(tmp_path)


def test_lines_are_not_counted_where_some_are_blank(tmp_path):
    path = write(tmp_path / "log.jsonl", "\n\n" + JSON.replace('"loss": 1.0', '"loss": null'))
    with refuses(ReadError, "log.jsonl, row 1, column 'loss' is empty"):
        poem.read_log(path)
