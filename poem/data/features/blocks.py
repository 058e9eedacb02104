"""Blocks of features side by side, as one matrix."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import Matrix, exact_kernel, is_sparse
from poem.files import Column

FEW_ROWS = 1000  # by which a block of numbers is known to be full
FULL = 0.9  # share of non-zeros above which zeros are kept, which saves looking for them
STEP = 1 << 14  # rows that are copied at a time, so that they stay in the cache


@dataclass(frozen=True)
class Lookup:
    """Rows of features, and which of them each row of a table has."""

    rows: Matrix
    which: IntArray

    @property
    def shape(self) -> tuple[int, int]:
        """The number of rows of the table, and of features."""
        return len(self.which), self.rows.shape[1]

    def matrix(self) -> Matrix:
        """Return the features of each row."""
        return sp.csr_array(self.rows[self.which])


Block = Matrix | Lookup  # (n, features): dense, CSR, or CSR rows that are looked up


def side_by_side(columns: Sequence[Column], n: int) -> FloatArray:
    """Return columns of doubles as one array, (n, columns); what is missing is NaN."""
    import pyarrow as pa

    numbers, begin = np.empty((n, len(columns))), 0
    # A few rows of all columns at a time stay in the cache.
    for batch in pa.Table.from_arrays(list(columns), [str(at) for at in range(len(columns))]).to_batches(STEP):
        end = begin + batch.num_rows
        for at, column in enumerate(batch.columns):
            numbers[begin:end, at] = column.to_numpy(zero_copy_only=False)
        begin = end
    return numbers


def joined(blocks: Iterable[Block]) -> Matrix:
    """Return blocks side by side: dense if all of them are, CSR otherwise."""
    every = _with_dense_runs_joined(blocks)
    if len(every) == 1:
        return every[0].matrix() if isinstance(every[0], Lookup) else every[0]
    pieces = [_Piece.of(block) for block in every]
    return _joined_rows(pieces, every[0].shape[0], sum(block.shape[1] for block in every))


def _with_dense_runs_joined(blocks: Iterable[Block]) -> list[Block]:
    """Return the blocks, of which dense ones that stand side by side are one."""
    found: list[Block] = []
    for dense, run in groupby(blocks, key=_is_dense):
        several: list[Any] = list(run)
        found += [np.hstack(several)] if dense and len(several) > 1 else several
    return found


def _is_dense(block: Block) -> bool:
    return not isinstance(block, Lookup) and not is_sparse(block)


@dataclass(frozen=True)
class _Piece:
    """A block that is copied into a CSR matrix: dense numbers, or rows by their numbers."""

    counts: IntArray | int
    width: int
    numbers: FloatArray | None = None
    keep_zeros: bool = False
    rows: Matrix | None = None
    which: IntArray | None = None

    @staticmethod
    def of(block: Block) -> "_Piece":
        if isinstance(block, Lookup):
            sizes = np.diff(block.rows.indptr)
            return _Piece(sizes[block.which], block.shape[1], rows=block.rows, which=block.which)
        if is_sparse(block):
            n, width = block.shape
            return _Piece(np.diff(block.indptr), width, rows=block, which=np.arange(n))
        few, width = block[:FEW_ROWS], block.shape[1]
        if np.count_nonzero(few) >= FULL * few.size:
            return _Piece(width, width, np.ascontiguousarray(block), True)
        return _Piece(np.count_nonzero(block, axis=1), width, np.ascontiguousarray(block))

    def copy(self, rows: slice, offset: int, at: IntArray, indices: AnyArray, data: FloatArray) -> None:
        """Copy some rows to where ``at`` says, which moves on."""
        if self.numbers is not None:
            _copy_numbers(self.numbers[rows], self.keep_zeros, offset, at[rows], indices, data)
        elif self.rows is not None and self.which is not None:
            found = self.rows
            _copy_rows(found.indptr, found.indices, found.data, self.which[rows], offset, at[rows], indices, data)


def _joined_rows(pieces: list[_Piece], n: int, width: int) -> Matrix:
    """Return pieces side by side as CSR."""
    starts = np.zeros(n + 1, dtype=np.int64)
    for piece in pieces:
        starts[1:] += piece.counts
    np.cumsum(starts, out=starts)
    kind = np.int32 if max(starts[-1], width) < 2**31 else np.int64
    indices, data, at = np.empty(starts[-1], dtype=kind), np.empty(starts[-1]), starts[:-1].copy()
    for begin in range(0, n, STEP):
        offset = 0
        for piece in pieces:
            piece.copy(slice(begin, begin + STEP), offset, at, indices, data)
            offset += piece.width
    return sp.csr_array((data, indices, starts.astype(kind, copy=False)), shape=(n, width))


@exact_kernel
def _copy_numbers(
    numbers: FloatArray, keep_zeros: bool, offset: int, at: IntArray, indices: AnyArray, data: FloatArray
) -> None:
    for row in range(numbers.shape[0]):
        place = at[row]
        for column in range(numbers.shape[1]):
            if keep_zeros or numbers[row, column] != 0.0:
                indices[place] = offset + column
                data[place] = numbers[row, column]
                place += 1
        at[row] = place


@exact_kernel
def _copy_rows(
    starts: AnyArray,
    columns: AnyArray,
    values: FloatArray,
    which: IntArray,
    offset: int,
    at: IntArray,
    indices: AnyArray,
    data: FloatArray,
) -> None:
    for row in range(which.shape[0]):
        place = at[row]
        one = which[row] if which[row] >= 0 else starts.shape[0] - 2  # −1 is the last row
        for entry in range(starts[one], starts[one + 1]):
            indices[place] = offset + columns[entry]
            data[place] = values[entry]
            place += 1
        at[row] = place
