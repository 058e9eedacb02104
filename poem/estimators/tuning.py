"""How an estimator that trades bias for variance sets itself: the least (bound on its bias)² + variance."""

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

from poem.arrays import FloatArray
from poem.estimators.base import Rows

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


class _Shrinking(Protocol):
    def used(self, rows: Rows) -> FloatArray:
        """Return the weights that are used in place of the ratios."""


S = TypeVar("S", bound=_Shrinking)


def best_of(candidates: Sequence[S], rows: Rows) -> S:
    """Return the candidate whose bound on the squared error is least; the first of equals.

    The weight that is missing is 1 less the mean of what is used: ratios have a mean of 1, and that of
    weights without their tail is known far better than the tail's own. At worst it bears the model's largest error.
    """
    predicted, expected = rows.model
    error = rows.loss - predicted
    largest, n = float(np.abs(error).max()), len(error)

    def squared_error(candidate: S) -> float:
        used = candidate.used(rows)
        bias = largest * max(1.0 - float(used.mean()), 0.0)
        return bias**2 + float((expected + used * error).var()) / n

    return min(candidates, key=squared_error)


def typical_ratios(rows: Rows) -> list[float]:
    """Return some quantiles of the weights, as thresholds to try."""
    return sorted({float(value) for value in np.quantile(rows.ratio, QUANTILES)} - {0.0}, reverse=True) or [1.0]
