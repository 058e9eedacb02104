"""Scores of candidates: z·(xᵀW) of each candidate of each context, ragged.

S = X·W has one row per context and one column per feature of an action; a candidate's score is the product of its
features z with the row of its context. So both directions are a ragged product beside those of the contexts.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.cutting import cuts_by_work, pairs
from poem.compute.gradients import RowGradient, SummedGradient
from poem.compute.kernels import Threads, kernel
from poem.compute.linear import DenseDesign, Design, SomeContexts, SomePlain, runs
from poem.compute.packed import LANES, FloatType, lanes_for, packed_zeros
from poem.compute.row_products import row_times
from poem.compute.sparse import PlainDesign, SomeSparse

Rows = tuple[IntArray, AnyArray, FloatArray, int]  # CSR: pointers, columns, values, and how many columns there are


def ragged_places(starts: IntArray, counts: IntArray) -> IntArray:
    """Return the places of runs that begin at ``starts``, one after the other."""
    before = np.append(0, np.cumsum(counts))
    return np.asarray(np.repeat(starts - before[:-1], counts) + np.arange(before[-1]))


class OfferedDesign(Design):
    """Contexts with candidates of their own.

    Parameters
    ----------
    contexts : Design
        The products of the contexts.
    starts : (m + 1,) int
        Candidates ``starts[c]`` to ``starts[c + 1]`` belong to context c.
    row : (N,) int
        The row of ``z`` that describes each candidate.
    z : CSR arrays
        Features of actions. Weights with one more column than these have the constant 1 as another feature.
    """

    def __init__(self, contexts: PlainDesign, starts: IntArray, row: AnyArray, z: Rows) -> None:
        super().__init__((contexts.n_contexts, contexts.n_features), contexts.intercept)
        self._contexts, self._starts, self._row, self._z = contexts, frozen(starts), row, z
        self._cuts: dict[int, IntArray] = {}

    @property
    def contexts(self) -> PlainDesign:
        return self._contexts

    @property
    def borders(self) -> IntArray:
        """Where the candidates of each context begin, from 0."""
        return frozen(self._starts - self._starts[0])

    def block(self, first: int, last: int) -> "OfferedDesign":
        return OfferedDesign(self._contexts.block(first, last), self._starts[first : last + 1], self._row, self._z)

    def lengths(self) -> IntArray:
        return self._contexts.lengths()

    def cuts(self, k: int) -> IntArray:
        if k not in self._cuts:
            self._cuts[k] = cuts_by_work(self._work(k))
        return self._cuts[k]

    def _work(self, k: int) -> IntArray:
        """Return the multiply-adds that each context takes."""
        return (self.lengths() + 1) * k + self._entries()

    def _entries(self) -> IntArray:
        """Return how many non-zeros the candidates of each context have, with one for each of them."""
        each = np.diff(self._z[0])[self._row[self._starts[0] : self._starts[-1]]] + 1
        return np.asarray(np.add.reduceat(each, self.borders[:-1]) if self.n_contexts else each)

    def rows(self) -> tuple[IntArray, IntArray, AnyArray, FloatArray]:
        return self._contexts.rows()

    def scores_per_context(self, k: int) -> float:
        return float(k) + len(self.room(k)) / max(1, self.n_contexts)

    def widen(self, w: FloatArray, dtype: FloatType = np.float64) -> FloatArray:
        return self._contexts.widen(w, dtype)

    def narrow(self, wide: FloatArray, k: int) -> FloatArray:
        return self._contexts.narrow(wide, k)

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        """Return z·(xᵀw) of all candidates of this block, flat."""
        contexts = self._contexts
        if isinstance(contexts, DenseDesign):
            return self.gathered(contexts.scores(wide, k))
        out = self.room(k)
        _score(contexts.rows(), frozen(wide), contexts.offset(wide), k, self._starts, self._row, self._z, out)
        return out

    def gathered(self, by_context: FloatArray) -> FloatArray:
        """Return z·s of all candidates, where ``by_context`` holds the s of their contexts, (m, k)."""
        return _gathered(by_context, self._starts, self._row, self._z)

    def room(self, k: int) -> FloatArray:
        return np.zeros(int(self._starts[-1] - self._starts[0]))

    def part(self, slopes: FloatArray, contexts: slice, k: int) -> FloatArray:
        first = self._starts[0]
        return slopes[self._starts[contexts.start] - first : self._starts[contexts.stop] - first]

    def add_transposed(self, grad: FloatArray, slopes: FloatArray, threads: Threads) -> None:
        k = grad.shape[1]
        by_context, flat = packed_zeros(self.n_contexts, k), frozen(slopes)

        def fill(piece: tuple[int, int]) -> None:
            first, last = piece
            starts = self._starts[first : last + 1]
            part = self.part(flat, slice(first, last), k)
            _scatter(part, starts, self._row, *self._z, k, by_context[first:last])

        threads.map(fill, pairs(self.cuts(k)))
        self._contexts.add_transposed(grad, by_context, threads)

    def batches(self, contexts: IntArray, size: int) -> "Sequence[SomeOffered]":
        borders, row, z = self._own_features(contexts) if self._own else self._candidates(contexts)
        some = self._contexts.batches(contexts, size)
        return [
            SomeCrossed(own, *cut_runs(borders, row, part), z)
            for own, part in zip(some, runs(len(contexts), size), strict=True)
        ]

    def _candidates(self, contexts: IntArray) -> tuple[IntArray, AnyArray, Rows]:
        """Return the borders of some contexts' candidates, the row of z of each, and z."""
        borders = frozen(np.append(0, np.cumsum(self._starts[contexts + 1] - self._starts[contexts])))
        row = np.empty(borders[-1], dtype=np.int32)
        _copy_runs(self._row, self._starts, frozen(contexts), borders, row)
        return borders, frozen(row), self._z

    @cached_property
    def _own(self) -> bool:
        """Whether each candidate has a row of z of its own, in their order; a catalogue stays in the cache."""
        return len(self._z[0]) - 1 == len(self._row) and bool((self._row == np.arange(len(self._row))).all())

    def _own_features(self, contexts: IntArray) -> tuple[IntArray, AnyArray, Rows]:
        """Return the same as :meth:`_candidates`, with the rows of z side by side."""
        begins, ends, z = self._starts[contexts], self._starts[contexts + 1], self._z
        borders = frozen(np.append(0, np.cumsum(ends - begins)))
        pointers = np.empty(borders[-1] + 1, dtype=np.int64)
        total = int((z[0][ends] - z[0][begins]).sum())
        columns, values = np.empty(total, dtype=z[1].dtype), np.empty(total)
        _copy_features(begins, ends, z, pointers, columns, values)
        row = frozen(np.arange(borders[-1], dtype=np.int32))
        return borders, row, (frozen(pointers), frozen(columns), frozen(values), z[3])

    def batch_scores(self, wide: FloatArray, k: int, contexts: IntArray) -> FloatArray:
        return self._contexts.batch_scores(wide, k, contexts)


