"""Tuning of estimators that trade bias for variance: minimise (bound on the bias)² + variance."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

from poem.arrays import FloatArray
from poem.estimators.base import Rows

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


class _Shrinking(Protocol):
    def used(self, rows: Rows) -> FloatArray:
        """Return the weights that replace the ratios."""


S = TypeVar("S", bound=_Shrinking)


def best_of(candidates: Sequence[S], rows: Rows) -> S:
    """Return the candidate with the lowest bound on the squared error; the first one on ties.

    The missing weight is 1 minus the mean of the used weights: ratios have a mean of 1, and the mean of weights
    without their tail is known far better than that of the tail. At worst it bears the model's largest error.
    """
    predicted, expected = rows.model
    error = rows.loss - predicted
    largest, n = float(np.abs(error).max()), rows.n

    def squared_error(candidate: S) -> float:
        used = candidate.used(rows)
        bias = largest * max(1.0 - float(used.mean()), 0.0)
        return bias**2 + float((expected + used * error).var()) / n

    return min(candidates, key=squared_error)


def typical_ratios(rows: Rows) -> list[float]:
    """Return some quantiles of the weights, as thresholds to try."""
    return sorted({float(value) for value in np.quantile(rows.ratio, QUANTILES)} - {0.0}, reverse=True) or [1.0]
