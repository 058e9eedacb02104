"""World: a simulated logger whose true losses are known, so that a claim about a policy can be checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any
from zlib import crc32

import numpy as np

import poem
from poem.arrays import AnyArray, FloatArray, IntArray

FRESH = 20_000  # contexts on which a policy's true loss is computed


@dataclass(frozen=True)
class Draw:
    """Decisions of a logger, and what nobody knows outside of a simulation.

    Attributes
    ----------
    X : (n, d) array
    P : (n, k) array
        The logger's probability of each class in each row; ``P[i, y[i]]`` is what it logs.
    L : (n, k) array
        The expected loss of each class in each row.
    y : (n,) array of int
    loss : (n,) array
    group, time, context
        As in :class:`poem.BanditLog`; with ``context``, row i saw ``X[context[i]]``, and P and L still have n rows.
    reward : bool
        Log the negated loss as a reward.
    """

    X: FloatArray
    P: FloatArray
    L: FloatArray
    y: IntArray
    loss: FloatArray
    group: AnyArray | None = None
    time: FloatArray | None = None
    context: IntArray | None = None
    reward: bool = False

    @property
    def outputs(self) -> AnyArray:
        """What was chosen, as poem takes it."""
        return self.y

    def log(self) -> poem.BanditLog:
        outcome = {"reward": 0.0 - self.loss} if self.reward else {"loss": self.loss}
        return poem.BanditLog(
            self.X,
            self.outputs,
            propensity=self.P[np.arange(len(self.y)), self.y],
            labels=range(self.P.shape[1]),
            group=self.group,
            time=self.time,
            context=self.context,
            **outcome,
        )

    @cached_property
    def contexts(self) -> FloatArray:
        """The context of each row, (n, d)."""
        return self.X if self.context is None else self.X[self.context]

    def probabilities(self, policy: Any) -> FloatArray:
        """Return the probability of each class in each row under a policy, (n, k)."""
        return np.asarray(policy.marginals(self.contexts))

    def gain(self, probabilities: FloatArray) -> float:
        """Return by how much the expected loss is below the logger's; ``probabilities`` is (n, k)."""
        return float(((self.P - probabilities) * self.L).sum(axis=1).mean())

    def best_gain(self) -> float:
        """Return the gain of always taking the class with the lowest expected loss."""
        return max(0.0, float(((self.P * self.L).sum(axis=1) - self.L.min(axis=1)).mean()))


@dataclass(frozen=True)
class Sample:
    """One log of a world, with the truth that policies learnt from it are compared with."""

    log: poem.BanditLog
    draw: Draw
    truth: Draw

    def true_gain(self, policy: Any) -> float:
        """Return the exact expected loss of the logger minus the policy's: positive if the policy is better."""
        return self.truth.gain(self.truth.probabilities(policy))

    def best_gain(self) -> float:
        """Return the largest possible gain."""
        return self.truth.best_gain()


@dataclass(frozen=True)
class World:
    """A way to draw logs.

    Attributes
    ----------
    name : str
    draw : function (n, rng) -> Draw
    sizes : tuple of int
        The numbers of rows it is tried with.
    options : mapping
        Further arguments of :func:`poem.fit`.
    adaptive : bool
        The logger learns as it goes: a policy is compared with the average of what the logger did in that very log,
        on the contexts of that log. Otherwise both are compared on fresh contexts.
    promised : bool
        Whether the certificate's assumptions hold, so that it must be right. Where they do not, the world shows
        what happens.
    """

    name: str
    draw: Callable[[int, np.random.Generator], Draw]
    sizes: tuple[int, ...] = (1000,)
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    adaptive: bool = False
    promised: bool = True

    @cached_property
    def fresh(self) -> Draw:
        """Contexts that no log holds."""
        return self.draw(FRESH, np.random.default_rng([crc32(self.name.encode()), 1]))

    def rng(self, n: int, seed: int) -> np.random.Generator:
        """Return the source of randomness of one log: its own for each world, size and seed."""
        return np.random.default_rng([crc32(self.name.encode()), n, seed])

    def sample(self, n: int, rng: np.random.Generator) -> Sample:
        """Draw a log of n rows."""
        draw = self.draw(n, rng)
        return Sample(draw.log(), draw, draw if self.adaptive else self.fresh)


# ---- what worlds are made of ------------------------------------------------------------------


def choose(P: FloatArray, rng: np.random.Generator) -> IntArray:
    """Draw one class per row of P, never one of probability 0."""
    cumulated = np.cumsum(P, axis=1)
    drawn = (rng.random((len(P), 1)) * cumulated[:, -1:] >= cumulated).sum(axis=1)
    last = P.shape[1] - 1 - np.argmax(P[:, ::-1] > 0.0, axis=1)
    return np.minimum(drawn, last)


def at(values: FloatArray, y: IntArray) -> FloatArray:
    """Return ``values[i, y[i]]``."""
    picked: FloatArray = values[np.arange(len(y)), y]
    return picked


def softmax(scores: FloatArray) -> FloatArray:
    """Return probabilities per row."""
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def epsilon_greedy(best: IntArray, k: int, epsilon: float) -> FloatArray:
    """Return ``epsilon`` spread over all k classes, and the rest on the best."""
    P = np.full((len(best), k), epsilon / k)
    P[np.arange(len(best)), best] += 1.0 - epsilon
    return P


def constant(n: int, *values: float) -> FloatArray:
    """Return the same row n times."""
    return np.tile(np.array(values, dtype=float), (n, 1))


def yes_no(X: FloatArray, P: FloatArray, L: FloatArray, rng: np.random.Generator, **more: Any) -> Draw:
    """Draw losses of 0 or 1 with means L."""
    y = choose(P, rng)
    return Draw(X, P, L, y, (rng.random(len(y)) < at(L, y)).astype(float), **more)


def weights(name: str, d: int, k: int) -> FloatArray:
    """Return normal weights, (d, k): the same in all logs of a world."""
    return np.random.default_rng([crc32(name.encode()), 0]).normal(size=(d, k))
