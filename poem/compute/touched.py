"""Scores of candidates where actions have many features, of which the candidates of a context touch few.

Instead of all of xᵀW, only those of its columns are computed that some candidate of the context has a non-zero in: the
products that occur, and no more. An action's identity among ten thousand is such a feature.
"""

import threading
from typing import Any, cast

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.cutting import cuts_by_work, pairs
from poem.compute.kernels import Threads, inlined, kernel
from poem.compute.linear import DenseDesign, Design, RowGradient, SparseDesign
from poem.compute.offered import OfferedDesign, Rows, SomeOffered
from poem.compute.packed import FloatType

SparseSlopes = tuple[IntArray, IntArray, AnyArray, FloatArray]  # by context: where, how many, columns, values

# How many times more columns there must be than are touched, for it to be faster to compute only these: for whole
# products, and for batches, whose gradients are then collected weight by weight.
FEWER, FEWER_IN_BATCHES = 5, 24
PROBED = 1000  # contexts by which it is told


def touches_few(starts: IntArray, row: AnyArray, z: Rows, k: int, for_batches: bool) -> bool:
    """Tell whether the candidates of a context touch few of the columns, by some of the contexts."""
    some = np.unique(np.linspace(0, max(0, len(starts) - 2), PROBED).astype(np.int64))
    touched = _count(frozen(some), starts, row, z, k) / len(some)
    return touched * (FEWER_IN_BATCHES if for_batches else FEWER) < k


class TouchedDesign(OfferedDesign):
    """The same products as :class:`OfferedDesign`, over the columns that candidates touch.

    Batches take weights as one column, so that a gradient has an entry for each weight that it touches.
    """

    def __init__(self, contexts: Design, starts: IntArray, row: AnyArray, z: Rows) -> None:
        super().__init__(contexts, starts, row, z)
        self._free_slots: list[AnyArray] = []
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
        _score(self._contexts.rows(), self.intercept, contexts, starts, row, self._z, w, k, out)
        return out

    def add_transposed(self, grad: FloatArray, slopes: FloatArray, threads: Threads) -> None:
        k = grad.shape[1]
        entries = self._entries() + (k > self._z[3])
        pointers = np.append(0, np.cumsum(entries))
        columns, values = np.empty(pointers[-1], dtype=np.int32), np.empty(pointers[-1])
        counts, flat = np.empty(self.n_contexts, dtype=np.int64), frozen(slopes)

        def fill(piece: tuple[int, int]) -> None:
            first, last = piece
            part, starts = self.part(flat, slice(first, last), k), self._starts[first : last + 1]
            where = frozen(pointers[first : last + 1])
            _touch(part, starts, self._row, self._z, k, where, counts[first:last], columns, values)

        threads.map(fill, pairs(self.cuts(k)))
        touched = (frozen(pointers), frozen(counts), frozen(columns), frozen(values))
        self._add(grad, touched, threads)
        if self.intercept:
            _add_constant(touched, grad[-1])

    def _add(self, grad: FloatArray, touched: SparseSlopes, threads: Threads) -> None:
        design = self._contexts
        if isinstance(design, DenseDesign):
            X, work = design.X, np.full(self.n_features, int(touched[1].sum()))
            threads.map(lambda piece: _add_dense(X, *piece, touched, grad), pairs(cuts_by_work(work)))
            return
        assert isinstance(design, SparseDesign)
        pointers, contexts, values, features = design.transpose()
        mean = max(1, int(touched[1].mean()))

        def add(piece: tuple[int, int]) -> None:
            first, last = piece
            part = (pointers[first : last + 1], contexts, values)
            _add_sparse(part, features[first:last], touched, grad)

        threads.map(add, pairs(cuts_by_work((np.diff(pointers) + 1) * mean)))

    # ---- batches --------------------------------------------------------------------------

    def widen(self, w: FloatArray, dtype: FloatType = np.float64) -> FloatArray:
        if dtype is np.float64:
            return frozen(w)
        wide: Any = np.array(w, dtype=dtype).reshape(-1, 1)
        return cast(FloatArray, wide)

    def narrow(self, wide: FloatArray, k: int) -> FloatArray:
        return wide.reshape(self.n_weights, k).astype(np.float64)

    def some(self, contexts: IntArray) -> "SomeTouched":
        found = super().some(contexts)
        return SomeTouched(self, contexts, found._own_borders, found._row)

    def _borrow_slot(self, size: int) -> AnyArray:
        """Return an array of -1, one for each weight, that no other thread uses."""
        with self._lock:
            if self._free_slots:
                return self._free_slots.pop()
        return np.full(size, -1, dtype=np.int32)


