"""Names of files and folders that are not UTF-8: every command and format works with them, or says what is wrong."""

import json
import os
import shutil
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest
from same_logs import TABLE, TEXTS, as_svmlight, assert_equal, write
from shop_logs import COLUMNS, FIT, call

import poem

ODD = os.fsdecode(b"\xff\xc3")  # not UTF-8; what Python makes of it, no UTF-8 can say


@pytest.fixture(scope="module")
def odd(shop, tmp_path_factory):
    """The files of the shop in a folder, all with names that are not UTF-8."""
    folder = tmp_path_factory.mktemp("names") / f"folder {ODD}"
    try:
        folder.mkdir()
    except OSError:  # macOS
        pytest.skip("file names must be UTF-8 here")
    files = {"folder": folder}
    for name in ("log", "later", "contexts", "labelled", "policy"):
        source = getattr(shop, name)
        files[name] = folder / f"{name}{ODD}{os.path.splitext(source)[1]}"
        shutil.copyfile(source, files[name])
    return SimpleNamespace(**files)


HALF = ("--fraction", "0.5")
LINES = {
    "inspect": (["inspect", "{log}", *COLUMNS], None),
    "train": (["train", "{log}", "-o", "{new}.poem", "--checkpoint", "{new}", *FIT, *COLUMNS], ".poem"),
    "evaluate": (["evaluate", "{policy}", "{later}", "--estimators", "SNIPS,DR"], None),
    "watch": (["watch", "{later}", "--policy", "{policy}", "--loss-bounds", "0,1"], None),
    "predict": (["predict", "{policy}", "{contexts}", "--sample", "--seed", "7"], None),
    "predict .csv": (["predict", "{policy}", "{contexts}", "-o", "{new}.csv"], ".csv"),
    "predict .jsonl": (["predict", "{policy}", "{contexts}", "-o", "{new}.jsonl"], ".jsonl"),
    "predict .parquet": (["predict", "{policy}", "{contexts}", "-o", "{new}.parquet"], ".parquet"),
    "report": (["report", "{policy}", "{later}", "-o", "{new}.html", "--title", "{new}"], ".html"),
    "convert": (["convert", "{log}", "{new}.parquet", *COLUMNS], ".parquet"),
    "simulate": (
        ["simulate", "{labelled}", "--label", "kind", "-o", "{new}.parquet", "--policy", "{new}.poem", *HALF],
        ".parquet",
    ),
}


AS_TEXT = [(name, False) for name in LINES if name != "train"]  # its remarks are the same beside JSON
AS_JSON = [(name, True) for name in ("inspect", "train", "predict", "report", "convert", "simulate")]


@pytest.mark.parametrize(("name", "json_wanted"), AS_TEXT + AS_JSON)
def test_every_command_works(odd, name, json_wanted, capfdbinary):
    line, suffix = LINES[name]
    new = odd.folder / f"{name} {json_wanted} {ODD}"
    line = [part.format(**vars(odd), new=new) for part in line] + (["--json"] if json_wanted else [])
    assert call(*line) in (0, 1)
    out, err = (part.decode() for part in capfdbinary.readouterr())  # all of it is UTF-8
    assert "\ufffd" not in out + err
    if suffix is not None:
        assert new.with_name(new.name + suffix).stat().st_size > 0
    if json_wanted and suffix is not None and "predict" not in name:
        assert any(value == str(new) + suffix for value in json.loads(out).values())


MISSING = {
    "inspect": ["inspect", "{none}.csv"],
    "train": ["train", "{none}.csv", "-o", "{none}.poem"],
    "train into": ["train", "{log}", "-o", "{none}/new.poem"],
    "train from": ["train", "{log}", "-o", "{none}.poem", "--start", "{none}.poem"],
    "evaluate": ["evaluate", "{none}.poem", "{later}"],
    "evaluate against": ["evaluate", "{policy}", "{later}", "--against", "{none}.poem"],
    "watch": ["watch", "{none}.csv", "--policy", "{policy}", "--loss-bounds", "0,1"],
    "predict": ["predict", "{policy}", "{none}.csv"],
    "predict with": ["predict", "{policy}", "{contexts}", "--actions", "{none}.csv", "--candidates", ODD],
    "report": ["report", "{policy}", "{none}.csv", "-o", "{none}.html"],
    "report into": ["report", "{policy}", "{later}", "-o", "{none}.txt"],
    "convert": ["convert", "{none}.csv", "{none}.parquet"],
    "simulate": ["simulate", "{none}.csv", "-o", "{none}.parquet", "--label", ODD],
    "reproduce": ["reproduce", "table1", "--data", "{none}", "--out", "{none}"],
    "demo": ["demo", "--out", "{policy}"],
    "a column": ["inspect", "{log}", "--output", ODD],
    "a delimiter": ["inspect", "{log}", "--delimiter", ODD],
    "a structure": ["inspect", "{log}", "--structure", ODD],
    "an option": ["inspect", "{log}", f"--{ODD}"],
    "a command": [ODD],
}


@pytest.mark.parametrize("name", MISSING)
def test_what_is_wrong_is_said(odd, name, capfdbinary):
    line = [part.format(**vars(odd), none=odd.folder / f"none{ODD}") for part in MISSING[name]]
    assert call(*line) == 2
    out, err = (part.decode() for part in capfdbinary.readouterr())
    assert out == ""
    assert "Traceback" not in err
    assert "\\udcff" in err


def test_every_format_is_read(odd, expected):
    for suffix, text in TEXTS.items():
        for packed in ("", ".gz"):
            plain = write(odd.folder.parent / f"log{suffix}{packed}", text())
            path = write(odd.folder / f"{ODD}{suffix}{packed}", text())
            assert_equal(poem.read_log(path), poem.read_log(plain))
    path = odd.folder / f"{ODD}.parquet"
    with path.open("wb") as file:
        pq.write_table(TABLE, file)
    read = poem.read_log(path)
    assert read.loss.tolist() == expected.loss.tolist()
    side = write(odd.folder / f"side{ODD}.csv", TEXTS[".csv"]())
    svm = write(odd.folder / f"x{ODD}.svm", as_svmlight())
    read = poem.read_log(svm, columns=poem.Columns(ignore=("a", "b", "c")), side=side)
    assert read.loss.tolist() == expected.loss.tolist()


def test_part_files_and_logs_that_are_written(odd, expected):
    folder = odd.folder / f"parts {ODD}"
    folder.mkdir()
    for number in range(2):
        poem.write_log(expected, folder / f"{ODD} {number}.parquet")
    assert len(poem.read_log(folder)) == 2 * len(expected)


def test_a_policy_remembers_a_text_that_is_not_utf8(tmp_path):
    path = tmp_path / "policy.poem"
    record = poem.Record(made_by=f"file {ODD}", settings={ODD: [ODD]})
    policy = poem.Policy(poem.MultiClass(2), [[0.0, 1.0]], True, ("a", "b"), record=record)
    assert poem.load_policy(policy.save(path)).record == record
