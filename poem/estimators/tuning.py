"""How an estimator that trades bias for variance sets itself: the least (stated bias)² + variance."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from poem.estimators.base import Estimator, Rows

E = TypeVar("E", bound=Estimator)

QUANTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0)


def best_of(candidates: Sequence[E], rows: Rows) -> E:
    """Return the candidate whose bound on the squared error is least; the first of equals."""
    estimates = [candidate.judge(rows) for candidate in candidates]
    errors = [found.bias_bound**2 + found.stderr**2 for found in estimates]
    return candidates[int(np.argmin(np.where(np.isnan(errors), np.inf, errors)))]


def typical_ratios(rows: Rows) -> list[float]:
    """Return some quantiles of the weights, as thresholds to try."""
    return sorted({float(value) for value in np.quantile(rows.ratio, QUANTILES)} - {0.0}) or [1.0]
