"""The commands as a user meets them: help, whole rounds, and what a policy remembers."""

import argparse
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from shop_logs import COLUMNS, FIT, NEW, best_item, call, refused, shop_table, write_table

import poem
from poem.cli import _parser

DOCS = Path(__file__).parents[1] / "docs" / "commands.md"


def read_table(path):
    if path.suffix == ".jsonl":
        return pd.DataFrame([json.loads(line) for line in path.read_text().splitlines()])
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)


# ---- help and documents ----------------------------------------------------------------------------


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
    """A heading "## poem NAME" per command, and below it each option in a table, or a link to a table that has it."""
    sections = dict(re.findall(r"^## ([\w ]+)\n(.*?)(?=^## |\Z)", DOCS.read_text(), re.MULTILINE | re.DOTALL))
    assert {name for name in sections if name.startswith("poem ")} == {f"poem {name}" for name in parsers()}
    for name, parser in parsers().items():
        shared = re.findall(r"\(#(\w+)-options\)", sections[f"poem {name}"])
        tables = sections[f"poem {name}"] + "".join(sections[f"{kind.capitalize()} options"] for kind in shared)
        rows = re.findall(r"^\|[^|]*`(--[\w-]+)`", tables, re.MULTILINE)
        assert sorted(rows) == sorted(set(options_of(parser)) - {"--help"}), name


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


# ---- whole rounds ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "rows"), [(".csv", 190), (".parquet", 300)])  # too few for trees, and enough
def test_a_whole_round(shop, tmp_path, capsys, suffix, rows):
    log = write_table(shop_table(rows, 0), tmp_path / f"log{suffix}")
    later = write_table(shop_table(rows, 1), tmp_path / f"later{suffix}")
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
    assert call("train", following, "-o", second, "--start", policy, *FIT) == 1  # so few rows do not certify so little
    assert not second.exists()
    assert call("train", following, "-o", second, "--start", policy, "--no-certificate", *FIT) == 0
    assert poem.load_policy(second).features == floored.features
    converted = tmp_path / "converted.parquet"
    assert call("convert", following, converted, *COLUMNS) == 0
    assert len(poem.read_log(converted)) == rows  # nothing needs to be named again
    capsys.readouterr()
    assert call("report", second, converted, "--against", policy, "-o", tmp_path / "page.html", "--quiet") == 0
    assert capsys.readouterr() == (f"{tmp_path / 'page.html'}\n", "")
    assert "</html>" in (tmp_path / "page.html").read_text()


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
    assert call("train", following, "-o", tmp_path / "second.poem", "--start", tags.policy, "--quiet", *FIT) == 1
    assert call("evaluate", tags.policy, following, "--estimators", "SNIPS", "--quiet") == 1  # it made this log


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
    x, y = rng.integers(0, 2, (190, 2)), rng.integers(0, 2, (190, 2))
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
    assert len(poem.read_log(log)) == 570
    assert call("train", log, "-o", policy, "--quiet", "--start", h0, *FIT) == 0
    assert call("predict", policy, shop.contexts, "--quiet") == 0  # of raw columns, although the log holds features
    capsys.readouterr()
    # Rows that share a context share its features, which are written once; each decision needs them.
    assert call("predict", policy, log, "--sample", "--seed", "1", "--quiet") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert len(rows) == 570
    following = write_table(pd.DataFrame(rows).assign(loss=range(570)), tmp_path / "next.jsonl")
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


# ---- what a policy remembers -----------------------------------------------------------------------


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
    assert call("train", shop.log, "-o", second, "--quiet", *FIT, *COLUMNS, *extra) == 0
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
    table = shop_table(190, 1)
    X = pd.DataFrame({"age": table["age"] / 1.0, "bonn": (table["city"] == "Bonn") * 1.0})
    log = poem.BanditLog(X, table["item"], reward=table["click"], propensity=table["pscore"])
    policy = poem.fit(log, lam=0.0, progress=False).policy
    policy.save(tmp_path / "python.poem")
    other = table.assign(bonn=X["bonn"])[["bonn", "user", "age", "item", "click", "pscore"]]
    path = write_table(other, tmp_path / "other.csv")
    columns = ("--output", "item", "--reward", "click", "--propensity", "pscore")
    assert call("evaluate", tmp_path / "python.poem", path, "--json", "--quiet", *columns) == 1  # on its own rows
    found = {line["estimator"]: line["value"] for line in json.loads(capsys.readouterr().out)["lines"]}
    assert found["SNIPS"] == pytest.approx(poem.estimate(policy, log).value, abs=1e-12)
    assert call("predict", tmp_path / "python.poem", path, "--quiet") == 0
    decided = pd.read_csv(pd.io.common.StringIO(capsys.readouterr().out))
    assert decided["output"].tolist() == policy.predict(X).tolist()


def test_a_policy_is_not_judged_silently_on_its_own_log(shop, tmp_path, capsys):
    assert call("evaluate", shop.policy, shop.log, "--estimators", "SNIPS", "--quiet") == 1
    assert "was trained on this very log" in capsys.readouterr().out
    assert call("evaluate", shop.policy, shop.log, "--estimators", "SNIPS", "--json") == 1
    assert json.loads(capsys.readouterr().out)["trained_on_this_log"] is True
    early = tmp_path / "early.poem"
    assert call("train", shop.log, "-o", early, "--quiet", "--out-of-time", *FIT, *COLUMNS) == 0
    assert call("evaluate", early, shop.log, "--estimators", "SNIPS") == 1
    assert "was trained on this very log" in capsys.readouterr().out


def test_bounds_are_of_what_the_log_has(shop, tmp_path, capsys):
    out = tmp_path / "new.poem"
    assert call("train", shop.log, "-o", out, "--quiet", "--loss-bounds", "0,1", *FIT, *COLUMNS) == 0
    assert "are taken to lie in" not in capsys.readouterr().out
    assert "0.5" in refused(capsys, "train", shop.log, "-o", out, "--quiet", "--loss-bounds", "0,0.5", *FIT, *COLUMNS)
