"""What several checks of a log need, computed once: which rows share a context, and which output each row has."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.arrow import row_place
from poem.log import BanditLog
from poem.matrix import Matrix, is_sparse

FEW_LABELS = 4  # up to which all label sets are counted as outputs: 2⁴ = 16
ODD = np.uint64(0x9E3779B97F4A7C15)  # multipliers of splitmix64, which spread bits well
OTHER = np.uint64(0xBF58476D1CE4E5B9)
BLOCK = 2**20  # entries of X that are counted at once
SLICES = 8  # parts of the contexts on which the propensities are checked again


@dataclass(frozen=True)
class Facts:
    """A log of sound rows and what was found out about it.

    ``place`` names a row; ``available`` is the share of rows in which each class could have been chosen, where the log
    says so.
    """

    log: BanditLog
    place: Callable[[int], str] = row_place
    available: FloatArray | None = None

    @cached_property
    def projection(self) -> FloatArray:
        """A random combination of the features of each row of X: equal contexts have equal ones, others differ."""
        X = self.log.X
        direction = np.random.default_rng(0).normal(size=X.shape[1])
        # One row at a time: BLAS may add up equal rows in different orders.
        return np.asarray(X @ direction if is_sparse(X) else np.einsum("ij,j->i", X, direction)) + 0.0

    @cached_property
    def context(self) -> IntArray:
        """Which distinct context each row saw."""
        return numbered(self.projection[self.log.context])

    @cached_property
    def n_contexts(self) -> int:
        """The number of distinct contexts."""
        return int(self.context.max()) + 1

    @property
    def are_sets(self) -> bool:
        """Whether outputs are label sets."""
        return self.log.y.ndim == 2

    @cached_property
    def code(self) -> IntArray:
        """Which output each row has: the class, or the number of its label set among those that occur."""
        if not self.are_sets:
            return self.log.y.astype(np.int64)
        packed = np.packbits(self.log.y, axis=1)
        padded = np.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
        return numbered(
            mixed([np.ascontiguousarray(padded).view(np.uint64)[:, j] for j in range(padded.shape[1] // 8)])
        )

    @cached_property
    def counts(self) -> IntArray:
        """How many rows each output has."""
        return np.bincount(self.code, minlength=0 if self.are_sets else len(self.log.labels)).astype(np.int64)

    @property
    def n_outputs(self) -> int | None:
        """How many outputs there could be; None if they are too many to count."""
        q = len(self.log.labels)
        return q if not self.are_sets else 2**q if q <= FEW_LABELS else None

    def name_of(self, code: int) -> str:
        """Return an output in words."""
        labels = self.log.labels
        if not self.are_sets:
            return repr(labels[code])
        row = self.log.y[int(np.flatnonzero(self.code == code)[0])]
        return "{" + ", ".join(str(labels[j]) for j in np.flatnonzero(row)) + "}"

    @property
    def has_propensities(self) -> bool:
        """Whether the log has any."""
        return self.log.propensities != "missing"

    @cached_property
    def inverse(self) -> FloatArray:
        """1/p of each row; beyond e^300 its square would not be finite."""
        return np.exp(np.minimum(-self.log.log_propensity, 300.0))

    @cached_property
    def units(self) -> IntArray:
        """Which independent unit each row belongs to."""
        number: IntArray = self.log.units()
        return number

    @cached_property
    def column_counts(self) -> IntArray:
        """How many rows of X are not 0 in each column."""
        X = self.log.X
        if not is_sparse(X):
            return np.asarray(np.count_nonzero(X, axis=0), dtype=np.int64)
        counts = np.zeros(X.shape[1], dtype=np.int64)
        for begin in range(0, X.nnz, BLOCK):  # bincount copies what it counts
            counts += np.bincount(X.indices[begin : begin + BLOCK], minlength=X.shape[1])
        return counts

    @cached_property
    def slices(self) -> list[BoolArray]:
        """Parts of the rows, by halves of a few features: they depend on the contexts alone, not on what was chosen."""
        halves = _halves(self.log.X, self.column_counts)
        return [half[self.log.context] for half in halves if 0 < int(half.sum()) < len(half)]


def _halves(X: Matrix, counts: IntArray) -> list[BoolArray]:
    """Return for the columns that cut the contexts most evenly which contexts are on one side."""
    n, d = X.shape
    if is_sparse(X):
        share = counts / max(1, n)
        columns = np.argsort(-share * (1.0 - share), kind="stable")[:SLICES]
        part = X[:, columns]
        present = np.zeros(part.shape, dtype=bool)
        present[part.nonzero()] = True
        return list(present.T)
    columns = np.unique(np.linspace(0, d - 1, min(d, SLICES)).astype(int)) if d else np.zeros(0, dtype=int)
    return [X[:, column] > np.median(X[:, column]) for column in columns]


def numbered(values: AnyArray) -> IntArray:
    """Number distinct values from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def mixed(columns: Sequence[AnyArray]) -> AnyArray:
    """Return one number a row that is equal where all columns are, and hardly ever otherwise."""
    key = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        key = (key ^ _bits(column)) * ODD
        key = (key ^ (key >> np.uint64(29))) * OTHER
        key ^= key >> np.uint64(32)
    return key


def _bits(column: AnyArray) -> AnyArray:
    if column.dtype.kind == "f":
        return (column.astype(np.float64) + 0.0).view(np.uint64)  # −0.0 and 0.0 are equal
    return column.astype(np.int64).view(np.uint64) if column.dtype != np.uint64 else column
