"""Policies that need no learning: any policy worth its name must beat them."""

import numpy as np

from poem.arrays import BoolArray, FloatArray
from poem.data import BanditLog
from poem.report.changes import FEW_ROWS
from poem.structures import Available

MOST_OUTPUTS = 2**60  # up to which a uniform choice among them is worth a line
SUPPORT = FEW_ROWS  # rows that an output needs to be compared as the only one


def trivial_policies(log: BanditLog) -> dict[str, FloatArray]:
    """Return the probabilities that a uniform choice, and the best single output, give to what was logged."""
    named: dict[str, FloatArray] = {}
    if log.available is not None:
        named["uniform"] = 1.0 / log.available.counts()[log.context]
    elif log.structure.n_outputs <= MOST_OUTPUTS:
        named["uniform"] = np.full(len(log), 1.0 / log.structure.n_outputs)
    best = _best_alone(log)
    if best is not None:
        row, always = best
        named[f"always {log.structure.phrase(log.y[row], log.labels)}"] = always
    return named


def _best_alone(log: BanditLog) -> tuple[int, FloatArray] | None:
    """Return a row with the output that looks best as the only one, and which rows have it; rare ones do not count.

    Nor do those that are not available in every row.
    """
    _, first, code = np.unique(log.structure.keys(log.y), axis=0, return_index=True, return_inverse=True)
    largest = np.full(len(first), -np.inf)
    np.maximum.at(largest, code, -log.log_propensity)
    weight: FloatArray = np.exp(-log.log_propensity - largest[code])  # a mean does not depend on their scale
    rows, total, cost = np.bincount(code), np.bincount(code, weight), np.bincount(code, weight * log.loss)
    possible = rows >= SUPPORT
    if log.available is not None:
        possible &= _always_available(log, log.available)[log.y[first]]
    mean = np.divide(cost, total, out=np.full(len(first), np.inf), where=possible)
    best = int(np.argmin(mean))
    return (int(first[best]), (code == best).astype(np.float64)) if np.isfinite(mean[best]) else None


def _always_available(log: BanditLog, available: Available) -> BoolArray:
    seen = np.bincount(log.context, minlength=log.n_contexts) > 0
    there = np.bincount(available.action[np.repeat(seen, available.counts())], minlength=len(log.labels))
    return np.asarray(there == int(seen.sum()))
