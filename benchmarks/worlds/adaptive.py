"""Worlds whose logger learns as it logs. Propensities are exact: the logger draws from what it writes down."""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from benchmarks.worlds.world import Draw, World, epsilon_greedy, weights
from poem.arrays import FloatArray

GRID = np.linspace(-8.0, 8.0, 161)
DENSITY = np.exp(-0.5 * GRID**2) / np.exp(-0.5 * GRID**2).sum()
FLOOR = 0.05  # of UCB, per class
CLASSES = 3

Rule = Callable[[FloatArray, FloatArray], FloatArray]  # mean and sd of each class's loss -> probabilities


def thompson_rule(mean: FloatArray, sd: FloatArray) -> FloatArray:
    """Return the probability that each class has the lowest loss: ∫ φ(z) Π P(others > mean + sd·z) dz."""
    value = mean[:, None] + sd[:, None] * GRID
    above = ndtr((mean[:, None, None] - value) / sd[:, None, None])  # (other, class, z)
    above[np.arange(len(mean)), np.arange(len(mean))] = 1.0
    p = above.prod(axis=0) @ DENSITY
    return p / p.sum()


def ucb_rule(mean: FloatArray, sd: FloatArray) -> FloatArray:
    """Return the floor for each class, and the rest for the one with the lowest optimistic loss."""
    best = np.array([np.argmin(mean - 1.5 * sd)])
    return epsilon_greedy(best, len(mean), FLOOR * len(mean))[0]


def learnt(X: FloatArray, L: FloatArray, rule: Rule, rng: np.random.Generator, spread: float, *, timed: bool) -> Draw:
    """Log rows of a linear Bayesian learner, one ridge regression per class, with losses of 0 or 1 and means L."""
    n, k = L.shape
    seen = np.c_[np.ones(n), X]
    d = seen.shape[1]
    covariance, moment, weight = np.tile(np.eye(d), (k, 1, 1)), np.zeros((k, d)), np.zeros((k, d))
    P, y, loss = np.empty((n, k)), np.empty(n, dtype=np.int64), np.empty(n)
    uniform = rng.random((n, 2))
    for i, x in enumerate(seen):
        reach = covariance @ x
        p = P[i] = rule(weight @ x, spread * np.sqrt(reach @ x))
        a = y[i] = min(int(np.searchsorted(np.cumsum(p), uniform[i, 0], side="right")), k - 1)
        loss[i] = uniform[i, 1] < L[i, a]
        covariance[a] -= np.outer(reach[a], reach[a]) / (1.0 + reach[a] @ x)
        moment[a] += (loss[i] - 0.5) * x
        weight[a] = covariance[a] @ moment[a]
    return Draw(X, P, L, y, loss, time=np.arange(n, dtype=float) if timed else None)


def thompson(n: int, rng: np.random.Generator, *, timed: bool = True) -> Draw:
    """Linear Thompson sampling over equal classes."""
    return learnt(rng.normal(size=(n, 3)), np.full((n, CLASSES), 0.5), thompson_rule, rng, 0.5, timed=timed)


def thompson_untimed(n: int, rng: np.random.Generator) -> Draw:
    """The same without times: the rows are in order, but the log does not say so."""
    return thompson(n, rng, timed=False)


def ucb_null(n: int, rng: np.random.Generator) -> Draw:
    """Linear UCB with a floor of 5% over equal classes."""
    return learnt(rng.normal(size=(n, 3)), np.full((n, CLASSES), 0.5), ucb_rule, rng, 0.5, timed=True)


def ucb_signal(n: int, rng: np.random.Generator) -> Draw:
    """The same where losses are logistic in x."""
    X = rng.normal(size=(n, 3))
    return learnt(X, 1.0 / (1.0 + np.exp(-0.7 * X @ weights("ucb", 3, CLASSES))), ucb_rule, rng, 0.5, timed=True)


ADAPTIVE = (
    World("thompson", thompson, adaptive=True),
    World("thompson-untimed", thompson_untimed, adaptive=True),
    World("ucb-null", ucb_null, adaptive=True),
    World("ucb-signal", ucb_signal, adaptive=True),
)
