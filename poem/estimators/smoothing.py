"""Logarithmic smoothing: the logarithm replaces large products of weight and loss (Sakhi et al., 2024)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from poem.arrays import FloatArray
from poem.errors import InputError
from poem.estimators.base import Rows
from poem.estimators.objective import MeanObjective
from poem.estimators.sums import Terms


@dataclass(frozen=True)
class LogSmoothing(MeanObjective):
    """The mean of −log(1 − λ·r·loss)/λ for losses of at most 0. ``"auto"`` is λ = 1/(√n·range of the loss)."""

    lam: float | Literal["auto"] = "auto"
    name: ClassVar[str] = "LS"
    pessimistic: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.lam != "auto" and not (isinstance(self.lam, int | float) and self.lam > 0.0):
            raise InputError(f"lam must be above 0, or be 'auto'; found {self.lam!r}.")

    def tuned(self, rows: Rows) -> Self:
        if self.lam != "auto":
            return self
        span = max(-rows.least_loss, np.finfo(float).tiny)
        return replace(self, lam=1.0 / (np.sqrt(rows.n) * span))

    def terms(self, rows: Rows) -> Terms:
        if self.lam == "auto":
            return self.tuned(rows).terms(rows)
        smoothed = self.weighted(rows.ratio, rows.loss)
        return Terms(smoothed, held=smoothed - rows.ratio * rows.loss)

    def weighted(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        lam = self._number()
        smoothed: FloatArray = -np.log1p(ratio * (-lam * loss)) / lam  # λ·loss first: λ·r alone may overflow
        return smoothed

    def weighted_slopes(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        u = ratio * loss
        slopes: FloatArray = u / (1.0 - self._number() * u)
        return slopes

    def _number(self) -> float:
        if self.lam == "auto":
            raise InputError("lam='auto' must be set from a log first. Pass a number.")
        return self.lam
