"""The tables of docs/learning.md are those of its runs."""

from pathlib import Path

import pytest

from benchmarks.best_policy import read, table, worse_than_logger

DOCS = Path(__file__).parent.parent / "docs"
RUNS = read(DOCS / "learning" / "runs.csv")


@pytest.mark.parametrize("loss", ["hamming", "zero-one", "f1"])
def test_a_table_is_that_of_the_runs(loss):
    assert table(RUNS, loss) in (DOCS / "learning.md").read_text()


def test_no_run_is_worse_than_the_logging_policys_most_probable_outputs():
    runs = [row for row in RUNS if (row["method"], row["loss"]) == ("default", "hamming")]
    assert len(runs) == 40
    assert worse_than_logger(RUNS) == []
