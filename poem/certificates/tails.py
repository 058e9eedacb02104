"""Heavy tails and rare extremes: when the largest logged losses say little about how large losses can be."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from poem.arrays import BoolArray, FloatArray

LEAST_TAIL = 5  # numbers that a shape can be fitted to
HEAVY = 0.25  # the Pareto shape from which a tail has no fourth moment: the variance itself can then not be told well
SURELY = 3.3  # standard errors above the shape of an exponential tail, 0
PRIOR, PRIOR_ROWS = 0.5, 10.0  # a weak prior of the shape
KEPT = 0.95  # the share of the mean distance from the median that a cap should keep
FAR = 10.0  # times the usual spread: the distance from the median from which a loss is an extreme
FEW = 0.05  # extremes are at most this share of the rows …
MUCH = 0.1  # … and make up at least this share of the mean


@dataclass(frozen=True)
class Tail:
    """The heavier of the two tails of some losses.

    Attributes
    ----------
    k : float
        Its Pareto shape; −∞ if there is no tail, NaN if it is unknown.
    side : "upper" or "lower"
        Which tail it is: large losses, or large rewards.
    heavy : bool
        Whether its shape is above ¼ and clearly above that of an exponential tail. Expect losses far beyond those in
        the log; the largest logged loss is no bound.
    cap : float
        Where to cap the losses on that side, so that their mean distance from the median falls by 5%. This gives the
        smallest range, and so the shortest interval, for a known and small bias.
    """

    k: float
    side: Literal["upper", "lower"]
    heavy: bool
    cap: float


@dataclass(frozen=True)
class Extremes:
    """A few rows far from all others.

    ``rows`` rows are beyond ``limit`` and make up ``share`` of the mean, or of the variance if losses differ in sign.
    """

    rows: BoolArray
    limit: float
    share: float
    of_mean: bool
    side: Literal["upper", "lower"]


def heavy_tail(loss: FloatArray) -> Tail:
    """Return the heavier tail of the losses. Rewards are negative losses, so large ones are in the lower tail."""
    upper, lower = pareto_k(loss), pareto_k(-loss)
    is_upper = not lower > upper
    k = upper if is_upper else lower
    rows = tail_size(len(loss)) + PRIOR_ROWS
    heavy = bool(k > max(HEAVY, PRIOR * PRIOR_ROWS / rows + SURELY / np.sqrt(rows)))
    cap = _cap(loss) if is_upper else -_cap(-loss)
    return Tail(k, "upper" if is_upper else "lower", heavy, cap)


def _cap(loss: FloatArray) -> float:
    """Return the least c with Σ (loss − c)₊ ≤ (1 − KEPT)·Σ |loss − median|."""
    ordered = np.sort(loss)[::-1]
    allowed = (1.0 - KEPT) * float(np.abs(loss - np.median(loss)).sum())
    above = np.cumsum(ordered) - np.arange(1, len(loss) + 1) * ordered  # what is cut off if the cap is each loss
    last = int(np.searchsorted(above, allowed, side="right")) - 1
    return float(ordered[last] - (allowed - above[last]) / (last + 1))


def extremes(loss: FloatArray) -> Extremes | None:
    """Return the rows whose loss is far from all others, if they are few and matter.

    Losses of 0 or 1 have none, however rare a 1 is: if most losses are exactly 0, there is no usual size.
    """
    low, median, high = np.quantile(loss, [0.1, 0.5, 0.9])
    spread = max(float(high - low), abs(float(median)))
    far = loss - median
    rows = np.abs(far) > FAR * spread
    if spread == 0.0 or not rows.any() or rows.mean() > FEW:
        return None
    of_mean = bool(loss.min() >= 0.0 or loss.max() <= 0.0)
    parts = np.abs(loss) if of_mean else far * far
    share = float(parts[rows].sum() / parts.sum())
    upper = float(far[rows].sum()) > 0.0
    limit = float(median + FAR * spread * (1.0 if upper else -1.0))
    return Extremes(rows, limit, share, of_mean, "upper" if upper else "lower") if share >= MUCH else None


def pareto_k(values: FloatArray, *, tied: float = 0.0) -> float:
    """Return the shape k of a generalised Pareto fit to the largest of some numbers (Zhang & Stephens, 2009).

    For k > ½ the mean has no finite variance, and above 0.7 it is unreliable at any practical n (Vehtari et al., 2024).
    Equal numbers have no tail: −∞. Positive numbers within the share ``tied`` of the least of the largest are left out:
    to the fit, many near ties and a few others look like a heavy tail.
    """
    n = len(values)
    size = tail_size(n)
    if size < LEAST_TAIL:
        return -np.inf if np.ptp(values) == 0.0 else np.nan
    return shape_of_largest(np.sort(np.partition(values, n - size - 1)[n - size - 1 :]), tied=tied)


def shape_of_largest(largest: FloatArray, *, tied: float = 0.0) -> float:
    """Return the same from the largest numbers alone, sorted: one more than :func:`tail_size` says."""
    excess = largest[1:] - (1.0 + tied) * largest[0]
    excess = excess[excess > 0.0]
    if len(excess) < LEAST_TAIL or excess[-1] <= 1e-12 * largest[-1]:
        return -np.inf
    return _generalised_pareto_shape(excess / excess[-1])  # the shape does not depend on the scale


def tail_size(n: int) -> int:
    """Return how many of n numbers are the tail that a shape is fitted to."""
    return int(min(0.2 * n, 3.0 * np.sqrt(n)))


def _generalised_pareto_shape(excess: FloatArray) -> float:
    m = len(excess)
    count = 30 + int(np.sqrt(m))
    quarter = excess[int(m / 4 + 0.5) - 1]
    grid = 1.0 - np.sqrt(count / (np.arange(1, count + 1) - 0.5))
    theta = grid / (3.0 * quarter) + 1.0 / excess[-1]
    theta = np.where(theta == 0.0, 1e-12, theta)  # an exponential tail is the limit, not a case of its own
    shapes = np.array([np.mean(np.log1p(-value * excess)) for value in theta])
    fit = m * (np.log(-theta / shapes) - shapes - 1.0)
    mean_theta = float(theta @ special.softmax(fit))
    k = float(np.mean(np.log1p(-mean_theta * excess)))
    return (k * m + PRIOR * PRIOR_ROWS) / (m + PRIOR_ROWS)
