"""X·w and its transpose for CSR contexts."""

import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.cutting import cuts_by_work, pairs
from poem.compute.gradients import SummedGradient, Terms
from poem.compute.kernels import Threads
from poem.compute.linear import DenseDesign, Design, SomePlain, runs
from poem.compute.matrix import Matrix, is_sparse
from poem.compute.packed import FloatType, packed, packed_zeros
from poem.compute.row_products import (
    add_rows_times,
    copy_rows,
    rows_times,
    scatter_rows,
    some_rows_times,
    sort_by_feature,
)

DENSE_ENOUGH = 2 / 3  # where 8 bytes an entry are less than the 12 of a non-zero


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
        rows_times(self._begins, self._ends, self._columns, self._data, frozen(wide), self.offset(wide), out)
        return out

    def offset(self, wide: FloatArray) -> FloatArray:
        """Return what the intercept adds to all scores."""
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

    def add_once(self, grad: FloatArray, slopes: FloatArray) -> None:
        k = grad.shape[1]
        wide = packed_zeros(self.n_features, k)
        scatter_rows(self._begins, self._ends, self._columns, self._data, frozen(slopes), wide)
        grad[: self.n_features] += wide[:, :k]
        if self.intercept:
            grad[-1] += slopes[:, :k].sum(axis=0)

    def batch_scores(self, wide: FloatArray, k: int, contexts: IntArray) -> FloatArray:
        out = np.empty((len(contexts), k))
        begins, ends = self._begins, self._ends
        some_rows_times(begins, ends, self._columns, self._data, contexts, frozen(wide), self.offset(wide), out)
        return out

    def batches(self, contexts: IntArray, size: int) -> "list[SomeSparse]":
        """Return batches of contexts whose rows lie side by side, also sorted by feature."""
        lengths = self._ends[contexts] - self._begins[contexts]
        pointers = frozen(np.append(0, np.cumsum(lengths)))
        columns, data = np.empty(pointers[-1], dtype=self._columns.dtype), np.empty(pointers[-1])
        copy_rows(*self.rows(), contexts, pointers, columns, data)
        rows = pointers[:-1], pointers[1:], frozen(columns), frozen(data)
        parts = runs(len(contexts), size)
        terms = self._by_feature(pointers, rows[2], rows[3], size, len(parts))
        return [
            SomeSparse(self, contexts[part], (rows[0][part], rows[1][part], *rows[2:]), own)
            for part, own in zip(parts, terms, strict=True)
        ]

    def _by_feature(
        self, pointers: IntArray, columns: AnyArray, data: FloatArray, size: int, count: int
    ) -> Iterator[Terms]:
        """Yield the terms of each batch's gradient by feature, the constant last."""
        total, n = int(pointers[-1]), len(pointers) - 1
        features, ends = np.empty((2, total + count), dtype=np.int64)
        which, factors = np.empty(total + n, dtype=np.int32), np.empty(total + n)
        cuts, slot = np.zeros((count + 1, 2), dtype=np.int64), self._borrow_slot()
        constant = self.n_features if self.intercept else -1
        sort_by_feature(pointers, columns, data, size, constant, slot, cuts, features, ends, which, factors)
        self._free_slots.append(slot)
        terms = frozen(features), frozen(ends), frozen(which), frozen(factors)
        for (a, t), (b, u) in pairwise(cuts.tolist()):
            yield terms[0][a:b], terms[1][a:b], terms[2][t:u], terms[3][t:u]

    def _borrow_slot(self) -> IntArray:
        """Return an array of -1, one for each feature, that no other thread uses."""
        try:
            return self._free_slots.pop()
        except IndexError:
            return np.full(self.n_features, -1, dtype=np.int64)


class SomeSparse(SomePlain):
    """Some sparse contexts: their ``rows``, and the same as the terms of a gradient by feature."""

    def __init__(
        self,
        design: SparseDesign,
        contexts: IntArray,
        rows: tuple[IntArray, IntArray, AnyArray, FloatArray],
        terms: Terms,
    ) -> None:
        super().__init__(contexts)
        self._design, self.rows, self._terms = design, rows, terms

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        out = np.empty((len(self.contexts), k))
        rows_times(*self.rows, frozen(wide), self._design.offset(wide), out)
        return out

    def offset(self, wide: FloatArray) -> FloatArray:
        """Return what the intercept adds to all scores."""
        return self._design.offset(wide)

    def collected(self, slopes: FloatArray) -> SummedGradient:
        return SummedGradient(*self._terms, frozen(slopes))


PlainDesign = DenseDesign | SparseDesign


def design_of(X: Matrix, intercept: bool, rows: IntArray | None = None, for_batches: bool = False) -> PlainDesign:
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


def _frequent_first(X: Any) -> tuple[AnyArray, IntArray]:
    """Return the non-zeros' columns as positions in the order of frequency, and that order."""
    order = np.argsort(-np.bincount(X.indices, minlength=X.shape[1]), kind="stable")
    rank = np.empty(X.shape[1], dtype=X.indices.dtype)
    rank[order] = np.arange(X.shape[1])
    return frozen(rank[X.indices]), frozen(order, np.int64)
