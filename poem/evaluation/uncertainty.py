"""How far off an estimate may be: intervals of single policies, and of their differences."""

from collections.abc import Sequence
from typing import cast

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray
from poem.estimators import (
    FLOORED,
    IPS,
    Method,
    Replicates,
    Rows,
    Sums,
    Terms,
    UnitSums,
    bca_interval,
    bernstein,
    clopper_pearson,
    least_mean,
    normal,
    student,
)
from poem.evaluation.found import Found

Interval = tuple[float, float]


class Uncertainty:
    """One kind of interval for all estimates on the rows of one log.

    Parameters
    ----------
    best : float
        The best loss, around the worst one.
    logged : Sums
        The sums of the loss itself.
    estimates : sequence of Sums
        Those of all estimates: what the bootstrap draws from.
    drawn : Replicates, optional
        The estimates on reweighted logs, and the logged loss as the last one; for the bootstrap.
    """

    def __init__(
        self,
        best: float,
        logged: Sums,
        estimates: Sequence[Sums],
        drawn: Replicates | None,
        *,
        interval: Method,
        level: float,
        seed: int,
    ) -> None:
        self.best, self.logged, self.drawn = best, logged, drawn
        self.interval, self.tail, self.seed = interval, (1.0 - level) / 2.0, seed
        self._place = {id(sums): position for position, sums in enumerate([*estimates, logged])}

    def of(self, found: Found) -> Interval:
        """Return the interval of an estimate, around the worst loss and without its bias."""
        freedom, drawn = found.freedom, self.drawn
        value, stderr = found.estimate.value, found.estimate.stderr
        if not np.isfinite(value):
            return -np.inf, np.inf
        if drawn is not None and freedom >= 1.0 - 1e-9:
            return drawn.interval(self._place[id(found.sums)], found.sums, self.tail)
        if self.interval == "bernstein":
            return self._bernstein(found)
        if self.interval == "normal" and freedom >= 1.0 - 1e-9:
            return normal(value, stderr, self.tail)
        return student(value, stderr, freedom, self.tail)

    def _bernstein(self, found: Found) -> Interval:
        """Bound the loss by clipped IPS, which is too high by at most the range times the weight that is missing.

        That is 1 less the mean of the clipped weights, which has a Bernstein bound of its own.
        """
        estimator = found.estimator
        if not isinstance(estimator, IPS) or found.weights is None:
            return -np.inf, np.inf
        clip = float(np.exp(estimator.log_clip))
        _, high = bernstein(found.sums, clip * -self.best, self.tail)
        low, _ = bernstein(found.sums, clip * -self.best, self.tail / 2.0)
        weight, _ = bernstein(found.weights, clip, self.tail / 2.0)
        return low + self.best * max(1.0 - weight, 0.0), high

    def of_difference(self, found: Found, other: Sums, versus: Found | None) -> tuple[float, Interval, float]:
        """Return the difference to other sums, its interval, and the probability that it is below 0.

        ``versus`` is the estimate that the other sums are of; None if they are the logged losses.
        """
        freedom, drawn = found.freedom if versus is None else min(found.freedom, versus.freedom), self.drawn
        value = found.estimate.value - other.value()
        if not np.isfinite(value):
            return np.nan, (-np.inf, np.inf), np.nan
        if self.interval not in ("t", "normal", "bootstrap"):
            return value, (-np.inf, np.inf), np.nan  # these know single means only
        if freedom < 1.0 - 1e-9:
            return value, (-np.inf, np.inf), np.nan
        if drawn is not None:
            replicates = drawn.values[:, self._place[id(found.sums)]] - drawn.values[:, self._place[id(other)]]
            ends = bca_interval(replicates, value, found.sums.acceleration_less(other), self.tail)
            good = replicates[np.isfinite(replicates)]
            return value, ends, float(np.mean(good < 0.0) + 0.5 * np.mean(good == 0.0))
        stderr = found.sums.stderr_less(other)
        if stderr <= 1e-12 * (-self.best):  # rounding, not a difference
            if abs(value) <= 1e-12 * (-self.best):
                return 0.0, (0.0, 0.0), 0.5
            return value, (value, value), float(value < 0.0)
        if versus is None:
            stderr = float(np.hypot(stderr, found.sums.stderr_of_luck()))
        better = float(special.stdtr(freedom, -value / stderr))
        if self.interval == "normal":
            return value, normal(value, stderr, self.tail), better
        return value, student(value, stderr, freedom, self.tail), better


