"""The tables of docs/results.md are those of its runs."""

from pathlib import Path

import numpy as np
import pytest

from benchmarks.best_policy import read, table, worse_than_logger

DOCS = Path(__file__).parent.parent / "docs"
FILES = ("certified_runs", "runs", "fresh_runs", "other_runs")
RUNS = {name: read(DOCS / "learning" / f"{name}.csv") for name in FILES}
TABLES = [(name, loss) for name in FILES for loss in dict.fromkeys(row["loss"] for row in RUNS[name])]


@pytest.mark.parametrize(("name", "loss"), TABLES)
def test_a_table_is_that_of_the_runs(name, loss):
    assert table(RUNS[name], loss) in (DOCS / "results.md").read_text()


def test_every_run_was_certified():
    runs = [row for row in RUNS["certified_runs"] if row["method"] in ("default", "additive")]
    assert len(runs) == 48
    assert all(row["learner"] != "not certified" for row in runs)


@pytest.mark.parametrize("name", ["runs", "fresh_runs"])
def test_no_run_is_worse_than_the_logging_policys_most_probable_outputs(name):
    runs = [row for row in RUNS[name] if (row["method"], row["loss"]) == ("default", "hamming")]
    assert len(runs) == 40
    assert worse_than_logger(RUNS[name]) == []


@pytest.mark.parametrize("name", ["emotions", "flags"])
def test_how_far_poem_is_ahead_is_that_of_the_runs(name):
    mine = [row for row in RUNS["other_runs"] if (row["dataset"], row["loss"]) == (name, "zero-one")]
    by_method = ([float(row["map"]) for row in mine if row["method"] == method] for method in ("default", "POEM"))
    ahead = np.subtract(*by_method)
    said = f"(by {ahead.mean():.3f} ± {ahead.std(ddof=1) / np.sqrt(len(ahead)):.3f})"
    assert said in (DOCS / "results.md").read_text()


def test_seconds_are_those_of_the_runs():
    fits = [row for name in ("runs", "fresh_runs") for row in RUNS[name] if row["method"] == "default"]
    said = []
    for names in (("scene", "yeast"), ("lyrl",), ("tmc",)):
        seconds = [float(row["seconds"]) for row in fits if row["dataset"] in names]
        said.append(f"{min(seconds):.0f} to {max(seconds):.0f} s on")
    text = (DOCS / "results.md").read_text().replace("\n", " ")
    assert f"A fit took {said[0]} Scene and Yeast, {said[1]} LYRL and {said[2]} TMC" in text


def test_of_the_other_sets_the_smallest_two_have_runs_that_are_worse():
    worse = worse_than_logger(RUNS["other_runs"])
    assert [sum(name in run for run in worse) for name in ("voting", "flags", "emotions", "reuters")] == [3, 6, 0, 0]


@pytest.mark.parametrize(("name", "rival", "logs"), [("wine", "vw", 40), ("yeast", "boosted-dm", 20)])
def test_fresh_tabular_runs_are_those_of_the_text(name, rival, logs):
    rows = [row for row in read(DOCS / "learning" / "tabular_fresh_runs.csv") if row["set"] == name]
    mine, theirs = (
        {r["seed"]: float(r["map"]) for r in rows if r["method"] == method} for method in ("default", rival)
    )
    ahead = np.array([mine[seed] - theirs[seed] for seed in mine])
    assert len(ahead) == logs
    assert all(row["certified"] == "True" for row in rows if row["method"] == "default")
    text = (DOCS / "results.md").read_text().replace("\n", " ")
    error = ahead.std(ddof=1) / np.sqrt(logs)
    for said in (np.mean([*mine.values()]), np.mean([*theirs.values()])):
        assert f"{said:.4f}" in text
    assert f"difference of −{-ahead.mean():.4f} ± {error:.4f}" in text
