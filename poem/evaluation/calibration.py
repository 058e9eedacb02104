"""Set what the paper sets from the log: loss scale (§4.1), clip M and λ* (§4.2)."""

from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from poem.arrays import FloatArray
from poem.data import LARGEST_LOSS, LEAST_SPREAD, BanditLog
from poem.errors import InputError, LearningError
from poem.estimators import LARGEST_LOG_RATIO, Estimator, Weighted
from poem.evaluation.bound import MIN_ROWS
from poem.packed import PackedLog, quantiles_of
from poem.text import counted

PLURAL = {"loss": "losses", "reward": "rewards"}
LossBounds = tuple[float, float] | Literal["auto"]
ClipRule = Literal["given", "P90/P10", "1/P10", "max/min", "none"]
CLIP_QUANTILES = (0.1, 0.9, 0.0, 1.0)
E = TypeVar("E", bound=Estimator)


@dataclass(frozen=True)
class Clips:
    """The clips M that the propensities of a log ask for: the usual one with the rule that it comes from, and the most.

    Under uniform exploration the paper's P90/P10 is 1, which clips every output that a better policy prefers. 1/P10
    lets through what a ratio to such propensities can be at the most.
    """

    auto: float
    rule: ClipRule
    most: float

    @classmethod
    def of(cls, log: BanditLog | PackedLog) -> "Clips":
        """Find the clips of a log."""
        if isinstance(log, PackedLog):
            return cls.between(*quantiles_of(log, "log_propensity", CLIP_QUANTILES, log.backend))
        return cls.between(*np.quantile(log.log_propensity, CLIP_QUANTILES))

    @classmethod
    def between(cls, p10: float, p90: float, low: float, high: float) -> "Clips":
        """Find the clips by ``CLIP_QUANTILES`` of the log-propensities."""
        most = _clip(high - low)
        if p90 - p10 >= 1.0:
            return cls(_clip(p90 - p10), "P90/P10", most)
        return cls(_clip(-p10), "1/P10", most)

    def asked_by(self, estimator: Estimator) -> tuple[float | None, ClipRule]:
        """Return the clip that an estimator asks for, and the rule that it comes from."""
        if not isinstance(estimator, Weighted) or estimator.clip is None:
            return None, "none"
        if not isinstance(estimator.clip, str):
            return float(estimator.clip), "given"
        return (self.most, "max/min") if estimator.clip == "max" else (self.auto, self.rule)

    def set_in(self, estimator: E) -> E:
        """Return an estimator with the clip that it asks for, if it clips."""
        return estimator.with_clip(self.asked_by(estimator)[0]) if isinstance(estimator, Weighted) else estimator


def _clip(log_ratio: float) -> float:
    """Return a clip by its logarithm: at least e, and no more than ratios can be."""
    return float(np.exp(np.clip(log_ratio, 1.0, LARGEST_LOG_RATIO)))


@dataclass(frozen=True)
class Calibration:
    """How the log was scaled: what turns its losses into [−1, 0], and the scales of M and λ.

    ``loss_low`` and ``loss_high`` are always of losses, negated rewards among them; ``bounds`` are of the ``outcome``.
    ``clip`` and ``clip_rule`` are those of the main estimator, ``clips`` has those of any other.
    ``lam_star`` is the λ at which the logging policy's own objective is zero; above it, a policy
    that avoids every logged output looks better than the one that made the log.
    """

    loss_low: float
    loss_high: float
    bounds_from: Literal["given", "data"]
    clip: float | None
    clip_rule: ClipRule
    lam_star: float
    clips: Clips
    outcome: str = "loss"

    @property
    def loss_range(self) -> tuple[float, float]:
        """The lowest and the highest loss."""
        return self.loss_low, self.loss_high

    @property
    def bounds(self) -> tuple[float, float]:
        """The lowest and the highest loss, or reward in a log of rewards: as ``loss_bounds=`` takes them."""
        return _turned(self.loss_range, self.outcome)

    def scale(self, loss: FloatArray) -> FloatArray:
        """Return (loss − high)/(high − low), in [−1, 0]."""
        scaled: FloatArray = (loss - self.loss_high) / (self.loss_high - self.loss_low)
        return scaled

    def __str__(self) -> str:
        clip = "none" if self.clip is None else f"{self.clip:.4g} ({self.clip_rule})"
        low, high = self.bounds
        return (
            f"{self.outcome} from {low:.4g} to {high:.4g} ({self.bounds_from}), clip M {clip}, λ* {self.lam_star:.4g}"
        )


def calibrate(
    log: BanditLog | PackedLog, estimator: Estimator, loss_bounds: LossBounds = "auto", *held: BanditLog | PackedLog
) -> Calibration:
    """Calibrate on the rows that will be trained on; bounds must hold for the held-out ones as well."""
    low, high = loss_range(loss_bounds, log, *held)
    clips = Clips.of(log)
    clip, rule = clips.asked_by(estimator)
    # λ* = −mean/√(Var/n): the logging policy's ratios are all 1, so that u is the loss itself.
    n, mean, variance = _moments(log, high, high - low)
    spread = float(np.sqrt(variance / n))
    lam_star = -mean / spread if spread > 0.0 else 0.0
    source: Literal["given", "data"] = "data" if loss_bounds == "auto" else "given"
    return Calibration(low, high, source, clip, rule, lam_star, clips, log.outcome)