class SomeOffered(SomeContexts):
    """Some contexts with their candidates: ``borders`` from 0, and the row of z of each."""

    def __init__(self, contexts: IntArray, borders: IntArray, row: AnyArray, z: Rows) -> None:
        super().__init__(contexts)
        self._borders, self._row, self._z = borders, row, z

    @property
    def borders(self) -> IntArray:
        return self._borders

    def gathered(self, by_context: FloatArray) -> FloatArray:
        """Return z·s of all candidates, where ``by_context`` holds the s of their contexts, (b, k)."""
        return _gathered(by_context, self._borders, self._row, self._z)


class SomeCrossed(SomeOffered):
    """The same by way of xᵀW."""

    def __init__(self, some: SomePlain, borders: IntArray, row: AnyArray, z: Rows) -> None:
        super().__init__(some.contexts, borders, row, z)
        self._some = some

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        some = self._some
        if not isinstance(some, SomeSparse):
            return self.gathered(some.scores(wide, k))
        out = np.empty(len(self._row))
        _score(some.rows, frozen(wide), some.offset(wide), k, self._borders, self._row, self._z, out)
        return out

    def transposed(self, slopes: FloatArray, k: int, dtype: FloatType) -> RowGradient | SummedGradient:
        by_context: FloatArray = np.zeros((len(self.contexts), lanes_for(k)), dtype=dtype)
        _scatter(frozen(slopes), self._borders, self._row, *self._z, k, by_context)
        return self._some.collected(by_context)


