"""Kill workers and drivers with SIGKILL at random moments of an L-BFGS run over shards, and compare the weights.

Run on request: ``python -m benchmarks.kill_workers`` (about five minutes on two cores), or with fewer and smaller runs
``python -m benchmarks.kill_workers --kills 3 --drivers 1 --rows 20000``. It prints one line per run and ends with
status 1 if any run has failed or has other weights than the one that nobody disturbed.

* ``--kills`` runs, in each of which one worker is killed at a random moment (its nanny starts another).
* One run in which a worker is killed every ``--interval`` seconds.
* ``--drivers`` runs in a process of their own that is killed at a random moment and started again.

The objective is POEM's, with clipped weights and a variance penalty.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import poem
from poem.backends import Backend, Dask
from poem.compute import OneBlasThread
from poem.compute import Threads as Pool
from poem.objectives import ShardedRisk, ShardObjective
from poem.optimizers import LBFGS, FileKeeper, Trace
from poem.packed import PackedLog, PackWriter, open_log, pack_folder
from poem.progress import Progress

RULES = LBFGS(ftol=0.0, gtol=0.0, max_iterations=20)
FEATURES, CLASSES = 100, 5
L2 = 1e-6
WORKERS = 2


# ---- the problem ------------------------------------------------------------------------------------


def problem_of(log: PackedLog, backend: Backend) -> ShardedRisk:
    """Return the problem that is minimised: POEM's objective."""
    return ShardedRisk(ShardObjective(log, poem.IPS(10.0), (0.0, 1.0), True), lam=0.5, l2=L2, backend=backend)


def minimised(folder: Path, backend: Backend, keeper: FileKeeper | None = None) -> Trace:
    """Return where L-BFGS ends."""
    with OneBlasThread():
        return RULES.minimize(problem_of(open_log(folder), backend), keeper=keeper)


