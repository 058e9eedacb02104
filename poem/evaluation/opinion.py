"""A policy's own probabilities as a loss model: an output costs 1 − h(y|x), as a share of the range of losses.

A policy was learnt elsewhere, from rows that this log lacks, so that it often knows what a short log cannot tell. What
it says gets a share β in what is predicted: m + β·(1 − h − m), in units of that range. The share of a fold is the one
of the least squared error on the rows of all other folds, weighted by r², as the variance of DR weighs it. Any β that
does not depend on the row leaves DR unbiased.
"""

from dataclasses import dataclass, replace

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.estimators import Rows

DOUBT = 5.0  # rows that speak for the loss model alone
PLENTY = 0.2  # of a share, from which on usual errors count in full


@dataclass(frozen=True)
class Opinion:
    """How much a policy's own probabilities count in the loss model, and how large its errors usually are.

    Attributes
    ----------
    shares : tuple of float
        β of each fold.
    share : float
        The mean of β over rows.
    factor : float
        φ: squared errors are usually φ·m·(1 − m), where m is the prediction as a share of the range of losses. They
        count as far as the policy has a share: without one, all is as if it were not asked.
    """

    shares: tuple[float, ...]
    share: float
    factor: float

    @classmethod
    def of(cls, rows: Rows, fold: IntArray, folds: int, span: float) -> "Opinion":
        """Learn it from rows; ``fold`` is that of the model that has not seen the row, ``span`` the range of losses."""
        predicted, _ = rows.model
        shares = _shares(rows.ratio, _step(rows, span), rows.loss - predicted, fold, folds)
        found = cls(tuple(shares.tolist()), float(shares[fold].mean()), 0.0)
        predicted, _ = found.heard(rows, fold, span).model
        errors, usual = rows.loss - predicted, float(_usual(predicted, span).sum())
        return replace(found, factor=float(errors @ errors) / usual if usual > 0.0 else 0.0)

    def heard(self, rows: Rows, fold: IntArray, span: float) -> Rows:
        """Give the policy its share in what the loss model predicts for rows, and say how these errors scatter."""
        assert rows.repeated is not None
        predicted, expected = rows.model
        share = np.array(self.shares)[fold]
        predicted = predicted + share * _step(rows, span)
        expected = expected + share * (-span * rows.repeated - expected)
        squares = (rows.loss - predicted) ** 2
        scatter = squares + min(1.0, self.share / PLENTY) * (self.factor * _usual(predicted, span) - squares)
        return replace(rows, predicted=predicted, expected=expected, scatter=scatter)


def _usual(predicted: FloatArray, span: float) -> FloatArray:
    """Return m·(1 − m) of each row: the variance of a loss that is one of two."""
    m = np.clip(1.0 + predicted / span, 0.0, 1.0)
    return np.asarray(m * (1.0 - m))


def _step(rows: Rows, span: float) -> FloatArray:
    """Return how far it is from what the loss model predicts to what the policy says."""
    assert rows.log_propensity is not None
    log_prob = rows.log_ratio + rows.log_propensity
    return np.asarray(-span * np.exp(log_prob) - rows.model[0])


def _shares(ratio: FloatArray, step: FloatArray, missed: FloatArray, fold: IntArray, folds: int) -> FloatArray:
    """Return the share of each fold, from the rows of the others: a regression of what was missed on the step."""
    weight = (ratio / max(float(ratio.max()), 1e-300)) ** 2  # no square is too large
    others = 1.0 - np.eye(folds)
    sums = [weight * step * missed, weight * step * step, weight, weight * weight]
    product, square, total, squares = (others @ np.bincount(fold, each, folds) for each in sums)
    bottom = square * (1.0 + DOUBT * squares / np.maximum(total * total, 1e-300))
    return np.clip(np.divide(product, bottom, out=np.zeros(folds), where=bottom > 0.0), 0.0, 1.0)