def cut_runs(borders: IntArray, row: AnyArray, part: slice) -> tuple[IntArray, AnyArray]:
    """Return the borders of a part, from 0, and the rows of z of its candidates."""
    first, last = borders[part.start], borders[part.stop]
    return frozen(borders[part.start : part.stop + 1] - first), row[first:last]


def _gathered(by_context: FloatArray, starts: IntArray, row: AnyArray, z: Rows) -> FloatArray:
    out = np.empty(int(starts[-1] - starts[0]))
    _gather(frozen(by_context), starts, row, *z, out)
    return out


@kernel
def _copy_runs(source: AnyArray, starts: IntArray, contexts: IntArray, borders: IntArray, out: AnyArray) -> None:
    """Copy the run of each context, one after the other."""
    for i in range(contexts.shape[0]):
        first = starts[contexts[i]]
        for a in range(borders[i + 1] - borders[i]):
            out[borders[i] + a] = source[first + a]


@kernel
def _copy_features(
    begins: IntArray, ends: IntArray, z: Rows, out_pointers: IntArray, out_columns: AnyArray, out_values: FloatArray
) -> None:
    """Copy runs of rows of z, one after the other."""
    pointers, columns, values, _ = z
    at, row = 0, 0
    for i in range(begins.shape[0]):
        shift = pointers[begins[i]] - at
        for a in range(begins[i], ends[i]):
            out_pointers[row] = pointers[a] - shift
            row += 1
        last = pointers[ends[i]] - shift
        for t in range(at, last):
            out_columns[t] = columns[t + shift]
            out_values[t] = values[t + shift]
        at = last
    out_pointers[row] = at


@kernel
def _score(
    x: tuple[IntArray, IntArray, AnyArray, FloatArray],
    dense: FloatArray,
    offset: FloatArray,
    k: int,
    borders: IntArray,
    row: AnyArray,
    z: Rows,
    out: FloatArray,
) -> None:
    """Fill z·(xᵀw) of each candidate; xᵀw is used while it is in the cache."""
    begins, ends, indices, data = x
    pointers, columns, values, width = z
    s = np.empty(-(-k // LANES) * LANES, dtype=dense.dtype)
    for c in range(begins.shape[0]):
        s[:] = offset[: s.shape[0]]
        row_times(begins[c], ends[c], indices, data, dense, s)
        constant = s[width] if k > width else 0.0
        for a in range(borders[c], borders[c + 1]):
            total = constant
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                total += s[columns[t]] * values[t]
            out[a - borders[0]] = total


@kernel
def _gather(
    by_context: FloatArray,
    starts: IntArray,
    row: AnyArray,
    pointers: IntArray,
    columns: AnyArray,
    values: FloatArray,
    width: int,
    out: FloatArray,
) -> None:
    """Fill z·s of each candidate, where s is the row of its context; a column beyond those of z is a constant's."""
    first = starts[0]
    for c in range(by_context.shape[0]):
        s = by_context[c]
        constant = s[width] if s.shape[0] > width else 0.0
        for a in range(starts[c], starts[c + 1]):
            total = constant
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                total += s[columns[t]] * values[t]
            out[a - first] = total


@kernel
def _scatter(
    slopes: FloatArray,
    starts: IntArray,
    row: AnyArray,
    pointers: IntArray,
    columns: AnyArray,
    values: FloatArray,
    width: int,
    k: int,
    out: FloatArray,
) -> None:
    """Add slope·z of each candidate to the row of its context, which has k columns."""
    first = starts[0]
    for c in range(out.shape[0]):
        for a in range(starts[c], starts[c + 1]):
            slope = slopes[a - first]
            if k > width:
                out[c, width] += slope
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                out[c, columns[t]] += slope * values[t]
