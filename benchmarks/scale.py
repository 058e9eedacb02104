"""Logs larger than memory: time and peak memory of each stage against the number of rows.

python -m benchmarks scale                                  1 and 2 million rows, and passes over shards beside memory
python -m benchmarks.scale --folder DIR --rows 10000000 [--stages make,pack,inspect,fit,evaluate,pass,dask,csv]

A row has 20 of 1,000 features and one of 20 classes; ``csv`` packs as many rows of 30 numbers from text. Each stage is
a process of its own; what it prints is a line of JSON with seconds, rows per second and peak memory. Files stay in DIR,
so that stages can be run one by one; a stage that is repeated overwrites. 100 million rows take about 40 GB of disk.
"""

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq

FEATURES, NONZEROS, CLASSES = 1_000, 20, 20
NUMBERS = 30  # columns of a CSV file
PART = 1_000_000  # rows of a part file
MEMORY = "4GB"
PASSES = 3
STAGES = ("make", "pack", "inspect", "fit", "evaluate", "pass")


# ---- a log with known truth -------------------------------------------------------------------------


def part_of(number: int, rows: int) -> pa.Table:
    """Return some rows of a log: the loss is 0 for the right class, which a linear softmax draws."""
    rng = np.random.default_rng([number, 18])
    width = FEATURES // NONZEROS
    index = (rng.integers(0, width, (rows, NONZEROS)) + width * np.arange(NONZEROS)).astype(np.int32)
    value = rng.integers(1, 9, (rows, NONZEROS)) / 8.0
    truth = np.random.default_rng(7).normal(size=(FEATURES, CLASSES))
    scores = (
        np.einsum("ij,ijk->ik", value, truth[index], optimize=True) if rows < 1000 else _scores(index, value, truth)
    )
    right = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    odds = np.exp(0.3 * scores)
    chance = 0.9 * odds / odds.sum(axis=1, keepdims=True) + 0.1 / CLASSES
    chosen = np.minimum((chance.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), CLASSES - 1)
    borders = pa.array(np.arange(0, rows * NONZEROS + 1, NONZEROS, dtype=np.int32))
    return pa.table(
        {
            "x.index": pa.ListArray.from_arrays(borders, pa.array(index.ravel())),
            "x.value": pa.ListArray.from_arrays(borders, pa.array(value.ravel())),
            "output": chosen,
            "loss": (chosen != right).astype(np.float64),
            "propensity": chance[np.arange(rows), chosen],
        }
    )


def _scores(index: np.ndarray, value: np.ndarray, truth: np.ndarray) -> np.ndarray:
    import scipy.sparse as sp

    borders = np.arange(0, index.size + 1, NONZEROS)
    return np.asarray(sp.csr_array((value.ravel(), index.ravel(), borders), shape=(len(index), FEATURES)) @ truth)


# ---- stages -----------------------------------------------------------------------------------------


