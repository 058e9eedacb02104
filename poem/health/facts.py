"""Facts that several checks share, computed once: which rows share a context, and the output of each row."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.compute import Matrix, is_sparse
from poem.data import BanditLog
from poem.files import row_place
from poem.packed import PackedLog
from poem.structures import Available

FEW_SETS = 16  # up to which all sets are counted as outputs
ODD = np.uint64(0x9E3779B97F4A7C15)  # multipliers of splitmix64, which spread bits well
OTHER = np.uint64(0xBF58476D1CE4E5B9)
BLOCK = 2**15  # entries of X that are hashed at once: what is made of them stays in the cache
FEW_COLUMNS = 2**20  # of X, up to which all are counted, whether they occur or not
SLICES = 8  # parts of the contexts on which the propensities are checked again


@dataclass(frozen=True)
class Facts:
    """A log of sound rows and facts about it.

    ``place`` names a row; ``listed`` is the share of rows in which each class was available, if the log's table says
    so and the log does not. ``packed`` is the log on disk that these rows come from: some of its units, or all.
    """

    log: BanditLog
    place: Callable[[int], str] = row_place
    listed: FloatArray | None = None
    packed: PackedLog | None = None

    @property
    def n_rows(self) -> int:
        """The number of rows of the whole log."""
        return len(self.log) if self.packed is None else len(self.packed)

    @cached_property
    def share(self) -> float:
        """The share of all units that these are."""
        return 1.0 if self.packed is None else (int(self.units.max()) + 1) / self.packed.n_units

    @cached_property
    def fingerprint(self) -> AnyArray:
        """A hash per row of X: equal contexts have equal hashes, others differ.

        It sums the hashes of all non-zero features modulo 2⁶⁴. Unlike in a sum of the features themselves, small
        features count as much as large ones.
        """
        return fingerprints(self.log.X)

    @cached_property
    def context(self) -> IntArray:
        """Which distinct context each row saw, by its features alone."""
        return numbered(self.fingerprint[self.log.context])

    @cached_property
    def n_contexts(self) -> int:
        """The number of distinct contexts."""
        return int(self.context.max()) + 1

    @cached_property
    def situation(self) -> IntArray:
        """Which distinct context each row saw, by its features and by what was available."""
        available = self.log.available
        if available is None:
            return self.context
        lists = list_fingerprints(available)
        return numbered(mixed([self.fingerprint, lists])[self.log.context])

    # ---- what was available -----------------------------------------------------------------

    @cached_property
    def choices(self) -> FloatArray | None:
        """How many actions each row could choose among; None if all outputs could be chosen in every row."""
        available = self.log.available
        return None if available is None else available.counts()[self.log.context].astype(np.float64)

    @cached_property
    def offered(self) -> FloatArray | None:
        """In how many rows each action was available; None if all were in every row."""
        return self._offered(np.ones(len(self.log))) if self.listed is None else len(self.log) * self.listed

    def due(self, part: BoolArray | None = None) -> FloatArray:
        """Return the share of some rows in which each class was available: 1 unless rows have lists of their own."""
        rows = np.ones(len(self.log)) if part is None else part.astype(np.float64)
        offered = self.offered if part is None else self._offered(rows)
        return np.ones(len(self.counts)) if offered is None else offered / rows.sum()

    def _offered(self, rows: FloatArray) -> FloatArray | None:
        """Return in how many rows each action was available, rows counting with their weight."""
        available = self.log.available
        if available is None:
            return None
        seen = np.bincount(self.log.context, rows, minlength=available.n_contexts)
        there = np.bincount(available.action, np.repeat(seen, available.counts()), minlength=len(self.counts))
        return np.asarray(there, dtype=np.float64)

    # ---- what was chosen --------------------------------------------------------------------

    @property
    def one_each(self) -> bool:
        """Whether a decision is one of the outputs that labels name, and not a set of them."""
        return self.log.structure.one_each

    @cached_property
    def code(self) -> IntArray:
        """Which output each row has: the class, or the number of its label set among those that occur."""
        keys = self.log.structure.keys(self.log.y)
        return keys[:, 0] if self.one_each else numbered(mixed([keys[:, j] for j in range(keys.shape[1])]))

    @cached_property
    def counts(self) -> IntArray:
        """How many rows each output has."""
        return np.bincount(self.code, minlength=self.log.structure.n_outputs if self.one_each else 0).astype(np.int64)

    @property
    def n_outputs(self) -> int | None:
        """The number of possible outputs; None if there are too many to count."""
        count = self.log.structure.n_outputs
        return count if self.one_each or count <= FEW_SETS else None

    def name_of(self, code: int) -> str:
        """Return an output in words."""
        if self.one_each:
            return repr(self.log.labels[code])  # it may not be logged
        return self.log.structure.phrase(self.log.y[int(np.flatnonzero(self.code == code)[0])], self.log.labels)

    @property
    def has_propensities(self) -> bool:
        """Whether the log has propensities."""
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
    def group(self) -> IntArray | None:
        """The group of each row; None if there are no groups, or groups of one row each: rows are independent then."""
        if self.log.group is None:
            return None
        return self.units if int(self.units.max()) + 1 < len(self.units) else None

    @cached_property
    def slices(self) -> list[BoolArray]:
        """Parts of the rows, split at a few features: they depend on the contexts alone, not on the decisions."""
        halves = _halves(self.log.X)
        return [half[self.log.context] for half in halves if 0 < int(half.sum()) < len(half)]


def _halves(X: Matrix) -> list[BoolArray]:
    """Return which contexts are on one side, for the columns that split the contexts most evenly."""
    n, d = X.shape
    if is_sparse(X):
        number, counts = _occurring(X)
        share = counts / max(1, n)
        return [_present(X, column) for column in number[np.argsort(-share * (1.0 - share), kind="stable")[:SLICES]]]
    columns = np.unique(np.linspace(0, d - 1, min(d, SLICES)).astype(int)) if d else np.zeros(0, dtype=int)
    return [X[:, column] > np.median(X[:, column]) for column in columns]


def _occurring(X: Matrix) -> tuple[IntArray, IntArray]:
    """Return the columns that occur in a sparse X and their counts; X may have more columns than fit in memory."""
    d = X.shape[1]
    if d > max(FEW_COLUMNS, X.nnz):
        number, counts = np.unique(X.indices, return_counts=True)
        return number.astype(np.int64), counts.astype(np.int64)
    every = np.zeros(d, dtype=np.int64)
    block = max(FEW_COLUMNS, d)
    for begin in range(0, X.nnz, block):  # bincount copies what it counts
        every += np.bincount(X.indices[begin : begin + block], minlength=d)
    number = np.flatnonzero(every)
    return number, every[number]


def _present(X: Matrix, column: int) -> BoolArray:
    """Return which rows of a sparse X are not 0 in a column; scipy would allocate space for every column."""
    entries = np.flatnonzero(X.indices == column)
    entries = entries[X.data[entries] != 0.0]
    present = np.zeros(X.shape[0], dtype=bool)
    present[np.searchsorted(X.indptr, entries, side="right") - 1] = True
    return present


def list_fingerprints(available: Available) -> AnyArray:
    """Return a hash per list of candidates: equal if they are the same actions with the same features, in any order."""
    columns = [available.action.astype(np.int64) + 1]  # 0 has the hash 0, and would not count in a sum
    if available.features is not None:
        of_rows = fingerprints(available.features)
        columns.append(of_rows if available.row is None else of_rows[available.row])
    return np.asarray(np.add.reduceat(mixed(columns), available.starts[:-1]))


# ---- equal and different rows -----------------------------------------------------------------------


def fingerprints(X: Matrix) -> AnyArray:
    """Return a hash per row: equal if all features are equal, and hardly ever otherwise.

    Dense and sparse rows with the same features have the same hash.
    """
    n, d = X.shape
    key = np.zeros(n, dtype=np.uint64)
    if not is_sparse(X):
        step = max(1, BLOCK // max(1, d))
        columns = np.tile(np.arange(d), step)
        for begin in range(0, n, step):
            block = X[begin : begin + step]
            entries = _entry_keys(columns[: block.size], block.ravel())
            key[begin : begin + step] = entries.reshape(block.shape).sum(axis=1)
        return key
    for begin, end in _row_blocks(X.indptr):
        first, last = X.indptr[begin], X.indptr[end]
        starts = X.indptr[begin:end] - first
        filled = np.flatnonzero(np.diff(X.indptr[begin : end + 1]))  # an empty row would take what follows it
        if len(filled):
            entries = _entry_keys(X.indices[first:last], X.data[first:last])
            key[begin + filled] = np.add.reduceat(entries, starts[filled])
    return key


def _row_blocks(starts: IntArray) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows with about BLOCK entries in total."""
    begin, n = 0, len(starts) - 1
    while begin < n:
        end = min(n, max(begin + 1, int(np.searchsorted(starts, starts[begin] + BLOCK, side="right")) - 1))
        yield begin, end
        begin = end


def _entry_keys(columns: AnyArray, values: FloatArray) -> AnyArray:
    """Return a hash of each feature and its column; 0 for a feature of 0."""
    return np.asarray(mixed([columns, values]) * (values != 0.0))


def numbered(values: AnyArray) -> IntArray:
    """Number distinct values from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def mixed(columns: Sequence[AnyArray]) -> AnyArray:
    """Return one number per row: equal if all columns are equal, and hardly ever otherwise."""
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
