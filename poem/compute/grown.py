"""Scores of candidates with one more feature, which is kept apart from those that they share."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.kernels import Threads
from poem.compute.linear import Design, SomeContexts
from poem.compute.offered import OfferedDesign
from poem.compute.packed import FloatType, packed_zeros
from poem.compute.sparse import PlainDesign


class GrownDesign(Design):
    """Candidates with one more feature, before all others; it has no batches.

    Wide weights are those of the other features and those of this one.

    Parameters
    ----------
    offered : OfferedDesign
        The products of all other features.
    more : (N,) float
        The feature of each candidate of these contexts.
    """

    def __init__(self, offered: OfferedDesign, more: FloatArray) -> None:
        super().__init__((offered.n_contexts, offered.n_features), offered.intercept)
        self._offered, self._more = offered, frozen(more)

    @property
    def contexts(self) -> PlainDesign:
        return self._offered.contexts

    @property
    def borders(self) -> IntArray:
        return self._offered.borders

    def block(self, first: int, last: int) -> "GrownDesign":
        return GrownDesign(self._offered.block(first, last), self.part(self._more, slice(first, last), 1))

    def lengths(self) -> IntArray:
        return self._offered.lengths()

    def cuts(self, k: int) -> IntArray:
        return self._offered.cuts(k - 1)

    def rows(self) -> tuple[IntArray, IntArray, AnyArray, FloatArray]:
        return self._offered.rows()

    def scores_per_context(self, k: int) -> float:
        return self._offered.scores_per_context(k - 1)

    def widen(self, w: FloatArray, dtype: FloatType = np.float64) -> Any:
        return self._offered.widen(frozen(w[:, 1:]), dtype), self.contexts.widen(frozen(w[:, :1]), dtype)

    def scores(self, wide: Any, k: int) -> FloatArray:
        others, own = wide
        by_context = self.contexts.scores(own, 1)[:, 0]
        more = self._more * np.repeat(by_context, np.diff(self.borders))
        return np.asarray(self._offered.scores(others, k - 1) + more)

    def room(self, k: int) -> FloatArray:
        return self._offered.room(k - 1)

    def part(self, slopes: FloatArray, contexts: slice, k: int) -> FloatArray:
        return self._offered.part(slopes, contexts, k - 1)

    def add_transposed(self, grad: FloatArray, slopes: FloatArray, threads: Threads) -> None:
        others, own = np.zeros((self.n_weights, grad.shape[1] - 1)), np.zeros((self.n_weights, 1))
        self._offered.add_transposed(others, slopes, threads)
        by_context = packed_zeros(self.n_contexts, 1)
        by_context[:, 0] = np.add.reduceat(slopes * self._more, self.borders[:-1])
        self.contexts.add_transposed(own, by_context, threads)
        grad += np.hstack([own, others])

    def batches(self, contexts: IntArray, size: int) -> Sequence[SomeContexts]:
        raise NotImplementedError("batches are made of candidates that have all features as their own")

    def batch_scores(self, wide: FloatArray, k: int, contexts: IntArray) -> FloatArray:
        raise NotImplementedError("batches are made of candidates that have all features as their own")
