"""How far each feature of the context moves the scores of a policy, and which way."""

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.compute import is_sparse
from poem.data import BanditLog
from poem.policies import Policy

SHUFFLED_CONTEXTS = 400


def effects_of(policy: Policy, log: BanditLog, spread: FloatArray) -> FloatArray:
    """Return the standard deviation of each score that comes from each feature, (d, k), with the sign of its trend.

    A weight times the standard deviation of its feature says it for a linear policy. Where trees look at a feature, it
    is exchanged between contexts, and the scores say what that changes.
    """
    found: FloatArray = policy.weights[: log.n_features] * spread[:, None]
    if policy.forest is None:
        return found
    step = max(1, log.n_contexts // SHUFFLED_CONTEXTS)
    some = log.X[np.arange(0, log.n_contexts, step)]
    X = np.array(some.toarray() if is_sparse(some) else some)
    order = np.random.default_rng(0).permutation(len(X))
    plain = policy.scores(X)
    for feature in policy.forest.used.tolist():
        found[feature] = _shuffled(policy, X, feature, order, plain)
    return found


def _shuffled(policy: Policy, X: FloatArray, feature: int, order: IntArray, plain: FloatArray) -> FloatArray:
    """Return the same of one feature, (k,)."""
    own = X[:, feature].copy()
    X[:, feature] = own[order]
    change = plain - policy.scores(X)
    X[:, feature] = own
    trend = (own - own[order]) @ change
    sign = np.where(trend < 0.0, -1.0, 1.0)
    return np.asarray(sign * np.sqrt(np.mean(change**2, axis=0) / 2.0))


def influence_of(effects: FloatArray, shared: bool) -> FloatArray:
    """Return how far each feature moves scores apart, (d,); what all outputs share says nothing if so ``shared``."""
    apart = effects - effects.mean(axis=1, keepdims=True) if shared else effects
    return np.asarray(np.sqrt(np.einsum("jk,jk->j", apart, apart)))
