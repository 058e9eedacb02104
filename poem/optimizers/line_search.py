"""A line search for the strong Wolfe conditions (Nocedal & Wright, algorithms 3.5 and 3.6)."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray
from poem.optimizers.base import Smooth

DECREASE, CURVATURE = 1e-3, 0.9
MOST_TRIALS = 20
GROWTH = 4.0


@dataclass(frozen=True)
class Found:
    """A point along the direction: step length, value, slope along it, and gradient."""

    length: float
    value: float
    slope: float
    gradient: FloatArray


def search(
    problem: Smooth, x: FloatArray, value: float, gradient: FloatArray, direction: FloatArray, first: float
) -> Found | None:
    """Return a point of sufficient decrease, flat enough if possible; None if nothing descends.

    The clip makes the objective's slope jump, so perhaps no point is flat enough. The lowest point of
    sufficient decrease is then returned.
    """
    slope = float(np.vdot(gradient, direction))
    if not slope < 0.0:
        return None
    low = Found(0.0, value, slope, gradient)
    high: Found | None = None
    length = first
    for _ in range(MOST_TRIALS):
        new_value, new_gradient = problem(x + length * direction)
        new = Found(length, new_value, float(np.vdot(new_gradient, direction)), new_gradient)
        if not np.isfinite(new_value) or new_value > value + DECREASE * length * slope or new_value >= low.value:
            high = new
        elif abs(new.slope) <= -CURVATURE * slope:
            return new
        else:
            if new.slope * ((high.length if high else np.inf) - length) >= 0.0:
                high = low
            low = new
        if high is not None and abs(high.length - low.length) <= 1e-9 * max(low.length, high.length):
            break
        length = GROWTH * length if high is None else _between(low, high)
    return low if low.length > 0.0 else None


def _between(low: Found, high: Found) -> float:
    """Return the minimiser of the cubic through both ends, kept away from them."""
    width = high.length - low.length
    a, b = low.length + 0.1 * width, low.length + 0.9 * width
    inner, outer = min(a, b), max(a, b)
    if not np.isfinite(high.value):
        return low.length + 0.1 * width
    with np.errstate(over="ignore", invalid="ignore"):
        step = _cubic(low, high, width)
    return float(np.clip(step, inner, outer)) if np.isfinite(step) else low.length + 0.5 * width


def _cubic(low: Found, high: Found, width: float) -> float:
    """Return where the cubic through both ends has its minimum; NaN if it has none, or slopes are too large to say."""
    d1 = low.slope + high.slope - 3.0 * (high.value - low.value) / width
    under = d1 * d1 - low.slope * high.slope
    if under < 0.0:
        return np.nan
    d2 = np.copysign(np.sqrt(under), width)
    bottom = high.slope - low.slope + 2.0 * d2
    return float(high.length - width * (high.slope + d2 - d1) / bottom) if bottom != 0.0 else np.nan
