"""What commands say where, their exit codes, and what they leave on disk."""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from earlier_policies import with_metadata, without_checksum
from shop_logs import COLUMNS, FIT, NEW, WRITERS, call, command, command_line, refused, shop_table, write_table

import poem

# ---- streams ---------------------------------------------------------------------------------------


def as_data(name, out):
    return [json.loads(line) for line in out.splitlines()] if name == "predict" else json.loads(out)


@pytest.mark.parametrize("name", NEW)
def test_json_is_all_of_stdout_and_quiet_is_quiet(shop, tmp_path, capsys, name):
    arguments, out = command_line(name, shop, tmp_path)
    if name == "predict":
        arguments, out = arguments[:-2], None  # to stdout
    capsys.readouterr()
    assert call(*arguments, "--json", "--quiet") == 0
    text, err = capsys.readouterr()
    assert err == ""
    content = as_data(name, text)
    assert content
    assert out is None or str(out) in content.values()
    assert [path.name for path in tmp_path.iterdir()] == ([] if out is None else [out.name])


@pytest.mark.parametrize("name", [name for name in NEW if name != "pack"])  # which counts rows
def test_progress_goes_to_stderr_and_stdout_stays_clean(shop, tmp_path, capsys, monkeypatch, name):
    monkeypatch.setattr("poem.progress.Pulse.start", lambda pulse: pulse.beat())  # as if it took long
    arguments, out = command_line(name, shop, tmp_path)
    capsys.readouterr()
    assert call(*arguments, "--json") == 0
    text, err = capsys.readouterr()
    assert re.search(r"^\w+ing.* … \d", err, re.MULTILINE)
    if name == "predict":
        assert text == ""
    else:
        assert as_data(name, text)
    assert out is None or out.stat().st_size > 0


def test_json_gives_advice_in_options(tmp_path, capsys):
    table = shop_table(190, 0)
    table.loc[7, "click"] = 1000
    log = write_table(table, tmp_path / "log.csv")
    assert call("inspect", log, *COLUMNS, "--json") == 0
    content = json.loads(capsys.readouterr().out)
    assert any("say what bounds rewards have (--loss-bounds)" in reason for reason in content["reasons"])
    assert any("(--loss-bounds)" in finding["advice"] for finding in content["findings"])


@pytest.mark.parametrize(("more", "written"), [((), False), (("--no-certificate",), True), (("--imitate",), True)])
def test_json_has_no_infinity(shop, capsys, tmp_path, more, written):
    """One group alone has no interval."""
    log = write_table(shop_table(60, 0).assign(user="one"), tmp_path / "log.csv")
    assert call("train", log, "-o", tmp_path / "new.poem", "--json", "--quiet", *more, *FIT, *COLUMNS) == (
        "--no-certificate" not in more
    )
    text, err = capsys.readouterr()
    assert err == ""
    assert "Infinity" not in text
    assert "NaN" not in text
    assert json.loads(text)["policy"] == (str(tmp_path / "new.poem") if written else None)
    assert (tmp_path / "new.poem").exists() == written


def test_json_lines_have_null_for_what_is_missing(shop, tmp_path, capsys):
    table = shop_table(3, 0)[["city", "age"]].assign(note=[np.nan, 1.5, np.inf])
    contexts = write_table(table, tmp_path / "contexts.parquet")
    assert call("predict", shop.policy, contexts, "--json", "--quiet") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["note"] for row in rows] == [None, 1.5, None]


def test_categories_of_a_data_frame_are_written(shop, tmp_path, capsys):
    table = shop_table(3, 0)[["city", "age"]].astype({"city": "category"})
    assert call("predict", shop.policy, write_table(table, tmp_path / "contexts.parquet"), "--quiet") == 0
    assert len(capsys.readouterr().out.splitlines()) == 4


@pytest.mark.parametrize("name", ["inspect", "predict"])
def test_a_full_stdout_is_reported(shop, tmp_path, capsys, monkeypatch, name):
    arguments, out = command_line(name, shop, tmp_path)
    full = os.fdopen(os.open("/dev/full", os.O_WRONLY), "w")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        assert call(*(arguments if out is None else arguments[:-2]), "--quiet") == 2
    with pytest.raises(OSError, match="No space"):
        full.close()
    assert capsys.readouterr().err == "poem: cannot write to stdout: No space left on device.\n"


