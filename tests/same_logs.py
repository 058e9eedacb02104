"""A small log, and what makes two logs the same."""

import bz2
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import scipy.sparse as sp

import poem

ROWS = [
    {"a": 1.0, "b": 0.0, "c": 2.5, "output": 2, "loss": 0.5, "propensity": 0.25},
    {"a": 0.0, "b": 3.0, "c": 0.0, "output": 1, "loss": -1.0, "propensity": 0.5},
    {"a": 0.5, "b": 0.25, "c": -4.0, "output": 3, "loss": 0.0, "propensity": 1.0},
    {"a": 1.0, "b": 1.0, "c": 1.0, "output": 2, "loss": 2.0, "propensity": 0.125},
]
TABLE = pa.Table.from_pylist(ROWS)
FEATURES = ("a", "b", "c")


def dense(log):
    return log.X.toarray() if sp.issparse(log.X) else log.X


def partition(values):
    """Which rows are of one group, whatever the groups are called."""
    return None if values is None else np.equal.outer(values, values).tolist()


def assert_same(one, two, names=True):
    """Expect two logs of the same decisions."""
    np.testing.assert_array_equal(dense(one), dense(two))
    for name in ("y", "loss", "log_propensity", "context"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert one.labels == two.labels
    assert list(map(type, one.labels)) == list(map(type, two.labels))
    assert (one.outcome, one.propensities) == (two.outcome, two.propensities)
    for name in ("group", "logger"):
        assert partition(getattr(one, name)) == partition(getattr(two, name))
    np.testing.assert_array_equal(one.time, two.time)
    if names:
        assert one.feature_names == two.feature_names


def assert_equal(one, two):
    """Expect two logs that are the same in every bit, and in what made them."""
    assert_same(one, two)
    assert one.fingerprint() == two.fingerprint()
    assert one.features == two.features
    assert sp.issparse(one.X) == sp.issparse(two.X)


@pytest.fixture
def expected():
    columns = {name: TABLE.column(name).to_numpy() for name in TABLE.column_names}
    X = np.column_stack([columns[name] for name in FEATURES])
    loss, propensity = columns["loss"], columns["propensity"]
    return poem.BanditLog(X, columns["output"], loss=loss, propensity=propensity, feature_names=FEATURES)


def nonzero(row):
    return {name: row[name] for name in FEATURES if row[name]}


def as_csv():
    lines = [",".join(TABLE.column_names), *(",".join(str(value) for value in row.values()) for row in ROWS)]
    return "\n".join(lines) + "\n"


def as_jsonl():
    return "".join(json.dumps(row) + "\n" for row in ROWS)


def as_vw():
    return "".join(
        f"{row['output']}:{row['loss']}:{row['propensity']} | {' '.join(f'{k}:{v}' for k, v in nonzero(row).items())}\n"
        for row in ROWS
    )


def as_dsjson():
    return "".join(
        json.dumps(
            {
                "_label_cost": row["loss"],
                "_label_probability": row["propensity"],
                "_labelIndex": row["output"] - 1,
                "c": nonzero(row),
            }
        )
        + "\n"
        for row in ROWS
    )


def as_svmlight():
    return "".join(
        f"0 {' '.join(f'{i}:{row[name]}' for i, name in enumerate(FEATURES) if row[name])}\n" for row in ROWS
    )


TEXTS = {".csv": as_csv, ".jsonl": as_jsonl, ".vw": as_vw, ".dsjson": as_dsjson}


def write(path, content):
    pack = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": lambda c: pa.compress(c, "zstd", asbytes=True)}
    content = content.encode() if isinstance(content, str) else content
    path.write_bytes(pack.get(path.suffix, bytes)(content))
    return path


def frame(**changes):
    columns = {name: TABLE.column(name).to_pylist() for name in TABLE.column_names} | changes
    return pa.table({name: column for name, column in columns.items() if column is not None})


def written(log, tmp_path):
    return poem.read_log(poem.write_log(log, tmp_path / "log.parquet"))
