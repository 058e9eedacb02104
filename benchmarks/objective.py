"""The whole objective and gradient against two bare scipy products."""

import numpy as np
from threadpoolctl import threadpool_limits

import poem
from benchmarks.data import LABELS, tmc_like
from benchmarks.timing import ratio, side_by_side
from poem.compute.kernels import Threads
from poem.data.layout import Layout
from poem.evaluation.calibration import calibrate
from poem.objectives.risk import Risk
from poem.structures import MultiLabel


def risk_over(log: poem.BanditLog, threads: int) -> Risk:
    """Return POEM's objective over a log."""
    calibration = calibrate(log, poem.IPS(), (0, LABELS))
    layout = Layout(log, MultiLabel(LABELS), intercept=True)
    estimator = poem.IPS(calibration.clip)
    return Risk(layout, calibration.scale(layout.loss), estimator, lam=1.0, threads=Threads(threads))


def run(rounds: int = 25) -> dict[str, float]:
    """Print and return the ratios for two threads, and that of replay 64 to replay 4."""
    four, sixty_four = tmc_like(4), tmc_like(64)
    X, rng = four.X, np.random.default_rng(1)
    w = 0.05 * rng.normal(size=(X.shape[1] + 1, LABELS))
    W, D = w[:-1].copy(), rng.normal(size=(X.shape[0], LABELS))
    risks = {1: risk_over(four, 1), 2: risk_over(four, 2), 64: risk_over(sixty_four, 2)}
    with threadpool_limits(1, user_api="blas"):
        seconds = side_by_side(
            {
                "scipy": lambda: (X @ W, X.T @ D),
                "one thread": lambda: risks[1](w),
                "two threads": lambda: risks[2](w),
                "replay 64": lambda: risks[64](w),
            },
            rounds,
        )
    figures = {
        "objective / two scipy products, two threads": ratio(seconds, "two threads", "scipy"),
        "objective / two scipy products, one thread": ratio(seconds, "one thread", "scipy"),
        "replay 64 / replay 4": ratio(seconds, "replay 64", "two threads"),
    }
    milliseconds = {name: f"{1000 * np.median(values):.1f}" for name, values in seconds.items()}
    print(f"objective and gradient, ms: {milliseconds}")
    return figures
