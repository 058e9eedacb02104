"""Self-normalised IPS: invariant to a shift of the loss; with the variance penalty, Norm-POEM."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poem.arrays import FloatArray
from poem.estimators.base import Rows, Weighted
from poem.estimators.objective import Objective, Point
from poem.estimators.sums import Terms


@dataclass(frozen=True)
class SNIPS(Weighted, Objective):
    """v = Σrδ/Σr, from five sums; the standard error is √(Σr²(δ − v)²)/Σr (delta method)."""

    name: ClassVar[str] = "SNIPS"
    n_sums: ClassVar[int] = 5
    n_value_sums: ClassVar[int] = 2

    def sums(self, ratio: FloatArray, loss: FloatArray, base: FloatArray | None = None) -> FloatArray:
        u = ratio * loss
        return np.array([ratio.sum(), u.sum(), ratio @ ratio, ratio @ u, u @ u])

    def coefficients(
        self, ratio: FloatArray, loss: FloatArray, slopes: FloatArray, base: FloatArray | None = None
    ) -> FloatArray:
        moving = self.moving(ratio)
        first_order = slopes[0] + slopes[1] * loss
        second_order = slopes[2] + (slopes[3] + slopes[4] * loss) * loss
        coefficients: FloatArray = moving * (first_order + 2.0 * moving * second_order)
        return coefficients

    def point(self, sums: FloatArray, n: int) -> Point:
        r, u, rr, ru, uu = (float(value) for value in sums)
        if r <= 0.0:
            return Point(0.0, 0.0, np.zeros(5), np.zeros(5))
        value = u / r
        value_slopes = np.array([-value, 1.0, 0.0, 0.0, 0.0]) / r
        spread = max(uu - 2.0 * value * ru + value * value * rr, 0.0)
        if spread <= 1e-15 * uu:  # what rounding leaves of equal losses
            return Point(value, 0.0, value_slopes, np.zeros(5))
        stderr = float(np.sqrt(spread)) / r
        # d spread = duu − 2v·dru + v²·drr + 2(v·rr − ru)·dv
        d_spread = 2.0 * (value * rr - ru) * value_slopes + np.array([0.0, 0.0, value * value, -2.0 * value, 1.0])
        d_stderr = d_spread / (2.0 * stderr * r * r)
        d_stderr[0] -= stderr / r
        return Point(value, stderr, value_slopes, d_stderr)

    def terms(self, rows: Rows) -> Terms:
        ratio = self.ratios(rows.log_ratio)
        # Losses around their mean cancel exactly where the sums of raw ones leave rounding errors.
        centre = rows.mean_loss
        centred = rows.loss - centre
        held = self.held_of_ratio(ratio, rows, centred)
        return Terms(ratio * centred, bottom=ratio, constant=centre, held=held)