def pack(folder: Path, rows: int, shards: int) -> None:
    """Write a log of random contexts."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(FEATURES, CLASSES))
    with pack_folder(folder):
        writer = PackWriter(folder, shards, Pool())
        for first in range(0, rows, 10_000):
            size = min(10_000, rows - first)
            X = rng.normal(size=(size, FEATURES)) * np.logspace(0.0, -2.0, FEATURES)  # so that it takes many steps
            y = rng.integers(0, CLASSES, size)
            loss = 1.0 / (1.0 + np.exp((X @ truth)[np.arange(size), y]))
            propensity = np.full(size, 1.0 / CLASSES)
            writer.add(poem.BanditLog(X, y, loss=loss, propensity=propensity, labels=range(CLASSES)))
        writer.finish(Progress("pack", shards, False))


# ---- workers that are killed ------------------------------------------------------------------------


@contextmanager
def killer(cluster: Any, waits: Iterator[float]) -> Iterator[list[float]]:
    """Kill a random worker after each of some times, until the block ends; give the moments."""
    over, moments, begin = threading.Event(), [], time.perf_counter()

    def kill() -> None:
        for wait in waits:
            if over.wait(wait):
                return
            ready = {one["name"] for one in cluster.scheduler_info["workers"].values()}  # not those that are starting
            pids = [nanny.pid for name, nanny in cluster.workers.items() if name in ready and nanny.pid]
            if pids:
                os.kill(random.choice(pids), signal.SIGKILL)
                moments.append(time.perf_counter() - begin)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    try:
        yield moments
    finally:
        over.set()
        thread.join()


def killed_workers(folder: Path, cluster: Any, expected: Trace, kills: int, interval: float) -> list[bool]:
    """Run with one kill each, and once with many; return which runs have the same weights."""
    found = []
    with Dask(cluster.scheduler_address) as backend:
        minimised(folder, backend)  # workers import poem, and check the shards
        undisturbed = minimised(folder, backend)
        print(f"nobody killed: {undisturbed.seconds:.1f} s, {said(undisturbed, expected)}", flush=True)
        for number in range(kills):
            backend.client.wait_for_workers(WORKERS, timeout=600)
            moment = random.uniform(0.0, 0.9 * undisturbed.seconds)
            with killer(cluster, iter([moment])) as moments:
                trace = minimised(folder, backend)
            found.append(same(trace, expected))
            when = f"at {moments[0]:.1f} s" if moments else "never: it had ended"
            print(f"{number + 1:2}: a worker killed {when}: {trace.seconds:.1f} s, {said(trace, expected)}", flush=True)
        backend.client.wait_for_workers(WORKERS, timeout=600)
        with killer(cluster, iter(lambda: interval, None)) as moments:
            trace = minimised(folder, backend)
        found.append(same(trace, expected))
        print(f"{len(moments)} workers killed in one run: {trace.seconds:.1f} s, {said(trace, expected)}", flush=True)
    return found


# ---- drivers that are killed ------------------------------------------------------------------------


def killed_drivers(folder: Path, address: str, expected: Trace, count: int) -> list[bool]:
    """Run in a process that is killed and started again; return which runs have the same weights."""
    if not count:
        return []
    out, begin = folder.parent / "whole", time.perf_counter()
    driver(folder, address, out).wait()
    seconds, found = time.perf_counter() - begin, []
    for number in range(count):
        out = folder.parent / f"driver-{number}"
        process, moment = driver(folder, address, out), random.uniform(0.2, 0.95) * seconds
        time.sleep(moment)
        process.send_signal(signal.SIGKILL)
        process.wait()
        kept = FileKeeper(out.with_suffix(".state"), "kill_workers").load()
        step = 0 if kept is None else int(kept["counts"][0])
        driver(folder, address, out).wait()
        trace = read_trace(out)
        found.append(same(trace, expected))
        print(f"a driver killed at {moment:.1f} s, resumed after step {step}: {said(trace, expected)}", flush=True)
    return found


def driver(folder: Path, address: str, out: Path) -> subprocess.Popen[bytes]:
    """Start a run in a process of its own, which keeps its state beside ``out``."""
    return subprocess.Popen([sys.executable, "-m", "benchmarks.kill_workers", "--drive", folder, address, out])


def drive(folder: Path, address: str, out: Path) -> None:
    """Be that process."""
    with Dask(address) as backend:
        trace = minimised(folder, backend, FileKeeper(out.with_suffix(".state"), "kill_workers"))
    np.save(out.with_suffix(".npy"), trace.weights)
    out.write_text(json.dumps([trace.value, trace.steps, trace.seconds]))


def read_trace(out: Path) -> Trace:
    """Return how a run in another process has ended."""
    value, steps, seconds = json.loads(out.read_text())
    return Trace(np.load(out.with_suffix(".npy")), value, steps, seconds, False, "")


def same(trace: Trace, expected: Trace) -> bool:
    """Tell whether two runs have ended at the very same point after as many steps."""
    weights = np.array_equal(trace.weights, expected.weights)
    return weights and (trace.value, trace.steps) == (expected.value, expected.steps)


def said(trace: Trace, expected: Trace) -> str:
    """Say whether they have."""
    off = float(np.abs(trace.weights - expected.weights).max())
    return "the same weights" if same(trace, expected) else f"OTHER WEIGHTS, {off:.1e} off, {trace.steps} steps"


def run(
    kills: int = 20, drivers: int = 5, rows: int = 100_000, shards: int = 16, interval: float = 3.0
) -> dict[str, float]:
    """Print every run; return the shares of runs that have ended with the same weights."""
    import dask
    import distributed

    random.seed(0)
    dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"})  # workers come back, if slowly
    place = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0, "silence_logs": 50}
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work) / "packed"
        pack(folder, rows, shards)
        expected = minimised(folder, poem.Threads(WORKERS))
        print(f"{WORKERS} threads: {expected.seconds:.1f} s for {expected.steps} steps, {rows:,} rows", flush=True)
        with distributed.LocalCluster(n_workers=WORKERS, threads_per_worker=1, processes=True, **place) as cluster:
            by_worker = killed_workers(folder, cluster, expected, kills, interval)
            by_driver = killed_drivers(folder, cluster.scheduler_address, expected, drivers)
    print(f"{sum(by_worker)} of {len(by_worker)} runs with killed workers, ", end="")
    print(f"{sum(by_driver)} of {len(by_driver)} with killed drivers ended with the same weights.")
    figures = {"same weights, workers killed": by_worker, "same weights, driver killed": by_driver}
    return {name: float(np.mean(found)) for name, found in figures.items() if found}


def main() -> None:
    """Run with the options of the command line."""
    if sys.argv[1:2] == ["--drive"]:
        drive(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in {"kills": 20, "drivers": 5, "rows": 100_000, "shards": 16}.items():
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--interval", type=float, default=3.0)
    sys.exit(min(run(**vars(parser.parse_args())).values(), default=1.0) < 1.0)


if __name__ == "__main__":
    main()
