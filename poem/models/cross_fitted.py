"""One loss model for each fold of a log: none predicts rows that it has seen."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import Threads
from poem.data import BanditLog, Layout, beside, folds_of
from poem.models.chosen import Strengths, chosen_strengths, fit_for_estimates
from poem.models.fitted import ContextLosses, ListedLosses, LossModel
from poem.models.linear import linear_strength
from poem.models.offered import losses_on
from poem.structures import Available

CANDIDATES = 1 << 15  # that are predicted at once


@dataclass(frozen=True)
class CrossFitted:
    """Models of which none has seen the rows that it predicts: ``fold`` says which one each row takes.

    ``shared`` says that a policy's own probabilities may have a share in what is predicted.
    """

    models: tuple[LossModel, ...]
    fold: IntArray
    shared: bool = False

    @property
    def name(self) -> str:
        """What the models are called."""
        return self.models[0].name

    def of_rows(self, rows: IntArray) -> "CrossFitted":
        """Return the models for some rows of the log."""
        return replace(self, fold=self.fold[rows])

    def on(self, layout: Layout, fold: int, bounds: tuple[float, float], threads: Threads) -> ContextLosses:
        """Return what the model of one fold says of a layout's contexts, with ``bounds`` as −1 and 0."""
        every = np.zeros(layout.n_contexts, dtype=np.int64)
        return losses_on(layout, (self.models[fold],), every, bounds, threads, keep=False)


@dataclass(frozen=True)
class Enumerated:
    """A regressor's predictions for every class in every context, by fold: (folds, contexts, k).

    Where contexts have candidates of their own, they are those of the candidates: (folds, N).
    """

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
    fold: IntArray | None = None,
) -> CrossFitted:
    """Fit one loss model for each fold of the log's units on all other folds; ``fold`` is that of each row, if known.

    With ``bounds``, the lowest and the highest loss, it is the kind that predicts held-out losses best, and policies
    may have a share in it; without them, it is a linear one.
    """
    fold, threads = folds_of(log, folds, seed) if fold is None else fold, threads or Threads()
    shared = bounds is not None
    if bounds is None:
        bounds, strengths = (0.0, 1.0), Strengths(linear_strength(log, seed, threads))
    else:
        strengths = chosen_strengths(log, bounds, seed, threads)
    models = [fit_for_estimates(log.take(fold != part), strengths, bounds, threads) for part in range(folds)]
    return CrossFitted(tuple(models), fold, shared)


def enumerate_regressor(log: BanditLog, regressor: Any, folds: int, seed: int) -> Enumerated:
    """Fit a scikit-learn regressor for each fold of the log's units on all other folds."""
    fold = folds_of(log, folds, seed)
    return enumerated(log, fit_regressors(log, regressor, fold), fold)


def fit_regressors(log: BanditLog, regressor: Any, fold: IntArray) -> tuple[Any, ...]:
    """Fit a scikit-learn regressor for each fold on the rows of all others."""
    from sklearn.base import clone

    rows = [np.flatnonzero(fold != part) for part in range(int(fold.max()) + 1)]
    return tuple(clone(regressor).fit(_logged_features(log, some), log.loss[some]) for some in rows)


def enumerated(log: BanditLog, fitted: Sequence[Any], fold: IntArray) -> Enumerated:
    """Return what the regressors of all folds say of every output in every context of a log."""
    tell = _every_class if log.available is None else _every_candidate
    return Enumerated(np.stack([tell(log, one) for one in fitted]), fold, type(fitted[0]).__name__)


def _logged_features(log: BanditLog, rows: IntArray) -> Any:
    """Return the contexts of some rows beside the features of what was chosen."""
    context, y = log.context[rows], log.y[rows]
    if log.available is None:
        return _with_class(log.X[context], y, len(log.labels))
    places = log.available.starts[context] + log.available.positions(context, y)
    return _with_action(log, log.available, context, places)


def _every_class(log: BanditLog, fitted: Any) -> FloatArray:
    """Return what a fitted regressor says of every class in every context, (contexts, k)."""
    k = len(log.labels)
    columns = (fitted.predict(_with_class(log.X, np.full(log.n_contexts, label), k)) for label in range(k))
    return np.column_stack(list(columns))


def _every_candidate(log: BanditLog, fitted: Any) -> FloatArray:
    """Return what a fitted regressor says of every candidate, flat; some of them at a time."""
    available = log.available
    assert available is not None
    owner = np.repeat(np.arange(log.n_contexts), available.counts())
    losses = np.empty(len(available))
    for first in range(0, len(losses), CANDIDATES):
        places = np.arange(first, min(first + CANDIDATES, len(losses)))
        losses[places] = fitted.predict(_with_action(log, available, owner[places], places))
    return losses


def _with_action(log: BanditLog, available: Available, context: IntArray, places: IntArray) -> Any:
    """Return contexts beside the features of some candidates, or beside one column per class if they have none."""
    X = log.X[context]
    if available.features is None:
        return _with_class(X, available.action[places], len(log.labels))
    return beside(X, available.features[places if available.row is None else available.row[places]])


def _with_class(X: Any, y: AnyArray, k: int) -> Any:
    """Return contexts with the chosen class as k more columns."""
    return beside(X, sp.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), k)))
