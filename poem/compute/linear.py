"""X·w and its transpose: the linear half of every score, for dense and for CSR contexts.

Weights are (d, k), or (d + 1, k) with an intercept as the last row: the constant feature of the
paper's experiments without a copy of X. Products are cut into pieces of about equal numbers of non-zeros; the
cut depends on the data alone, so results are the same for any number of threads.
"""

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.cutting import cuts_by_work, even_cuts, pairs
from poem.compute.kernels import Threads
from poem.compute.matrix import Matrix, is_sparse
from poem.compute.packed import FloatType, lanes_for, packed, packed_zeros
from poem.compute.row_products import add_rows_times, rows_times, scatter, some_rows_times

DENSE_ENOUGH = 2 / 3  # where 8 bytes an entry are less than the 12 of a non-zero


@dataclass(frozen=True)
class RowGradient:
    """A gradient that is zero outside some rows, and some columns, of the wide weights."""

    rows: IntArray
    values: FloatArray


class Design(ABC):
    """A block of contexts as one factor of a product with the weights.

    All products take *wide* weights, which :meth:`widen` makes from plain ones.
    """

    def __init__(self, shape: tuple[int, int], intercept: bool) -> None:
        self.n_contexts, self.n_features = shape
        self.intercept = intercept

    @property
    def n_weights(self) -> int:
        """The number of rows of the weights."""
        return self.n_features + int(self.intercept)

    @abstractmethod
    def block(self, first: int, last: int) -> "Design":
        """Return contexts ``first`` to ``last`` as a view."""

    @abstractmethod
    def lengths(self) -> IntArray:
        """Return how many features of each context are stored, (m,)."""

    @abstractmethod
    def cuts(self, k: int) -> IntArray:
        """Return the borders of pieces of contexts of about equal work."""

    @abstractmethod
    def rows(self) -> tuple[IntArray, IntArray, AnyArray, FloatArray]:
        """Return the contexts as sparse rows: where each begins and ends, columns, values."""

    def scores_per_context(self, k: int) -> float:
        """Return how many numbers the scores of a context take, while they are computed."""
        return float(k)

    @property
    def borders(self) -> IntArray | None:
        """Where the candidates of each context begin, if contexts have candidates of their own."""
        return None

    @property
    def contexts(self) -> "Design":
        """The contexts alone, without candidates."""
        return self

    def widen(self, w: FloatArray, dtype: FloatType = np.float64) -> FloatArray:
        """Return a copy of w as the products want it."""
        return packed(w, dtype)

    def narrow(self, wide: FloatArray, k: int) -> FloatArray:
        """Undo :meth:`widen`."""
        return wide[:, :k].astype(np.float64)

    @abstractmethod
    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        """Return X·w for all contexts of this block, (m, k)."""

    def room(self, k: int) -> FloatArray:
        """Return zeros for the slopes of all scores, as :meth:`add_transposed` wants them: packed (m, k)."""
        return packed_zeros(self.n_contexts, k)

    def part(self, slopes: FloatArray, contexts: slice, k: int) -> FloatArray:
        """Return the slopes of some neighbouring contexts as a view in the shape of their scores."""
        return slopes[contexts, :k]

    @abstractmethod
    def add_transposed(self, grad: FloatArray, slopes: FloatArray, threads: Threads) -> None:
        """Add Xᵀ·slopes to ``grad`` in the form of plain weights, where ``slopes`` come from :meth:`room`."""

    def some(self, contexts: IntArray) -> "SomeContexts":
        """Return some contexts, in any order, for one batch."""
        return SomeContexts(self, contexts)

    @abstractmethod
    def batch_scores(self, wide: FloatArray, k: int, contexts: IntArray) -> FloatArray:
        """Return X·w for some contexts, (b, k)."""

    @abstractmethod
    def batch_transposed(self, contexts: IntArray, slopes: FloatArray) -> RowGradient:
        """Return Xᵀ·slopes for some contexts in the form of wide weights, where ``slopes`` is packed (b, k)."""


class SomeContexts:
    """A batch of contexts as one factor of a product with wide weights."""

    def __init__(self, design: Design, contexts: IntArray) -> None:
        self._design, self.contexts = design, contexts

    @property
    def borders(self) -> IntArray | None:
        """Where the candidates of each context begin, if contexts have candidates of their own."""
        return None

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        """Return X·w, (b, k)."""
        return self._design.batch_scores(wide, k, self.contexts)

    def transposed(self, slopes: FloatArray, k: int, dtype: FloatType) -> RowGradient:
        """Return Xᵀ·slopes in the form of wide weights, where ``slopes`` have the shape of the scores."""
        wide: FloatArray = np.zeros((len(self.contexts), lanes_for(k)), dtype=dtype)
        wide[:, :k] = slopes
        return self._design.batch_transposed(self.contexts, wide)


