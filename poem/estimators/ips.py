"""Inverse propensity scoring, clipped: the paper's R̂ᴹ(h)."""

from dataclasses import dataclass
from typing import ClassVar

from poem.estimators.base import Rows, Weighted
from poem.estimators.objective import MeanObjective
from poem.estimators.sums import Terms


@dataclass(frozen=True)
class IPS(Weighted, MeanObjective):
    """The mean of uᵢ = lossᵢ·min(M, rᵢ)."""

    name: ClassVar[str] = "IPS"
    pessimistic: ClassVar[bool] = True

    def terms(self, rows: Rows) -> Terms:
        ratio = self.ratios(rows.log_ratio)
        return Terms(ratio * rows.loss, held=self.held(ratio, rows, rows.loss))
