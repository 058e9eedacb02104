"""Logarithmic smoothing: large products of weight and loss count with their logarithm (Sakhi et al., 2024)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from poem.errors import InputError
from poem.estimators.base import Estimator, Rows, Terms


@dataclass(frozen=True)
class LogSmoothing(Estimator):
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
        span = max(-float(rows.loss.min()), np.finfo(float).tiny)
        return replace(self, lam=1.0 / (np.sqrt(len(rows.loss)) * span))

    def terms(self, rows: Rows) -> Terms:
        if self.lam == "auto":
            return self.tuned(rows).terms(rows)
        gain = -rows.loss
        smoothed = np.log1p(self.lam * rows.ratio * gain) / self.lam
        return Terms(-smoothed, held=rows.ratio * gain - smoothed)
