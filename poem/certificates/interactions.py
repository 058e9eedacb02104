"""Are losses sums over labels? Find pairs of labels that change the loss together.

If the logging policy chooses labels independently, and expected losses are sums over labels, then

    (yᵢ − pᵢ)·(yⱼ − pⱼ)·(loss − m(x, y))

has a mean of 0 for each pair of labels and every sum m over labels that was fixed beforehand, in each context. If its
mean is another, the two labels interact. This does not see what only three or more labels do together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray

MOST_LABELS = 50  # those that vary most
CHANCE = 0.01  # how often sums may be called something else
LEAST_UNITS = 20.0  # that the spread of an interaction must rest on


@dataclass(frozen=True)
class Deviations:
    """Some rows: their labels minus what is expected of them, (n, labels), the errors of a model, and their units."""

    labels: FloatArray
    error: FloatArray
    units: IntArray


def interacting(parts: Sequence[Deviations]) -> tuple[int, int] | None:
    """Return the two labels that interact most, if they surely do; None if all losses may be sums over labels."""
    variance = np.sum([(part.labels**2).sum(axis=0) for part in parts], axis=0)
    chosen = np.sort(np.argsort(-variance, kind="stable")[:MOST_LABELS])
    pairs = len(chosen) * (len(chosen) - 1) // 2
    best: tuple[float, tuple[int, int]] = (0.0, (0, 0))
    for place, label in enumerate(chosen[:-1].tolist()):
        others = chosen[place + 1 :]
        z = _scores([_sums(part, label, others) for part in parts])
        most = int(np.argmax(z))
        best = max(best, (float(z[most]), (label, int(others[most]))))
    return best[1] if 2.0 * special.ndtr(-best[0]) * pairs < CHANCE else None


def _sums(part: Deviations, label: int, others: IntArray) -> FloatArray:
    """Return the sums over each unit's rows, (units, others)."""
    products = part.labels[:, others] * (part.labels[:, label] * part.error)[:, None]
    order = np.argsort(part.units, kind="stable")
    starts = np.flatnonzero(np.diff(part.units[order], prepend=-1))
    return np.asarray(np.add.reduceat(products[order], starts, axis=0))


def _scores(parts: Sequence[FloatArray]) -> FloatArray:
    """Return how many standard errors each interaction is from 0; 0 where few units say so."""
    sums = np.concatenate(parts)
    squares = (sums**2).sum(axis=0)
    rests_on = np.divide(squares**2, (sums**4).sum(axis=0), out=np.zeros(len(squares)), where=squares > 0.0)
    usable = rests_on >= LEAST_UNITS
    errors = np.sqrt(squares)
    return np.asarray(np.divide(np.abs(sums.sum(axis=0)), errors, out=np.zeros(len(squares)), where=usable))