class SomeTouched(SomeOffered):
    """Some contexts with their candidates."""

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        design = self._touched()
        w = frozen(wide.reshape(design.n_weights, k))
        return design._scored(w, k, self.contexts, self._own_borders, self._row)

    def transposed(self, slopes: FloatArray, k: int, dtype: FloatType) -> RowGradient:
        design = self._touched()
        lengths = design.lengths()[self.contexts] + int(design.intercept)
        each = design._z[0][self._row + 1] - design._z[0][self._row]
        most = int(lengths @ np.add.reduceat(each, self._own_borders[:-1]))
        rows = np.empty(most, dtype=np.int64)
        values: FloatArray = np.empty((most, 1), dtype=dtype)
        slot = design._borrow_slot(design.n_weights * k)
        found = _collect(
            design._contexts.rows(),
            design.intercept,
            frozen(self.contexts),
            frozen(slopes),
            self._own_borders,
            self._row,
            design._z,
            k,
            slot,
            rows,
            values,
        )
        design._free_slots.append(slot)
        return RowGradient(rows[:found], values[:found])

    def _touched(self) -> TouchedDesign:
        assert isinstance(self._offered, TouchedDesign)
        return self._offered


@inlined
def _touched_columns(
    c: int,
    first: int,
    last: int,
    row: AnyArray,
    z: Rows,
    k: int,
    stamp: AnyArray,
    place: AnyArray,
    touched: AnyArray,
) -> int:
    """List the columns that candidates ``first`` to ``last`` touch, and where each is in the list."""
    pointers, columns, _, width = z
    count = 0
    if k > width:
        stamp[width], place[width], touched[0] = c, 0, width
        count = 1
    for a in range(first, last):
        for t in range(pointers[row[a]], pointers[row[a] + 1]):
            j = columns[t]
            if stamp[j] != c:
                stamp[j], place[j], touched[count] = c, count, j
                count += 1
    return count


@kernel
def _count(contexts: IntArray, starts: IntArray, row: AnyArray, z: Rows, k: int) -> int:
    """Return how many columns the candidates of some contexts touch, in all."""
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32)
    total = 0
    for i in range(contexts.shape[0]):
        c = contexts[i]
        total += _touched_columns(i, starts[c], starts[c + 1], row, z, k, stamp, place, touched)
    return total


@kernel
def _score(
    x: tuple[IntArray, IntArray, AnyArray, FloatArray],
    intercept: bool,
    contexts: IntArray,
    starts: IntArray,
    row: AnyArray,
    z: Rows,
    w: FloatArray,
    k: int,
    out: FloatArray,
) -> None:
    begins, ends, x_columns, x_values = x
    pointers, columns, values, width = z
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched, s = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32), np.empty(k)
    start = starts[0]
    for i in range(contexts.shape[0]):
        c = contexts[i]
        count = _touched_columns(i, starts[i], starts[i + 1], row, z, k, stamp, place, touched)
        for u in range(count):
            s[u] = w[w.shape[0] - 1, touched[u]] if intercept else 0.0
        for t in range(begins[c], ends[c]):
            own, v = w[x_columns[t]], x_values[t]
            for u in range(count):
                s[u] += v * own[touched[u]]
        constant = s[0] if k > width else 0.0
        for a in range(starts[i], starts[i + 1]):
            total = constant
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                total += s[place[columns[t]]] * values[t]
            out[a - start] = total