class RowUncertainty(Uncertainty):
    """Any kind of interval: some look at all units at once, so that rows must be in memory.

    Parameters
    ----------
    loss : (n,)
        Around the worst one.
    unit : (n,) int or None
        The independent unit of each row; None if every row is one.
    others
        As those of :class:`Uncertainty`, by their names.
    """

    def __init__(
        self,
        loss: FloatArray,
        unit: IntArray | None,
        best: float,
        logged: Sums,
        estimates: Sequence[Sums],
        drawn: Replicates | None,
        *,
        interval: Method,
        level: float,
        seed: int,
    ) -> None:
        super().__init__(best, logged, estimates, drawn, interval=interval, level=level, seed=seed)
        self.loss, self.unit = loss, unit

    def of(self, found: Found) -> Interval:
        if np.isfinite(found.estimate.value):
            if self.interval in FLOORED:
                return self._floored(found, self.tail)
            if self.interval == "clopper-pearson":
                return self._clopper_pearson(found)
        return super().of(found)

    def of_difference(self, found: Found, other: Sums, versus: Found | None) -> tuple[float, Interval, float]:
        value = found.estimate.value - other.value()
        if self.interval in FLOORED and np.isfinite(value):
            return value, self._floored_difference(found, versus), np.nan
        return super().of_difference(found, other, versus)

    def _clopper_pearson(self, found: Found) -> Interval:
        """Bound the gain over the worst loss, which is 0 or the weight times the range of the loss."""
        if found.estimator != IPS(None):
            return -np.inf, np.inf
        if self.best == 0.0:
            return 0.0, 0.0
        sums, rows = cast(UnitSums, found.sums), cast(Rows, found.rows)
        size = len(self.loss) / len(sums)
        low, high = clopper_pearson(sums.top / (self.best * size), rows.weights(self.unit) / size, self.tail)
        return self.best * high, self.best * low

    def _floored(self, found: Found, tail: float, less: float = 0.0) -> Interval:
        """Bound the loss of a policy, or with ``less=1`` its difference to the logged loss, with error ``tail`` each.

        With the reward R, 0 for the worst loss and 1 for the best, (r − less)·R is at least −less, and so is
        (r − less)·(1 − R). The first bounds the loss from above: what the log does not support counts as the worst.
        The second bounds it from below: there it counts as the best.
        """
        if found.estimator != IPS(None):
            return -np.inf, np.inf
        if self.best == 0.0:
            return 0.0, 0.0
        reward: FloatArray = self.loss / self.best
        excess, value = cast(Rows, found.rows).ratio - less, found.estimate.value - less * self.logged.value()
        bounds = []
        for part in (excess * reward, excess * (1.0 - reward)):
            sums = Terms(part).by_unit(self.unit)
            bounds.append(least_mean(self.interval, sums.top, sums.count, -less, tail, self.seed))
        high, low = self.best * bounds[0], (1.0 - less) * self.best - self.best * bounds[1]
        return min(low, value), max(high, value)

    def _floored_difference(self, found: Found, versus: Found | None) -> Interval:
        """Bound the difference to the logged loss by paired terms, to another policy by the bounds of both."""
        if versus is None:
            return self._floored(found, self.tail, less=1.0)
        low, high = self._floored(found, self.tail / 2.0)
        other_low, other_high = self._floored(versus, self.tail / 2.0)
        return low - other_high, high - other_low