def test_a_broken_pipe_ends_quietly(shop, tmp_path):
    contexts = write_table(shop_table(20_000, 0)[["city", "age"]], tmp_path / "contexts.csv")
    process = subprocess.Popen(
        command("predict", shop.policy, contexts, "--quiet"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        assert process.stdout.readline() == '"city","age","item","probability"\n'
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141  # what shells say of it: it must not look like an answer


def test_nobody_reading_stderr_does_not_end_the_work(shop, tmp_path, monkeypatch):
    read, write = os.pipe()
    os.close(read)
    nobody = os.fdopen(write, "w")
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", nobody)
        assert call("train", shop.log, "-o", tmp_path / "new.poem", *FIT, *COLUMNS) == 0
    with pytest.raises(BrokenPipeError):
        nobody.close()
    assert (tmp_path / "new.poem").exists()


def test_warnings_are_said_in_one_line(shop, tmp_path, capsys, monkeypatch):
    import warnings

    from poem.errors import DegenerateWarning

    def warn(*_, **__):
        warnings.simplefilter("always")
        warnings.warn("all is odd", DegenerateWarning, stacklevel=2)
        warnings.warn("a library says", RuntimeWarning, stacklevel=2)
        raise poem.PoemError("enough.")

    monkeypatch.setattr("poem.readers.read_raw", warn)
    assert call("inspect", shop.log) == 2
    assert capsys.readouterr().err == "poem: warning: all is odd\npoem: enough.\n"
    assert call("inspect", shop.log, "--quiet") == 2
    assert capsys.readouterr().err == "poem: enough.\n"


# ---- exit codes ------------------------------------------------------------------------------------


def test_no_is_1(shop, tmp_path, capsys):
    assert call("inspect", shop.certain, *COLUMNS) == 1
    assert "unfit" in capsys.readouterr().out
    assert call("train", shop.noise, "-o", tmp_path / "new.poem", *FIT, *COLUMNS, "--json") == 1
    content = json.loads(capsys.readouterr().out)
    assert (content["policy"], content["origin"], content["certified"]) == (None, "none", False)
    assert not (tmp_path / "new.poem").exists()
    assert call("evaluate", shop.policy, shop.noise, "--json") == 1
    assert json.loads(capsys.readouterr().out)["better"] is False


@pytest.mark.parametrize("name", NEW)
def test_a_file_that_is_not_there_is_2(shop, tmp_path, capsys, name):
    arguments, _ = command_line(name, shop, tmp_path)
    arguments[1] = str(tmp_path / "nothing")
    assert "nothing" in refused(capsys, *arguments)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NEW)
def test_wrong_usage_is_2(name, capsys):
    for arguments in ((name,), (name, "--colour"), (name, "a", "b", "c", "d")):
        assert call(*arguments) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith(f"usage: poem {name} ")
        assert len(err.splitlines()) == 2


BAD_NUMBERS = [
    ("train", "--valid", "2"),
    ("train", "--valid", "x"),
    ("train", "--confidence", "0.3"),
    ("train", "--seed", "-1"),
    ("train", "--jobs", "0"),
    ("train", "--loss-bounds", "1,0"),
    ("train", "--hash-size", "0"),
    ("train", "--learner", "sonnet"),
    ("evaluate", "--level", "95"),
    ("evaluate", "--seed", "-1"),
    ("evaluate", "--interval", "wide"),
    ("evaluate", "--loss-bounds", "1,x"),
    ("watch", "--loss-bounds", "0"),
    ("watch", "--margin", "much"),
    ("watch", "--every", "0"),
    ("watch", "--confidence", "1"),
    ("predict", "--floor", "2"),
    ("predict", "--seed", "-1"),
    ("report", "--level", "0"),
    ("simulate", "--replay", "0"),
    ("simulate", "--fraction", "1.5"),
    ("inspect", "--propensity-unit", "odds"),
    ("convert", "--format", "xlsx"),
]


@pytest.mark.parametrize(("name", "option", "value"), BAD_NUMBERS)
def test_bad_values_are_refused_before_anything_is_read(tmp_path, capsys, name, option, value):
    nothing = SimpleNamespace(log="-", later="-", contexts="-", labelled="-", policy="-")
    arguments, _ = command_line(name, nothing, tmp_path)
    err = refused(capsys, *arguments, option, value)
    assert f"argument {option}" in err
    assert repr(value) in err


def test_loss_and_reward_exclude_each_other(shop, capsys):
    assert "not allowed with" in refused(capsys, "inspect", shop.log, "--loss", "click", "--reward", "click")


def test_what_cannot_be_used_is_2_and_says_why(shop, tags, tmp_path, capsys):
    out = tmp_path / "new.poem"
    train = ("train", shop.log, "-o", out, *FIT, *COLUMNS[:6], "--ignore", "when")
    no_age = write_table(shop_table(20, 0).drop(columns="age"), tmp_path / "no_age.csv")
    other_items = write_table(shop_table(20, 0).assign(item="water"), tmp_path / "other.csv")
    no_pscore = write_table(shop_table(190, 0).drop(columns="pscore"), tmp_path / "no_pscore.csv")
    empty = tmp_path / "empty.csv"
    empty.write_text("city,age\n")
    cases = [
        ((*train, "--out-of-time"), "--time"),
        (("evaluate", shop.log, shop.later), "is not a whole policy file"),
        (("predict", shop.contexts, shop.contexts), "is not a whole policy file"),
        (("report", shop.log, shop.later, "-o", tmp_path / "page.html"), "is not a whole policy file"),
        (("train", shop.log, "-o", out, "--start", shop.later), "is not a whole policy file"),
        (("evaluate", shop.policy, no_age), "'age' is missing"),
        (("predict", shop.policy, no_age), "'age' is missing"),
        (("predict", shop.policy, empty), "no rows"),
        (("evaluate", shop.policy, other_items), "'water'"),
        (("evaluate", tags.policy, shop.later), "Did you mean 'item'?"),
        (("evaluate", tags.policy, shop.later, *COLUMNS), "not one of the 3"),
        (("train", other_items, "-o", out, "--start", shop.policy), "'water'"),
        (("evaluate", shop.policy, no_pscore), "--propensity estimate"),
        (("evaluate", shop.policy, shop.later, "--estimators", "FOO"), "'FOO'"),
        (("evaluate", shop.policy, shop.later, "--against", shop.log), "is not a whole policy file"),
        (("predict", shop.policy, shop.contexts, "--floor", "0.1"), "--sample"),
        (("predict", shop.policy, shop.contexts, "--seed", "1"), "--sample"),
        ((*train, "--start", shop.policy, "--scale"), "--scale has no effect"),
        ((*train, "--hash", "nothing"), "'nothing'"),
        (("train", shop.certain, "-o", out, *COLUMNS), "deterministic"),
        (("simulate", shop.labelled, "-o", tmp_path / "l.parquet"), "--label"),
        (("simulate", shop.labelled, "--label", "sort", "-o", tmp_path / "l.parquet"), "'sort'"),
        (("simulate", "digits", "-o", tmp_path / "l.parquet"), "'digits' is neither"),
        (("simulate", empty, "--label", "city", "-o", tmp_path / "l.parquet"), "no rows"),
    ]
    before = sorted(tmp_path.iterdir())
    for arguments, words in cases:
        assert words in refused(capsys, *arguments, "--quiet"), arguments
    assert sorted(tmp_path.iterdir()) == before


def test_propensities_are_estimated_only_on_request_and_that_is_said(tmp_path, capsys):
    log = write_table(shop_table(190, 0).drop(columns="pscore"), tmp_path / "log.csv")
    columns = ("--output", "item", "--reward", "click", "--propensity", "estimate", "--ignore", "user,when")
    assert call("train", log, "-o", tmp_path / "new.poem", *FIT, *columns) == 0
    out, err = capsys.readouterr()
    assert "propensities are estimated, not logged" in err
    assert "propensities are estimated, not logged" in out
    assert call("inspect", log, "--quiet", *columns) == 0
    assert call("convert", log, tmp_path / "new.parquet", "--quiet", *columns) == 0
    assert poem.read_log(tmp_path / "new.parquet", propensity="missing").propensities == "missing"


# ---- what cannot be written ------------------------------------------------------------------------


@pytest.mark.parametrize("name", WRITERS)
def test_targets_that_cannot_be_written_are_refused_before_the_work(shop, tmp_path, capsys, monkeypatch, name):
    monkeypatch.setattr("poem.readers.read_raw", None)
    monkeypatch.setattr("poem.readers.read_contexts", None)
    folder = tmp_path / "folder"
    arguments, out = command_line(name, shop, folder)
    assert f"there is no folder {str(folder)!r}" in refused(capsys, *arguments)
    out.mkdir(parents=True)
    assert "it is a folder" in refused(capsys, *arguments)
    out.rmdir()
    os.mkfifo(out)
    assert "is a device or a pipe" in refused(capsys, *arguments)
    assert list(folder.iterdir()) == [out]


@pytest.mark.parametrize(
    ("name", "suffixes"),
    [("predict", ".csv or .jsonl or .parquet"), ("report", ".html or .htm"), ("convert", ".pq"), ("simulate", ".pq")],
)
def test_a_wrong_suffix_is_refused(shop, tmp_path, capsys, name, suffixes):
    arguments, out = command_line(name, shop, tmp_path)
    wrong = [str(out.with_suffix(".doc")) if argument == str(out) else argument for argument in arguments]
    assert suffixes in refused(capsys, *wrong)


def test_what_is_read_is_never_overwritten(shop, tmp_path, capsys):
    log = write_table(shop_table(50, 0), tmp_path / "log.csv")
    parquet = write_table(shop_table(50, 0), tmp_path / "log.parquet")
    content = log.read_bytes(), parquet.read_bytes()
    for arguments in (
        ("train", log, "-o", log, *COLUMNS),
        ("predict", shop.policy, log, "-o", log),
        ("convert", parquet, parquet, *COLUMNS),
        ("simulate", parquet, "--label", "item", "-o", parquet),
    ):
        assert "would be lost" in refused(capsys, *arguments)
    two = ("simulate", log, "--label", "item", "-o", tmp_path / "a.parquet", "--policy", tmp_path / "a.parquet")
    assert "the same file" in refused(capsys, *two)
    assert (log.read_bytes(), parquet.read_bytes()) == content


def test_a_policy_may_be_replaced_by_the_one_that_starts_from_it(shop, tmp_path):
    policy = tmp_path / "policy.poem"
    policy.write_bytes(Path(shop.policy).read_bytes())
    assert call("train", shop.later, "-o", policy, "--start", policy, "--quiet", *FIT) == 0
    assert policy.read_bytes() != Path(shop.policy).read_bytes()


@pytest.fixture
def full_disk():
    """Files cannot become larger than a few hundred bytes; Python ignores the signal that comes with it."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill():
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, limits[1]))

    yield fill
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file_and_nothing_else(shop, tmp_path, capsys, full_disk, name):
    arguments, out = command_line(name, shop, tmp_path)
    out.write_text("old")
    full_disk()
    err = refused(capsys, *arguments, "--quiet")
    assert f"cannot write {str(out)!r}" in err
    assert "File too large" in err
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


# ---- nothing but an answer looks like one ----------------------------------------------------------


def test_an_error_that_nobody_thought_of_is_no_answer(shop, capsys, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError("unheard of")

    monkeypatch.setattr(import_module("poem.health"), "inspect", fail)
    assert call("inspect", shop.log, "--quiet", *COLUMNS) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert "RuntimeError: unheard of" in err
    assert err.endswith("poem: this is a bug in poem, not an answer; please report it with the lines above\n")


def test_too_little_memory_is_bad_input(shop, capsys, monkeypatch):
    def fail(*_, **__):
        raise MemoryError("48 GiB")

    monkeypatch.setattr(import_module("poem.health"), "inspect", fail)
    assert call("inspect", shop.log, "--quiet", *COLUMNS) == 2
    assert capsys.readouterr().err == "poem: there is not enough memory (48 GiB). Take fewer rows or features.\n"


def test_a_floor_is_not_replaced(shop, tmp_path, capsys):
    poem.load_policy(shop.policy).with_floor(0.5).save(tmp_path / "floored.poem")
    assert call("predict", tmp_path / "floored.poem", shop.log, "--sample", "--floor", "0.1") == 2
    assert "has a floor already" in capsys.readouterr().err


def test_one_column_alone_can_be_decided_on(tmp_path, capsys):
    log = poem.BanditLog(np.arange(8.0)[:, None], np.arange(8) % 2, loss=np.ones(8), propensity=np.full(8, 0.5))
    weights = np.array([[0.0, 1.0], [0.0, -3.5]])
    poem.Policy(poem.MultiClass(2), weights, True, log.labels, ("age",)).save(tmp_path / "age.poem")
    (tmp_path / "ages.csv").write_text("age\n2\n5\n")
    assert call("predict", tmp_path / "age.poem", tmp_path / "ages.csv") == 0
    assert [line.split(",")[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [["2", "0"], ["5", "1"]]


@pytest.mark.parametrize(
    "record",
    [
        {"explanation": 5},
        {"candidates": 3},
        {"candidates": [{"lam": 10**400}]},
        {"columns": {"loss": {"a": 1}}},
        {"columns": {"output": [["x"]]}},
        {"columns": {"unit": "foo"}},
        {"log": 5, "lam": 10**400, "trace": {"steps": "many"}, "certificate": ["yes"]},
    ],
    ids=lambda record: str(record)[:60],
)
def test_a_strange_record_in_a_policy_file_does_no_harm(record, shop, tmp_path, capsys):
    path = without_checksum(Path(shutil.copy(shop.policy, tmp_path / "odd.poem")))
    with_metadata(path, lambda about: about | {"training": about["training"] | record})
    assert call("report", tmp_path / "odd.poem", shop.log, "-o", tmp_path / "odd.html", "--quiet", *COLUMNS) == 0


def test_a_log_that_is_unfit_is_not_trained_on(shop, tmp_path, capsys):
    table = shop_table(4000, 3)
    wrong = write_table(table.assign(pscore=table["pscore"] ** 3), tmp_path / "wrong.csv")
    out = tmp_path / "new.poem"
    assert call("inspect", wrong, "--quiet", *COLUMNS) == 1
    capsys.readouterr()
    assert "is not fit for learning" in refused(capsys, "train", wrong, "-o", out, "--quiet", *FIT, *COLUMNS)
    assert call("train", wrong, "-o", out, "--quiet", "--force", *FIT, *COLUMNS) == 1
    assert "Not certified" in capsys.readouterr().out  # it was trained on, but propensities cannot be right


@pytest.mark.parametrize(
    ("option", "origin", "certified"),
    [("--imitate", "imitation", False), ("--no-certificate", "learnt", None), ("--refit", "none", False)],
)
def test_without_a_certificate_a_policy_is_written_to_those_who_ask(shop, tmp_path, capsys, option, origin, certified):
    out = tmp_path / "new.poem"
    assert call("train", shop.noise, "-o", out, option, *FIT, *COLUMNS, "--json") == (certified is not None)
    content = json.loads(capsys.readouterr().out)
    assert (content["origin"], content["certified"]) == (origin, certified)
    assert out.exists() == (origin != "none") == (content["policy"] == str(out))


@pytest.mark.parametrize(("more", "origin"), [((), "certified"), (("--refit",), "refitted")])
def test_train_tells_what_it_certified(shop, tmp_path, capsys, more, origin):
    out = tmp_path / "new.poem"
    assert call("train", shop.log, "-o", out, *more, *FIT, *COLUMNS, "--json", "--loss-bounds", "0,1") == 0
    content = json.loads(capsys.readouterr().out)
    certificate = content["certificate"]
    assert (content["policy"], content["origin"], content["certified"]) == (str(out), origin, True)
    assert 0.0 < certificate["gain_at_least"] < certificate["gain"] <= 1.0
    assert 0.0 < certificate["logged"] < 1.0  # a reward, as in the log
    assert "rewards lie in [0, 1], as you said" in certificate["conditions"]
    n_train = poem.load_policy(out).record.n_train
    # Users who came back after the first row that certifies are learnt from up to then only.
    assert n_train == 190 if more else 0 < n_train < 190 - certificate["rows"]


def test_what_made_the_log_is_kept(shop, tmp_path, capsys):
    noise, out = tmp_path / "noise.csv", tmp_path / "new.poem"
    assert call("predict", shop.policy, shop.contexts, "--sample", "--seed", "1", "--quiet", "-o", noise) == 0
    table = pd.read_csv(noise)
    write_table(table.assign(loss=np.random.default_rng(0).random(len(table))), noise)
    capsys.readouterr()
    assert call("train", noise, "-o", out, "--start", shop.policy, "--quiet", "--force", *FIT) == 1
    assert "The policy is the logging policy." in capsys.readouterr().out
    assert not out.exists()  # it is in a file already


def test_propensities_that_are_estimated_are_inspected(shop, tmp_path, capsys):
    log = write_table(shop_table(600, 4).drop(columns="pscore"), tmp_path / "log.csv")
    columns = ("--output", "item", "--reward", "click", "--group", "user", "--time", "when")
    assert call("inspect", log, "--quiet", *columns) == 1
    assert "--propensity estimate" in capsys.readouterr().out
    assert call("inspect", log, "--quiet", "--propensity", "estimate", *columns) == 0
    assert "no propensities" not in capsys.readouterr().out
