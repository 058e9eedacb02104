"""Implicit exploration: add a small number to every propensity (Neu, 2015; Gabbianelli et al., 2024)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from poem.arrays import FloatArray
from poem.errors import InputError
from poem.estimators.base import Rows
from poem.estimators.objective import MeanObjective
from poem.estimators.sums import Terms


@dataclass(frozen=True)
class ImplicitExploration(MeanObjective):
    """IPS with the weight h/(p + γ). ``"auto"`` is γ = (median p)/√n, which vanishes as the log grows."""

    gamma: float | Literal["auto"] = "auto"
    name: ClassVar[str] = "IX"
    pessimistic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.gamma != "auto" and not (isinstance(self.gamma, int | float) and self.gamma >= 0.0):
            raise InputError(f"gamma must not be negative, or be 'auto'; found {self.gamma!r}.")

    def tuned(self, rows: Rows) -> Self:
        if self.gamma != "auto" or rows.log_propensity is None:
            return self
        middle = float(np.exp(rows.middle))
        return replace(self, gamma=middle / np.sqrt(rows.n))

    def terms(self, rows: Rows) -> Terms:
        if rows.log_propensity is None:
            raise InputError("IX needs the propensities themselves. Use poem.evaluate.")
        if self.gamma == "auto":
            return self.tuned(rows).terms(rows)
        used = self.ratios(rows.log_ratio + rows.log_propensity - self.log_divisor(rows.log_propensity))
        return Terms(used * rows.loss, held=(rows.ratio - used) * -rows.loss)

    def log_divisor(self, log_propensity: FloatArray) -> FloatArray:
        if self.gamma == "auto":
            raise InputError("gamma='auto' must be set from a log first. Pass a number.")
        if self.gamma == 0.0:
            return log_propensity
        divisor: FloatArray = np.logaddexp(log_propensity, np.log(self.gamma))
        return divisor