@kernel
def _touch(
    slopes: FloatArray,
    starts: IntArray,
    row: AnyArray,
    z: Rows,
    k: int,
    where: IntArray,
    counts: IntArray,
    out_columns: AnyArray,
    out_values: FloatArray,
) -> None:
    """Fill Σ slope·z of each context as a sparse row; there is room for all of its candidates' non-zeros."""
    pointers, columns, values, width = z
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32)
    start = starts[0]
    for i in range(counts.shape[0]):
        count = _touched_columns(i, starts[i], starts[i + 1], row, z, k, stamp, place, touched)
        counts[i] = count
        at = where[i]
        for u in range(count):
            out_columns[at + u] = touched[u]
            out_values[at + u] = 0.0
        for a in range(starts[i], starts[i + 1]):
            slope = slopes[a - start]
            if k > width:
                out_values[at] += slope
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                out_values[at + place[columns[t]]] += slope * values[t]


@kernel
def _add_sparse(
    x: tuple[IntArray, AnyArray, FloatArray],
    features: IntArray,
    touched: SparseSlopes,
    grad: FloatArray,
) -> None:
    pointers, contexts, x_values = x
    where, counts, columns, values = touched
    for f in range(features.shape[0]):
        own = grad[features[f]]
        for t in range(pointers[f], pointers[f + 1]):
            c, v = contexts[t], x_values[t]
            for u in range(where[c], where[c] + counts[c]):
                own[columns[u]] += v * values[u]


@kernel
def _add_dense(X: FloatArray, first: int, last: int, touched: SparseSlopes, grad: FloatArray) -> None:
    where, counts, columns, values = touched
    for c in range(X.shape[0]):
        for f in range(first, last):
            own, v = grad[f], X[c, f]
            for u in range(where[c], where[c] + counts[c]):
                own[columns[u]] += v * values[u]


@kernel
def _add_constant(touched: SparseSlopes, out: FloatArray) -> None:
    where, counts, columns, values = touched
    for c in range(counts.shape[0]):
        for u in range(where[c], where[c] + counts[c]):
            out[columns[u]] += values[u]


@kernel
def _collect(
    x: tuple[IntArray, IntArray, AnyArray, FloatArray],
    intercept: bool,
    contexts: IntArray,
    slopes: FloatArray,
    borders: IntArray,
    row: AnyArray,
    z: Rows,
    k: int,
    slot: AnyArray,
    rows: IntArray,
    out: FloatArray,
) -> int:
    """Collect the gradient of a batch by weight; ``slot`` is -1 everywhere before and after."""
    begins, ends, x_columns, x_values = x
    pointers, columns, values, _ = z
    kind = out.dtype.type
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched, s = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32), np.empty(k)
    found, constant = 0, slot.shape[0] // k - 1
    for i in range(contexts.shape[0]):
        c = contexts[i]
        count = _touched_columns(i, borders[i], borders[i + 1], row, z, k, stamp, place, touched)
        s[:count] = 0.0
        for a in range(borders[i], borders[i + 1]):
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                s[place[columns[t]]] += slopes[a] * values[t]
        for t in range(begins[c], ends[c] + (1 if intercept else 0)):
            feature, v = (x_columns[t], x_values[t]) if t < ends[c] else (constant, 1.0)
            for u in range(count):
                weight = feature * k + touched[u]
                at = slot[weight]
                if at < 0:
                    slot[weight] = found
                    rows[found] = weight
                    out[found, 0] = kind(v * s[u])
                    found += 1
                else:
                    out[at, 0] += kind(v * s[u])
    for at in range(found):
        slot[rows[at]] = -1
    return found
