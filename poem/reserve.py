"""Which of a log's units are learnt from, and which are kept to certify on."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray
from poem.log import BanditLog

Order = Literal["time", "rows", "random", "mixed", "given"]

BLOCKS = 10  # of rows whose contexts are compared
DIRECTIONS = 64  # in which they are compared, at the most
SORTED = 1e-3  # p-value under which contexts are taken to change along the rows

WORDS: dict[Order, str] = {
    "time": "{units} are independent, or rows are in the order of their times (the latest certify)",
    "rows": "{units} are independent, or rows are in the order of time (the last ones certify)",
    "random": "{units} are independent, and the logging policy did not learn from its own log (contexts change along "
    "the rows and there are no times, so the ones that certify were drawn at random)",
    "mixed": "{units} are independent, and none of the loggers was learnt from this log",
    "given": "{units} of the log that certifies are independent, or its rows are in the order of time",
}


@dataclass(frozen=True)
class Reserve:
    """A log's independent units in the order in which they are used: the first are learnt from, the last certify.

    A logging policy that learns while it logs is no obstacle to this: every row that certifies comes after all that was
    learnt from.

    Attributes
    ----------
    log : BanditLog
    place : (n,) int
        The place of each row's unit.
    units : int
    order : "time", "rows", "random" or "mixed"
    """

    log: BanditLog
    place: IntArray
    units: int
    order: Order

    @classmethod
    def of(cls, log: BanditLog, seed: int) -> "Reserve":
        """Put the units of a log in order: by time, else by rows, unless these are sorted by something else.

        Balanced propensities are those of a mixture, of which the last rows alone are no sample.
        """
        units = log.units()
        count = int(units.max()) + 1
        order: Order = "time" if log.time is not None else "random" if _is_sorted(log, seed) else "rows"
        order = "mixed" if log.propensities == "balanced" else order
        if order in ("random", "mixed"):
            return cls(log, np.random.default_rng([seed, 8]).permutation(count)[units], count, order)
        moment = np.arange(len(log)) if log.time is None else np.argsort(np.argsort(log.time, kind="stable"))
        first = np.full(count, len(log))
        np.minimum.at(first, units, moment)
        place = np.empty(count, dtype=np.int64)
        place[np.argsort(first)] = np.arange(count)
        return cls(log, place[units], count, order)

    def cut(self, kept: int) -> tuple[BanditLog, BanditLog]:
        """Return what is learnt from, and the ``kept`` units that certify, in order."""
        learnt = self.units - kept
        held = np.flatnonzero(self.place >= learnt)
        return self.log.take(self.place < learnt), self.log.take(held[np.argsort(self.place[held], kind="stable")])


def _is_sorted(log: BanditLog, seed: int) -> bool:
    """Tell whether contexts change along the rows of a log (an analysis of variance in a few directions)."""
    seen, first = np.unique(log.context, return_index=True)
    contexts = seen[np.argsort(first)]
    if len(contexts) < 3 * BLOCKS:
        return False
    rng = np.random.default_rng([seed, 9])
    width = log.n_features
    directions = np.eye(width) if width <= DIRECTIONS else rng.choice([-1.0, 1.0], size=(width, DIRECTIONS))
    values = np.asarray(log.X @ directions)[contexts]
    return bool(_p_values(values).min(initial=1.0) * values.shape[1] < SORTED)


def _p_values(values: FloatArray) -> FloatArray:
    """Return for each column the chance that the means of its blocks differ so much."""
    n, block = len(values), np.arange(len(values)) * BLOCKS // len(values)
    sizes = np.bincount(block)
    means = np.stack([np.bincount(block, weights=column) for column in values.T], axis=1) / sizes[:, None]
    between = (sizes[:, None] * (means - values.mean(axis=0)) ** 2).sum(axis=0) / (BLOCKS - 1)
    within = np.maximum(((values - means[block]) ** 2).sum(axis=0) / (n - BLOCKS), 0.0)
    usable = values.std(axis=0) > 1e-12
    ratio = between[usable] / np.maximum(within[usable], 1e-300)
    return np.asarray(special.fdtrc(BLOCKS - 1, n - BLOCKS, ratio))
