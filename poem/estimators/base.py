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
from poem.estimators.sums import Sums, Terms, UnitSums, effective_number

Clip = float | Literal["auto", "max"] | None

# e^300: beyond it the square of a ratio would not be finite; no log can tell such ratios apart.
LARGEST_LOG_RATIO = 300.0


@dataclass(frozen=True)
class Estimate:
    """An estimated mean loss or reward, its standard error, and figures that tell whether to trust it.

    The ``n`` rows form ``units`` independent units (groups, or repeated contexts). ``mean_weight`` is the
    mean importance ratio (about 1 if the log supports the policy), ``clipped_share`` the share of rows at
    the clip, and ``effective_n`` is (Σr)²/Σr² over units. ``bias_bound`` is how far clipping or shrinking
    weights has moved the value, plus two standard errors. If no row supports the policy, the value is NaN.
    ``estimator`` is what :func:`poem.estimate` calls the estimator; empty elsewhere.
    """

    value: float
    stderr: float
    n: int
    units: int
    mean_weight: float
    clipped_share: float
    effective_n: float
    bias_bound: float = 0.0
    estimator: str = ""

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

    def as_outcome(self, outcome: str) -> "Estimate":
        """Return an estimate of a loss as one of the log's own outcome: a reward is a negated loss."""
        return self if outcome == "loss" else replace(self, value=0.0 - self.value)

    def __str__(self) -> str:
        low, high = self.interval()
        shown = f"{self.value:.4g} [{low:.4g}, {high:.4g}]"
        return f"{shown} ({self.estimator}, 95% interval)" if self.estimator else shown


@dataclass(frozen=True)
class Whole:
    """What holds for all rows of a log, where an estimator sees some of them at a time.

    Attributes
    ----------
    n : int
        How many rows there are.
    mean_loss, least_loss : float
        Around the worst one.
    middle : float
        The median of the log-propensities.
    ratio_mean, mean_weight : float
        Of a self-normalised estimator with a clip, Σr·what/Σr; and the mean of the unclipped ratios.
    """

    n: int
    mean_loss: float
    least_loss: float
    middle: float
    ratio_mean: float = 0.0
    mean_weight: float = 1.0


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
    whole : Whole, optional
        What holds for all rows, if these are some of them.
    repeated : (n,), optional
        The probability that the policy chooses one output twice, Σ h(y|x)².
    scatter : (n,), optional
        The squared error that is usual where the loss model predicts what it does for this row.
    """

    log_ratio: FloatArray
    loss: FloatArray
    log_propensity: FloatArray | None = None
    predicted: FloatArray | None = None
    expected: FloatArray | None = None
    whole: Whole | None = None
    repeated: FloatArray | None = None
    scatter: FloatArray | None = None

    @cached_property
    def ratio(self) -> FloatArray:
        """The importance ratios, unclipped."""
        return np.exp(np.minimum(self.log_ratio, LARGEST_LOG_RATIO))

    def weights(self, unit: IntArray | None) -> FloatArray:
        """Return the importance ratios, summed within each independent unit."""
        return self.ratio if unit is None else np.bincount(unit, self.ratio).astype(np.float64)

    @property
    def n(self) -> int:
        """The number of all rows."""
        return len(self.loss) if self.whole is None else self.whole.n

    @property
    def mean_loss(self) -> float:
        """The mean loss of all rows."""
        return float(self.loss.mean()) if self.whole is None else self.whole.mean_loss

    @property
    def least_loss(self) -> float:
        """The least loss of all rows."""
        return float(self.loss.min()) if self.whole is None else self.whole.least_loss

    @property
    def middle(self) -> float:
        """The median of the log-propensities of all rows."""
        if self.whole is not None:
            return self.whole.middle
        assert self.log_propensity is not None
        return float(np.median(self.log_propensity))

    @property
    def model(self) -> tuple[FloatArray, FloatArray]:
        """The loss model's (predicted, expected)."""
        if self.predicted is None or self.expected is None:
            raise InputError("this estimator needs a loss model, and none was given. Use poem.evaluate with model=.")
        return self.predicted, self.expected

    def luck(self, ratio: FloatArray, error: FloatArray) -> FloatArray | None:
        """Return by how much the usual (r·error)² of each row exceeds its own, if it is known what is usual."""
        return None if self.scatter is None else ratio**2 * (self.scatter - error**2)


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
        weights = effective_number(rows.weights(unit))
        return estimate_of(sums, float(rows.ratio.mean()), self.clipped_share(rows), weights)

    def clipped_share(self, rows: Rows) -> float:
        """Return the share of rows whose weight was held back."""
        return 0.0


def estimate_of(sums: Sums, mean_weight: float, clipped_share: float, effective_n: float) -> Estimate:
    """Return the estimate from sums of terms and figures of the weights; without any weight it has no value.

    The standard error counts luck.
    """
    value = sums.value() if mean_weight > 0.0 else np.nan
    return Estimate(
        value=value,
        stderr=float(np.hypot(sums.stderr(), sums.stderr_of_luck())) if np.isfinite(value) else np.inf,
        n=sums.n_rows,
        units=sums.n_units,
        mean_weight=mean_weight,
        clipped_share=clipped_share,
        effective_n=effective_n,
        bias_bound=sums.held_back(),
    )


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
        if self.clip is None:
            return None
        if rows.whole is not None:
            return self.held(ratio, rows, (what - rows.whole.ratio_mean) / rows.whole.mean_weight)
        total = float(ratio.sum())
        if total <= 0.0:
            return None
        return self.held(ratio, rows, (what - float(ratio @ what) / total) / float(rows.ratio.mean()))

    def clipped_share(self, rows: Rows) -> float:
        return float(self.clipped(self.ratios(rows.log_ratio)).mean())

    def estimate(self, log_ratio: FloatArray, loss: FloatArray, unit: IntArray | None = None) -> Estimate:
        """Estimate the mean loss from the log-ratios and losses of a log.

        Rows with the same ``unit`` are not independent; their shares of the error are summed first.
        """
        return self.judge(Rows(log_ratio, loss), unit)
