"""Ship, keep running, or stop? A comparison with what is logged that may be looked at at any time."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from poem.arrays import FloatArray, frozen
from poem.data import BanditLog
from poem.errors import InputError
from poem.estimators import LARGEST_LOG_RATIO, Bets, Capital, check_level, lower_bound
from poem.evaluation.calibration import PLURAL, checked_bounds
from poem.policies import NO_POLICY, judge_one
from poem.text import counted

Answer = Literal["ship", "keep running", "stop"]


@dataclass(frozen=True)
class Look:
    """What a gate knew after so many rows: the estimated gain, its bounds, and the answer."""

    rows: int
    gain: float
    lower: float
    upper: float
    answer: Answer


class Gate:
    """Decides on a policy while the log grows: a confidence sequence for its gain over what was logged.

    The gain is the logged loss less the policy's, averaged over the rows so far: above 0 is better. With probability
    ``confidence``, at *all* times together, it is above ``lower`` and below ``upper``, so that one may look
    after every row and end the comparison at any moment. That holds if propensities were logged and are right, losses
    stay within ``loss_bounds``, and rows come in time order; the logger may adapt to past rows. What the log does not
    support counts as the worst loss in ``lower`` and as the best one in ``upper``.

    Parameters
    ----------
    policy : policy or object with ``predict_proba(X)``
        Fixed before the first row: it must not be trained on these rows.
    loss_bounds : (lowest, highest)
        What a loss can be, or a reward if the logs hold rewards.
    confidence : float
    margin : float
        The gain to decide on: "ship" if the gain is above it, "stop" if it is below. In units of the loss.

    Attributes
    ----------
    rows : int
    gain : float
        The estimate by IPS, NaN before the first row.
    decided_at : int or None
        After how many rows the answer was found.
    """

    def __init__(
        self, policy: Any, *, loss_bounds: tuple[float, float], confidence: float = 0.95, margin: float = 0.0
    ) -> None:
        if policy is None:
            raise InputError(NO_POLICY.format(name="the policy"))
        self.policy, self.confidence = policy, _checked_confidence(confidence)
        self.low, self.high = checked_bounds(loss_bounds)
        self.span = self.high - self.low
        if not isinstance(margin, int | float | np.number) or not abs(margin) < self.span:
            raise InputError(
                f"margin must be a gain that is smaller than the range of the loss, {self.span:g}; found {margin!r}."
            )
        self.margin = float(margin)
        self.rows = 0
        self.decided_at: int | None = None
        self._answer: Answer = "keep running"
        self._sides = tuple(_Side(sign * self.margin / self.span, (1.0 - confidence) / 2.0) for sign in (1.0, -1.0))
        self._time = -np.inf

    def update(self, log: BanditLog) -> Answer:
        """Take in the next rows, in time order, and return the answer."""
        if not isinstance(log, BanditLog):
            raise InputError(f"update takes a BanditLog of the next rows; found {type(log).__name__}.")
        reward, ratio = self._checked_rewards(log), self._ratios(log)
        self._check_time(log)
        better, worse = self._sides
        crossed = better.add((ratio - 1.0) * reward), worse.add((ratio - 1.0) * (1.0 - reward))
        if self.decided_at is None and min(crossed) < len(log):
            self._answer = "ship" if crossed[0] <= crossed[1] else "stop"
            self.decided_at = self.rows + min(crossed) + 1
        self.rows += len(log)
        return self._answer

    @property
    def answer(self) -> Answer:
        """What is known by now; an answer other than "keep running" is final."""
        return self._answer

    @property
    def gain(self) -> float:
        """How much less the policy would have lost per row, by IPS around the worst loss."""
        return self.span * self._sides[0].mean()

    @property
    def lower(self) -> float:
        """What the gain exceeds with the given confidence: at all times, if the gain itself does not change."""
        return self.span * self._sides[0].bound()

    @property
    def upper(self) -> float:
        """What the gain stays below with the given confidence: at all times, if the gain itself does not change."""
        return -self.span * self._sides[1].bound()

    def look(self) -> Look:
        """Return all of it at once."""
        return Look(self.rows, self.gain, self.lower, self.upper, self.answer)

    def __repr__(self) -> str:
        if self.rows == 0:
            return "Gate: keep running; no rows yet"
        interval = f"[{self.lower:.4g}, {self.upper:.4g}]"
        return f"Gate: {self.answer}; gain {self.gain:.4g} {interval} over {counted(self.rows, 'row')}"

    # ---- checks ---------------------------------------------------------------------------

    def _checked_rewards(self, log: BanditLog) -> FloatArray:
        """Return losses, or rewards, as rewards from 0 to 1."""
        seen: FloatArray = log.loss if log.outcome == "loss" else 0.0 - log.loss
        outside = np.flatnonzero((seen < self.low) | (seen > self.high))
        if len(outside):
            row = int(outside[0])
            raise InputError(
                f"{PLURAL[log.outcome]} must be within loss_bounds ({self.low:g}, {self.high:g}); row "
                f"{self.rows + row} has {seen[row]:g}. Nothing was added. Start again with bounds that hold for "
                f"every possible {log.outcome}, or cap it."
            )
        return np.asarray((self.high - seen if log.outcome == "loss" else seen - self.low) / self.span)

    def _ratios(self, log: BanditLog) -> FloatArray:
        log.need_propensities()
        if log.propensities != "logged":
            raise InputError(
                f"the propensities of this log are {log.propensities}, and a gate rests on their being right. "
                "Log the probability of each decision."
            )
        log_ratio = judge_one("policy", self.policy, log).log_prob - log.log_propensity
        return np.exp(np.minimum(log_ratio, LARGEST_LOG_RATIO))

    def _check_time(self, log: BanditLog) -> None:
        if log.time is None:
            return
        early = np.flatnonzero(np.diff(log.time, prepend=self._time) < 0.0)
        if len(early):
            raise InputError(
                f"rows must come in time order; row {self.rows + int(early[0])} is earlier than the one before. "
                "Nothing was added. Sort the log by time."
            )
        self._time = float(log.time[-1])


class _Side:
    """Terms of at least −1, one per row, and the capital of betting that their mean exceeds ``null``."""

    def __init__(self, null: float, alpha: float) -> None:
        self.bets, self.alpha = Bets.everywhere(), alpha
        self.capital = Capital(self.bets, null + 1.0, alpha)
        self.parts: list[FloatArray] = []
        self._bound = -1.0

    def add(self, terms: FloatArray) -> int:
        """Take in more terms; return the position of the one at which 1/α was reached, or how many there are."""
        self.parts.append(frozen(terms))
        self._bound = np.nan
        return self.capital.add(frozen(terms + 1.0))

    def terms(self) -> FloatArray:
        if len(self.parts) > 1:
            self.parts = [frozen(np.concatenate(self.parts))]
        return self.parts[0] if self.parts else frozen(np.array([]))

    def mean(self) -> float:
        terms = self.terms()
        return float(terms.mean()) if len(terms) else np.nan

    def bound(self) -> float:
        """Return what the mean exceeds."""
        if np.isnan(self._bound):
            self._bound = lower_bound(self.terms(), -1.0, self.alpha, self.bets)
        return self._bound


def _checked_confidence(confidence: float) -> float:
    try:
        return check_level(confidence)
    except InputError as error:
        raise InputError(str(error).replace("level", "confidence")) from error
