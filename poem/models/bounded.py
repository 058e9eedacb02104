"""Loss models whose predictions stay within the range of losses: how they are fitted, and how strong their ridge is."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from poem.arrays import BoolArray, FloatArray
from poem.compute import Threads
from poem.data import BanditLog, mean_square
from poem.optimizers import LBFGS

SOLVER = LBFGS(max_iterations=50, ftol=1e-5, gtol=1e-6)
PATIENCE = 2  # strengths without a gain after which weaker ones are not tried


class BoundedLoss(ABC):
    """The logged losses as shares of their range, and a model of them.

    Called with weights, it returns the mean cross-entropy with a ridge, and its gradient: a problem for an optimizer.

    ``bounds`` are the lowest and the highest loss.
    """

    strengths: ClassVar[tuple[float, ...]]  # in mean squared norms of x, from the strongest

    shape: tuple[int, int]

    @abstractmethod
    def __init__(self, log: BanditLog, bounds: tuple[float, float], threads: Threads, once: bool = False) -> None:
        """``once`` says that the rows are not used again: nothing is prepared for a second time."""
        self.bounds, self.threads, self.once, self.ridge = bounds, threads, once, 0.0

    @property
    @abstractmethod
    def loss(self) -> FloatArray:
        """The logged losses, in the order of the predictions."""

    @abstractmethod
    def shares(self, w: FloatArray) -> FloatArray:
        """Return the predicted losses of all rows as shares of their range."""

    @abstractmethod
    def entropy(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the sum of the cross-entropies of all rows, and its gradient."""

    def free(self, gradient: FloatArray) -> FloatArray:
        """Return a gradient without the weights that are not learnt."""
        return gradient

    @cached_property
    def target(self) -> FloatArray:
        """The logged losses as shares of their range."""
        low, high = self.bounds
        return (self.loss - low) / (high - low)

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        return self.ridged(w, *self.entropy(w), len(self.loss))

    def ridged(self, w: FloatArray, value: float, gradient: FloatArray, n: int) -> tuple[float, FloatArray]:
        """Return the mean over n rows with a ridge, and its gradient, of what :meth:`entropy` sums up."""
        value += 0.5 * self.ridge * float(np.vdot(w, w))
        return value / n, (self.free(gradient) + self.ridge * w) / n

    def minimised(self, ridge: float, start: FloatArray | None = None) -> FloatArray:
        """Return the weights of the least value."""
        self.ridge = ridge
        return SOLVER.minimize(self, start).weights

    def missed(self, w: FloatArray) -> float:
        """Return the sum of squared errors of the predicted losses."""
        low, high = self.bounds
        return float(np.sum((self.loss - low - (high - low) * self.shares(w)) ** 2))


def fit_bounded(
    kind: type[BoundedLoss], log: BanditLog, strength: float, bounds: tuple[float, float], threads: Threads
) -> FloatArray:
    """Return the weights of a model of the losses."""
    return kind(log, bounds, threads).minimised(strength * mean_square(log))


def bounded_error(
    kind: type[BoundedLoss],
    log: BanditLog,
    parts: Sequence[BoolArray],
    bounds: tuple[float, float],
    threads: Threads,
) -> tuple[float, float]:
    """Return the strength of the least squared error on held-out logged losses, and that error."""
    trials = [_Trial(kind(log.take(~held), bounds, threads), kind(log.take(held), bounds, threads)) for held in parts]
    best, found, since, rows, scale = np.inf, kind.strengths[0], 0, float(np.sum(parts)), mean_square(log)
    for strength in kind.strengths:
        error = float(sum(trial.missed(strength * scale) for trial in trials)) / rows
        best, found, since = (error, strength, 0) if error < best else (best, found, since + 1)
        if since >= PATIENCE:
            break
    return found, best


@dataclass
class _Trial:
    """One part that is held out: each strength begins where the last one ended."""

    model: BoundedLoss
    judge: BoundedLoss
    weights: FloatArray | None = None

    def missed(self, ridge: float) -> float:
        """Return the sum of squared errors on the held-out rows."""
        self.weights = self.model.minimised(ridge, self.weights)
        return self.judge.missed(self.weights)