def design_of(X: Matrix, intercept: bool, rows: IntArray | None = None, for_batches: bool = False) -> Design:
    """Wrap all or some rows of a dense or CSR matrix; CSR that is mostly full is smaller and faster as a dense one.

    A design ``for_batches`` has its columns in the order of their frequency.
    """
    if not is_sparse(X) or X.nnz > DENSE_ENOUGH * X.shape[0] * X.shape[1]:
        some = X if rows is None else X[rows]
        return DenseDesign(frozen(some.toarray()) if is_sparse(X) else some, intercept)
    columns, order = _frequent_first(X) if for_batches else (frozen(X.indices), None)
    pointers = X.indptr.astype(np.int64)
    begins, ends = (pointers[:-1], pointers[1:]) if rows is None else (pointers[rows], pointers[rows + 1])
    return SparseDesign((frozen(begins), frozen(ends)), columns, frozen(X.data), X.shape[1], intercept, order)


class DenseDesign(Design):
    """Dense contexts: the products are BLAS's."""

    def __init__(self, X: FloatArray, intercept: bool) -> None:
        super().__init__(X.shape, intercept)
        self.X = X
        self._rows: tuple[IntArray, IntArray, AnyArray, FloatArray] | None = None
        self._building = threading.Lock()

    def block(self, first: int, last: int) -> "DenseDesign":
        return DenseDesign(self.X[first:last], self.intercept)

    def lengths(self) -> IntArray:
        return np.full(self.n_contexts, self.n_features, dtype=np.int64)

    def rows(self) -> tuple[IntArray, IntArray, AnyArray, FloatArray]:
        with self._building:
            if self._rows is None:
                borders = self.n_features * np.arange(self.n_contexts + 1)
                columns = np.tile(np.arange(self.n_features, dtype=np.int32), self.n_contexts)
                self._rows = frozen(borders[:-1]), frozen(borders[1:]), frozen(columns), frozen(self.X.ravel())
        return self._rows

    def cuts(self, k: int) -> IntArray:
        return even_cuts(self.n_contexts, self.X.size * k)

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        return self._product(self.X, wide, k)

    def _product(self, X: FloatArray, wide: FloatArray, k: int) -> FloatArray:
        scores: FloatArray = X @ wide[: self.n_features, :k]
        if self.intercept:
            scores += wide[-1, :k]
        return scores

    def add_transposed(self, grad: FloatArray, slopes: FloatArray, threads: Threads) -> None:
        narrow = slopes[:, : grad.shape[1]]

        def add(piece: tuple[int, int]) -> None:
            first, last = piece
            grad[first:last] += self.X[:, first:last].T @ narrow

        threads.map(add, pairs(even_cuts(self.n_features, self.X.size * grad.shape[1])))
        if self.intercept:
            grad[-1] += narrow.sum(axis=0)

    def batch_scores(self, wide: FloatArray, k: int, contexts: IntArray) -> FloatArray:
        return self._product(self.X[contexts], wide, k)

    def batch_transposed(self, contexts: IntArray, slopes: FloatArray) -> RowGradient:
        values = np.empty((self.n_weights, slopes.shape[1]), dtype=slopes.dtype)
        values[: self.n_features] = self.X[contexts].T @ slopes
        if self.intercept:
            values[-1] = slopes.sum(axis=0)
        return RowGradient(np.arange(self.n_weights), values)


