"""How far each feature of contexts and of actions moves the scores of a policy, and which way."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import FloatArray, IntArray
from poem.compute import is_sparse
from poem.data import BanditLog
from poem.policies import Policy
from poem.structures import Available

SHUFFLED_CONTEXTS, MOST_CANDIDATES = 400, 20_000


def effects_of(policy: Policy, log: BanditLog, spread: FloatArray) -> FloatArray:
    """Return the standard deviation of each score that comes from each feature, (d, k), with the sign of its trend.

    A weight times the standard deviation of its feature says it for a linear policy. Where trees look at a feature, it
    is exchanged between contexts, and the scores say what that changes.
    """
    found: FloatArray = linear_part(policy)[: log.n_features] * spread[:, None]
    if policy.forest is None or policy.structure.described:
        return found
    X = _some_contexts(log)[0]
    order = np.random.default_rng(0).permutation(len(X))
    plain = policy.scores(X)
    for feature in policy.forest.used.tolist():
        found[feature] = _shuffled(policy, X, feature, order, plain)
    return found


def linear_part(policy: Policy) -> FloatArray:
    """Return the weights of the log's own features of actions, or of outputs, (d, k) or (d + 1, k)."""
    return policy.weights[:, 1:] if policy.forest is not None and policy.structure.described else policy.weights


def _shuffled(policy: Policy, X: FloatArray, feature: int, order: IntArray, plain: FloatArray) -> FloatArray:
    """Return the same of one feature, (k,)."""
    own = X[:, feature].copy()
    X[:, feature] = own[order]
    change = plain - policy.scores(X)
    X[:, feature] = own
    return _signed(own - own[order], change)


def _signed(moved: FloatArray, change: FloatArray) -> FloatArray:
    """Return the standard deviation of scores that a feature makes, with the sign of its trend."""
    sign = np.where(moved @ change < 0.0, -1.0, 1.0)
    return np.asarray(sign * np.sqrt(np.mean(change**2, axis=0) / 2.0))


# ---- trees over actions ---------------------------------------------------------------------


def context_influence(policy: Policy, log: BanditLog, features: Sequence[int]) -> FloatArray:
    """Return how far some features of the context move the scores of its candidates apart, by exchanging each."""
    X, offers = _some_contexts(log)
    order, plain = np.random.default_rng(0).permutation(len(X)), policy.scores(X, offers)
    found = np.empty(len(features))
    for place, feature in enumerate(features):
        own = X[:, feature].copy()
        X[:, feature] = own[order]
        change = plain - policy.scores(X, offers)
        X[:, feature] = own
        mean = np.add.reduceat(change, offers.starts[:-1]) / offers.counts()
        found[place] = np.sqrt(np.mean((change - np.repeat(mean, offers.counts())) ** 2) / 2.0)
    return found


def tree_trends(policy: Policy, log: BanditLog, features: Sequence[int]) -> FloatArray:
    """Return how much what trees say grows with some features of actions, by a standard deviation of each.

    Each is exchanged between the candidates of some contexts; the trend is that of the change in it.
    """
    X, offers = _some_contexts(log)
    trees = replace(policy, weights=np.hstack([policy.weights[:, :1], np.zeros_like(policy.weights[:, 1:])]))
    Z: Any = offers.features
    order, plain = np.random.default_rng(0).permutation(len(offers)), trees.scores(X, offers)
    found = np.zeros(len(features))
    for place, feature in enumerate(features):
        own = Z[:, [feature]].toarray()[:, 0]
        moved = own - own[order]
        column = (np.arange(len(own)), np.full(len(own), feature))
        shuffled = Available(offers.starts, offers.action, sp.csr_array(Z - sp.csr_array((moved, column), Z.shape)))
        change = plain - trees.scores(X, shuffled)
        found[place] = moved @ change / max(float(moved @ moved), 1e-300) * own.std()
    return found


def _some_contexts(log: BanditLog) -> tuple[FloatArray, Any]:
    """Return some contexts, dense, and their candidates, each with features of its own, if they have any."""
    few = SHUFFLED_CONTEXTS
    if log.available is not None:
        few = int(np.clip(MOST_CANDIDATES * log.n_contexts // max(1, len(log.available)), 10, few))
    some = np.arange(0, log.n_contexts, max(1, log.n_contexts // few))
    X = np.array(log.X[some].toarray() if is_sparse(log.X) else log.X[some])
    if log.available is None or log.available.features is None:
        return X, None
    offers = log.available.of(some)
    return X, Available(offers.starts, offers.action, log.available.features[offers.row])


def influence_of(effects: FloatArray, shared: bool) -> FloatArray:
    """Return how far each feature moves scores apart, (d,); what all outputs share says nothing if so ``shared``."""
    apart = effects - effects.mean(axis=1, keepdims=True) if shared else effects
    return np.asarray(np.sqrt(np.einsum("jk,jk->j", apart, apart)))
