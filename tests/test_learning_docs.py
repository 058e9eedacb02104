"""The tables of docs/learning.md are those of its runs."""

from pathlib import Path

import pytest

from benchmarks.best_policy import read, table, worse_than_logger

DOCS = Path(__file__).parent.parent / "docs"
FILES = ("runs", "fresh_runs", "other_runs")
RUNS = {name: read(DOCS / "learning" / f"{name}.csv") for name in FILES}
TABLES = [(name, loss) for name in FILES for loss in dict.fromkeys(row["loss"] for row in RUNS[name])]


@pytest.mark.parametrize(("name", "loss"), TABLES)
def test_a_table_is_that_of_the_runs(name, loss):
    assert table(RUNS[name], loss) in (DOCS / "learning.md").read_text()


@pytest.mark.parametrize("name", ["runs", "fresh_runs"])
def test_no_run_is_worse_than_the_logging_policys_most_probable_outputs(name):
    runs = [row for row in RUNS[name] if (row["method"], row["loss"]) == ("default", "hamming")]
    assert len(runs) == 40
    assert worse_than_logger(RUNS[name]) == []


def test_of_the_other_sets_the_smallest_two_have_runs_that_are_worse():
    worse = worse_than_logger(RUNS["other_runs"])
    assert [sum(name in run for run in worse) for name in ("voting", "flags", "emotions", "reuters")] == [3, 6, 0, 0]