def make(folder: Path, rows: int) -> dict[str, float]:
    """Write the part files."""
    parts = folder / "parts"
    shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir()
    for number in range(-(-rows // PART)):
        some = min(PART, rows - number * PART)
        pq.write_table(part_of(number, some), parts / f"part-{number:04d}.parquet", compression="zstd")
    return {}


def pack(folder: Path, rows: int) -> dict[str, float]:
    """Pack them."""
    import poem

    shutil.rmtree(folder / "packed", ignore_errors=True)
    log = poem.pack_log(folder / "parts", folder / "packed", progress=True)
    return {"shards": len(log.shards), "bytes per row": sum(note.bytes for note in log.shards) / rows}


def inspect(folder: Path, rows: int) -> dict[str, float]:
    """Inspect the packed log."""
    import poem

    health = poem.inspect(poem.open_log(folder / "packed", memory=MEMORY))
    return {"fit": float(health.fit)}


def fit(folder: Path, rows: int) -> dict[str, float]:
    """Fit with default settings, and keep the policy."""
    import poem

    found = poem.fit(poem.open_log(folder / "packed", memory=MEMORY), loss_bounds=(0, 1), progress=True)
    print(found.explain(), file=sys.stderr)
    if found.policy is not None:
        found.policy.save(folder / "policy.poem")
    certificate = found.certificate
    return {"gain at least": 0.0 if certificate is None else certificate.gain_at_least}


def evaluate(folder: Path, rows: int) -> dict[str, float]:
    """Evaluate the policy by all estimators on the whole log."""
    import poem

    policy = poem.load_policy(folder / "policy.poem")
    found = poem.evaluate({"new": policy}, poem.open_log(folder / "packed", memory=MEMORY), progress=True)
    print(found, file=sys.stderr)
    return {"DR": found["new", "DR"].value}


def _risk(folder: Path, backend: object):  # type: ignore[no-untyped-def]
    import poem
    from poem.objectives import ShardedRisk, ShardObjective

    log = poem.open_log(folder / "packed", memory=MEMORY)
    return ShardedRisk(ShardObjective(log, poem.IPS(10.0), (0.0, 1.0), True), lam=0.1, backend=backend)  # type: ignore[arg-type]


def _seconds(problem, w: np.ndarray) -> float:  # type: ignore[no-untyped-def]
    begin = time.perf_counter()
    problem(w)
    return time.perf_counter() - begin


def passes(folder: Path, rows: int) -> dict[str, float]:
    """Time one pass of objective and gradient over the shards, and over the same rows in memory if they are few."""
    import poem
    from poem.backends import Threads
    from poem.compute import OneBlasThread
    from poem.compute import Threads as Pool
    from poem.data import Layout
    from poem.objectives import Risk

    packed = _risk(folder, Threads())
    w = 0.01 * np.random.default_rng(0).normal(size=packed.shape)
    problems = {"shards": packed}
    if rows <= 4 * PART:
        log = poem.open_log(folder / "packed").to_log()
        layout = Layout(log, log.structure, True)
        problems["memory"] = Risk(layout, layout.loss - 1.0, poem.IPS(10.0), lam=0.1, threads=Pool(2))  # type: ignore[assignment]
    with OneBlasThread():
        values = {name: problem(w)[0] for name, problem in problems.items()}  # warm: files are in the page cache
        found = {name: min(_seconds(problem, w) for _ in range(PASSES)) for name, problem in problems.items()}
    assert len(set(np.round(list(values.values()), 10))) == 1, values
    per_row = {f"{name}, ns per row": 1e9 * seconds / rows for name, seconds in found.items()}
    return per_row | ({"shards / memory": found["shards"] / found["memory"]} if "memory" in found else {})


def dask(folder: Path, rows: int) -> dict[str, float]:
    """Time a pass of two Dask workers with one thread each beside two threads of this process."""
    from distributed import Client, LocalCluster

    from poem.backends import Dask, Threads

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        workers, threads = _risk(folder, Dask(client)), _risk(folder, Threads(2))
        w = 0.01 * np.random.default_rng(0).normal(size=threads.shape)
        one, two = threads(w), workers(w)
        assert one[0] == two[0]
        assert np.array_equal(one[1], two[1])
        pairs = [(_seconds(workers, w), _seconds(threads, w)) for _ in range(PASSES)]
    best = np.min(pairs, axis=0)
    return {"workers, s": best[0], "threads, s": best[1], "workers / threads": best[0] / best[1]}


def csv(folder: Path, rows: int) -> dict[str, float]:
    """Write a CSV file of rounded numbers, and pack it."""
    import poem

    rng = np.random.default_rng(18)
    table: dict[str, np.ndarray] = {f"x{number}": np.round(rng.normal(size=rows), 4) for number in range(NUMBERS)}
    table |= {"output": rng.integers(0, CLASSES, rows), "loss": rng.integers(0, 2, rows)}
    pc.write_csv(pa.table(table | {"propensity": np.full(rows, 1.0 / CLASSES)}), folder / "log.csv")
    shutil.rmtree(folder / "from csv", ignore_errors=True)
    begin = time.perf_counter()
    poem.pack_log(folder / "log.csv", folder / "from csv")
    return {"packed per second": rows / (time.perf_counter() - begin)}


WORK = {
    "make": make,
    "pack": pack,
    "inspect": inspect,
    "fit": fit,
    "evaluate": evaluate,
    "pass": passes,
    "dask": dask,
    "csv": csv,
}


# ---- running them -----------------------------------------------------------------------------------


def measured(name: str, folder: Path, rows: int) -> dict[str, float]:
    """Run a stage in a process of its own; return what it says, its seconds, and its peak memory in GB."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.scale", "--folder", str(folder), "--rows", str(rows), "--alone", name]
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{name} ended with status {status}")
        out.seek(0)
        found = json.loads(out.read())
    seconds = time.perf_counter() - begin
    return {"seconds": seconds, "rows per second": rows / seconds, "peak GB": usage.ru_maxrss / 1e6} | found


def run() -> dict[str, float]:
    """Return the figures of small logs."""
    figures = {}
    with tempfile.TemporaryDirectory() as place:
        found = measured("csv", Path(place), PART)
        figures["packing CSV, 1 M rows, thousand rows per second"] = found["packed per second"] / 1e3
        for millions in (1, 2):
            rows = millions * PART
            for name in ("make", "pack", "pass"):
                found = measured(name, Path(place), rows)
                print(json.dumps({"stage": name, "rows": rows} | found))
                if name == "pack":
                    figures[f"packing Parquet, {millions} M rows, thousand rows per second"] = (
                        rows / found["seconds"] / 1e3
                    )
                if name == "pass":
                    figures[f"pass over shards / in memory, {millions} M rows"] = found["shards / memory"]
    return figures


def main() -> None:
    """Run the stages that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--stages", default=",".join(STAGES))
    parser.add_argument("--alone", choices=tuple(WORK), help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    if options.alone:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        print(json.dumps(WORK[options.alone](options.folder, options.rows)))
        return
    for name in options.stages.split(","):
        print(
            json.dumps({"stage": name, "rows": options.rows} | measured(name, options.folder, options.rows)), flush=True
        )


if __name__ == "__main__":
    main()
