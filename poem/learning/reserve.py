"""Which of a log's units are learnt from, and which are kept to certify on."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.data import BanditLog

Order = Literal["time", "rows", "units", "random", "hashed", "mixed", "given"]

BLOCKS = 10  # of rows whose contexts are compared
DIRECTIONS = 64  # in which they are compared, at the most
AT_ONCE = 8  # of them, which are few numbers beside the contexts
SORTED = 1e-3  # p-value under which contexts are taken to change along the rows

KEEPS = "and the policy is better throughout them or not at all"
WORDS: dict[Order, str] = {
    "time": "{units} are independent and alike, or rows are in the order of their times (the latest certify) " + KEEPS,
    "rows": "{units} are independent and alike, or rows are in the order of time (the last ones certify) " + KEEPS,
    "units": "{units} are independent and alike, and the logging policy did not learn from its own log (rows of "
    "different {units} alternate, so that their order does not help)",
    "random": "{units} are independent and alike, and the logging policy did not learn from its own log (contexts "
    "change along the rows and there are no times, so the ones that certify were drawn at random)",
    "hashed": "{units} are independent and alike, and the logging policy did not learn from its own log (those of a "
    "packed log that certify were drawn at random)",
    "mixed": "{units} are independent and alike, and none of the loggers was learnt from this log",
    "given": "{units} of the log that certifies are independent and alike, or its rows are in the order of time "
    + KEEPS,
}


@dataclass(frozen=True)
class Reserve:
    """A log's independent units in the order in which they are used: the first are learnt from, the last certify.

    A logging policy that learns while it logs is no obstacle if units come one after the other: every row that
    certifies then comes after all that was learnt from. Where the rows of units alternate, those of learnt units that
    come after the first row that certifies are left out if there are times.

    Attributes
    ----------
    log : BanditLog
    place : (n,) int
        The place of each row's unit.
    moment : (n,) int or None
        The place of each row in time, if there are times.
    units : int
    order : "time", "rows", "units", "random" or "mixed"
    """

    log: BanditLog
    place: IntArray
    moment: IntArray | None
    units: int
    order: Order

    @classmethod
    def of(cls, log: BanditLog, seed: int) -> "Reserve":
        """Put the units of a log in order: by time, else by rows, unless these are sorted by something else.

        Balanced propensities are those of a mixture, of which the last rows alone are no sample.
        """
        units = log.units()
        count = int(units.max()) + 1
        mixed = log.propensities == "balanced"
        if mixed or (log.time is None and _is_sorted(log, seed)):
            place = np.random.default_rng([seed, 8]).permutation(count)
            return cls(log, place[units], None, count, "mixed" if mixed else "random")
        moment = np.arange(len(log)) if log.time is None else _ranks(log.time)
        first = np.full(count, len(log))
        np.minimum.at(first, units, moment)
        place = _ranks(first)[units]
        in_turn = np.empty(len(log), dtype=np.int64)
        in_turn[moment] = place
        order: Order = "units" if np.any(np.diff(in_turn) < 0) else "rows" if log.time is None else "time"
        return cls(log, place, None if log.time is None else moment, count, order)

    def cut(self, kept: int) -> tuple[BanditLog, BanditLog]:
        """Return what is learnt from, and the ``kept`` units that certify, in order."""
        learnt = self.place < self.units - kept
        held = np.flatnonzero(~learnt)
        if self.moment is not None:
            learnt &= self.moment < self.moment[held].min()
        return self.log.take(learnt), self.log.take(held[np.argsort(self.place[held], kind="stable")])


def _ranks(values: AnyArray) -> IntArray:
    """Return the place of each value among all of them; equal ones keep their order."""
    place = np.empty(len(values), dtype=np.int64)
    place[np.argsort(values, kind="stable")] = np.arange(len(values))
    return place


def _is_sorted(log: BanditLog, seed: int) -> bool:
    """Tell whether contexts change along the rows of a log (an analysis of variance in a few directions)."""
    seen, first = np.unique(log.context, return_index=True)
    contexts = seen[np.argsort(first)]
    if len(contexts) < 3 * BLOCKS or log.n_features == 0:
        return False
    rng = np.random.default_rng([seed, 9])
    width = log.n_features
    directions = np.eye(width) if width <= DIRECTIONS else rng.choice([-1.0, 1.0], size=(width, DIRECTIONS))
    some = np.split(directions, range(AT_ONCE, directions.shape[1], AT_ONCE), axis=1)
    least = min(_p_values(np.asarray(log.X @ part)[contexts]).min(initial=1.0) for part in some)
    return bool(least * directions.shape[1] < SORTED)


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
