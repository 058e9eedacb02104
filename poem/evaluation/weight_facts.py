"""What the weights of a policy on a log are like, in numbers: what the findings of a diagnosis are made of."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.certificates import pareto_k
from poem.estimators import LARGEST_LOG_RATIO, Rows, Terms, effective_number, standard_error

CERTAIN = 1e-9  # a propensity nearer to 1 than this leaves nothing for other outputs
TIED = 0.01  # weights this close to each other, as a share, count as equal in the tail
CLIPS = tuple(2.0**power for power in range(0, 11))
ALIKE = 1e-12  # of the largest loss per unit: shares below it are rounding


@dataclass(frozen=True)
class WeightFacts:
    """The weights of one policy on one log, unit by unit.

    Attributes
    ----------
    units : int
        Independent ones.
    effective : float
        (Σw)²/Σw² over units.
    mean, stderr : float
        Of the weights.
    largest : float
        The largest unit's share of all weight.
    clipped : float
        The share of the weight that the clip takes away.
    shape : float
        The Pareto shape of the largest weights.
    moved : float
        How far the estimate moves if all weights above the 99th percentile are cut back to it.
    events : float or None
        How many outcomes decide; None if all that count are the same.
    unsupported : float
        The mean probability of outputs other than one that was logged with certainty.
    cut : int
        How many weights are too large to compute with.
    clip_curve : tuple of (clip, value)
    """

    units: int
    effective: float
    mean: float
    stderr: float
    largest: float
    clipped: float
    shape: float
    moved: float
    events: float | None
    unsupported: float
    cut: int
    clip_curve: tuple[tuple[float, float], ...]


def weight_facts(rows: Rows, unit: IntArray | None, clip: float | None) -> WeightFacts:
    """Look at the weights of rows in memory."""
    ratio, weights, total = rows.ratio, rows.weights(unit), float(rows.ratio.sum())
    kept = total if clip is None else float(np.minimum(ratio, clip).sum())
    return WeightFacts(
        units=len(weights),
        effective=effective_number(weights),
        mean=total / len(ratio),
        stderr=standard_error(Terms(ratio).by_unit(unit).shares()),
        largest=share_of(float(weights.max()), total, 1.0),
        clipped=1.0 - share_of(kept, total, 1.0),
        shape=pareto_k(weights, tied=TIED),
        moved=_moved(rows),
        events=_events(rows, unit),
        unsupported=float(np.mean(unsupported_rows(rows))),
        cut=int(np.count_nonzero(rows.log_ratio > LARGEST_LOG_RATIO)),
        clip_curve=clip_curve(
            float(ratio.max()), [float(np.mean(np.minimum(ratio, clip) * rows.loss)) for clip in (*CLIPS, np.inf)]
        ),
    )


def share_of(part: float, total: float, otherwise: float) -> float:
    """Return a share; ``otherwise`` if there is nothing to have a share of."""
    return part / total if total > 0.0 else otherwise


def clip_curve(largest: float, values: list[float]) -> tuple[tuple[float, float], ...]:
    """Return the clips below the largest weight and that itself, with the values of clipped IPS."""
    below = [(clip, value) for clip, value in zip(CLIPS, values[:-1], strict=True) if clip < largest]
    return (*below, (max(largest, 1.0), values[-1]))


def unsupported_rows(rows: Rows) -> FloatArray:
    """Return the probability of other outputs in rows that were logged with certainty, and 0 in all others."""
    if rows.log_propensity is None:
        return np.zeros(len(rows.loss))
    certain = rows.log_propensity > -CERTAIN
    return np.where(certain, np.maximum(1.0 - rows.ratio, 0.0), 0.0)  # r is h(y|x) there


def moved_by(cut: float, whole: float) -> float:
    """Return how far an estimate moves if its largest weights are cut back."""
    return abs(cut / whole - 1.0) if whole != 0.0 else 0.0


def _moved(rows: Rows) -> float:
    whole = float(np.mean(rows.ratio * rows.loss))
    return moved_by(float(np.mean(np.minimum(rows.ratio, np.quantile(rows.ratio, 0.99)) * rows.loss)), whole)


def _events(rows: Rows, unit: IntArray | None) -> float | None:
    """Return how many outcomes decide SNIPS."""
    d = Terms(rows.ratio * rows.loss, rows.ratio).by_unit(unit).shares() if rows.ratio.any() else np.zeros(1)
    largest = float(np.abs(d).max())
    if not largest > ALIKE * float(np.abs(rows.loss).max()) / len(d):
        return None
    d = d / largest
    return events_of(float(d @ d), float(np.sum(d**3)), len(d))


def events_of(squares: float, cubes: float, units: int) -> float:
    """Return (Σd²)³/(Σd³)² of the units' shares d in the error of an estimate: 1/skewness² per unit."""
    return min(squares**3 / max(cubes**2, 1e-300), float(units))
