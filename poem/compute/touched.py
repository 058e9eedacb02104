"""Scores of candidates where actions have many features, of which the candidates of a context touch few.

Instead of all of xᵀW, only those of its columns are computed that some candidate of the context has a non-zero in: the
products that occur, and no more. An action's identity among ten thousand is such a feature.
"""

import threading
from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.cutting import cuts_by_work, pairs
from poem.compute.gradients import RowGradient
from poem.compute.kernels import Threads
from poem.compute.linear import DenseDesign, runs
from poem.compute.offered import OfferedDesign, Rows, SomeOffered, cut_runs
from poem.compute.packed import FloatType
from poem.compute.sparse import PlainDesign, SparseDesign
from poem.compute.touched_kernels import (
    SparseSlopes,
    add_constant,
    add_dense,
    add_sparse,
    collect_batch,
    count_touched,
    score_dense,
    score_sparse,
    touch_rows,
)

# How many times more columns there must be than are touched, for it to be faster to compute only these: for whole
# products, and for batches, whose gradients are then collected weight by weight.
FEWER, FEWER_IN_BATCHES = 16, 24
PROBED = 1000  # contexts by which it is told


def touches_few(starts: IntArray, row: AnyArray, z: Rows, k: int, for_batches: bool) -> bool:
    """Tell whether the candidates of a context touch few of the columns, by some of the contexts."""
    some = np.unique(np.linspace(0, max(0, len(starts) - 2), PROBED).astype(np.int64))
    touched = count_touched(frozen(some), starts, row, z, k) / len(some)
    return touched * (FEWER_IN_BATCHES if for_batches else FEWER) < k


class TouchedDesign(OfferedDesign):
    """The same products as :class:`OfferedDesign`, over the columns that candidates touch.

    Batches take weights as one column, so that a gradient has an entry for each weight that it touches.
    """

    def __init__(self, contexts: PlainDesign, starts: IntArray, row: AnyArray, z: Rows) -> None:
        super().__init__(contexts, starts, row, z)
        self._free_slots: list[AnyArray] = []
        self._column_cuts: dict[int, IntArray] = {}
        self._lock = threading.Lock()

    def block(self, first: int, last: int) -> "TouchedDesign":
        return TouchedDesign(self._contexts.block(first, last), self._starts[first : last + 1], self._row, self._z)

    def scores_per_context(self, k: int) -> float:
        return float(self._entries().sum()) / max(1, self.n_contexts)

    def _work(self, k: int) -> IntArray:
        return (self.lengths() + 1) * self._entries()

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        every = frozen(np.arange(self.n_contexts))
        return self._scored(frozen(wide), k, every, self._starts, self._row)

    def _scored(self, w: FloatArray, k: int, contexts: IntArray, starts: IntArray, row: AnyArray) -> FloatArray:
        out = np.empty(int(starts[-1] - starts[0]))
        if isinstance(self._contexts, DenseDesign):
            score_dense(self._contexts.X, self.intercept, contexts, starts, row, self._z, w, out)
        else:
            score_sparse(self._contexts.rows(), self.intercept, contexts, starts, row, self._z, w, k, out)
        return out

    def add_transposed(self, grad: FloatArray, slopes: FloatArray, threads: Threads) -> None:
        k = grad.shape[1]
        entries = self._entries() + (k > self._z[3])
        pointers = np.append(0, np.cumsum(entries))
        columns, values = np.zeros(pointers[-1], dtype=np.int32), np.empty(pointers[-1])
        counts, flat = np.empty(self.n_contexts, dtype=np.int64), frozen(slopes)

        def fill(piece: tuple[int, int]) -> None:
            first, last = piece
            part, starts = self.part(flat, slice(first, last), k), self._starts[first : last + 1]
            where = frozen(pointers[first : last + 1])
            touch_rows(part, starts, self._row, self._z, k, where, counts[first:last], columns, values)

        threads.map(fill, pairs(self.cuts(k)))
        touched = (frozen(pointers), frozen(counts), frozen(columns), frozen(values))
        self._add(grad, touched, threads)
        if self.intercept:
            add_constant(touched, grad[-1])

    def _add(self, grad: FloatArray, touched: SparseSlopes, threads: Threads) -> None:
        design = self._contexts
        if isinstance(design, DenseDesign):
            by_column = np.zeros((grad.shape[1], self.n_features))
            k = grad.shape[1]
            if k not in self._column_cuts:
                self._column_cuts[k] = cuts_by_work(np.bincount(touched[2], minlength=k) * self.n_features)
            cuts = pairs(self._column_cuts[k])
            threads.map(lambda piece: add_dense(design.X, *piece, touched, by_column), cuts)
            grad[: self.n_features] += by_column.T
            return
        assert isinstance(design, SparseDesign)
        pointers, contexts, values, features = design.transpose()
        mean = max(1, int(touched[1].mean()))

        def add(piece: tuple[int, int]) -> None:
            first, last = piece
            part = (pointers[first : last + 1], contexts, values)
            add_sparse(part, features[first:last], touched, grad)

        threads.map(add, pairs(cuts_by_work((np.diff(pointers) + 1) * mean)))

    # ---- batches --------------------------------------------------------------------------

    def widen(self, w: FloatArray, dtype: FloatType = np.float64) -> FloatArray:
        if dtype is np.float64:  # columns of W side by side, if whole contexts are multiplied with them
            return frozen(w.T if isinstance(self._contexts, DenseDesign) else w)
        wide: Any = np.array(w, dtype=dtype).reshape(-1, 1)
        return cast(FloatArray, wide)

    def narrow(self, wide: FloatArray, k: int) -> FloatArray:
        return wide.reshape(self.n_weights, k).astype(np.float64)

    def batches(self, contexts: IntArray, size: int) -> Sequence["SomeTouched"]:
        borders, row, _ = self._candidates(contexts)
        parts = runs(len(contexts), size)
        return [SomeTouched(self, contexts[part], *cut_runs(borders, row, part)) for part in parts]

    def _borrow_slot(self, size: int) -> AnyArray:
        """Return an array of -1, one for each weight, that no other thread uses."""
        with self._lock:
            if self._free_slots:
                return self._free_slots.pop()
        return np.full(size, -1, dtype=np.int32)


class SomeTouched(SomeOffered):
    """Some contexts with their candidates."""

    def __init__(self, design: TouchedDesign, contexts: IntArray, borders: IntArray, row: AnyArray) -> None:
        super().__init__(contexts, borders, row, design._z)
        self._design = design

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        design = self._design
        if wide.shape == (design.n_weights * k, 1):
            w = wide.reshape(design.n_weights, k)
            wide = frozen(w.T if isinstance(design.contexts, DenseDesign) else w)
        return design._scored(wide, k, self.contexts, self._borders, self._row)

    def transposed(self, slopes: FloatArray, k: int, dtype: FloatType) -> RowGradient:
        design = self._design
        lengths = design.lengths()[self.contexts] + int(design.intercept)
        each = design._z[0][self._row + 1] - design._z[0][self._row]
        most = int(lengths @ np.add.reduceat(each, self._borders[:-1]))
        rows = np.empty(most, dtype=np.int64)
        values: FloatArray = np.empty((most, 1), dtype=dtype)
        slot = design._borrow_slot(design.n_weights * k)
        found = collect_batch(
            design._contexts.rows(),
            design.intercept,
            frozen(self.contexts),
            frozen(slopes),
            self._borders,
            self._row,
            design._z,
            k,
            slot,
            rows,
            values,
        )
        design._free_slots.append(slot)
        return RowGradient(rows[:found], values[:found])
