"""Which of a log's units are learnt from, and which are kept to certify on."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from poem.arrays import AnyArray, IntArray
from poem.certificates import alternate, drawn_because
from poem.data import BanditLog

Order = Literal["time", "late", "rows", "units", "random", "hashed", "mixed", "given"]

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
        why: Order | None = "mixed" if log.propensities == "balanced" else drawn_because(log, seed)
        if why is not None:
            return cls(log, np.random.default_rng([seed, 8]).permutation(count)[units], None, count, why)
        moment = np.arange(len(log)) if log.time is None else _ranks(log.time)
        first = np.full(count, len(log))
        np.minimum.at(first, units, moment)
        place = _ranks(first)[units]
        if log.time is None:
            return cls(log, place, None, count, "rows")
        return cls(log, place, moment, count, "late" if alternate(units[np.argsort(moment)]) else "time")

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
