"""Inverse propensity scoring, clipped: the paper's R̂ᴹ(h)."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poem.arrays import FloatArray
from poem.estimators.base import Objective, Point, Rows, Terms


@dataclass(frozen=True)
class IPS(Objective):
    """The mean of uᵢ = lossᵢ·min(M, rᵢ), from Σu and Σu².

    The stderr is √(Var(u)/n) with Var's n − 1 (Theorem 1). Its slopes are the paper's A and B of
    Proposition 1 up to the factor √n: freezing them gives exactly its majoriser.
    """

    name: ClassVar[str] = "IPS"
    pessimistic: ClassVar[bool] = True

    def sums(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        u = ratio * loss
        return np.array([u.sum(), u @ u])

    def coefficients(self, ratio: FloatArray, loss: FloatArray, slopes: FloatArray) -> FloatArray:
        u = self.moving(ratio) * loss
        coefficients: FloatArray = u * (slopes[0] + 2.0 * slopes[1] * u)
        return coefficients

    def point(self, sums: FloatArray, n: int) -> Point:
        total, squares = float(sums[0]), float(sums[1])
        mean = total / n
        variance = max(squares - mean * total, 0.0) / max(n - 1, 1)
        value_slopes = np.array([1.0 / n, 0.0])
        deviation = np.sqrt(variance)
        # Where all u are equal the standard error has a kink; 0 is one of its subgradients.
        if deviation <= 1e-12 * abs(mean) or n < 2:
            return Point(mean, 0.0, value_slopes, np.zeros(2))
        scale = 1.0 / ((n - 1) * deviation * np.sqrt(n))
        return Point(mean, float(deviation / np.sqrt(n)), value_slopes, scale * np.array([-mean, 0.5]))

    def terms(self, rows: Rows) -> Terms:
        ratio = self.ratios(rows.log_ratio)
        return Terms(ratio * rows.loss, held=self.held(ratio, rows, rows.loss))
