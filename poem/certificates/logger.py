"""A model of the logging policy from its propensities, for every context and output.

A linear model is exact for a linear policy. It smears the steps of rules ("where x0 > 0.5, always class 0"); a small
tree over the contexts finds them. Held-out propensities decide which of the two is closer.
"""

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.compute import Matrix, Threads, is_sparse
from poem.data import BanditLog, Layout, Piece, Shard
from poem.objectives import propensity_model
from poem.policies import FlooredPolicy, Policy
from poem.structures import Structure

WIDEST = 256  # features that a tree is tried on
MOST_OUTPUTS = 64
LEAVES, LEAST_LEAF = 32, 15
LEAST = 1e-300
LARGEST = 1e30  # of which float32 can add up very many
NEVER = 1e-4  # the probability of an output that was never logged in a leaf
LACKING = 0.01  # a probability under which an output counts as not supported
NEARER = 0.8  # share of the linear model's error that a tree's must be below


@dataclass(frozen=True)
class LoggerModel:
    """Weights of a linear policy that fits the logged propensities, and a closer model if there is one.

    ``steps`` is a tree over contexts; ``policy`` is one with a floor or with trees, if it is known to have made the
    log.
    """

    weights: FloatArray
    steps: "Steps | None" = None
    policy: Policy | FlooredPolicy | None = None

    def scores(self, layout: Layout) -> "LoggerScores":
        """Return the scores of a layout's contexts."""
        return LoggerScores(self, layout)


class LoggerScores:
    """A logger model on the contexts of one layout."""

    def __init__(self, model: LoggerModel, layout: Layout) -> None:
        self._layout, self._weights = layout, model.weights
        self._table: FloatArray | None = None
        if model.policy is not None:
            self._table = _scores_of(model.policy, layout)
        elif model.steps is not None:
            self._table = model.steps.log_prob(layout.X[layout.contexts])
        elif layout.keeps_scores:
            self._table = self._all_scores()
            del self._wide

    def on(self, layout: Layout) -> "LoggerScores":
        """Return the same scores for the same rows laid out with more features."""
        moved = copy(self)
        moved._layout, moved._table = layout, self._all_scores() if self._table is None else self._table
        return moved

    def _all_scores(self) -> FloatArray:
        pieces = [(shard, piece) for shard in self._layout.shards for piece in shard.pieces]
        return np.concatenate([self._scores(*place) for place in pieces])

    @cached_property
    def _wide(self) -> FloatArray:
        return self._layout.design.widen(self._weights)

    def of_piece(self, shard: Shard, piece: Piece) -> FloatArray:
        """Return the scores (m, k) of a piece's contexts."""
        if self._table is None:
            return self._scores(shard, piece)
        return self._layout.design.part(self._table, shard.places(piece), self._layout.structure.n_scores)

    def _scores(self, shard: Shard, piece: Piece) -> FloatArray:
        block = shard.block(piece)
        return block.scores(self._wide, self._layout.structure.n_scores)


@dataclass(frozen=True)
class Steps:
    """A tree over contexts, and log g of every output in each of its leaves, (nodes, k)."""

    tree: Any
    table: FloatArray

    def log_prob(self, X: Matrix) -> FloatArray:
        """Return log g of every output in each context."""
        return self.table[self._leaves(X)]

    def supports(self, X: Matrix) -> BoolArray:
        """Return which outputs have support in each context."""
        return np.asarray(self.log_prob(X) > np.log(LACKING))

    @cached_property
    def lacks(self) -> bool:
        """Whether any leaf has an output without support."""
        reached = self.table[np.isfinite(self.table).all(axis=1)]
        return bool((reached <= np.log(LACKING)).any())

    def _leaves(self, X: Matrix) -> IntArray:
        leaves: IntArray = self.tree.apply(_single(X.toarray() if is_sparse(X) else X)).astype(np.int64)
        return leaves


