"""Sums over contexts and rows of what is chosen: of outputs, or of the features of actions.

Contexts and rows are gone through block by block: nothing of the size rows × outputs is ever held.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from poem.arrays import BoolArray, FloatArray, IntArray
from poem.compute import Matrix, is_sparse
from poem.data import BanditLog, has_kinds
from poem.policies import FlooredPolicy, Policy
from poem.structures import Available

AnyPolicy = Policy | FlooredPolicy
Probabilities = Callable[[IntArray], FloatArray]  # of all outputs in some contexts, as marginals are

BLOCK = 1 << 21  # numbers that one block holds
LEAST_SHARE = 0.001  # a change of a share that is worth telling
LEAST_MOVE = 0.01  # the same of another feature, in standard deviations


class Columns(Protocol):
    """What is summed: one column per output, or one per feature of an action."""

    @property
    def names(self) -> tuple[str, ...]:
        """The name of each column."""

    @property
    def shares(self) -> BoolArray:
        """Which columns are 0 or 1 in each decision, so that their means are shares."""

    @property
    def scale(self) -> FloatArray:
        """The unit in which changes of each column are compared."""

    def expected(self, probabilities: FloatArray, contexts: IntArray) -> Any:
        """Return the mean of each column in some contexts, (m, columns)."""

    def chosen(self, rows: slice) -> Any:
        """Return the columns of what was logged in some rows, (n, columns)."""

    def variance(self, mean: FloatArray) -> FloatArray:
        """Return how much a single decision varies, if its mean is this."""


@dataclass(frozen=True)
class Outputs:
    """One column per output or label."""

    log: BanditLog

    @property
    def names(self) -> tuple[str, ...]:
        """The labels."""
        return tuple(map(str, self.log.labels))

    @property
    def shares(self) -> BoolArray:
        """All of them."""
        return np.ones(len(self.log.labels), dtype=bool)

    @property
    def scale(self) -> FloatArray:
        """Shares are compared as they are."""
        return np.ones(len(self.log.labels))

    def expected(self, probabilities: FloatArray, contexts: IntArray) -> Any:
        """Return the probability of each output in some contexts; what is not available has 0."""
        available = self.log.available
        return probabilities if available is None else available.of(contexts).by_action(probabilities, len(self.names))

    def chosen(self, rows: slice) -> Any:
        """Return which output was logged."""
        return self.log.structure.indicators(self.log.y[rows])

    def variance(self, mean: FloatArray) -> FloatArray:
        """Return that of a share."""
        return np.asarray(np.abs(mean * (1.0 - mean)))


@dataclass(frozen=True)
class ActionFeatures:
    """One column per feature of an action, without the 0/1 columns of single actions; squared if wanted."""

    log: BanditLog
    available: Available
    squared: bool = False

    @cached_property
    def width(self) -> int:
        """The number of columns."""
        return self.log.structure.n_scores - len(self.log.structure.known_labels(self.log.labels))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Those of the log, or numbers."""
        given = self.log.action_names
        return tuple(f"action feature {j}" for j in range(self.width)) if given is None else given[: self.width]

    @cached_property
    def shares(self) -> BoolArray:
        """Which features are 0 or 1."""
        z = self._features
        other = np.unique(z.indices[(z.data != 1.0) & (z.data != 0.0)])
        found = np.ones(self.width, dtype=bool)
        found[other[other < self.width]] = False
        return found

    @cached_property
    def scale(self) -> FloatArray:
        """The standard deviation of each feature among available actions; 1 where it does not vary."""
        mean, square = (
            expected_sums(one, self.log, evenly(self.available))[0] / len(self.log)
            for one in (self, ActionFeatures(self.log, self.available, squared=True))
        )
        variance = square - mean**2
        return np.asarray(np.sqrt(np.where(variance > 1e-12 * square, variance, 1.0)))

    def expected(self, probabilities: FloatArray, contexts: IntArray) -> Any:
        """Return the mean features of the decisions in some contexts."""
        offers = self.available.of(contexts)
        rows, local = np.unique(np.asarray(offers.row), return_inverse=True)
        choice = sp.csr_array((probabilities, local, offers.starts), shape=(len(contexts), len(rows)))
        return choice @ self._rows(rows)

    def chosen(self, rows: slice) -> Any:
        """Return the features of what was logged."""
        context = self.log.context[rows]
        places = self.available.starts[context] + self.available.positions(context, self.log.y[rows])
        return self._rows(places if self.available.row is None else self.available.row[places])

    def variance(self, mean: FloatArray) -> FloatArray:
        """Return the variance among available actions."""
        return np.asarray(self.scale**2)

    @property
    def _features(self) -> Matrix:
        assert self.available.features is not None
        return self.available.features

    def _rows(self, rows: IntArray) -> Matrix:
        found = self._features[rows]
        found = found if found.shape[1] == self.width else found[:, : self.width]
        return found.multiply(found).tocsr() if self.squared else found


