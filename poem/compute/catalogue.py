"""Scores of candidates that come from a small catalogue, and contexts of few features.

z·(xᵀW) = x·(Wz), and Wz is the same for a candidate in all contexts. So an action has weights of its own, which are
made once for all contexts, and each candidate costs one product with its context, however many features it has.
"""

from functools import cached_property

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.cutting import pairs
from poem.compute.kernels import Threads, kernel
from poem.compute.linear import DenseDesign
from poem.compute.offered import OfferedDesign, Rows
from poem.compute.packed import FloatType

# Multiply-adds that take as long as one here: of a dense product with all columns, and of one non-zero of z.
DENSE_AS_FAST, ENTRY_AS_SLOW = 6, 10
SMALL = 2000  # actions of a catalogue; with more of them than features of actions, their weights take memory


def is_catalogue(contexts: DenseDesign, starts: IntArray, z: Rows, k: int) -> bool:
    """Tell whether candidates come from a catalogue, and it is faster to multiply each with its context."""
    actions, d = len(z[0]) - 1, contexts.n_features
    each = (starts[-1] - starts[0]) / max(1, contexts.n_contexts)
    others = d * k / (DENSE_AS_FAST * each) + ENTRY_AS_SLOW * z[0][-1] / max(1, actions)
    return actions <= max(k, SMALL) and bool(d <= others)


class CatalogueDesign(OfferedDesign):
    """The same products as :class:`OfferedDesign`, for dense contexts; it has no batches.

    Wide weights are those of the actions, (actions, d) or (actions, d + 1).
    """

    def __init__(self, contexts: DenseDesign, starts: IntArray, row: AnyArray, z: Rows) -> None:
        super().__init__(contexts, starts, row, z)
        self._X = contexts.X

    @cached_property
    def _features(self) -> sp.csr_array:
        """The features of the actions."""
        pointers, columns, values, width = self._z
        return sp.csr_array((values, columns, pointers), shape=(len(pointers) - 1, width))

    @cached_property
    def _features_transposed(self) -> sp.csr_array:
        return self._features.T.tocsr()

    def block(self, first: int, last: int) -> "CatalogueDesign":
        contexts = DenseDesign(self._X[first:last], self.intercept)
        return CatalogueDesign(contexts, self._starts[first : last + 1], self._row, self._z)

    def scores_per_context(self, k: int) -> float:
        return len(self.room(k)) / max(1, self.n_contexts)

    def _work(self, k: int) -> IntArray:
        return np.diff(self._starts) * self.n_weights

    def widen(self, w: FloatArray, dtype: FloatType = np.float64) -> FloatArray:
        width = self._z[3]
        wide = self._features @ w[:, :width].T
        return frozen(wide + w[:, width] if w.shape[1] > width else wide, dtype)

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        out = self.room(k)
        _score(self._X, self.intercept, self._starts, self._row, wide, out)
        return out

    def add_transposed(self, grad: FloatArray, slopes: FloatArray, threads: Threads) -> None:
        k, width, flat = grad.shape[1], self._z[3], frozen(slopes)

        def added(piece: tuple[int, int]) -> FloatArray:
            first, last = piece
            total, part = np.zeros((len(self._z[0]) - 1, self.n_weights)), self.part(flat, slice(first, last), k)
            _add(self._X[first:last], self.intercept, self._starts[first : last + 1], self._row, part, total)
            return total

        by_action = np.sum(threads.map(added, pairs(self.cuts(k))), axis=0)
        grad[:, :width] += (self._features_transposed @ by_action).T
        if k > width:
            grad[:, width] += by_action.sum(axis=0)


@kernel
def _score(X: FloatArray, intercept: bool, starts: IntArray, row: AnyArray, w: FloatArray, out: FloatArray) -> None:
    """Fill the product of each candidate's weights with its context."""
    d = X.shape[1]
    for c in range(X.shape[0]):
        x = X[c]
        for a in range(starts[c], starts[c + 1]):
            own = w[row[a]]
            total = own[d] if intercept else 0.0
            for f in range(d):
                total += own[f] * x[f]
            out[a - starts[0]] = total


@kernel
def _add(X: FloatArray, intercept: bool, starts: IntArray, row: AnyArray, slopes: FloatArray, out: FloatArray) -> None:
    """Add each context, times the slope of its candidate, to the gradient of that action's weights."""
    d = X.shape[1]
    for c in range(X.shape[0]):
        x = X[c]
        for a in range(starts[c], starts[c + 1]):
            own, slope = out[row[a]], slopes[a - starts[0]]
            for f in range(d):
                own[f] += slope * x[f]
            if intercept:
                own[d] += slope