def _single(X: Matrix) -> AnyArray:
    """Return contexts in float32, as scikit-learn's trees take them; what is too large for it keeps its order."""
    return np.clip(np.asarray(X, dtype=np.float64), -LARGEST, LARGEST).astype(np.float32)


def can_have_steps(log: BanditLog, structure: Structure) -> bool:
    """Tell whether a tree is tried on a log."""
    # What is available decides as well as the context does: a tree over contexts does not know it.
    few = structure.lists_outputs and structure.n_outputs <= MOST_OUTPUTS and log.available is None
    return few and not is_sparse(log.X) and 1 <= log.n_features <= WIDEST


def logger_model(log: BanditLog, structure: Structure, layout: Layout, seed: int, threads: Threads) -> LoggerModel:
    """Fit the model whose propensities are closer to held-out ones."""
    weights = propensity_model(layout, threads)
    if not can_have_steps(log, structure):
        return LoggerModel(weights)
    parts = np.array_split(np.random.default_rng([seed, 10]).permutation(len(log)), 2)
    if len(parts[0]) < 2 * LEAST_LEAF:
        return LoggerModel(weights)
    half, rest = (log.take(np.sort(part)) for part in parts)
    linear = propensity_model(Layout(half, structure, layout.design.intercept), threads)
    test = Layout(rest, structure, layout.design.intercept)
    linear_error = _error(test.log_prob(linear, threads) - test.log_propensity)
    guess = fit_steps(half).log_prob(rest.X[rest.context])[np.arange(len(rest)), rest.y]
    steps_error = _error(guess - rest.log_propensity)
    return LoggerModel(weights, fit_steps(log) if steps_error < NEARER * linear_error else None)


def known_logger(policy: Policy | FlooredPolicy, weights: FloatArray | None) -> LoggerModel | None:
    """Return the model of the policy that made the log; None for label sets with a floor, which have no scores.

    ``weights`` are None if it is not linear: the model's own are then empty.
    """
    own = np.empty((0, 0)) if weights is None else weights
    if isinstance(policy, Policy):
        return LoggerModel(own, policy=None if policy.forest is None else policy)
    return LoggerModel(own, policy=policy) if policy.structure.one_each else None


def _scores_of(policy: Policy | FlooredPolicy, layout: Layout) -> FloatArray:
    """Return the scores of a policy in the contexts of a layout, in their order."""
    X, offers = layout.X[layout.contexts], None if layout.available is None else layout.available.of(layout.contexts)
    if isinstance(policy, Policy):
        return policy.scores(X, offers)
    return np.asarray(np.log(np.maximum(policy.marginals(X, offers), LEAST)))


def _error(log_ratio: FloatArray) -> float:
    """Return the mean squared error, at most 1 per row: at its steps a tree can be wrong by any amount."""
    return float(np.mean(np.minimum(log_ratio**2, 1.0)))


def fit_steps(log: BanditLog) -> Steps:
    """Fit a tree to the logged outputs, with the mean propensity of each output in each leaf."""
    from sklearn.tree import DecisionTreeClassifier

    X = _single(log.X[log.context])
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, min_samples_leaf=min(LEAST_LEAF, len(log)), random_state=0)
    tree.fit(X, log.y)
    leaf, k = tree.apply(X), len(log.labels)
    cell, nodes = leaf * k + log.y, tree.tree_.node_count
    count = np.bincount(cell, minlength=nodes * k).reshape(nodes, k)
    p = np.bincount(cell, weights=np.exp(log.log_propensity), minlength=nodes * k).reshape(nodes, k)
    mean = np.where(count > 0, p / np.maximum(count, 1), 0.0)
    left = np.maximum(1.0 - mean.sum(axis=1, keepdims=True), 0.0)  # for outputs that a leaf never saw
    unseen = (count == 0).sum(axis=1, keepdims=True)
    mean = np.maximum(np.where(count > 0, mean, left / np.maximum(unseen, 1)), NEVER)
    return Steps(tree, np.log(mean / mean.sum(axis=1, keepdims=True)))
