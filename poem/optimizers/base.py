"""The interface between optimizers and problems. Nothing here knows about bandits."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
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


class Batch(Protocol):
    """Some rows: the mean of their losses, and its gradient."""

    def __call__(self, wide: FloatArray, slopes: FloatArray) -> tuple[float, SparseRows]: ...


class Smooth(Protocol):
    """A smooth function of weights of some shape: all that L-BFGS needs."""

    @property
    def shape(self) -> tuple[int, int]: ...
    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]: ...


class Problem(Smooth, Protocol):
    """A smooth function that can also be evaluated in batches of rows.

    Batches use the problem's own form of weights, which :meth:`for_batches` creates. In that form l2 pulls
    towards ``centre_for_batches``, or towards 0. :meth:`epoch` deals all rows once, in a random order, into
    batches of a size. It draws from ``rng`` itself, so that the state of ``rng`` says where a run is.
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
    def epoch(self, rng: Generator, size: int) -> Iterable[Batch]: ...


@dataclass(frozen=True)
class Trace:
    """The end point of an optimizer and its path.

    ``curve`` holds (seconds, objective) pairs: one per iteration for L-BFGS, one per epoch for AdaGrad.
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
        """Return the best weights found and the trace."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Return the settings as plain data, for records."""


def check_counts(rules: object, *names: str) -> None:
    """Raise an error for settings that are not whole numbers of at least 1."""
    for name in names:
        value = getattr(rules, name)
        if not isinstance(value, int | np.integer) or value < 1:
            raise InputError(f"{name} must be at least 1, and a whole number; found {value!r}.")


def start_of(problem: Smooth, start: FloatArray | None) -> FloatArray:
    """Return a new copy of the start; zeros if none is given."""
    return np.zeros(problem.shape) if start is None else np.array(start, dtype=np.float64).reshape(problem.shape)
