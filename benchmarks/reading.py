"""Reading logs: against pyarrow's own reading of the same files, in processes of their own; and the commands."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

ROWS, NONZEROS, FEATURES, OUTPUTS = 1_000_000, 70, 30_438, 22
VW_LINES, VW_FEATURES = 200_000, 20
VW_REQUESTS, VW_ACTIONS, VW_ACTION_FEATURES = 50_000, 10, 5
REQUESTS, ARTICLES = 30_000, 300
CHILD = """
import json, sys, time
import pyarrow as pa, pyarrow.csv, pyarrow.json, pyarrow.parquet
from pathlib import Path

from poem.readers import format_named, read_log

def resident(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))

kind, path = sys.argv[1:3]
read = {
    "poem": read_log, "parquet": pa.parquet.read_table, "csv": pa.csv.read_csv, "jsonl": pa.json.read_json,
    "table": lambda path: format_named(path.rpartition(".")[2]).read(Path(path)),
}[kind]
for few in sys.argv[3:]:
    read(few)  # kernels are loaded before the clock starts
before, begin = resident("VmRSS"), time.perf_counter()
found = read(path)
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "peak": resident("VmHWM") - before, "bytes": found.nbytes}))
"""


def run(rounds: int = 3) -> dict[str, float]:
    """Print and return the figures of reading."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        figures = _parquet(place, rounds)
        figures |= _text(place, rounds)
        figures["VW text, thousand lines a second"] = _vw(place, rounds)
        figures["VW text, thousand requests of 10 a second"] = _vw_blocks(place, rounds)
        figures |= _dsjson(place, rounds)
    figures["poem --help, s"] = float(np.median([_seconds("--help") for _ in range(rounds + 2)]))
    return figures


def _child(kind: str, path: Path, *more: Path) -> dict[str, float]:
    command = [sys.executable, "-c", CHILD, kind, str(path), *map(str, more)]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _seconds(*arguments: str) -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-m", "poem", *arguments], check=False, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begin


def _parquet(place: Path, rounds: int) -> dict[str, float]:
    path = place / "log.parquet"
    pq.write_table(_sparse_table(), path)
    found = [(_child("poem", path), _child("parquet", path)) for _ in range(rounds)]
    ours = [one for one, _ in found]
    print(f"Parquet, a million rows × 70, s: poem {ours[0]['seconds']:.2f}, pyarrow {found[0][1]['seconds']:.2f}")
    inspect = _seconds("inspect", str(path), "--quiet")
    return {
        "Parquet, poem / pyarrow": float(np.median([one["seconds"] / other["seconds"] for one, other in found])),
        "Parquet, peak memory / the log": max(one["peak"] / one["bytes"] for one in ours),
        "poem inspect of a million rows, s": inspect,
    }


def _sparse_table() -> pa.Table:
    rng = np.random.default_rng(0)
    index = np.sort(rng.integers(0, FEATURES, (ROWS, NONZEROS), dtype=np.int32), axis=1) + np.arange(NONZEROS)
    starts = np.arange(ROWS + 1, dtype=np.int32) * NONZEROS
    return pa.table(
        {
            "features.index": pa.ListArray.from_arrays(starts, pa.array(index.ravel().astype(np.int32))),
            "features.value": pa.ListArray.from_arrays(starts, pa.array(rng.random(ROWS * NONZEROS))),
            "output": rng.integers(0, OUTPUTS, ROWS),
            "loss": rng.random(ROWS),
            "propensity": np.full(ROWS, 1.0 / OUTPUTS),
        }
    )


def _text(place: Path, rounds: int) -> dict[str, float]:
    """CSV and JSON lines of ten numbers and two categories a row."""
    rng = np.random.default_rng(1)
    table = pa.table(
        {f"x{i}": rng.random(ROWS).round(6) for i in range(10)}
        | {"device": np.array(["phone", "tablet", "desk"])[rng.integers(0, 3, ROWS)]}
        | {"city": np.array([f"city {i}" for i in range(200)])[rng.integers(0, 200, ROWS)]}
        | {"output": rng.integers(0, OUTPUTS, ROWS), "loss": rng.random(ROWS), "propensity": np.full(ROWS, 1 / OUTPUTS)}
    )
    pa.csv.write_csv(table, place / "log.csv")
    with (place / "log.jsonl").open("w") as file:
        for batch in table.to_batches(max_chunksize=10_000):
            file.writelines(json.dumps(row) + "\n" for row in batch.to_pylist())
    figures = {}
    for kind, name in (("csv", "CSV"), ("jsonl", "JSON lines")):
        whole, few = place / f"log.{kind}", place / f"few.{kind}"
        few.write_text("".join(whole.read_text().splitlines(keepends=True)[:100]))
        found = [[_child(what, whole, few)["seconds"] for what in ("table", "poem", kind)] for _ in range(rounds)]
        table, log, arrow = np.array(found).T
        figures[f"{name}, read into a table / pyarrow"] = float(np.median(table / arrow))
        figures[f"{name}, made into a log / pyarrow"] = float(np.median(log / arrow))
        print(f"{name}, a million rows, s: table {table[0]:.2f}, log {log[0]:.2f}, pyarrow's table {arrow[0]:.2f}")
    return figures


