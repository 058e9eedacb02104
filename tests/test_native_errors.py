"""poem's own files: bad ones are refused, and nothing is written by halves."""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bad_tables import CSV, HEADER, table, write
from refusals import refuses

import poem
from poem.cli import main
from poem.errors import InputError, PoemError, ReadError, WriteError
from poem.readers import read_raw

# ---- native files ----------------------------------------------------------------------------------


@pytest.fixture
def native(tmp_path, make_log):
    return poem.write_log(make_log(), tmp_path / "native.parquet")


def noted(path, **changes):
    found = pq.read_table(path)
    note = json.loads(found.schema.metadata[b"poem"]) | changes
    return found.replace_schema_metadata({b"poem": json.dumps(note).encode()})


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"version": 4}, "has log format 4; this poem reads up to 3"),
        ({"version": float("inf")}, "broken metadata"),
        ({"format": "other"}, "broken metadata"),
        ({"roles": None}, "broken metadata"),
        ({"roles": {"loss": 3}}, "broken metadata"),
        ({"roles": {"output": "output"}}, "broken metadata"),
        ({"roles": {"unit": "share"}}, "broken metadata"),
        ({"roles": {"magic": "x"}}, "broken metadata"),
        ({"labels": [["a"]]}, "broken metadata"),
        ({"labels": 3}, "broken metadata"),
        ({"features": [{"kind": "pickle"}]}, "broken metadata"),
        ({"features": None}, "broken metadata"),
        ({"about": {}}, "broken metadata"),
        ({"labels": [0, 1]}, "has the output 2, which is not one of the 2"),
        ({"labels": [0, 1, 1, 2]}, "different labels are needed"),
    ],
)
def test_notes_that_poem_does_not_write(native, changes, part):
    with pytest.raises(PoemError, match=re.escape(part)):
        poem.read_log(noted(native, **changes))


@pytest.mark.parametrize("note", [b"", b"\xff", b"[" * 100_000, b"3", b"{}"])
def test_notes_that_are_no_json(native, note):
    with refuses(ReadError, "the table has broken metadata of poem", "Write it again"):
        poem.read_log(pq.read_table(native).replace_schema_metadata({b"poem": note}))


def test_native_files_that_lost_a_column(native, tmp_path):
    with refuses(ReadError, "'features'", "no longer there"):
        poem.read_log(pq.read_table(native).drop(["features"]))
    raw = read_raw(table(y=[1, 2, 3]))
    path = poem.write_log(raw, tmp_path / "raw.parquet")
    with refuses(ReadError, "was written with the column 'y', which is no longer there", "--context"):
        poem.read_log(pq.read_table(path).drop(["y"]))


def test_native_contexts_without_features(tmp_path, make_log):
    path = poem.write_log(make_log(context=np.arange(40) // 2), tmp_path / "native.parquet")
    with refuses(ReadError, "the table, row 0, column 'features' has a list of 0 numbers where 3 are expected"):
        poem.read_log(pq.read_table(path).slice(1))


# ---- nothing half-written --------------------------------------------------------------------------


def test_a_log_is_written_whole_or_not_at_all(tmp_path, make_log, monkeypatch):
    path = poem.write_log(make_log(), tmp_path / "log.parquet")
    before = path.read_bytes()

    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with refuses(WriteError, "cannot write", "No space left on device", "No partial file was left"):
        poem.write_log(make_log().take([1, 2]), path)
    assert [file.name for file in tmp_path.iterdir()] == ["log.parquet"]
    assert path.read_bytes() == before


def test_where_a_log_cannot_be_written(tmp_path, make_log):
    with refuses(InputError, "there is no folder", "Make it first"):
        poem.write_log(make_log(), tmp_path / "nowhere" / "log.parquet")
    with refuses(InputError, "it is a folder. Name a file"):
        poem.write_log(make_log(), tmp_path)
    with refuses(InputError, "log.csv would be csv, which poem reads but does not write. End the name in .parquet"):
        poem.write_log(make_log(), tmp_path / "log.csv")
    with refuses(InputError, "write_log takes a log in memory; found dict"):
        poem.write_log({}, tmp_path / "log.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": [1, "1", 0, 2]},
        {"group": np.array(["\ud800"] * 40, dtype=object)},
        {"labels": [0, 1, 2, "\udfff"]},
    ],
)
def test_logs_that_parquet_cannot_hold(tmp_path, make_log, changes):
    with pytest.raises(InputError, match="cannot be written"):
        poem.write_log(make_log(**changes), tmp_path / "log.parquet")
    assert not list(tmp_path.iterdir())


def test_raw_columns_that_parquet_cannot_hold(tmp_path):
    months = pa.array([pa.MonthDayNano([1, 2, 3])] * 3)
    with refuses(InputError, "the log cannot be written as Parquet", "--ignore"):
        poem.write_log(read_raw(table(m=months)), tmp_path / "log.parquet")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "content",
    [
        "",
        HEADER,
        CSV[:-3],
        CSV.replace("v", "\xff").encode("latin-1"),
        CSV.replace("0.25", "25").replace("0.5\n", "50\n"),
        CSV.replace("loss", "losses"),
    ],
)
def test_commands_leave_nothing_behind(tmp_path, content, capsys):
    path = write(tmp_path / "log.csv", content)
    assert main(["convert", str(path), str(tmp_path / "out.parquet"), "--quiet"]) == 2
    assert "log.csv" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]
