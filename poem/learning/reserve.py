"""Which of a log's units are learnt from, and which are kept to certify on."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.data import BanditLog

Order = Literal["time", "late", "rows", "units", "random", "hashed", "mixed", "given"]

BLOCKS = 10  # of rows whose contexts are compared
DIRECTIONS = 64  # in which they are compared, at the most
AT_ONCE = 8  # of them, which are few numbers beside the contexts
SORTED = 1e-3  # p-value under which contexts are taken to change along the rows
SORTED_OUTPUTS = 1e-6  # the same for outputs, whose weights have heavy tails
MOST_LOG = 50.0  # of a weight, so that its square is finite

KEEPS = "and the policy is better throughout them or not at all"
WORDS: dict[Order, str] = {
    "time": "{units} are independent and alike, or rows are in the order of their times (the latest certify) " + KEEPS,
    "late": "{units} are independent and those that come late are like all others, or rows are in the order of their "
    "times " + KEEPS + " (rows of different {units} alternate, and those that were first seen last certify{dropped})",
    "rows": "{units} are independent and alike, or rows are in the order of time (the last ones certify) " + KEEPS,
    "units": "{units} are independent and alike, and the logging policy did not learn from its own log (rows of "
    "different {units} alternate, so those that certify were drawn at random)",
    "random": "{units} are independent and alike, and the logging policy did not learn from its own log (rows are "
    "sorted by contexts, outputs or outcomes and there are no times, so the ones that certify were drawn at random)",
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
    certifies then comes after all that was learnt from. Where the rows of units alternate, that takes times: rows of
    learnt units that come after the first row that certifies are left out. Units that come late are no sample of all
    then (frequent users come early), and the conditions say so. Without times, the order of such units does not help,
    and they are drawn at random.

    Attributes
    ----------
    log : BanditLog
    place : (n,) int
        The place of each row's unit.
    moment : (n,) int or None
        The place of each row in time, if there are times.
    units : int
    order : "time", "late", "rows", "units", "random" or "mixed"
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
        drawn = np.random.default_rng([seed, 8]).permutation(count)[units]
        if mixed or (log.time is None and _is_sorted(log, seed)):
            return cls(log, drawn, None, count, "mixed" if mixed else "random")
        moment = np.arange(len(log)) if log.time is None else _ranks(log.time)
        first = np.full(count, len(log))
        np.minimum.at(first, units, moment)
        place = _ranks(first)[units]
        in_turn = np.empty(len(log), dtype=np.int64)
        in_turn[moment] = place
        alternate, timed = bool(np.any(np.diff(in_turn) < 0)), log.time is not None
        if timed:
            return cls(log, place, moment, count, "late" if alternate else "time")
        return cls(log, drawn if alternate else place, None, count, "units" if alternate else "rows")

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
    """Tell whether rows are in another order than that of time: by contexts, outputs or losses."""
    steps = np.diff(log.loss)
    by_loss = len(log) >= 3 * BLOCKS and bool(steps.any()) and bool((steps >= 0.0).all() or (steps <= 0.0).all())
    return by_loss or _by_output(log) or _by_context(log, seed)


def _by_output(log: BanditLog) -> bool:
    """Tell whether outputs change along the rows, and not because their propensities do: 1[y = a]/p keeps its mean."""
    if len(log) < 3 * BLOCKS or not log.structure.one_each:
        return False
    common = np.argsort(-np.bincount(log.y), kind="stable")[:AT_ONCE]
    weights = np.exp(np.minimum(-log.log_propensity, MOST_LOG))
    values = np.where(log.y[:, None] == common, weights[:, None], 0.0)
    return bool(_p_values(values).min(initial=1.0) * len(common) < SORTED_OUTPUTS)


def _by_context(log: BanditLog, seed: int) -> bool:
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
