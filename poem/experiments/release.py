"""The stochastic update of the authors' release, which is not quite the paper's."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from poem.arrays import FloatArray
from poem.estimators import IPS, Point


@dataclass(frozen=True)
class ReleaseIPS(IPS):
    """IPS whose batches use mean(u)·mean(∇u), a factor n too small, for the squares of the majoriser.

    A batch's gradient is mean(∇u)·(1 + λ√n·A + 2·(λ/√n)·B·mean(u)). The last term is a few
    thousandths at most, so that what is left of the variance penalty is a longer step. For AdaGrad
    only: these are not the derivatives of the objective.
    """

    name: ClassVar[str] = "IPS, release"

    def coefficients(
        self, ratio: FloatArray, loss: FloatArray, slopes: FloatArray, base: FloatArray | None = None
    ) -> FloatArray:
        factor = slopes[0] + 2.0 * slopes[1] * np.mean(ratio * loss)
        coefficients: FloatArray = self.moving(ratio) * loss * factor
        return coefficients

    def point(self, sums: FloatArray, n: int) -> Point:
        exact = super().point(sums, n)
        return replace(exact, stderr_slopes=exact.stderr_slopes / np.array([1.0, n]))
