"""What an estimator is.

For evaluation, an estimator turns the rows of a log into terms. Its value is the mean of ``base`` plus the
ratio Σtop/Σbottom. Standard errors, the bootstrap and paired differences use only this form. Estimators for
learning are objectives as well (objective.py).
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
    """An estimated mean loss, its standard error, and figures that tell whether to trust it.

    The ``n`` rows form ``units`` independent units (groups, or repeated contexts). ``mean_weight`` is the
    mean importance ratio (about 1 if the log supports the policy), ``clipped_share`` the share of rows at
    the clip, and ``effective_n`` is (Σr)²/Σr² over units. ``bias_bound`` is how far clipping or shrinking
    weights has moved the value, plus two standard errors. If no row supports the policy, the value is NaN.
    """

    value: float
    stderr: float
    n: int
    units: int
    mean_weight: float
    clipped_share: float
    effective_n: float
    bias_bound: float = 0.0

    @property
    def weight_stderr(self) -> float:
        """The standard error of ``mean_weight``."""
        if self.effective_n <= 0.0:
            return 0.0
        return self.mean_weight * float(np.sqrt(max(1.0 / self.effective_n - 1.0 / self.units, 0.0)))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the Student-t interval; unbounded with fewer than two effective rows.

        The degrees of freedom come from the effective rows or the units, whichever are fewer.
        """
        if not 0.0 < level < 1.0:
            raise InputError(f"level must be between 0 and 1; found {level}. Use 0.95 for 95%.")
        freedom = min(self.effective_n, self.units) - 1.0
        if freedom < 1.0 - 1e-9 or not np.isfinite(self.stderr):
            return -np.inf, np.inf
        reach = float(special.stdtrit(freedom, 0.5 + level / 2.0)) * self.stderr
        return self.value - reach, self.value + reach

    def rescaled(self, low: float, high: float) -> "Estimate":
        """Translate an estimate of the loss scaled to [−1, 0] back to [low, high]."""
        span = high - low
        return replace(
            self, value=high + span * self.value, stderr=span * self.stderr, bias_bound=span * self.bias_bound
        )

    def __str__(self) -> str:
        low, high = self.interval()
        return f"{self.value:.4g} [{low:.4g}, {high:.4g}]"


@dataclass(frozen=True)
class Rows:
    """What an estimator knows about the rows of a log, under one policy.

    Attributes
    ----------
    log_ratio : (n,)
        log h(y|x) − log p of the logged outputs.
    loss : (n,)
        The logged loss relative to the worst one: at most 0.
    log_propensity : (n,), optional
    predicted, expected : (n,), optional
        A loss model's prediction for the logged output, and its mean under the policy, on the same scale.
    """

    log_ratio: FloatArray
    loss: FloatArray
    log_propensity: FloatArray | None = None
    predicted: FloatArray | None = None
    expected: FloatArray | None = None

    @cached_property
    def ratio(self) -> FloatArray:
        """The importance ratios, unclipped."""
        return np.exp(np.minimum(self.log_ratio, LARGEST_LOG_RATIO))

    def weights(self, unit: IntArray | None) -> FloatArray:
        """Return the importance ratios, summed within each independent unit."""
        return self.ratio if unit is None else np.bincount(unit, self.ratio).astype(np.float64)

    @property
    def model(self) -> tuple[FloatArray, FloatArray]:
        """The loss model's (predicted, expected)."""
        if self.predicted is None or self.expected is None:
            raise InputError("this estimator needs a loss model, and none was given. Use poem.evaluate with model=.")
        return self.predicted, self.expected


@dataclass(frozen=True)
class Terms:
    """The parts of an estimate: constant + mean(base) + Σtop/Σbottom; without ``bottom``, 1 per row.

    ``held`` is how much of each row's term was lost by clipping or shrinking its weight.
    """

    top: FloatArray
    bottom: FloatArray | None = None
    base: FloatArray | None = None
    constant: float = 0.0
    held: FloatArray | None = None

    def by_unit(self, unit: IntArray | None) -> "UnitSums":
        """Sum the terms of the rows of each independent unit."""

        def added(values: FloatArray) -> FloatArray:
            return values if unit is None else np.bincount(unit, values).astype(np.float64)

        count = added(np.ones(len(self.top)))
        bottom = count if self.bottom is None else added(self.bottom)
        base = None if self.base is None else added(self.base)
        held = None if self.held is None else added(self.held)
        return UnitSums(count, added(self.top), bottom, base, self.constant, held)