class SparseDesign(Design):
    """CSR contexts: both products are one loop over rows, of X and of its transpose.

    Batches go through the weights in no order. With the frequent features side by side, more of what they touch stays
    in the cache (an epoch takes a fifth less): ``order`` lists the features that way, and ``columns`` are positions in
    it. Whole products gain less from it than the reordering of the weights costs.
    """

    def __init__(
        self,
        rows: tuple[IntArray, IntArray],
        columns: AnyArray,
        data: FloatArray,
        n_features: int,
        intercept: bool,
        order: IntArray | None,
    ) -> None:
        self._begins, self._ends = rows
        super().__init__((len(self._begins), n_features), intercept)
        self._columns, self._data, self._order = columns, data, order
        self._transposed: tuple[IntArray, AnyArray, FloatArray, IntArray] | None = None
        self._free_slots: list[IntArray] = []
        self._building = threading.Lock()

    def block(self, first: int, last: int) -> "SparseDesign":
        rows = self._begins[first:last], self._ends[first:last]
        return SparseDesign(rows, self._columns, self._data, self.n_features, self.intercept, self._order)

    def lengths(self) -> IntArray:
        return self._ends - self._begins

    def rows(self) -> tuple[IntArray, IntArray, AnyArray, FloatArray]:
        return self._begins, self._ends, self._columns, self._data

    def cuts(self, k: int) -> IntArray:
        return cuts_by_work((self.lengths() + 1) * k)  # a row itself counts as one

    def widen(self, w: FloatArray, dtype: FloatType = np.float64) -> FloatArray:
        return packed(w, dtype, self._order)

    def narrow(self, wide: FloatArray, k: int) -> FloatArray:
        if self._order is None:
            return super().narrow(wide, k)
        w = np.empty((self.n_weights, k))
        w[self._order] = wide[: self.n_features, :k]
        w[self.n_features :] = wide[self.n_features :, :k]
        return w

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        out = np.empty((self.n_contexts, k))
        rows_times(self._begins, self._ends, self._columns, self._data, frozen(wide), self._offset(wide), out)
        return out

    def _offset(self, wide: FloatArray) -> FloatArray:
        return frozen(wide[-1] if self.intercept else np.zeros(wide.shape[1], dtype=wide.dtype))

    def transpose(self) -> tuple[IntArray, AnyArray, FloatArray, IntArray]:
        """Return Xᵀ of this block as CSR over the features that occur: pointers, contexts, values, features."""
        with self._building:
            if self._transposed is None:
                self._transposed = self._transpose()
        return self._transposed

    def _transpose(self) -> tuple[IntArray, AnyArray, FloatArray, IntArray]:
        lengths = self.lengths()
        pointers = np.append(0, np.cumsum(lengths))
        entries: Any = slice(self._begins[0], self._ends[-1])
        if pointers[-1] != self._ends[-1] - self._begins[0]:  # some rows are left out
            entries = np.repeat(self._begins - pointers[:-1], lengths) + np.arange(pointers[-1])
        block = sp.csr_array(
            (self._data[entries], self._columns[entries], pointers), shape=(self.n_contexts, self.n_features)
        )
        by_feature = block.tocsc()
        present = np.flatnonzero(np.diff(by_feature.indptr))
        pointers = np.append(by_feature.indptr[present], by_feature.indptr[-1])
        return (
            frozen(pointers, np.int64),
            frozen(by_feature.indices, np.int32),
            frozen(by_feature.data),
            frozen(present, np.int64),
        )

    def add_transposed(self, grad: FloatArray, slopes: FloatArray, threads: Threads) -> None:
        pointers, contexts, values, features = self.transpose()
        dense = frozen(slopes)

        def add(piece: tuple[int, int]) -> None:
            first, last = piece
            begins, ends = pointers[first:last], pointers[first + 1 : last + 1]
            add_rows_times(begins, ends, contexts, values, dense, features[first:last], grad)

        threads.map(add, pairs(cuts_by_work((np.diff(pointers) + 1) * grad.shape[1])))
        if self.intercept:
            grad[-1] += slopes[:, : grad.shape[1]].sum(axis=0)

    def batch_scores(self, wide: FloatArray, k: int, contexts: IntArray) -> FloatArray:
        out = np.empty((len(contexts), k))
        begins, ends = self._begins, self._ends
        some_rows_times(begins, ends, self._columns, self._data, contexts, frozen(wide), self._offset(wide), out)
        return out

    def batch_transposed(self, contexts: IntArray, slopes: FloatArray) -> RowGradient:
        most = min(len(contexts) * self._longest, self.n_features) + 1
        rows, values = np.empty(most, dtype=np.int64), np.empty((most, slopes.shape[1]), dtype=slopes.dtype)
        slot = self._borrow_slot()
        found = scatter(self._begins, self._ends, self._columns, self._data, contexts, slopes, slot, rows, values)
        self._free_slots.append(slot)
        if self.intercept:
            rows[found], values[found] = self.n_features, slopes.sum(axis=0)
            found += 1
        return RowGradient(rows[:found], values[:found])

    @cached_property
    def _longest(self) -> int:
        """The most non-zeros that a context has."""
        return int(self.lengths().max(initial=0))

    def _borrow_slot(self) -> IntArray:
        """Return an array of -1, one for each feature, that no other thread uses."""
        try:
            return self._free_slots.pop()
        except IndexError:
            return np.full(self.n_features, -1, dtype=np.int64)


def _frequent_first(X: Any) -> tuple[AnyArray, IntArray]:
    """Return the non-zeros' columns as positions in the order of frequency, and that order."""
    order = np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")
    rank = np.empty(X.shape[1], dtype=X.indices.dtype)
    rank[order] = np.arange(X.shape[1])
    return frozen(rank[X.indices]), frozen(order, np.int64)
