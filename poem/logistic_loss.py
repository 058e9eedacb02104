"""A loss model with a logistic link: σ(Σ over the labels (or the class) of y of x·B, plus x·b) of the range of losses.

Its mean under a policy has no short form, so that no estimator rests on it. But where losses are near their ends, as
clicks and mistakes are, it ranks outputs better than a linear one, and ranking is all that a direct policy needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from poem.arrays import BoolArray, FloatArray
from poem.kernel import Threads
from poem.log import BanditLog
from poem.loss_model import Products, mean_square
from poem.optimizers import LBFGS
from poem.structures import structure_of

STRENGTHS: tuple[float, ...] = tuple(10.0 ** (power / 2) for power in range(0, -9, -1))  # from the strongest
SOLVER = LBFGS(max_iterations=50, ftol=1e-5, gtol=1e-6)
PATIENCE = 2  # strengths without a gain after which weaker ones are not tried


@dataclass
class _Likelihood:
    """The mean cross-entropy of scaled losses, with a ridge: a problem for an optimizer."""

    products: Products
    target: FloatArray
    ridge: float

    @property
    def shape(self) -> tuple[int, int]:
        return self.products.shape

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        score, n = self.products.forward(w), len(self.target)
        entropy = float(np.sum(np.logaddexp(0.0, score) - self.target * score))
        gradient = self.products.backward(special.expit(score) - self.target) + self.ridge * w
        return (entropy + 0.5 * self.ridge * float(np.vdot(w, w))) / n, gradient / n

    def minimised(self, start: FloatArray | None) -> FloatArray:
        """Return the weights of the least value."""
        return SOLVER.minimize(self, start).weights


def fit_logistic(log: BanditLog, strength: float, bounds: tuple[float, float], threads: Threads) -> FloatArray:
    """Return the weights (d + 1, k + 1) of a logistic model of the losses."""
    products = Products(log, structure_of(log), threads)
    return _Likelihood(products, _scaled(products.layout.loss, bounds), strength * mean_square(log)).minimised(None)


def logistic_error(
    log: BanditLog, parts: Sequence[BoolArray], bounds: tuple[float, float], threads: Threads
) -> tuple[float, float]:
    """Return the strength of the least squared error on held-out logged losses, and that error."""
    trials = [_Trial(log, held, bounds, threads) for held in parts]
    best, found, since = np.inf, STRENGTHS[0], 0
    for strength in STRENGTHS:
        error = float(sum(trial.error(strength * mean_square(log)) for trial in trials)) / float(np.sum(parts))
        best, found, since = (error, strength, 0) if error < best else (best, found, since + 1)
        if since >= PATIENCE:
            break
    return found, best


class _Trial:
    """One part that is held out: each strength begins where the last one ended."""

    def __init__(self, log: BanditLog, held: BoolArray, bounds: tuple[float, float], threads: Threads) -> None:
        self._products = Products(log.take(~held), structure_of(log), threads)
        self._judge = Products(log.take(held), structure_of(log), threads)
        self._bounds = bounds
        self._weights: FloatArray | None = None

    def error(self, ridge: float) -> float:
        """Return the sum of squared errors on the held-out rows."""
        target = _scaled(self._products.layout.loss, self._bounds)
        self._weights = _Likelihood(self._products, target, ridge).minimised(self._weights)
        low, high = self._bounds
        predicted = low + (high - low) * special.expit(self._judge.forward(self._weights))
        return float(np.sum((self._judge.layout.loss - predicted) ** 2))


def _scaled(loss: FloatArray, bounds: tuple[float, float]) -> FloatArray:
    scaled: FloatArray = (loss - bounds[0]) / (bounds[1] - bounds[0])
    return scaled
