"""The commands as a user meets them: whole rounds, what is said where, exit codes, and what is left on disk."""

import argparse
import gc
import json
import os
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import poem
from poem.cli import _parser, main
from poem.progress import Progress, Working

DOCS = Path(__file__).parents[1] / "docs" / "commands.md"
ITEMS = ("cocoa, hot", "tea", "Weißbier")
COLUMNS = ("--output", "item", "--reward", "click", "--propensity", "pscore", "--group", "user", "--time", "when")
FIT = ("--learner", "ips", "--jobs", "1")
NEW = ("inspect", "train", "evaluate", "watch", "predict", "report", "convert", "simulate")


# ---- a shop and its logs --------------------------------------------------------------------------


def best_item(city, age):
    return np.where(city == "Bonn", ITEMS[0], np.where(age > 0.5, ITEMS[1], ITEMS[2]))


def shop_table(rows, seed, noise=False):
    """What a shop logged: raw columns, and names that are not poem's."""
    rng = np.random.default_rng(seed)
    city, age = rng.choice(["Bonn", "Köln", "Ulm"], rows), rng.integers(18, 80, rows) / 100.0
    chance = np.array([0.5, 0.3, 0.2])
    chosen = rng.choice(3, rows, p=chance)
    item = np.array(ITEMS)[chosen]
    click = rng.integers(0, 2, rows) if noise else (item == best_item(city, age)).astype(int)
    return pd.DataFrame(
        {
            "city": city,
            "age": age,
            "item": item,
            "click": click,
            "pscore": chance[chosen],
            "user": [f"u{number}" for number in rng.integers(0, rows // 2, rows)],
            "when": pd.date_range("2026-01-01", periods=rows, freq="min").strftime("%Y-%m-%dT%H:%M:%S"),
        }
    )


def write_table(table, path):
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_dict("records")))
    else:
        table.to_csv(path, index=False)
    return path


def read_table(path):
    if path.suffix == ".jsonl":
        return pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()])
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


@pytest.fixture(scope="session")
def shop(tmp_path_factory):
    """A folder with logs of a shop, a policy, and labelled data."""
    folder = tmp_path_factory.mktemp("shop")
    log = write_table(shop_table(400, 0), folder / "log.csv")
    later = write_table(shop_table(400, 1), folder / "later.csv")
    noise = write_table(shop_table(300, 2, noise=True), folder / "noise.csv")
    certain = write_table(shop_table(100, 3).assign(pscore=1.0), folder / "certain.csv")
    contexts = write_table(shop_table(50, 4)[["city", "age"]], folder / "contexts.csv")
    table = shop_table(200, 5)
    labelled = write_table(
        table[["city", "age"]].assign(kind=best_item(table["city"], table["age"])), folder / "labelled.csv"
    )
    policy = folder / "policy.poem"
    assert main(["train", str(log), "-o", str(policy), "--quiet", *FIT, *COLUMNS]) == 0
    return SimpleNamespace(
        folder=folder,
        log=str(log),
        later=str(later),
        noise=str(noise),
        certain=str(certain),
        contexts=str(contexts),
        labelled=str(labelled),
        policy=str(policy),
    )


def command_line(name, shop, out):
    """A quick call of each command that ends with 0, and the file that it writes, if it does."""
    lines = {
        "inspect": (["inspect", shop.log, *COLUMNS], None),
        "train": (["train", shop.log, "-o", str(out / "new.poem"), *FIT, *COLUMNS], out / "new.poem"),
        "evaluate": (["evaluate", shop.policy, shop.later, "--estimators", "SNIPS,DR"], None),
        "watch": (["watch", shop.later, "--policy", shop.policy, "--loss-bounds", "0,1"], None),
        "predict": (
            ["predict", shop.policy, shop.contexts, "--sample", "--seed", "7", "-o", str(out / "new.csv")],
            out / "new.csv",
        ),
        "report": (["report", shop.policy, shop.later, "-o", str(out / "new.html")], out / "new.html"),
        "convert": (["convert", shop.log, str(out / "new.parquet"), *COLUMNS], out / "new.parquet"),
        "simulate": (
            ["simulate", shop.labelled, "--label", "kind", "-o", str(out / "new.parquet"), "--fraction", "0.5"],
            out / "new.parquet",
        ),
    }
    return lines[name]