def _vw(place: Path, rounds: int) -> float:
    rng = np.random.default_rng(2)
    path, few = place / "log.vw", place / "few.vw"
    words = rng.integers(0, 5000, (VW_LINES, VW_FEATURES))
    values = rng.random((VW_LINES, VW_FEATURES)).round(3)
    lines = [
        f"{1 + i % 4}:{i % 2}:0.25 |u {_features(ws, vs)}\n"
        for i, (ws, vs) in enumerate(zip(words.tolist(), values.tolist(), strict=True))
    ]
    path.write_text("".join(lines))
    few.write_text("".join(lines[:100]))
    seconds = [_child("poem", path, few)["seconds"] for _ in range(rounds)]
    return VW_LINES / float(np.median(seconds)) / 1000.0


def _vw_blocks(place: Path, rounds: int) -> float:
    """Read requests of ten actions each into a table: 20 shared features, 5 per action."""
    rng = np.random.default_rng(3)
    path, few = place / "blocks.vw", place / "few_blocks.vw"
    shared, of_actions = (VW_REQUESTS, VW_FEATURES), (VW_REQUESTS, VW_ACTIONS, VW_ACTION_FEATURES)
    requests = zip(
        rng.integers(0, 5000, shared).tolist(),
        rng.random(shared).round(3).tolist(),
        rng.integers(0, 2000, of_actions).tolist(),
        rng.random(of_actions).round(3).tolist(),
        strict=True,
    )
    blocks = []
    for i, (words, values, action_words, action_values) in enumerate(requests):
        lines = [f"|a {_features(ws, vs)}" for ws, vs in zip(action_words, action_values, strict=True)]
        lines[i % VW_ACTIONS] = f"0:{i % 2}:0.1 {lines[i % VW_ACTIONS]}"
        blocks.append("\n".join([f"shared |u {_features(words, values)}", *lines]) + "\n\n")
    path.write_text("".join(blocks))
    few.write_text("".join(blocks[:100]))
    seconds = [_child("table", path, few)["seconds"] for _ in range(rounds)]
    return VW_REQUESTS / float(np.median(seconds)) / 1000.0


def _features(words: list[int], values: list[float]) -> str:
    return " ".join(f"f{word}:{value}" for word, value in zip(words, values, strict=True))


def _dsjson(place: Path, rounds: int) -> dict[str, float]:
    """Requests of 10 candidates: 20 features of the context, 5 of each action, which repeat or are all different."""
    rng = np.random.default_rng(3)
    articles = [_article(rng, i) for i in range(ARTICLES)]
    figures = {}
    for what in ("the same articles", "new articles"):
        path, few = place / "log.dsjson", place / "few.dsjson"
        lines = [
            _request(rng, rng.choice(articles, 10, replace=False).tolist())
            if what == "the same articles"
            else _request(rng, [_article(rng, int(rng.integers(10**6))) for _ in range(10)])
            for _ in range(REQUESTS)
        ]
        path.write_text("".join(lines))
        few.write_text("".join(lines[:100]))
        seconds = [_child("table", path, few)["seconds"] for _ in range(rounds)]
        figures[f"DSJSON, {what}, thousand requests a second"] = REQUESTS / float(np.median(seconds)) / 1000.0
    return figures


def _article(rng: np.random.Generator, number: int) -> str:
    return json.dumps({"item": _numbers(rng, "g", 4) | {"id": f"article{number}"}})


def _numbers(rng: np.random.Generator, letter: str, count: int) -> dict[str, float]:
    names = rng.choice(2000, count, replace=False).tolist()
    return {f"{letter}{name}": value for name, value in zip(names, rng.random(count).round(3).tolist(), strict=True)}


def _request(rng: np.random.Generator, articles: list[str]) -> str:
    chosen = int(rng.integers(10))
    line = {"_label_cost": -1.0, "_label_probability": 0.19, "_label_Action": chosen + 1, "_labelIndex": chosen}
    line |= {"o": [{"v": 1.0, "EventId": "13118d9b4c114f8485d9dec417e3aefe", "ActionTaken": False}]}
    line |= {"Timestamp": "2026-11-16T16:31:29.2460000Z", "Version": "1", "EventId": "13118d9b4c114f8485d9dec417e3aefe"}
    line |= {"a": [chosen + 1, *(k for k in range(1, 11) if k != chosen + 1)], "p": [0.19, *[0.09] * 9]}
    context = json.dumps({"user": _numbers(rng, "f", 20)})[:-1] + f', "_multi": [{", ".join(articles)}]' + "}"
    return json.dumps(line)[:-1] + f', "c": {context}' + "}\n"


if __name__ == "__main__":
    print(run())
