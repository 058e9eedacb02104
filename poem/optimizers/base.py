"""What optimizers and problems promise each other. Nothing here knows of bandits."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.random import Generator

from poem.arrays import FloatArray, IntArray
from poem.errors import InputError

# Called now and then with (steps done, objective); may raise to stop the work.
OnStep = Callable[[int, float], None]


class SparseRows(Protocol):
    """A gradient of some rows of the weights."""

    @property
    def rows(self) -> IntArray: ...
    @property
    def values(self) -> FloatArray: ...


class Batches(Protocol):
    """Rows in the order of an epoch."""

    def batch(self, wide: FloatArray, rows: slice, slopes: FloatArray) -> tuple[float, SparseRows]: ...


class Smooth(Protocol):
    """A smooth function of weights of some shape: all that L-BFGS needs."""

    @property
    def shape(self) -> tuple[int, int]: ...
    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]: ...


class Problem(Smooth, Protocol):
    """A smooth function that can also be had in batches of rows.

    Batches work on weights in a form of the problem's own, which :meth:`for_batches` makes; in that form l2
    pulls to ``centre_for_batches``, or to 0.
    """

    @property
    def n_rows(self) -> int: ...
    @property
    def l2(self) -> float: ...
    @property
    def centre_for_batches(self) -> FloatArray | None: ...
    def for_batches(self, w: FloatArray) -> FloatArray: ...
    def from_batches(self, wide: FloatArray) -> FloatArray: ...
    def frozen_point(self, wide: FloatArray) -> tuple[float, FloatArray]: ...
    def shuffled(self, order: IntArray) -> Batches: ...


@dataclass(frozen=True)
class Trace:
    """Where an optimizer ended and how it got there.

    ``curve`` holds (seconds, objective) pairs: one an iteration for L-BFGS, one an epoch for AdaGrad.
    """

    weights: FloatArray
    value: float
    steps: int
    seconds: float
    converged: bool
    reason: str
    curve: list[tuple[float, float]] = field(default_factory=list)


class Optimizer(ABC):
    """Minimises a :class:`Problem` from a start (w = 0 by default)."""

    @abstractmethod
    def minimize(
        self,
        problem: Problem,
        start: FloatArray | None = None,
        *,
        rng: Generator | None = None,
        on_step: OnStep | None = None,
    ) -> Trace:
        """Return the best weights found and the way there."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the settings as plain data, for records."""


def check_counts(rules: object, *names: str) -> None:
    """Refuse settings that are not whole numbers of at least 1."""
    for name in names:
        value = getattr(rules, name)
        if not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} must be at least 1, and a whole number; found {value!r}.")


def start_of(problem: Smooth, start: FloatArray | None) -> FloatArray:
    """Return a fresh copy of the start, zeros if none is given."""
    return np.zeros(problem.shape) if start is None else np.array(start, dtype=np.float64).reshape(problem.shape)