def columns_of(log: BanditLog) -> Columns:
    """Return what tells decisions apart best: the features of actions if they have any, or outputs."""
    return Outputs(log) if log.available is None or not has_kinds(log) else ActionFeatures(log, log.available)


def expected_sums(
    columns: Columns, log: BanditLog, probabilities: Probabilities, inside: BoolArray | None = None
) -> FloatArray:
    """Return the expected sums over all rows and over those in each segment, (1 + s, columns)."""
    counts = np.bincount(log.context, minlength=log.n_contexts).astype(np.float64)
    inside = np.zeros((log.n_contexts, 0), dtype=bool) if inside is None else inside
    total = np.zeros((1 + inside.shape[1], len(columns.names)))
    for contexts in _blocks_of_contexts(log, np.flatnonzero(counts)):
        parts = np.column_stack([np.ones(len(contexts)), inside[contexts]]) * counts[contexts, None]
        total += parts.T @ columns.expected(probabilities(contexts), contexts)
    return total


def logged_sums(columns: Columns, log: BanditLog, inside: BoolArray) -> FloatArray:
    """Return the logged sums over all rows and over those in each segment, (1 + s, columns)."""

    def weights(rows: slice) -> FloatArray:
        here = inside[log.context[rows]]
        return np.column_stack([np.ones(len(here)), here])

    return sums_by_column(columns, log, weights, 1 + inside.shape[1])


def sums_by_column(columns: Columns, log: BanditLog, weights: Callable[[slice], FloatArray], width: int) -> FloatArray:
    """Add up the columns of the logged rows with several weights each, (w, columns)."""
    total = np.zeros((width, len(columns.names)))
    for rows in _blocks(len(log), max(width, log.y[0].size)):
        total += weights(rows).T @ columns.chosen(rows)
    return total


def of_policy(policy: AnyPolicy, log: BanditLog) -> Probabilities:
    """Return a policy's probabilities in the contexts of a log."""

    def probabilities(contexts: IntArray) -> FloatArray:
        return policy.marginals(log.X[contexts], None if log.available is None else log.available.of(contexts))

    return probabilities


def evenly(available: Available) -> Probabilities:
    """Return the probabilities of a choice at random among what is available."""

    def probabilities(contexts: IntArray) -> FloatArray:
        counts = available.counts()[contexts]
        return np.asarray(np.repeat(1.0 / counts, counts))

    return probabilities


def _blocks(length: int, width: int) -> Iterator[slice]:
    height = max(1, BLOCK // max(width, 1))
    for first in range(0, length, height):
        yield slice(first, min(first + height, length))


def _blocks_of_contexts(log: BanditLog, used: IntArray) -> Iterator[IntArray]:
    """Yield contexts whose features and probabilities fit into a block."""
    dense = 0 if is_sparse(log.X) else log.n_features
    if log.available is None:
        yield from (used[block] for block in _blocks(len(used), max(len(log.labels), dense)))
        return
    size = np.cumsum(16 * log.available.counts()[used] + dense)  # a candidate has a few features
    yield from np.split(used, np.unique(np.searchsorted(size, np.arange(BLOCK, size[-1] + 1, BLOCK))))
