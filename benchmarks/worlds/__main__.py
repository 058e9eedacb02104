"""How often what poem certifies is false, in worlds whose truth is known.

python -m benchmarks.worlds [--world NAME ...] [--rows N ...] [--logs 400] [--first-seed 0] [--jobs 2] [--out FILE.csv]

A claim is false if a policy was certified and its true gain is not above 0. With --out, every trial is written at
once, and those that the file holds already are not run again. Worlds marked * break an assumption of the certificate
that poem cannot check (bounds taken from heavy-tailed data, repeated contexts that the log does not declare).

Columns: logs; share certified; false claims, and the upper 99% Clopper–Pearson limit of their rate; mean claimed and
mean true gain over certified logs; the best possible gain; how often the interval and the lower bound hold, over all
logs with one; seconds per fit.
"""

import argparse
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from pathlib import Path

import numpy as np
from scipy.stats import beta

from benchmarks.worlds import WORLDS
from benchmarks.worlds.trial import TOLERANCE, Trial, append, read, run_trial

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def upper_limit(count: int, of: int, confidence: float = 0.99) -> float:
    """Return the one-sided Clopper–Pearson limit of a rate."""
    return 1.0 if count >= of else float(beta.ppf(confidence, count + 1, of - count))


def run(wanted: Sequence[tuple[str, int, int]], pool: Executor, out: Path | None) -> list[Trial]:
    """Run trials (world, rows, seed) in the processes of a pool, except those that the file has."""
    done = {(trial.world, trial.n, trial.seed): trial for trial in read(out)}
    missing = [key for key in wanted if key not in done]
    running = [pool.submit(run_trial, *key) for key in missing]
    for count, future in enumerate(as_completed(running), 1):
        trial = future.result()
        append(out, trial)
        done[trial.world, trial.n, trial.seed] = trial
        if sys.stderr.isatty():
            print(f"\r{count}/{len(missing)} {trial.world} {trial.n}\033[K\r", end="", file=sys.stderr, flush=True)
    return [done[key] for key in wanted]


def mean(values: Sequence[float] | Sequence[bool]) -> float:
    """Return the mean, or NaN of nothing."""
    return float(np.mean(values)) if len(values) else float("nan")


def row(trials: Sequence[Trial]) -> str:
    """Return one line about the trials of one world and size."""
    first, sure = trials[0], [trial for trial in trials if trial.certified]
    false = sum(trial.false_claim for trial in trials)
    judged = [trial for trial in trials if np.isfinite(trial.true_gain)]
    inside = [t.low - TOLERANCE <= t.true_gain <= t.high + TOLERANCE for t in judged if not np.isnan(t.low)]
    below = [t.at_least <= t.true_gain + TOLERANCE for t in judged if not np.isnan(t.at_least)]
    figures = [
        f"{first.world + ('' if WORLDS[first.world].promised else ' *'):<20}{first.n:>6}{len(trials):>6}",
        f"{mean([t.certified for t in trials]):>9.0%}{false:>7}{upper_limit(false, len(trials)):>9.1%}",
        f"{mean([t.gain for t in sure]):>9.3f}{mean([t.true_gain for t in sure]):>8.3f}",
        f"{mean([t.best_gain for t in trials]):>8.3f}{mean(inside):>10.0%}{mean(below):>7.0%}",
        f"{mean([t.seconds for t in trials]):>8.2f}",
    ]
    return "".join(figures)


HEADER = (
    f"{'world':<20}{'n':>6}{'logs':>6}{'certified':>10}{'false':>6}{'≤ (99%)':>9}{'claimed':>9}{'true':>8}"
    f"{'best':>8}{'interval':>10}{'bound':>7}{'seconds':>8}"
)


def main() -> None:
    """Run the trials and print one line per world and size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--world", nargs="+", default=list(WORLDS), choices=list(WORLDS), metavar="NAME")
    parser.add_argument("--rows", nargs="+", type=int, help="only these sizes of those that a world has")
    parser.add_argument("--logs", type=int, default=400)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    if asked.logs < 1 or asked.jobs < 1 or asked.first_seed < 0:
        parser.error("--logs and --jobs must be at least 1, --first-seed at least 0")
    if asked.out is not None and not asked.out.absolute().parent.is_dir():
        parser.error(f"--out: {asked.out.parent} is not a folder")
    sizes = {name: WORLDS[name].sizes for name in asked.world}
    for n in asked.rows or ():
        if not any(n in has for has in sizes.values()):
            parser.error(f"--rows {n}: none of these worlds has this size; they have {sizes}")
    print(HEADER, flush=True)
    seeds = range(asked.first_seed, asked.first_seed + asked.logs)
    os.environ.update(dict.fromkeys(THREADS, "1"))  # read by the processes when they start
    with ProcessPoolExecutor(asked.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for name in asked.world:
            for n in WORLDS[name].sizes:
                if asked.rows is None or n in asked.rows:
                    print(row(run([(name, n, seed) for seed in seeds], pool, asked.out)), flush=True)


if __name__ == "__main__":
    main()
