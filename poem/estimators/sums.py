"""The terms of an estimate, summed within independent units: what values, standard errors and intervals are made of.

:class:`Sums` is what they ask for. :class:`UnitSums` answers from one number per unit, and
:class:`poem.estimators.moments.MomentSums` from moments, which several parts of a log add up to.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from poem.arrays import FloatArray, IntArray


class Sums(ABC):
    """The sums of one estimate: constant + mean(base) + Σtop/Σbottom."""

    @property
    @abstractmethod
    def n_units(self) -> int:
        """The number of independent units."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """The number of rows."""

    @property
    @abstractmethod
    def largest_unit(self) -> float:
        """How many rows the largest unit has."""

    @abstractmethod
    def value(self) -> float:
        """Return the estimate; NaN where no row supports it."""

    @abstractmethod
    def stderr(self) -> float:
        """Return the standard error of the value (delta method); unbounded for one unit."""

    @abstractmethod
    def stderr_less(self, other: Any) -> float:
        """Return the standard error of the difference to other sums of the same units."""

    @abstractmethod
    def acceleration(self) -> float:
        """Return the acceleration of BCa, a sixth of the skewness of the units' pulls; NaN for one unit."""

    @abstractmethod
    def acceleration_less(self, other: Any) -> float:
        """Return the acceleration of the difference to other sums of the same units."""

    @abstractmethod
    def held_back(self) -> float:
        """Return the mean of what was held back, which is the bias, plus two standard errors."""

    @abstractmethod
    def stderr_of_luck(self) -> float:
        """Return the part of the standard error that terms do not show, if those that weigh most are small by luck."""


@dataclass(frozen=True)
class Terms:
    """The parts of an estimate: constant + mean(base) + Σtop/Σbottom; without ``bottom``, 1 per row.

    ``held`` is how much of each row's term was lost by clipping or shrinking its weight, ``luck`` by how much the
    square of its top is smaller than usual.
    """

    top: FloatArray
    bottom: FloatArray | None = None
    base: FloatArray | None = None
    constant: float = 0.0
    held: FloatArray | None = None
    luck: FloatArray | None = None

    def by_unit(self, unit: IntArray | None) -> "UnitSums":
        """Sum the terms of the rows of each independent unit."""

        def added(values: FloatArray) -> FloatArray:
            return values if unit is None else np.bincount(unit, values).astype(np.float64)

        count = added(np.ones(len(self.top)))
        bottom = count if self.bottom is None else added(self.bottom)
        base = None if self.base is None else added(self.base)
        held, luck = (None if each is None else added(each) for each in (self.held, self.luck))
        return UnitSums(count, added(self.top), bottom, base, self.constant, held, luck)


@dataclass(frozen=True)
class UnitSums(Sums):
    """The terms of an estimate, summed within each independent unit."""

    count: FloatArray
    top: FloatArray
    bottom: FloatArray
    base: FloatArray | None
    constant: float
    held: FloatArray | None = None
    luck: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.count)

    @property
    def n_units(self) -> int:
        return len(self.count)

    @property
    def n_rows(self) -> int:
        return round(float(self.count.sum()))

    @property
    def largest_unit(self) -> float:
        return float(self.count.max())

    @property
    def is_mean(self) -> bool:
        """Whether the value is a plain mean over the rows."""
        return self.bottom is self.count

    def value(self) -> float:
        bottom = float(self.bottom.sum())
        if bottom <= 0.0:
            return np.nan
        base = 0.0 if self.base is None else float(self.base.sum() / self.count.sum())
        return self.constant + base + float(self.top.sum()) / bottom

    def shares(self) -> FloatArray:
        """Return each unit's share of the error of the value (delta method); shares sum to 0."""
        bottom = self.bottom.sum()
        share: FloatArray = (self.top - self.top.sum() / bottom * self.bottom) / bottom
        if self.base is None:
            return share
        n = self.count.sum()
        whole: FloatArray = share + (self.base - self.base.sum() / n * self.count) / n
        return whole

    def left_out(self) -> FloatArray:
        """Return the estimate without each unit in turn (the jackknife)."""
        with np.errstate(divide="ignore", invalid="ignore"):  # what one unit alone supports has no value without it
            rest: FloatArray = self.constant + (self.top.sum() - self.top) / (self.bottom.sum() - self.bottom)
        if self.base is None:
            return rest
        whole: FloatArray = rest + (self.base.sum() - self.base) / (self.count.sum() - self.count)
        return whole

    def stderr(self) -> float:
        return standard_error(self.shares())

    def stderr_less(self, other: "UnitSums") -> float:
        return standard_error(self.shares() - other.shares())

    def acceleration(self) -> float:
        return acceleration(self.left_out())

    def acceleration_less(self, other: "UnitSums") -> float:
        return acceleration(self.left_out() - other.left_out())

    def held_back(self) -> float:
        if self.held is None:
            return 0.0
        n = float(self.count.sum())
        mean = float(self.held.sum()) / n
        share = (self.held - mean * self.count) / n
        return mean + 2.0 * float(np.sqrt(share @ share))

    def stderr_of_luck(self) -> float:
        return 0.0 if self.luck is None else error_of_luck(float(self.luck.sum()), float(self.bottom.sum()))


def effective_number(weights: FloatArray) -> float:
    """Return (Σw)²/Σw²: the number of equal weights that carry as much information."""
    squares = float(weights @ weights)
    return float(weights.sum() ** 2 / squares) if squares > 0.0 else 0.0


def standard_error(shares: FloatArray) -> float:
    """Return the standard error of a value from its units' shares; unbounded for one unit."""
    return error_of_squares(float(shares @ shares), len(shares))


def error_of_squares(squares: float, units: int) -> float:
    """Return the standard error of a value from the sum of its units' squared shares; unbounded for one unit."""
    return float(np.sqrt(units / (units - 1) * squares)) if units > 1 else np.inf


def error_of_luck(luck: float, bottom: float) -> float:
    """Return √Σluck/Σbottom; nothing where terms are larger than usual."""
    return float(np.sqrt(luck)) / bottom if luck > 0.0 and bottom > 0.0 and np.isfinite(luck) else 0.0


def acceleration(left_out: FloatArray) -> float:
    """Return the acceleration of BCa from the estimates without each unit in turn (Efron, 1987)."""
    if len(left_out) < 2:
        return np.nan
    pull = np.nanmean(left_out) - left_out
    pull = pull[np.isfinite(pull)]
    largest = float(np.max(np.abs(pull), initial=0.0))
    pull = pull / (largest or 1.0)  # cubes of what weights can be would overflow; the acceleration has no unit
    return sixth_of_skewness(float(np.sum(pull**2)), float(np.sum(pull**3)))


def sixth_of_skewness(squares: float, cubes: float) -> float:
    """Return Σp³/(6·(Σp²)^1.5) of the units' pulls."""
    return cubes / (6.0 * squares**1.5) if squares > 0.0 else 0.0