WRITERS = [name for name in NEW if name not in ("inspect", "evaluate", "watch")]


def call(*arguments):
    """Run the command line in this process."""
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as stop:
        return stop.code


def refused(capsys, *arguments):
    """Run a command that must be refused, and return what it said."""
    assert call(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert len([line for line in err.splitlines() if not line.startswith("usage:")]) == 1
    return err


# ---- help and documents ---------------------------------------------------------------------------


def parsers():
    """The parser of each command by name."""
    (commands,) = (action for action in _parser()._actions if isinstance(action, argparse._SubParsersAction))
    return commands.choices


def options_of(parser):
    return [max(action.option_strings, key=len) for action in parser._actions if action.option_strings]


def test_every_command_is_in_the_help(capsys):
    assert call("--help") == 0
    out = capsys.readouterr().out
    assert set(NEW) | {"demo", "reproduce"} == set(parsers())
    assert all(re.search(rf"^    {name} +\w", out, re.MULTILINE) for name in parsers())
    assert "Exit status" in out


@pytest.mark.parametrize("name", [*NEW, "demo", "reproduce"])
def test_help_shows_every_option_and_an_example_that_parses(name, capsys):
    assert call(name, "--help") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(option in out for option in options_of(parsers()[name]))
    (example,) = re.findall(r"^Example: (poem .+)$", out, re.MULTILINE)
    program, command, *rest = shlex.split(example)
    assert (program, command) == ("poem", name)
    assert callable(_parser().parse_args([command, *rest]).run)


@pytest.mark.parametrize("name", NEW)
def test_help_says_what_the_exit_status_means(name, capsys):
    call(name, "--help")
    meaning = capsys.readouterr().out.split("exit status:\n")[1]
    assert re.search(r"^  0  \w", meaning)
    assert "\n  2  bad usage or bad input\n" in meaning
    assert ("\n  1  " in meaning) == (name in ("inspect", "train", "evaluate", "watch"))


@pytest.mark.parametrize("name", NEW)
def test_every_command_has_json_and_quiet(name):
    assert {"--json", "--quiet"} <= set(options_of(parsers()[name]))


def test_the_page_of_the_commands_has_all_of_them():
    """A heading "## poem NAME" for each command, and below it a row of a table for each of its options."""
    sections = dict(re.findall(r"^## poem (\w+)\n(.*?)(?=^## |\Z)", DOCS.read_text(), re.MULTILINE | re.DOTALL))
    assert set(sections) == set(parsers())
    for name, parser in parsers().items():
        rows = set(re.findall(r"^\|[^|]*`(--[\w-]+)`", sections[name], re.MULTILINE))
        assert rows == set(options_of(parser)) - {"--help"}, name


@pytest.mark.parametrize("arguments", ["--help", "--version", "train --help"])
def test_nothing_heavy_is_imported_for_help(arguments):
    code = (
        "import sys; from poem.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print(*{'numpy', 'scipy', 'pyarrow', 'numba', 'sklearn', 'matplotlib', 'pandas'} & set(sys.modules),"
        " file=sys.stderr)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code, *arguments.split()], capture_output=True, text=True, timeout=60, check=False
    )
    assert (found.returncode, found.stderr.strip()) == (0, "")
    assert "poem" in found.stdout


# ---- whole rounds ---------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_whole_round(shop, tmp_path, capsys, suffix):
    log = write_table(shop_table(400, 0), tmp_path / f"log{suffix}")
    later = write_table(shop_table(300, 1), tmp_path / f"later{suffix}")
    policy, second = tmp_path / "policy.poem", tmp_path / "second.poem"
    decisions, following = tmp_path / f"decisions{suffix}", tmp_path / f"next{suffix}"

    assert call("inspect", log, *COLUMNS) == 0
    assert call("train", log, "-o", policy, *FIT, *COLUMNS) == 0
    assert call("evaluate", policy, later, "--estimators", "SNIPS,DR") == 0
    assert "Answer: estimated to be better than what was logged" in capsys.readouterr().out
    assert call("predict", policy, later, "--sample", "--seed", "7", "--floor", "0.1", "-o", decisions) == 0

    table = read_table(decisions)
    assert list(table) == ["city", "age", "user", "when", "item", "pscore"]  # nothing of the old decisions
    click = table["item"] == best_item(table["city"], table["age"])
    write_table(table.assign(click=click.astype(int)), following)

    floored = poem.load_policy(policy).with_floor(0.1)
    names = {"output": "item", "reward": "click", "propensity": "pscore"}
    read = poem.read_log(following, **names, features=floored.features, labels=floored.labels)
    np.testing.assert_allclose(read.log_propensity, floored.log_prob_of(read), rtol=0, atol=1e-14)
    np.testing.assert_allclose(np.log(table["pscore"]), floored.log_prob(read.X, table["item"]), atol=1e-14)

    capsys.readouterr()
    assert call("train", following, "-o", second, "--start", policy, *FIT) == 1  # 300 rows do not certify so little
    assert not second.exists()
    assert call("train", following, "-o", second, "--start", policy, "--no-certificate", *FIT) == 0
    assert poem.load_policy(second).features == floored.features
    converted = tmp_path / "converted.parquet"
    assert call("convert", following, converted, *COLUMNS) == 0
    assert len(poem.read_log(converted)) == 300  # nothing needs to be named again
    capsys.readouterr()
    assert call("report", second, converted, "--against", policy, "-o", tmp_path / "page.html", "--quiet") == 0
    assert capsys.readouterr() == (f"{tmp_path / 'page.html'}\n", "")
    assert "</html>" in (tmp_path / "page.html").read_text()


@pytest.fixture(scope="session")
def tags(tmp_path_factory):
    """Logs of label sets, as JSON lines, and a policy."""
    folder = tmp_path_factory.mktemp("tags")
    rng = np.random.default_rng(0)
    wanted = rng.random((300, 3)) < 0.5
    chosen = rng.random((300, 3)) < 0.5
    names = np.array(["new", "süß", "cheap"])
    table = pd.DataFrame(
        {
            "a": wanted[:, 0] * 1.0,
            "b": wanted[:, 1] * 1.0,
            "c": wanted[:, 2] * 1.0,
            "output": [names[row].tolist() for row in chosen],
            "loss": (wanted != chosen).sum(axis=1),
            "propensity": 0.125,
        }
    )
    log = write_table(table, folder / "tags.jsonl")
    assert call("train", log, "-o", folder / "tags.poem", "--quiet", *FIT) == 0
    return SimpleNamespace(log=log, policy=folder / "tags.poem")


def test_a_round_of_label_sets_goes_through_json_lines(tags, tmp_path, capsys):
    capsys.readouterr()
    assert call("predict", tags.policy, tags.log, "--sample", "--seed", "1", "--quiet") == 0
    out, err = capsys.readouterr()
    assert err == ""
    rows = [json.loads(line) for line in out.splitlines()]
    assert len(rows) == 300
    assert set(rows[0]) == {"a", "b", "c", "output", "propensity"}
    following = write_table(pd.DataFrame(rows).assign(loss=range(300)), tmp_path / "next.jsonl")
    policy = poem.load_policy(tags.policy)
    log = poem.read_log(following, features=policy.features, labels=policy.labels)
    np.testing.assert_allclose(log.log_propensity, policy.log_prob_of(log), rtol=0, atol=1e-14)
    assert call("train", following, "-o", tmp_path / "second.poem", "--start", tags.policy, "--quiet", *FIT) in (0, 1)
    assert call("evaluate", tags.policy, following, "--estimators", "SNIPS", "--quiet") in (0, 1)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_label_sets_are_written_to_files_that_hold_lists(tags, tmp_path, suffix):
    out = tmp_path / f"decisions{suffix}"
    assert call("predict", tags.policy, tags.log, "-o", out, "--quiet") == 0
    table = read_table(out)
    assert all(set(tags) <= {"new", "süß", "cheap"} for tags in table["output"])
    assert "propensity" not in table  # what is not drawn is no log


def test_csv_cannot_hold_label_sets(tags, tmp_path, capsys):
    assert "use .jsonl or .parquet" in refused(capsys, "predict", tags.policy, tags.log, "-o", tmp_path / "out.csv")
    assert list(tmp_path.iterdir()) == []


def test_label_sets_in_columns_of_0_and_1(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (300, 2)), rng.integers(0, 2, (300, 2))
    table = pd.DataFrame(np.hstack([x, y]), columns=["x1", "x2", "y1", "y2"])
    log = write_table(table.assign(loss=(x != y).sum(axis=1), p=25.0), tmp_path / "log.csv")
    columns = ("--output", "y1,y2", "--propensity", "p", "--propensity-unit", "percent", "--context", "x*")
    assert call("train", log, "-o", tmp_path / "p.poem", "--quiet", *FIT, *columns) == 0
    later = write_table(table.assign(loss=(x != y).sum(axis=1), p=25.0)[:-1], tmp_path / "later.csv")
    assert (
        call("evaluate", tmp_path / "p.poem", later, "--quiet", "--estimators", "SNIPS") == 0
    )  # columns, and the unit


def test_what_is_simulated_is_trained_on_and_decided_for(shop, tmp_path, capsys):
    log, h0, policy = tmp_path / "log.parquet", tmp_path / "h0.poem", tmp_path / "policy.poem"
    assert call("simulate", shop.labelled, "--label", "kind", "-o", log, "--policy", h0, "--replay", "3") == 0
    assert "logging policy:" in capsys.readouterr().err
    assert len(poem.read_log(log)) == 600
    assert call("train", log, "-o", policy, "--quiet", "--start", h0, *FIT) in (0, 1)
    assert call("predict", policy, shop.contexts, "--quiet") == 0  # of raw columns, although the log holds features
    capsys.readouterr()
    # Rows that share a context share its features, which are written once; each decision needs them.
    assert call("predict", policy, log, "--sample", "--seed", "1", "--quiet") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 600
    following = write_table(pd.DataFrame(rows).assign(loss=range(600)), tmp_path / "next.jsonl")
    assert np.allclose(poem.read_log(following).X.sum(), 3 * poem.read_log(log).X.sum())


def test_a_libsvm_file_of_label_sets_is_simulated(tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"{','.join(map(str, rng.permutation(3)[:2]))} 1:{rng.random():.3f} 2:1" for _ in range(60)]
    (tmp_path / "data.svm").write_text("\n".join(lines) + "\n")
    out = tmp_path / "log.parquet"
    assert call("simulate", tmp_path / "data.svm", "-o", out, "--fraction", "0.5", "--loss", "f1", "--quiet") == 0
    assert len(poem.read_log(out)) == 240


def test_decisions_follow_the_seed(shop, capsys):
    def decided(*arguments):
        assert call("predict", shop.policy, shop.later, "--quiet", *arguments) == 0
        return capsys.readouterr().out

    assert decided("--sample", "--seed", "7") == decided("--sample", "--seed", "7")
    assert decided("--sample", "--seed", "7", "--floor", "0.5") != decided("--sample", "--seed", "8", "--floor", "0.5")


def test_a_seed_that_was_not_given_is_said(shop, capsys):
    assert call("predict", shop.policy, shop.later, "--sample", "--floor", "0.5") == 0
    out, err = capsys.readouterr()
    (seed,) = re.fullmatch(r"seed: (\d+)\n", err).groups()
    assert call("predict", shop.policy, shop.later, "--sample", "--floor", "0.5", "--seed", seed) == 0
    assert capsys.readouterr() == (out, "")


# ---- what a policy remembers ----------------------------------------------------------------------


def test_options_win_over_what_the_policy_remembers(shop, tmp_path, capsys):
    table = shop_table(300, 6)
    other = write_table(table.assign(views=1 - table["click"]), tmp_path / "other.csv")
    assert call("evaluate", shop.policy, other, "--quiet", "--estimators", "SNIPS") == 0
    assert call("evaluate", shop.policy, other, "--quiet", "--estimators", "SNIPS", "--reward", "views") == 1
    assert call("evaluate", shop.policy, other, "--quiet", "--estimators", "SNIPS", "--loss", "click") == 1
    assert "worse than what was logged" in capsys.readouterr().out


def test_columns_of_a_log_that_is_named_otherwise_are_found_by_their_common_names(shop, tmp_path):
    names = {"item": "output", "click": "reward", "pscore": "propensity"}
    other = write_table(shop_table(300, 6).rename(columns=names), tmp_path / "other.csv")
    assert call("evaluate", shop.policy, other, "--quiet", "--estimators", "SNIPS") == 0


def test_policies_of_different_features_are_compared(shop, tmp_path, capsys):
    """Two rounds rarely have the same recipe: here the second one left a column out, and scaled another."""
    second = tmp_path / "second.poem"
    extra = ("--ignore", "city", "--scale")
    assert call("train", shop.log, "-o", second, "--quiet", *FIT, *COLUMNS, *extra) in (0, 1)
    capsys.readouterr()
    assert call("evaluate", shop.policy, shop.later, "--against", second, "--json", "--quiet") in (0, 1)
    content = json.loads(capsys.readouterr().out)
    values = {(line["policy"], line["estimator"]): line["value"] for line in content["lines"]}
    assert call("evaluate", second, shop.later, "--json", "--quiet") in (0, 1)
    alone = {line["estimator"]: line["value"] for line in json.loads(capsys.readouterr().out)["lines"]}
    assert values["other", "SNIPS"] == pytest.approx(alone["SNIPS"], abs=1e-12)
    assert ("other", "DR") in values
    assert "poem evaluate --against" in refused(
        capsys, "report", shop.policy, shop.later, "--against", second, "-o", tmp_path / "page.html"
    )


def test_features_that_were_made_otherwise_are_refused_though_they_have_the_same_names(shop, tmp_path, capsys):
    log, scaled = tmp_path / "log.parquet", tmp_path / "scaled.poem"
    assert call("simulate", shop.labelled, "--label", "kind", "-o", log, "--quiet") == 0
    assert call("train", shop.log, "-o", scaled, "--quiet", "--scale", "--context", "city,age", *FIT, *COLUMNS) == 0
    capsys.readouterr()
    for arguments in (
        ("evaluate", scaled, log),
        ("report", scaled, log, "-o", tmp_path / "page.html"),
        ("predict", scaled, log),
        ("train", log, "--start", scaled, "-o", tmp_path / "new.poem"),
    ):
        assert "another way" in refused(capsys, *arguments, "--quiet")


def test_a_policy_that_was_learnt_in_python_takes_columns_by_name(shop, tmp_path, capsys):
    table = shop_table(300, 1)
    X = pd.DataFrame({"age": table["age"] / 1.0, "bonn": (table["city"] == "Bonn") * 1.0})
    log = poem.BanditLog(X, table["item"], reward=table["click"], propensity=table["pscore"])
    policy = poem.fit(log, lam=0.0, progress=False).policy
    policy.save(tmp_path / "python.poem")
    other = table.assign(bonn=X["bonn"])[["bonn", "user", "age", "item", "click", "pscore"]]
    path = write_table(other, tmp_path / "other.csv")
    columns = ("--output", "item", "--reward", "click", "--propensity", "pscore")
    assert call("evaluate", tmp_path / "python.poem", path, "--json", "--quiet", *columns) in (0, 1)
    found = {line["estimator"]: line["value"] for line in json.loads(capsys.readouterr().out)["lines"]}
    assert found["SNIPS"] == pytest.approx(-poem.estimate(policy, log).value, abs=1e-12)  # a reward
    assert call("predict", tmp_path / "python.poem", path, "--quiet") == 0
    decided = pd.read_csv(pd.io.common.StringIO(capsys.readouterr().out))
    assert decided["output"].tolist() == policy.predict(X).tolist()


def test_a_policy_is_not_judged_silently_on_its_own_log(shop, tmp_path, capsys):
    assert call("evaluate", shop.policy, shop.log, "--estimators", "SNIPS", "--quiet") == 1
    assert "was trained on this very log" in capsys.readouterr().out
    assert call("evaluate", shop.policy, shop.log, "--estimators", "SNIPS", "--json") == 1
    assert json.loads(capsys.readouterr().out)["trained_on_this_log"] is True
    early = tmp_path / "early.poem"
    assert call("train", shop.log, "-o", early, "--quiet", "--out-of-time", *FIT, *COLUMNS) in (0, 1)
    assert call("evaluate", early, shop.log, "--estimators", "SNIPS") == 1
    assert "was trained on this very log" in capsys.readouterr().out


def test_bounds_are_of_what_the_log_has(shop, tmp_path, capsys):
    out = tmp_path / "new.poem"
    assert call("train", shop.log, "-o", out, "--quiet", "--loss-bounds", "0,1", *FIT, *COLUMNS) == 0
    assert "are taken to lie in" not in capsys.readouterr().out
    assert "0.5" in refused(capsys, "train", shop.log, "-o", out, "--quiet", "--loss-bounds", "0,0.5", *FIT, *COLUMNS)


# ---- streams --------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", NEW)
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


# ---- exit codes -----------------------------------------------------------------------------------


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
    no_pscore = write_table(shop_table(200, 0).drop(columns="pscore"), tmp_path / "no_pscore.csv")
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
    log = write_table(shop_table(200, 0).drop(columns="pscore"), tmp_path / "log.csv")
    columns = ("--output", "item", "--reward", "click", "--propensity", "estimate", "--ignore", "user,when")
    assert call("train", log, "-o", tmp_path / "new.poem", *FIT, *columns) in (0, 1)
    out, err = capsys.readouterr()
    assert "propensities are estimated, not logged" in err
    assert "propensities are estimated, not logged" in out
    assert call("inspect", log, "--quiet", *columns) in (0, 1)
    assert call("convert", log, tmp_path / "new.parquet", "--quiet", *columns) == 0
    assert poem.read_log(tmp_path / "new.parquet", propensity="missing").propensities == "missing"


# ---- what cannot be written -----------------------------------------------------------------------


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
    assert call("train", shop.later, "-o", policy, "--start", policy, "--quiet", *FIT) in (0, 1)
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


# ---- interruption ---------------------------------------------------------------------------------


RUN = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell in the background lets its children ignore it

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ.get("INTERRUPT_AT"):
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from poem.cli import main
sys.exit(main())
"""


def command(*arguments):
    """A command line for a process of its own."""
    return [sys.executable, "-c", RUN, *map(str, arguments)]


def assert_interrupted(code, out, err, folder):
    assert code == 130
    assert out == ""
    assert err.endswith("\npoem: interrupted; nothing was left half-written\n")
    assert "Traceback" not in err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("inspect", "pyarrow"),
        ("train", "numba.core"),
        ("train", "scipy.special._ufuncs"),
        ("evaluate", "numpy._core"),
        ("predict", "safetensors"),
        ("report", "scipy.sparse"),
        ("convert", "pyarrow.parquet"),
        ("simulate", "sklearn"),
    ],
)
def test_ctrl_c_during_imports(shop, tmp_path, name, module):
    arguments, _ = command_line(name, shop, tmp_path)
    found = subprocess.run(
        command(*arguments, "--quiet"),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "INTERRUPT_AT": module},
    )
    assert_interrupted(found.returncode, found.stdout, found.stderr, tmp_path)


@pytest.mark.parametrize("moment", ["features: ", "fit: "])  # when it begins to learn; after two seconds of it
def test_ctrl_c_in_the_midst_of_long_work(tmp_path, moment):
    log = write_table(shop_table(40_000, 0), tmp_path / "log.csv")
    (tmp_path / "out").mkdir()
    process = subprocess.Popen(
        command("train", log, "-o", tmp_path / "out" / "new.poem", *COLUMNS),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    with process:
        while not process.stderr.readline().startswith(moment):
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert_interrupted(process.returncode, out, "\n" + err, tmp_path / "out")


@pytest.fixture
def ctrl_c(monkeypatch):
    """Press Ctrl-C when a function is called."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)

    def press(*_, **__):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(1.0)

    yield lambda module, function: monkeypatch.setattr(import_module(module), function, press)
    signal.signal(signal.SIGINT, earlier)


LIBRARY = {
    "inspect": ("poem.health", "inspect"),
    "train": ("poem.learning", "fit"),
    "evaluate": ("poem.evaluation", "evaluate"),
    "watch": ("poem.evaluation", "Gate"),
    "predict": ("poem.commands.predict_outputs", "contexts_of"),
    "report": ("poem.report", "write_report"),
    "convert": ("poem.readers", "write_log"),
    "simulate": ("poem.simulation", "simulate"),
}


@pytest.mark.parametrize("name", NEW)
def test_ctrl_c_while_reading_and_while_working(shop, tmp_path, capsys, ctrl_c, name):
    for place in (LIBRARY[name], ("poem.readers.read", "files_of")):
        arguments, _ = command_line(name, shop, tmp_path)
        ctrl_c(*place)
        capsys.readouterr()
        assert_interrupted(call(*arguments), *capsys.readouterr(), tmp_path)


@pytest.mark.parametrize("name", WRITERS)
def test_ctrl_c_while_a_file_is_written_leaves_the_old_one(shop, tmp_path, capsys, ctrl_c, name):
    arguments, out = command_line(name, shop, tmp_path)
    out.write_text("old")
    ctrl_c("os", "fsync")  # when all is written, but not yet in its place
    assert call(*arguments, "--quiet") == 130
    assert out.read_text() == "old"
    assert list(tmp_path.iterdir()) == [out]


def test_an_interruption_that_a_library_calls_an_error_is_130(shop, tmp_path, capsys, ctrl_c, monkeypatch):
    ctrl_c("poem.learning", "fit")  # hear it at all
    press = import_module("poem.learning").fit

    def turn_into_another_error(*_, **__):
        try:
            press()
        except KeyboardInterrupt:
            raise ImportError("a library failed to import") from None

    monkeypatch.setattr(import_module("poem.learning"), "fit", turn_into_another_error)
    arguments, _ = command_line("train", shop, tmp_path)
    assert_interrupted(call(*arguments, "--quiet"), *capsys.readouterr(), tmp_path)


def test_an_interruption_that_python_would_ignore_is_made_again(shop, tmp_path, capsys, ctrl_c, monkeypatch):
    ctrl_c("poem.learning", "fit")
    press = import_module("poem.learning").fit

    class Deleted:
        def __del__(self):
            press()

    went_on = []

    def delete_and_go_on(*_, **__):
        Deleted()
        gc.collect()
        time.sleep(10.0)
        went_on.append(True)

    monkeypatch.setattr(import_module("poem.learning"), "fit", delete_and_go_on)
    arguments, _ = command_line("train", shop, tmp_path)
    assert_interrupted(call(*arguments, "--quiet"), *capsys.readouterr(), tmp_path)
    assert not went_on


def test_handlers_are_as_before(shop, ctrl_c):
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    assert call("inspect", shop.log, "--quiet", *COLUMNS) == 0
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == (handler, hook)


# ---- progress -------------------------------------------------------------------------------------


def test_work_says_that_it_goes_on(capsys):
    with Working("counting", True, after=0.01):
        time.sleep(0.2)
    assert re.match(r"counting … \d+\.\d s\n", capsys.readouterr().err)
    with Working("counting", True):
        pass
    with Working("counting", False, after=0.01):
        time.sleep(0.05)
    assert capsys.readouterr() == ("", "")


def test_a_terminal_is_clean_after_the_work(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Working("counting", True, after=0.01):
        time.sleep(0.2)
    assert capsys.readouterr().err.endswith("\r\x1b[K")


def test_parts_that_take_long_show_that_work_goes_on(capsys, monkeypatch):
    monkeypatch.setattr("poem.progress.PATIENCE", 0.01)
    with Progress("work", 3, True) as line:
        time.sleep(0.2)
        line.part_done()
    first, *_, last = capsys.readouterr().err.splitlines()
    assert re.match(r"work: 0/3 in \d+\.\d s", first)
    assert re.match(r"work: 1/3 in \d+\.\d s", last)


# ---- nothing but an answer looks like one -----------------------------------------------------------


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
    ],
    ids=str,
)
def test_a_strange_record_in_a_policy_file_does_no_harm(record, shop, tmp_path, capsys):
    policy = poem.load_policy(shop.policy)
    replace(policy, training={**policy.training, **record}).save(tmp_path / "odd.poem")
    assert call("report", tmp_path / "odd.poem", shop.log, "-o", tmp_path / "odd.html", "--quiet", *COLUMNS) == 0


def test_a_log_that_is_unfit_is_not_trained_on(shop, tmp_path, capsys):
    table = shop_table(4000, 3)
    wrong = write_table(table.assign(pscore=table["pscore"] ** 3), tmp_path / "wrong.csv")
    out = tmp_path / "new.poem"
    assert call("inspect", wrong, "--quiet", *COLUMNS) == 1
    capsys.readouterr()
    assert "is not fit for learning" in refused(capsys, "train", wrong, "-o", out, "--quiet", *FIT, *COLUMNS)
    assert call("train", wrong, "-o", out, "--quiet", "--force", *FIT, *COLUMNS) in (0, 1)


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
    n_train = poem.load_policy(out).training["n_train"]
    # Users who came back after the first row that certifies are learnt from up to then only.
    assert n_train == 400 if more else 0 < n_train < 400 - certificate["rows"]


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
    assert call("inspect", log, "--quiet", "--propensity", "estimate", *columns) in (0, 1)
    assert "no propensities" not in capsys.readouterr().out
