"""Are losses sums over labels? Find labels that change the loss together.

If the logging policy chooses labels independently, and expected losses are sums over labels, then

    (yᵢ − pᵢ)·(yⱼ − pⱼ)·(loss − m(x, y))

has a mean of 0 for each pair of labels and every sum m over labels that was fixed beforehand, in each context. If its
mean is another, the two labels interact. This is decided by bets, which hold for any number of rows and any tail.

Two labels may help each other in some contexts and harm each other in others. So rows are also weighed by
(h − p)ᵢ·(h − p)ⱼ: by how much a policy h, which has not seen them, changes both. And many pairs may interact too little
to be found one by one, as in F1 or in losses of 0 or 1 for a whole set: so the sum over all pairs, weighed like this,
has a bet of its own.

Three or more labels may do together what no two of them do, and labels may hardly ever be chosen together: neither is
seen.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

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

    ``moved`` is h − p for a policy h that has not seen these rows. Losses are on a scale of [−1, 0].
    """

    labels: FloatArray
    moved: FloatArray
    error: FloatArray
    units: IntArray

    @cached_property
    def weighed(self) -> FloatArray:
        """The deviations, weighed by how much the policy changes the labels."""
        return self.labels * self.moved

    def by_unit(self, values: FloatArray) -> FloatArray:
        """Return the sums over each unit's rows, (units, columns)."""
        order, starts = self._units
        if len(starts) == len(values):
            return values
        return np.asarray(np.add.reduceat(values[order], starts, axis=0))

    @cached_property
    def sizes(self) -> FloatArray:
        """The number of rows of each unit."""
        return self.by_unit(np.ones((len(self.error), 1)))[:, 0]

    @cached_property
    def _units(self) -> tuple[IntArray, IntArray]:
        order = np.argsort(self.units, kind="stable")
        return order, np.flatnonzero(np.diff(self.units[order], prepend=-1))


def interacting(parts: Sequence[Deviations]) -> tuple[int, ...] | None:
    """Return the two labels that surely interact; () if only all pairs together do, and None if losses may be sums.

    Of many labels, only those are compared that vary most where the policy of the last part changes them.
    """
    chosen = np.sort(np.argsort(-(parts[-1].weighed ** 2).sum(axis=0), kind="stable")[:MOST_LABELS])
    ways = [[(part, part.labels) for part in parts], *([(part, part.weighed)] for part in parts)]
    looks = 2.0 * (len(ways) + len(parts)) / CHANCE  # each on both sides
    pairs = max(len(chosen) * (len(chosen) - 1) // 2, 1)
    won, found = np.log(looks * pairs), None
    for way in ways:
        won, found = _best_pair(way, chosen, won, found)
    if found is None and any(_capital_of_all(part) >= np.log(looks) for part in parts):
        return ()
    return found


def _best_pair(
    way: list[tuple[Deviations, FloatArray]], chosen: IntArray, won: float, found: tuple[int, ...] | None
) -> tuple[float, tuple[int, ...] | None]:
    """Return the pair whose bets won most, if that is more than another won."""
    reach = max(1.0, *(_largest(part.error) for part, _ in way))
    sizes = np.concatenate([part.sizes for part, _ in way])
    for place, label in enumerate(chosen[:-1].tolist()):
        others = chosen[place + 1 :]
        sums = np.concatenate([part.by_unit(_products(part, values, label, others)) for part, values in way])
        for other in np.flatnonzero(np.abs(sums.sum(axis=0)) >= WORTH_A_BET * np.sqrt((sums**2).sum(axis=0))):
            capital = _capital(sums[:, other], reach, sizes)
            if capital >= won:
                won, found = capital, (label, int(others[other]))
    return won, found


def _products(part: Deviations, values: FloatArray, label: int, others: IntArray) -> FloatArray:
    return values[:, others] * (values[:, label] * part.error)[:, None]


def _capital_of_all(part: Deviations) -> float:
    """Return what bets on the sum over all pairs won."""
    together = 0.5 * (part.weighed.sum(axis=1) ** 2 - (part.weighed**2).sum(axis=1))
    sums = part.by_unit((together * part.error)[:, None])[:, 0]
    reach = 0.5 * _largest(np.abs(part.moved).sum(axis=1)) ** 2 * max(1.0, _largest(part.error))
    return _capital(sums, reach, part.sizes) if reach > 0.0 else 0.0


def _largest(values: FloatArray) -> float:
    return float(np.abs(values).max(initial=0.0))


def _capital(sums: FloatArray, reach: float, sizes: FloatArray) -> float:
    """Return the logarithm of what is won by bets that the mean is above 0, or below it."""
    bets = Bets.everywhere(FINEST)
    return max(log_capital(side, -reach, 0.0, bets, sizes) for side in (np.ascontiguousarray(sums), -sums))
