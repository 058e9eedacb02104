"""Worlds with candidates: each context offers some of the items, and these have features that trees look at as well."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

import poem
from benchmarks.worlds.world import Draw, World, at, choose, weights
from poem.arrays import BoolArray, FloatArray, IntArray

ITEMS, FEATURES, OFFERED = 20, 6, 8


@dataclass(frozen=True)
class OfferedDraw(Draw):
    """Decisions among the items that were there; ``there`` is (n, k), and the probability of all others is 0."""

    there: BoolArray = field(kw_only=True)
    Z: FloatArray = field(kw_only=True)

    @cached_property
    def given(self) -> dict[str, Any]:
        """What poem is told of the candidates."""
        lists = np.split(np.nonzero(self.there)[1], np.cumsum(self.there.sum(axis=1))[:-1])
        return {"available": lists, "actions": poem.Catalogue(range(self.P.shape[1]), self.Z)}

    def log(self) -> poem.BanditLog:
        return poem.BanditLog(self.X, self.y, loss=self.loss, propensity=at(self.P, self.y), **self.given)

    def probabilities(self, policy: Any) -> FloatArray:
        found = np.zeros(self.P.shape)
        found[self.there] = policy.marginals(self.X, **self.given)
        return found

    def best_gain(self) -> float:
        best = np.where(self.there, self.L, np.inf).min(axis=1)
        return max(0.0, float(((self.P * self.L).sum(axis=1) - best).mean()))


def _offered(name: str, n: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return contexts, the features of all items, and which items are there."""
    Z = weights(f"{name}-items", ITEMS, FEATURES)
    there = rng.random((n, ITEMS)).argsort(axis=1) < OFFERED
    return rng.normal(size=(n, 3)), Z, there


def _drawn(
    X: FloatArray, Z: FloatArray, there: BoolArray, P: FloatArray, L: FloatArray, rng: np.random.Generator
) -> OfferedDraw:
    y: IntArray = choose(P, rng)
    return OfferedDraw(X, P, L, y, (rng.random(len(y)) < at(L, y)).astype(float), there=there, Z=Z)


def _softmax(scores: FloatArray, there: BoolArray) -> FloatArray:
    raised = np.where(there, np.exp(scores - scores.max(axis=1, keepdims=True)), 0.0)
    return raised / raised.sum(axis=1, keepdims=True)


def null_candidates(n: int, rng: np.random.Generator) -> Draw:
    """All items equal; the logger prefers some by their features."""
    X, Z, there = _offered("null-candidates", n, rng)
    P = _softmax(0.5 * X @ weights("null-candidates", 3, FEATURES) @ Z.T, there)
    return _drawn(X, Z, there, P, np.full(P.shape, 0.5), rng)


def stepped_candidates(n: int, rng: np.random.Generator) -> Draw:
    """An item is good if it is near the context in one feature; a uniform logger. There is much to gain, by trees."""
    X, Z, there = _offered("stepped-candidates", n, rng)
    P = there / there.sum(axis=1, keepdims=True)
    return _drawn(X, Z, there, P, _far(X, Z), rng)


def greedy_candidates(n: int, rng: np.random.Generator) -> Draw:
    """The same losses, and a logger that chooses at random among the best items in 9 of 10 cases."""
    X, Z, there = _offered("greedy-candidates", n, rng)
    L = _far(X, Z)
    best = there & (np.where(there, L, np.inf).min(axis=1, keepdims=True) == L)
    P = 0.9 * best / best.sum(axis=1, keepdims=True) + 0.1 * there / there.sum(axis=1, keepdims=True)
    return _drawn(X, Z, there, P, L, rng)


def _far(X: FloatArray, Z: FloatArray) -> FloatArray:
    """Return the loss of each item in each context."""
    return np.where(np.abs(X[:, :1] - Z[:, 0]) < 0.7, 0.2, 0.8)


OFFERED_WORLDS = (
    World("null-candidates", null_candidates, (200, 1000)),
    World("stepped-candidates", stepped_candidates, (300, 1000)),
    World("greedy-candidates", greedy_candidates, (1000,)),
)
