"""Tables with very many columns: time grows with their number, not with its square."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import poem
from poem.cli import main

WIDTH = 21_000  # with time in proportion to the square, each of these tests would take minutes


@pytest.fixture(scope="module")
def numbers():
    rng = np.random.default_rng(0)
    columns = {f"x{at}": column for at, column in enumerate(rng.normal(size=(WIDTH, 4)))}
    return pa.table({"output": [0, 1, 0, 1], "loss": [0.0, 1.0, 1.0, 0.0], "propensity": [0.5] * 4} | columns)


def test_many_columns_of_numbers_are_read(numbers):
    log = poem.read_log(numbers)
    np.testing.assert_array_equal(log.X[:, [0, -1]], np.column_stack([numbers["x0"], numbers[f"x{WIDTH - 1}"]]))


def test_many_columns_of_strings_are_read(numbers):
    few = numbers.select(["output", "loss", "propensity"])
    texts = {f"s{at}": pa.array(["a", "b", "b", None]) for at in range(WIDTH // 8)}
    log = poem.read_log(pa.table(dict(zip(few.column_names, few.columns, strict=True)) | texts))
    assert log.X.shape == (4, 3 * len(texts))  # a, b, and a feature that says what is missing
    assert log.X.sum() == 4 * len(texts)


def test_a_command_says_what_to_do_about_many_columns(tmp_path, numbers, capsys):
    pyarrow.csv.write_csv(numbers, tmp_path / "log.csv")
    assert main(["inspect", str(tmp_path / "log.csv")]) in (0, 1)
    assert "log.csv has 21,003 columns, and each of them takes time. One column of lists" in capsys.readouterr().err
