"""One loss model for each fold of a log: none predicts rows that it has seen."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import FloatArray, IntArray
from poem.compute import Threads, is_sparse
from poem.data import BanditLog, Layout, folds_of
from poem.models.chosen import Strengths, chosen_strengths, fit_for_estimates
from poem.models.fitted import ContextLosses, ListedLosses, LossModel, losses_on
from poem.models.linear import linear_strength


@dataclass(frozen=True)
class CrossFitted:
    """Models of which none has seen the rows that it predicts: ``fold`` says which one each row takes."""

    models: tuple[LossModel, ...]
    fold: IntArray

    @property
    def name(self) -> str:
        """What the models are called."""
        return self.models[0].name

    def of_rows(self, rows: IntArray) -> "CrossFitted":
        """Return the models for some rows of the log."""
        return CrossFitted(self.models, self.fold[rows])

    def on(self, layout: Layout, fold: int, bounds: tuple[float, float], threads: Threads) -> ContextLosses:
        """Return what the model of one fold says of a layout's contexts, with ``bounds`` as −1 and 0."""
        every = np.zeros(layout.n_contexts, dtype=np.int64)
        return losses_on(layout, (self.models[fold],), every, bounds, threads, keep=False)


@dataclass(frozen=True)
class Enumerated:
    """A regressor's predictions for every class in every context, by fold: (folds, contexts, k)."""

    losses: FloatArray
    fold: IntArray
    name: str = "regressor"

    def of_rows(self, rows: IntArray) -> "Enumerated":
        """Return the model for some rows of the log."""
        return Enumerated(self.losses, self.fold[rows], self.name)

    def on(self, layout: Layout, fold: int, bounds: tuple[float, float], threads: Threads) -> ContextLosses:
        """Return what the model of one fold says of a layout's contexts, with ``bounds`` as −1 and 0."""
        return ListedLosses(layout, self.losses[fold], bounds, threads)


Model = CrossFitted | Enumerated


def cross_fit(
    log: BanditLog,
    folds: int = 2,
    *,
    bounds: tuple[float, float] | None = None,
    seed: int = 0,
    threads: Threads | None = None,
) -> CrossFitted:
    """Fit one loss model for each fold of the log's units on all other folds.

    With ``bounds``, the lowest and the highest loss, it is the kind that predicts held-out losses best; without them,
    it is a linear one.
    """
    fold, threads = folds_of(log, folds, seed), threads or Threads()
    if bounds is None:
        bounds, strengths = (0.0, 1.0), Strengths(linear_strength(log, seed, threads))
    else:
        strengths = chosen_strengths(log, bounds, seed, threads)
    models = [fit_for_estimates(log.take(fold != part), strengths, bounds, threads) for part in range(folds)]
    return CrossFitted(tuple(models), fold)


def enumerate_regressor(log: BanditLog, regressor: Any, folds: int, seed: int) -> Enumerated:
    """Fit a scikit-learn regressor for each fold of the log's units on all other folds."""
    from sklearn.base import clone

    fold, k = folds_of(log, folds, seed), len(log.labels)
    losses = np.empty((folds, log.n_contexts, k))
    for part in range(folds):
        rows = np.flatnonzero(fold != part)
        fitted = clone(regressor).fit(_with_class(log.X[log.context[rows]], log.y[rows], k), log.loss[rows])
        for label in range(k):
            features = _with_class(log.X, np.full(log.n_contexts, label), k)
            losses[part, :, label] = fitted.predict(features)
    return Enumerated(losses, fold, type(regressor).__name__)


def _with_class(X: Any, y: IntArray, k: int) -> Any:
    """Return contexts with the chosen class as k more columns."""
    if is_sparse(X):
        chosen = sp.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), k))
        joined = sp.csr_array(sp.hstack([X, chosen], format="csr"))
        # Trees want narrow indices.
        joined.indices, joined.indptr = joined.indices.astype(np.int32), joined.indptr.astype(np.int32)
        return joined
    return np.hstack([X, np.eye(k)[y]])
