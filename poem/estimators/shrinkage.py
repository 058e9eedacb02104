"""DR with optimistic shrinkage: large weights shrink smoothly (Su et al., 2020)."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from poem.arrays import FloatArray
from poem.errors import InputError
from poem.estimators.base import Estimator, Rows
from poem.estimators.sums import Terms
from poem.estimators.tuning import best_of, typical_ratios


@dataclass(frozen=True)
class ShrinkageDR(Estimator):
    """DR with the weight λ·r/(r² + λ): r itself for λ → ∞, and 0, the direct method, for λ → 0."""

    shrinkage: float | Literal["auto"] = "auto"
    name: ClassVar[str] = "DRos"
    needs_model: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.shrinkage != "auto" and not (isinstance(self.shrinkage, int | float) and self.shrinkage > 0.0):
            raise InputError(f"shrinkage must be above 0 or 'auto'; found {self.shrinkage!r}.")

    def tuned(self, rows: Rows) -> Self:
        if self.shrinkage != "auto":
            return self
        # The weight has its peak, √λ/2, at r = √λ: ratios to be kept are well below it.
        squares = [(reach * ratio) ** 2 for ratio in typical_ratios(rows) for reach in (1, 10)]
        tried = [replace(self, shrinkage=square) for square in squares if 0.0 < square < 1e30]
        return best_of([replace(self, shrinkage=1e30), *tried], rows)

    def terms(self, rows: Rows) -> Terms:
        if self.shrinkage == "auto":
            return self.tuned(rows).terms(rows)
        predicted, expected = rows.model
        used, error = self.used(rows), rows.loss - predicted
        return Terms(used * error, base=expected, held=(rows.ratio - used) * np.abs(error))

    def used(self, rows: Rows) -> FloatArray:
        """Return the shrunk weights."""
        assert self.shrinkage != "auto"
        ratio = np.minimum(rows.ratio, 1e100)  # whose square is finite
        return ratio / (ratio * ratio / self.shrinkage + 1.0)
