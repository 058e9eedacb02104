"""Worlds of label sets whose losses are sums over labels, and of which poem is told so."""

from functools import cache
from types import MappingProxyType
from typing import Any

import numpy as np

import poem
from benchmarks.worlds.world import Draw, World, at, choose, weights
from poem.arrays import AnyArray, FloatArray

LABELS, FEATURES = 6, 4
SHARP = {"null-sums": 0.7, "linear-sums": 0.7, "best-sums": 2.0}  # the spread of the logger's scores
SETS = ((np.arange(1 << LABELS)[:, None] >> np.arange(LABELS)) & 1).astype(np.uint8)  # every output, (64, labels)


class SetsDraw(Draw):
    """Decisions of a logger of label sets: ``y`` is the number of a set, and P and L have a column for each set."""

    @property
    def outputs(self) -> AnyArray:
        return SETS[self.y]

    def log(self) -> poem.BanditLog:
        return poem.BanditLog(self.X, self.outputs, loss=self.loss, propensity=at(self.P, self.y), labels=range(LABELS))

    def probabilities(self, policy: Any) -> FloatArray:
        return probabilities(np.asarray(policy.marginals(self.X)))


def probabilities(on: FloatArray) -> FloatArray:
    """Return the probability of each set from those of single labels."""
    found = np.ones((len(on), len(SETS)))
    for label in range(LABELS):
        found *= np.where(SETS[:, label] > 0, on[:, label, None], 1.0 - on[:, label, None])
    return found


@cache
def logger(name: str) -> poem.Policy:
    """Return the logging policy of a world: the same in all logs."""
    lines, often = weights(f"{name}-logger", FEATURES, LABELS), weights(f"{name}-often", 1, LABELS)
    return poem.Policy(poem.MultiLabel(LABELS), SHARP[name] * np.vstack([lines, often]), True, tuple(range(LABELS)))


def _drawn(name: str, X: FloatArray, worth: FloatArray, noise: float, rng: np.random.Generator) -> Draw:
    """Draw losses: ``worth``, (n, labels), is what each label adds if it is on, at most 1/labels in size.

    A share of them, ``noise``, is 0 or 1 with the same mean.
    """
    P = probabilities(np.asarray(logger(name).marginals(X)))
    L = 0.5 + worth @ (SETS.T - 0.5)
    y = choose(P, rng)
    mean = at(L, y)
    rounded = (rng.random(len(y)) < mean).astype(float)
    return SetsDraw(X, P, L, y, np.where(rng.random(len(y)) < noise, rounded, mean))


def null_sums(n: int, rng: np.random.Generator) -> Draw:
    """All label sets equal, losses of 0 or 1."""
    return _drawn("null-sums", rng.normal(size=(n, FEATURES)), np.zeros((n, LABELS)), 1.0, rng)


def linear_sums(n: int, rng: np.random.Generator) -> Draw:
    """Each label is right or wrong by a line, and half of the losses are 0 or 1."""
    X = rng.normal(size=(n, FEATURES))
    right = np.sign(X @ weights("linear-sums", FEATURES, LABELS))
    return _drawn("linear-sums", X, -right / LABELS, 0.5, rng)


def best_sums(n: int, rng: np.random.Generator) -> Draw:
    """The logger is sharp and knows what is best, but for its temperature: bold policies gain little or nothing."""
    X = rng.normal(size=(n, FEATURES))
    lines = X @ weights("best-sums-logger", FEATURES, LABELS) + weights("best-sums-often", 1, LABELS)
    return _drawn("best-sums", X, -np.tanh(lines) / LABELS, 1.0, rng)


def _world(name: str, draw: Any, sizes: tuple[int, ...]) -> World:
    told = {"selection": poem.Selection(additive=True), "logging_policy": logger(name), "loss_bounds": (0, 1)}
    return World(name, draw, sizes, MappingProxyType(told))


SETS_WORLDS = (
    _world("null-sums", null_sums, (200, 1000)),
    _world("linear-sums", linear_sums, (300, 1000)),
    _world("best-sums", best_sums, (1000,)),
)