def _moments(log: BanditLog | PackedLog, high: float, span: float) -> tuple[int, float, float]:
    """Return the number, the mean and the variance of the scaled losses."""
    if isinstance(log, BanditLog):
        scaled = (log.loss - high) / span
        return len(scaled), float(scaled.mean()), float(scaled.var(ddof=1))
    n, mean, squares = 0, 0.0, 0.0
    for note in log.shards:  # by Chan, Golub and LeVeque: as exact as two passes
        scaled = (log.column(note, "loss") - high) / span
        count, own = len(scaled), float(scaled.mean())
        away = own - mean
        squares += float(scaled.var()) * count + away**2 * n * count / (n + count)
        mean += away * count / (n + count)
        n += count
    return n, mean, squares / max(n - 1, 1)


def check_learnable(log: BanditLog, force: bool = False) -> None:
    """Refuse a log from which nothing can be learnt, before any work is done."""
    log.need_propensities()
    if len(log) < MIN_ROWS:
        raise LearningError(
            f"the log has {counted(len(log), 'row')}; at least {MIN_ROWS} are needed for the bound that learning rests "
            "on. Collect more rows."
        )
    if bool(np.all(log.y == log.y[0])):
        raise LearningError(
            "every row has the same output (one class or one label set): there is nothing to compare it with. "
            "Learning needs a log in which different outputs were tried."
        )
    if np.ptp(log.loss) == 0.0:
        raise LearningError(
            f"every row has the same {log.outcome} ({_first(log)}): no output can be told to be better than another. "
            "Check that the right column was passed as loss or reward."
        )
    if not force and bool(np.all(log.log_propensity > -1e-12)):
        raise LearningError(
            "every propensity is 1: the logging policy was deterministic. It never tried anything else in any "
            "context, so no amount of its data says what another output would have cost. Log with some "
            "randomness, or pass force=True if you know that contexts make up for it."
        )


def _first(log: BanditLog) -> float:
    """Return the loss or reward of the first row."""
    return float(log.loss[0] if log.outcome == "loss" else 0.0 - log.loss[0])


def check_varied(train: BanditLog) -> None:
    """Refuse rows to train on that all have the same loss."""
    if np.ptp(train.loss) == 0.0:
        raise LearningError(
            f"every one of the {len(train)} training rows has the same {train.outcome} ({_first(train)}). Collect more "
            "rows, hold out fewer, or check the column that was passed as loss or reward."
        )


def loss_range(
    loss_bounds: LossBounds, log: BanditLog | PackedLog, *held: BanditLog | PackedLog
) -> tuple[float, float]:
    """Return the lowest and the highest loss: the bounds that were given, if they hold for all rows, or the extremes.

    ``loss_bounds`` are of what the log has, losses or rewards; what is returned is always of losses.
    """
    lows, highs = zip(*map(_extremes, (log, *held)), strict=True)
    found = min(lows), max(highs)
    if 0.0 < found[1] - found[0] < LEAST_SPREAD:
        raise InputError(
            f"the log's {PLURAL[log.outcome]} differ by {found[1] - found[0]:g} at the most, too little to compute "
            f"with: squares are 0. Multiply every {log.outcome} by the same number."
        )
    if isinstance(loss_bounds, str) and loss_bounds == "auto":
        return found
    given = checked_bounds(loss_bounds, "'auto' or (lowest, highest)")
    low, high = _turned(given, log.outcome)
    if found[0] < low or found[1] > high:
        least, most = _turned(found, log.outcome)
        raise InputError(
            f"loss_bounds= is ({given[0]:g}, {given[1]:g}), but the log's {PLURAL[log.outcome]} go from {least:g} to "
            f"{most:g}. Pass bounds that hold for every possible {log.outcome}."
        )
    return low, high


def _extremes(log: BanditLog | PackedLog) -> tuple[float, float]:
    if isinstance(log, PackedLog):
        return log.loss_range
    return float(log.loss.min()), float(log.loss.max())


def _turned(bounds: tuple[float, float], outcome: str) -> tuple[float, float]:
    """Turn bounds of losses into those of what the log has, and back."""
    low, high = bounds
    return (low, high) if outcome == "loss" else (0.0 - high, 0.0 - low)


def checked_bounds(loss_bounds: Any, form: str = "(lowest, highest)") -> tuple[float, float]:
    """Return the bounds that were given, or say what is wrong with them."""
    try:
        low, high = (float(bound) for bound in loss_bounds)
    except (TypeError, ValueError) as error:
        raise InputError(f"loss_bounds must be {form}; found {loss_bounds!r}.") from error
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        raise InputError(f"loss_bounds must be finite with the lower one first; found {loss_bounds}.")
    if max(abs(low), abs(high)) > LARGEST_LOSS:
        raise InputError(
            f"loss_bounds must be at most {LARGEST_LOSS:g} in size, as losses and rewards; found {loss_bounds}."
        )
    return low, high
