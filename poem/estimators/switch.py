"""SWITCH-DR: where a weight is too large, use the loss model alone (Wang, Agarwal & Dudík, 2017)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from poem.arrays import FloatArray
from poem.errors import InputError
from poem.estimators.base import Estimator, Rows
from poem.estimators.sums import Terms
from poem.estimators.tuning import best_of, typical_ratios


@dataclass(frozen=True)
class SwitchDR(Estimator):
    """The mean of E_h[m(x, ·)] + r·(loss − m(x, y)) for r ≤ ``threshold``, and of E_h[m(x, ·)] beyond it."""

    threshold: float | Literal["auto"] = "auto"
    name: ClassVar[str] = "SWITCH-DR"
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.threshold != "auto" and not (isinstance(self.threshold, int | float) and self.threshold > 0.0):
            raise InputError(f"threshold must be above 0 or 'auto'; found {self.threshold!r}.")

    def tuned(self, rows: Rows) -> Self:
        if self.threshold != "auto":
            return self
        return best_of([replace(self, threshold=ratio) for ratio in typical_ratios(rows)], rows)

    def terms(self, rows: Rows) -> Terms:
        if self.threshold == "auto":
            return self.tuned(rows).terms(rows)
        predicted, expected = rows.model
        used, error = self.used(rows), rows.loss - predicted
        return Terms(used * error, base=expected, held=(rows.ratio - used) * np.abs(error))

    def used(self, rows: Rows) -> FloatArray:
        """Return the weights up to the threshold."""
        assert self.threshold != "auto"
        return np.where(rows.ratio <= self.threshold, rows.ratio, 0.0)

    def clipped_share(self, rows: Rows) -> float:
        return 0.0 if self.threshold == "auto" else float(np.mean(rows.ratio > self.threshold))
