"""X·w and its transpose: the linear half of every score, for dense contexts and as an interface.

Weights are (d, k), or (d + 1, k) with an intercept as the last row: the constant feature of the
paper's experiments without a copy of X. Products are cut into pieces of about equal numbers of non-zeros; the
cut depends on the data alone, so results are the same for any number of threads.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.cutting import even_cuts, pairs
from poem.compute.gradients import RowGradient, SummedGradient
from poem.compute.kernels import Threads
from poem.compute.packed import FloatType, lanes_for, packed, packed_zeros


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

    def add_once(self, grad: FloatArray, slopes: FloatArray) -> None:
        """Do the same for contexts that are read, used once and let go: nothing is prepared for a second time."""
        self.add_transposed(grad, slopes, Threads())

    @abstractmethod
    def batches(self, contexts: IntArray, size: int) -> Sequence["SomeContexts"]:
        """Return some contexts, in any order, cut into batches of a size."""

    @abstractmethod
    def batch_scores(self, wide: FloatArray, k: int, contexts: IntArray) -> FloatArray:
        """Return X·w for some contexts, (b, k)."""


class SomeContexts(ABC):
    """A batch of contexts as one factor of a product with wide weights."""

    def __init__(self, contexts: IntArray) -> None:
        self.contexts = contexts

    @property
    def borders(self) -> IntArray | None:
        """Where the candidates of each context begin, if contexts have candidates of their own."""
        return None

    @abstractmethod
    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        """Return X·w, (b, k)."""

    @abstractmethod
    def transposed(self, slopes: FloatArray, k: int, dtype: FloatType) -> RowGradient | SummedGradient:
        """Return Xᵀ·slopes in the form of wide weights, where ``slopes`` have the shape of the scores."""


class SomePlain(SomeContexts):
    """Some contexts without candidates."""

    def transposed(self, slopes: FloatArray, k: int, dtype: FloatType) -> RowGradient | SummedGradient:
        packed_slopes: FloatArray = np.zeros((len(self.contexts), lanes_for(k)), dtype=dtype)
        packed_slopes[:, :k] = slopes
        return self.collected(packed_slopes)

    @abstractmethod
    def collected(self, slopes: FloatArray) -> RowGradient | SummedGradient:
        """Return Xᵀ·slopes in the form of wide weights, where ``slopes`` is packed (b, k)."""


def runs(count: int, size: int) -> list[slice]:
    """Cut a number of things into batches of a size."""
    return [slice(first, min(first + size, count)) for first in range(0, count, size)]


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

    def batches(self, contexts: IntArray, size: int) -> "list[SomeDense]":
        return [SomeDense(self, contexts[run]) for run in runs(len(contexts), size)]


class SomeDense(SomePlain):
    """Some dense contexts."""

    def __init__(self, design: DenseDesign, contexts: IntArray) -> None:
        super().__init__(contexts)
        self._design = design

    def scores(self, wide: FloatArray, k: int) -> FloatArray:
        return self._design.batch_scores(wide, k, self.contexts)

    def collected(self, slopes: FloatArray) -> RowGradient:
        design = self._design
        values = np.empty((design.n_weights, slopes.shape[1]), dtype=slopes.dtype)
        values[: design.n_features] = design.X[self.contexts].T @ slopes
        if design.intercept:
            values[-1] = slopes.sum(axis=0)
        return RowGradient(np.arange(design.n_weights), values)
