"""An estimator as an objective for learning: a smooth function of a few sums over the rows.

The rows enter through their importance ratios r = h(y|x)/p and, if there is a loss model, through its mean
under the policy. The objective says how value and standard error depend on the sums. So one object serves
evaluation (read it), L-BFGS (differentiate it), AdaGrad (freeze its slopes for an epoch) and sharding (add
the sums).
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poem.arrays import BoolArray, FloatArray
from poem.estimators.base import LARGEST_LOG_RATIO, Estimator


@dataclass(frozen=True)
class Point:
    """Value and standard error at some sums, and their derivatives with respect to the sums."""

    value: float
    stderr: float
    value_slopes: FloatArray
    stderr_slopes: FloatArray

    def objective(self, lam: float) -> float:
        """Return value + λ·stderr (the paper's Eq. 6, with its √(Var/n) as the standard error)."""
        return self.value + lam * self.stderr

    def slopes(self, lam: float) -> FloatArray:
        """Return the derivative of :meth:`objective` with respect to the sums."""
        return self.value_slopes + lam * self.stderr_slopes


@dataclass(frozen=True)
class Objective(Estimator):
    """An estimator that learning can minimise.

    ``loss`` is the scaled loss of each row, or its residual from a loss model; ``base`` is the model's mean under
    the policy (None without a model). Of its ``n_sums`` sums, the value depends on the first ``n_value_sums``; the
    others are for the standard error.
    """

    n_sums: ClassVar[int]
    n_value_sums: ClassVar[int]

    def log_divisor(self, log_propensity: FloatArray) -> FloatArray:
        """Return the logarithm of what h(y|x) is divided by."""
        return log_propensity

    def ratios(self, log_ratio: FloatArray) -> FloatArray:
        """Return the importance ratios, after any clipping."""
        return np.exp(np.minimum(log_ratio, LARGEST_LOG_RATIO))

    def clipped(self, ratio: FloatArray) -> BoolArray:
        """Return which ratios are at the clip."""
        return np.zeros(len(ratio), dtype=bool)

    def moving(self, ratio: FloatArray) -> FloatArray:
        """Return the derivative of the ratios with respect to log h."""
        return ratio

    @abstractmethod
    def sums(self, ratio: FloatArray, loss: FloatArray, base: FloatArray | None = None) -> FloatArray:
        """Return this estimator's sums over some rows; sums of several parts can be added."""

    @abstractmethod
    def coefficients(
        self, ratio: FloatArray, loss: FloatArray, slopes: FloatArray, base: FloatArray | None = None
    ) -> FloatArray:
        """Return d(slopes·sums)/d log h(yᵢ|xᵢ) for each row."""

    @abstractmethod
    def point(self, sums: FloatArray, n: int) -> Point:
        """Turn the sums over n rows into value, standard error and their derivatives."""


@dataclass(frozen=True)
class MeanObjective(Objective):
    """The mean of one number u per row, from Σu and Σu².

    The stderr is √(Var(u)/n) with Var's n − 1 (Theorem 1). Its slopes are the paper's A and B of
    Proposition 1 up to the factor √n: freezing them gives exactly its majoriser.
    """

    n_sums: ClassVar[int] = 2
    n_value_sums: ClassVar[int] = 1

    def weighted(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        """Return u minus the base."""
        return ratio * loss

    def weighted_slopes(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        """Return the derivative of :meth:`weighted` with respect to log h."""
        return self.moving(ratio) * loss

    def sums(self, ratio: FloatArray, loss: FloatArray, base: FloatArray | None = None) -> FloatArray:
        u = self._u(ratio, loss, base)
        return np.array([u.sum(), u @ u])

    def coefficients(
        self, ratio: FloatArray, loss: FloatArray, slopes: FloatArray, base: FloatArray | None = None
    ) -> FloatArray:
        coefficients: FloatArray = self.weighted_slopes(ratio, loss) * self.base_coefficients(ratio, loss, slopes, base)
        return coefficients

    def base_coefficients(
        self, ratio: FloatArray, loss: FloatArray, slopes: FloatArray, base: FloatArray | None
    ) -> FloatArray:
        """Return d(slopes·sums)/du for each row, which is also the derivative with respect to its base."""
        slope: FloatArray = slopes[0] + 2.0 * slopes[1] * self._u(ratio, loss, base)
        return slope

    def _u(self, ratio: FloatArray, loss: FloatArray, base: FloatArray | None) -> FloatArray:
        u = self.weighted(ratio, loss)
        return u if base is None else u + base

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
