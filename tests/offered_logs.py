"""A shop that chooses one of the articles in stock: rows of a log, in the forms that files have."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ARTICLES = [f"a{number}" for number in range(8)]
CATALOGUE = pa.table(
    {
        "id": [*ARTICLES, "never"],
        "weight": [0.5 * number for number in range(9)],
        "kind": [("old", "new")[number % 2] for number in range(9)],
    }
)


def offered_rows(n, seed=0, first=0):
    """Rows of a log: 2 to 5 of eight articles, each with its price of the day; new ones sell to warm contexts."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        size = int(rng.integers(2, 6))
        some = first + rng.choice(8, size, replace=False)
        warmth, chosen = float(rng.normal()), int(rng.integers(size))
        sells = (some[chosen] % 2 == 1) == (warmth > 0)
        described = [
            {"id": f"a{number}", "price": round(0.1 + float(rng.random()), 3), "kind": ("old", "new")[number % 2]}
            for number in some.tolist()
        ]
        rows.append(
            {
                "warmth": warmth,
                "device": str(rng.choice(["phone", "desk"])),
                "output": described[chosen]["id"],
                "reward": float(rng.random() < 0.1 + 0.8 * sells),
                "propensity": 1 / size,
                "candidates": described,
                "distribution": [1 / size] * size,
            }
        )
    return rows


def only_ids(rows):
    return [row | {"candidates": [candidate["id"] for candidate in row["candidates"]]} for row in rows]


def by_position(rows):
    """The same candidates without ids: the output is a position, counted from 1."""
    found = []
    for row in rows:
        ids = [candidate["id"] for candidate in row["candidates"]]
        nameless = [{name: value for name, value in one.items() if name != "id"} for one in row["candidates"]]
        found.append(row | {"output": ids.index(row["output"]) + 1, "candidates": nameless})
    return found


def write_lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_parquet(path, rows):
    pq.write_table(pa.Table.from_pylist(rows), path)
    return path
