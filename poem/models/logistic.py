"""A loss model with a logistic link: σ(Σ over the labels (or the class) of y of x·B, plus x·b) of the range of losses.

Its mean under a policy has no short form, so that no estimator rests on it. But where losses are near their ends, as
clicks and mistakes are, it ranks outputs better than a linear one, and ranking is all that a direct policy needs.
"""

from typing import ClassVar

import numpy as np
from scipy import special

from poem.arrays import FloatArray
from poem.compute import Threads
from poem.data import BanditLog
from poem.models.bounded import BoundedLoss, fit_bounded
from poem.models.linear import Products


class Logistic(BoundedLoss):
    """Logistic regression of the losses; weights (d + 1, k + 1)."""

    strengths: ClassVar[tuple[float, ...]] = tuple(10.0 ** (power / 2) for power in range(0, -9, -1))

    def __init__(self, log: BanditLog, bounds: tuple[float, float], threads: Threads, once: bool = False) -> None:
        super().__init__(log, bounds, threads, once)
        self.products = Products(log, log.structure, threads, once)
        self.shape = self.products.shape

    @property
    def loss(self) -> FloatArray:
        return self.products.layout.loss

    def shares(self, w: FloatArray) -> FloatArray:
        share: FloatArray = special.expit(self.products.forward(w))
        return share

    def entropy(self, w: FloatArray) -> tuple[float, FloatArray]:
        score, target = self.products.forward(w), self.target
        value = float(np.sum(np.logaddexp(0.0, score) - target * score))
        return value, self.products.backward(special.expit(score) - target)


def logistic_preference(log: BanditLog, strength: float, bounds: tuple[float, float], threads: Threads) -> FloatArray:
    """Fit a logistic regression to losses within bounds; return the weights (d + 1, k) that prefer a low one."""
    return -fit_bounded(Logistic, log, strength, bounds, threads)[:, :-1]