@dataclass(frozen=True)
class UnitSums:
    """The terms of an estimate, summed within each independent unit."""

    count: FloatArray
    top: FloatArray
    bottom: FloatArray
    base: FloatArray | None
    constant: float
    held: FloatArray | None = None

    def __len__(self) -> int:
        return len(self.count)

    def value(self) -> float:
        """Return the estimate; NaN where no row supports it."""
        bottom = float(self.bottom.sum())
        if bottom <= 0.0:
            return np.nan
        base = 0.0 if self.base is None else float(self.base.sum() / self.count.sum())
        return self.constant + base + float(self.top.sum()) / bottom

    def shares(self) -> FloatArray:
        """Return each unit's share of the error of the value (delta method); shares sum to 0."""
        bottom = self.bottom.sum()
        share: FloatArray = (self.top - self.top.sum() / bottom * self.bottom) / bottom
        if self.base is None:
            return share
        n = self.count.sum()
        whole: FloatArray = share + (self.base - self.base.sum() / n * self.count) / n
        return whole

    def left_out(self) -> FloatArray:
        """Return the estimate without each unit in turn (the jackknife)."""
        with np.errstate(divide="ignore", invalid="ignore"):  # what one unit alone supports has no value without it
            rest: FloatArray = self.constant + (self.top.sum() - self.top) / (self.bottom.sum() - self.bottom)
        if self.base is None:
            return rest
        whole: FloatArray = rest + (self.base.sum() - self.base) / (self.count.sum() - self.count)
        return whole


def effective_number(weights: FloatArray) -> float:
    """Return (Σw)²/Σw²: the number of equal weights that carry as much information."""
    squares = float(weights @ weights)
    return float(weights.sum() ** 2 / squares) if squares > 0.0 else 0.0


def standard_error(shares: FloatArray) -> float:
    """Return the standard error of a value from its units' shares; unbounded for one unit."""
    units = len(shares)
    return float(np.sqrt(units / (units - 1) * (shares @ shares))) if units > 1 else np.inf


@dataclass(frozen=True)
class Estimator(ABC):
    """An off-policy estimator: from the rows of a log to the loss of a policy."""

    name: ClassVar[str]
    needs_model: ClassVar[bool] = False
    pessimistic: ClassVar[bool] = False  # weights that are held back make losses look worse, never better

    @abstractmethod
    def terms(self, rows: Rows) -> Terms:
        """Return the terms of the estimate."""

    def tuned(self, rows: Rows) -> Self:
        """Return the estimator with its automatic parameters set from the data."""
        return self

    def judge(self, rows: Rows, unit: IntArray | None = None) -> Estimate:
        """Estimate the mean loss; rows with the same ``unit`` are not independent."""
        return self.summary(self.terms(rows).by_unit(unit), rows, unit)

    def summary(self, sums: UnitSums, rows: Rows, unit: IntArray | None) -> Estimate:
        """Return the estimate from sums of terms."""
        supported = bool(np.any(rows.ratio > 0.0))
        value = sums.value() if supported else np.nan
        return Estimate(
            value=value,
            stderr=standard_error(sums.shares()) if np.isfinite(value) else np.inf,
            n=len(rows.loss),
            units=len(sums),
            mean_weight=float(rows.ratio.mean()),
            clipped_share=self.clipped_share(rows),
            effective_n=effective_number(rows.weights(unit)),
            bias_bound=_mean_and_two_errors(sums),
        )

    def clipped_share(self, rows: Rows) -> float:
        """Return the share of rows whose weight was held back."""
        return 0.0


def _mean_and_two_errors(sums: UnitSums) -> float:
    """Return the mean of what was held back, which is the bias, plus two standard errors."""
    if sums.held is None:
        return 0.0
    n = float(sums.count.sum())
    mean = float(sums.held.sum()) / n
    share = (sums.held - mean * sums.count) / n
    return mean + 2.0 * float(np.sqrt(share @ share))


@dataclass(frozen=True)
class Weighted(Estimator):
    """An estimator with clipped weights. ``clip`` bounds the ratios: a number M, None, or a rule.

    ``"auto"`` is the ratio of the 90th to the 10th percentile of the propensities, ``"max"`` that
    of the largest to the smallest. Calibration on the training rows resolves both.
    """

    clip: Clip = "auto"

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
        """The logarithm of the largest ratio allowed."""
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
        """Return the ratios with those at the clip set to 0: the derivative of r with respect to log h."""
        return np.where(self.clipped(ratio), 0.0, ratio)

    def held(self, ratio: FloatArray, rows: Rows, what: FloatArray) -> FloatArray | None:
        """Return what the weights above the clip would have added."""
        return None if self.clip is None else (rows.ratio - ratio) * np.abs(what)

    def held_of_ratio(self, ratio: FloatArray, rows: Rows, what: FloatArray) -> FloatArray | None:
        """Return the same for Σr·what/Σr, which the weight above the clip moves by its distance from the ratio."""
        total = float(ratio.sum())
        if self.clip is None or total <= 0.0:
            return None
        return self.held(ratio, rows, (what - float(ratio @ what) / total) / float(rows.ratio.mean()))

    def clipped_share(self, rows: Rows) -> float:
        return float(self.clipped(self.ratios(rows.log_ratio)).mean())

    def estimate(self, log_ratio: FloatArray, loss: FloatArray, unit: IntArray | None = None) -> Estimate:
        """Estimate the mean loss from the log-ratios and losses of a log.

        Rows with the same ``unit`` are not independent; their shares of the error are summed first.
        """
        return self.judge(Rows(log_ratio, loss), unit)
