"""Judging a policy on a million rows, against one bare scipy product; the bootstrap; and the memory of both."""

import time
from pathlib import Path

import numpy as np

import poem
from benchmarks.data import FEATURES, LABELS, tmc_like
from benchmarks.timing import ratio, side_by_side
from poem.models import CrossFitted, LossModel
from poem.policies.policy import Policy
from poem.structures import MultiLabel

CONTEXTS, REPLAY = 250_000, 4


def resident(key: str) -> int:
    """Return a size of this process from the system's own books, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


def run(rounds: int = 5) -> dict[str, float]:
    """Print and return the ratios to X @ W, the seconds of the bootstrap, and the peak memory over the log's."""
    log = tmc_like(REPLAY, contexts=CONTEXTS)
    rng = np.random.default_rng(1)
    W = 0.05 * rng.normal(size=(FEATURES, LABELS))
    policy = Policy(MultiLabel(LABELS), np.vstack([W, np.full(LABELS, -1.4)]), True, log.labels)
    # Fitting the loss model is not what is measured: any weights will do.
    models = tuple(LossModel(0.01 * rng.normal(size=(FEATURES + 1, LABELS + 1)), 4.0) for _ in range(2))
    model = CrossFitted(models, rng.integers(0, 2, CONTEXTS)[log.context])
    contenders = {"scipy": lambda: log.X @ W}
    for name in ("IPS", "SNIPS", "DR"):
        contenders[name] = lambda name=name: poem.evaluate(policy, log, name, model=model)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far is forgotten
    seconds = side_by_side(contenders, rounds)
    peak = (resident("VmHWM") - before + log.nbytes) / log.nbytes
    alone = log.with_groups(np.arange(len(log)))  # the hardest case: every row is a unit of its own
    begin = time.perf_counter()
    poem.evaluate(policy, alone, "SNIPS", interval="bootstrap", resampling=poem.Resampling(replicates=1000))
    bootstrap = time.perf_counter() - begin
    print(f"evaluation of a million rows, s: { {name: round(float(np.median(s)), 2) for name, s in seconds.items()} }")
    figures = {f"{name} of a million rows / scipy X @ W": ratio(seconds, name, "scipy") for name in contenders}
    del figures["scipy of a million rows / scipy X @ W"]
    return figures | {"bootstrap, 1000 × a million rows, s": bootstrap, "evaluation, peak memory / the log": peak}


if __name__ == "__main__":
    print(run())
