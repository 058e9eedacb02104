"""What an estimator is: a smooth function of a few sums over the rows of a log.

The rows enter through their importance ratios r = h(y|x)/p alone. An estimator adds up a few terms
of (r, loss), turns the sums into a value with its standard error, and says how both move with the
sums. So one object serves evaluation (read it), L-BFGS (differentiate it), AdaGrad (freeze its
slopes for an epoch) and any sharding (add the sums).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Literal, Self

import numpy as np
from scipy import special

from poem.arrays import BoolArray, FloatArray, IntArray
from poem.errors import InputError

Clip = float | Literal["auto", "max"] | None

# e^300: beyond it the square of a ratio would not be finite; no log can tell such ratios apart.
LARGEST_LOG_RATIO = 300.0


@dataclass(frozen=True)
class Estimate:
    """An estimated mean loss with its standard error and what tells whether to trust it.

    ``n`` rows came in ``units`` independent ones (groups, or contexts that repeat). ``mean_weight`` is
    the mean importance ratio (about 1 when the policy is supported by the log), ``clipped_share`` the
    share of rows at the clip, ``effective_n`` is (Σr)²/Σr². Where no row supports the policy, the value is NaN.
    """

    value: float
    stderr: float
    n: int
    units: int
    mean_weight: float
    clipped_share: float
    effective_n: float

    @property
    def weight_stderr(self) -> float:
        """The standard error of ``mean_weight``."""
        if self.effective_n <= 0.0:
            return 0.0
        return self.mean_weight * float(np.sqrt(max(1.0 / self.effective_n - 1.0 / self.n, 0.0)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the Student-t interval; unbounded where fewer than two effective rows speak.

        Its degrees of freedom are those of the effective rows or of the units, whichever are fewer.
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"level must be between 0 and 1; found {level}. Use 0.95 for 95 %.")
        freedom = min(self.effective_n, self.units) - 1.0
        if freedom < 1.0 - 1e-9 or not np.isfinite(self.stderr):
            return -np.inf, np.inf
        reach = float(special.stdtrit(freedom, 0.5 + level / 2.0)) * self.stderr
        return self.value - reach, self.value + reach

    def rescaled(self, low: float, high: float) -> "Estimate":
        """Translate an estimate of the loss scaled to [−1, 0] back to [low, high]."""
        return replace(self, value=high + (high - low) * self.value, stderr=(high - low) * self.stderr)

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:.4g} [{low:.4g}, {high:.4g}]"


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
class Estimator(ABC):
    """An off-policy estimator. ``clip`` bounds the ratios: a number M, None, or a rule.

    ``"auto"`` is the ratio of the 90th to the 10th percentile of the propensities, ``"max"`` that
    of the largest to the smallest; both are resolved by calibration on the training rows.
    """

    clip: Clip = "auto"
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if isinstance(self.clip, str):
            if self.clip not in ("auto", "max"):
                raise InputError(f"clip must be a number, None, 'auto' or 'max'; found {self.clip!r}.")
        elif self.clip is not None and not (isinstance(self.clip, int | float | np.number) and self.clip > 0.0):
            raise InputError(f"clip must be above 0; found {self.clip!r}. Use None for no clipping.")

    def with_clip(self, clip: float | None) -> Self:
        """Return the same estimator with its clip set."""
        return replace(self, clip=clip)

    @cached_property
    def log_clip(self) -> float:
        """The logarithm of the largest ratio that is let through."""
        if isinstance(self.clip, str):
            raise InputError(f"clip={self.clip!r} must be set by calibration first. Pass a number or None.")
        return LARGEST_LOG_RATIO if self.clip is None else min(float(np.log(self.clip)), LARGEST_LOG_RATIO)

    def ratios(self, log_ratio: FloatArray) -> FloatArray:
        """Return min(M, e^log_ratio)."""
        return np.exp(np.minimum(log_ratio, self.log_clip))

    @cached_property
    def _limit(self) -> float:
        return float(np.exp(self.log_clip)) * (1.0 - 1e-12)  # the margin forgives np.exp its last bits

    def clipped(self, ratio: FloatArray) -> BoolArray:
        """Return which ratios are at the clip."""
        at_clip: BoolArray = ratio >= self._limit
        return at_clip

    def moving(self, ratio: FloatArray) -> FloatArray:
        """Return the ratios with those at the clip set to 0: the derivative of r in log h."""
        return np.where(self.clipped(ratio), 0.0, ratio)

    @abstractmethod
    def sums(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        """Return this estimator's sums over some rows; those of several parts add up."""

    @abstractmethod
    def coefficients(self, ratio: FloatArray, loss: FloatArray, slopes: FloatArray) -> FloatArray:
        """Return d(slopes·sums)/d log h(yᵢ|xᵢ) for each row."""

    @abstractmethod
    def point(self, sums: FloatArray, n: int) -> Point:
        """Turn the sums over n rows into value, standard error and their derivatives."""

    @abstractmethod
    def influence(self, ratio: FloatArray, loss: FloatArray, value: float) -> FloatArray:
        """Return each row's share in the error of ``value``; the shares add up to 0."""

    def estimate(self, log_ratio: FloatArray, loss: FloatArray, unit: IntArray | None = None) -> Estimate:
        """Estimate the mean loss from the log-ratios and losses of a log.

        Rows with the same ``unit`` are not independent; their shares in the error are added up first.
        """
        ratio = self.ratios(log_ratio)
        supported = bool(np.any(ratio > 0.0))
        value = self.point(self.sums(ratio, loss), len(loss)).value if supported else np.nan
        share = self.influence(ratio, loss, value) if supported else np.zeros(len(loss))
        share = share if unit is None else np.bincount(unit, share).astype(np.float64)
        units = len(share)
        stderr = float(np.sqrt(units / (units - 1) * (share @ share))) if supported and units > 1 else np.inf
        unclipped = np.exp(np.minimum(log_ratio, LARGEST_LOG_RATIO))
        squares = float(np.sum(unclipped**2))
        return Estimate(
            value=value,
            stderr=stderr,
            n=len(loss),
            units=units,
            mean_weight=float(unclipped.mean()),
            clipped_share=float(self.clipped(ratio).mean()),
            effective_n=float(unclipped.sum() ** 2 / squares) if squares > 0.0 else 0.0,
        )
