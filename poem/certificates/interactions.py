"""Are losses sums over labels? Find pairs of labels that change the loss together.

If the logging policy chooses labels independently, and expected losses are sums over labels, then

    (yᵢ − pᵢ)·(yⱼ − pⱼ)·(loss − m(x, y))

has a mean of 0 for each pair of labels and every sum m over labels that was fixed beforehand, in each context. If its
mean is another, the two labels interact. This is decided by bets, which hold for any number of rows and any tail.

It does not see what only three or more labels do together, nor what labels do that are hardly ever chosen together.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.estimators import Bets, log_capital

MOST_LABELS = 50  # those that vary most
CHANCE = 0.01  # how often sums may be called something else
WORTH_A_BET = 3.0  # standard errors from 0
FINEST = 0.01  # of the stakes


@dataclass(frozen=True)
class Deviations:
    """Some rows: their labels minus what is expected of them, (n, labels), the errors of a model, and their units.

    Losses are on a scale of [−1, 0].
    """

    labels: FloatArray
    error: FloatArray
    units: IntArray


def interacting(parts: Sequence[Deviations]) -> tuple[int, int] | None:
    """Return the two labels that interact most, if they surely do; None if all losses may be sums over labels."""
    variance = np.sum([(part.labels**2).sum(axis=0) for part in parts], axis=0)
    chosen = np.sort(np.argsort(-variance, kind="stable")[:MOST_LABELS])
    reach = max(1.0, *(float(np.abs(part.error).max(initial=0.0)) for part in parts))
    sizes = np.concatenate([_by_unit(part, np.ones((len(part.error), 1)))[:, 0] for part in parts])
    pairs = len(chosen) * (len(chosen) - 1) // 2
    won, found = np.log(2.0 * max(pairs, 1) / CHANCE), None
    for place, label in enumerate(chosen[:-1].tolist()):
        others = chosen[place + 1 :]
        sums = np.concatenate([_by_unit(part, _products(part, label, others)) for part in parts])
        for other in np.flatnonzero(np.abs(sums.sum(axis=0)) >= WORTH_A_BET * np.sqrt((sums**2).sum(axis=0))):
            capital = _capital(sums[:, other], reach, sizes)
            if capital >= won:
                won, found = capital, (label, int(others[other]))
    return found


def _products(part: Deviations, label: int, others: IntArray) -> FloatArray:
    return part.labels[:, others] * (part.labels[:, label] * part.error)[:, None]


def _by_unit(part: Deviations, values: FloatArray) -> FloatArray:
    """Return the sums over each unit's rows, (units, columns)."""
    order = np.argsort(part.units, kind="stable")
    starts = np.flatnonzero(np.diff(part.units[order], prepend=-1))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0))


def _capital(sums: FloatArray, reach: float, sizes: FloatArray) -> float:
    """Return the logarithm of what is won by bets that the mean is above 0, or below it."""
    bets = Bets.everywhere(FINEST)
    return max(log_capital(side, -reach, 0.0, bets, sizes) for side in (np.ascontiguousarray(sums), -sums))
