"""L-BFGS on the exact objective, in little memory.

It keeps two float32 vectors per past step: a quarter of the memory of scipy's L-BFGS-B for as many
corrections, and half the traffic. Differences are computed in float64 before rounding.
"""

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray
from poem.compute import kernel
from poem.errors import CheckpointError, InputError
from poem.optimizers.base import Arrays, Keeper, OnStep, Optimizer, Smooth, Trace, check_counts, start_of
from poem.optimizers.keeping import check_kept, text_array, text_of
from poem.optimizers.line_search import Found, search

STUCK, STEEP = 1e-12, 1e-4  # a decrease that is rounding, with a gradient that says otherwise


@dataclass(frozen=True)
class LBFGS(Optimizer):
    """Limited-memory BFGS.

    It remembers ``corrections`` past steps. It stops when the last decrease relative to the objective's
    size (at least ``floor``) is below ``ftol``, or the largest gradient entry is below ``gtol``.
    """

    max_iterations: int = 1000
    ftol: float = 1e-6
    gtol: float = 1e-6
    corrections: int = 10
    floor: float = 1.0

    def __post_init__(self) -> None:
        check_counts(self, "max_iterations", "corrections")
        if not self.floor > 0.0:
            raise InputError(f"floor must be above 0; found {self.floor}.")

    def minimize(
        self,
        problem: Smooth,
        start: FloatArray | None = None,
        *,
        rng: Generator | None = None,
        on_step: OnStep | None = None,
        keeper: Keeper | None = None,
    ) -> Trace:
        kept = None if keeper is None else keeper.load()
        run = _Run(self, problem, *_started(problem, start)) if kept is None else _resumed(self, problem, kept)
        while not run.reason:
            moved = run.iterate()
            if keeper is not None:
                keeper.save(run.arrays())
            if moved and on_step is not None:
                on_step(run.step, run.value)
        return run.trace()

    def settings(self) -> dict[str, Any]:
        return {"name": "LBFGS", **asdict(self)}


class _Run:
    """The state of one minimisation, which has ended when there is a reason for it."""

    def __init__(
        self, rules: LBFGS, problem: Smooth, x: FloatArray, value: float, gradient: FloatArray, begin: float
    ) -> None:
        self.rules, self.problem = rules, problem
        self.x, self.value, self.gradient, self.begin = x, value, gradient, begin
        self.memory = _Memory(rules.corrections, x.size)
        self.curve = [(time.perf_counter() - begin, value)]
        self.step, self.reason, self.converged = 0, "", False

    def iterate(self) -> bool:
        """Look for a better point; tell whether there is one."""
        rules, memory, gradient = self.rules, self.memory, self.gradient
        if self.step == rules.max_iterations:
            return self._end("iteration limit")
        self.step += 1
        if np.abs(gradient).max() <= rules.gtol:
            return self._end("gradient below gtol", converged=True)
        direction = memory.direction(gradient)
        # Without a past, a first step of length 1.
        first = 1.0 if memory.used else 1.0 / float(np.linalg.norm(gradient))
        found = search(self.problem, self.x, self.value, gradient, direction, first)
        if found is None:
            if not memory.used:
                return self._end("no descent along the gradient")
            memory.forget()
            return False
        direction *= found.length
        self.x += direction
        memory.add(direction, found.gradient - gradient)
        self._reach(found)
        return True

    def _reach(self, found: Found) -> None:
        """Note a better point, and whether it is the last one."""
        rules, memory, before = self.rules, self.memory, self.value
        decrease = (before - found.value) / max(abs(before), abs(found.value), rules.floor)
        self.value, self.gradient = found.value, found.gradient
        self.curve.append((time.perf_counter() - self.begin, found.value))
        stuck = decrease <= STUCK and np.abs(found.gradient).max() > STEEP
        if stuck and memory.used:
            memory.forget()  # a kink of the clip, or curvature that misleads: once more along the gradient
        elif stuck:
            self._end("stuck where it is steep")
        elif decrease <= rules.ftol:
            self._end("decrease below ftol", converged=True)

    def _end(self, reason: str, converged: bool = False) -> bool:
        self.reason, self.converged = reason, converged
        return False

    def trace(self) -> Trace:
        """Return the last point and the way to it."""
        seconds = time.perf_counter() - self.begin
        return Trace(self.x, self.value, len(self.curve) - 1, seconds, self.converged, self.reason, self.curve)

    def arrays(self) -> Arrays:
        """Return all that is needed to go on; of the memory only what is in use."""
        memory = self.memory
        used = min(memory.used, memory.most)
        return {
            "x": self.x,
            "gradient": np.ascontiguousarray(self.gradient),
            "steps": memory.steps[:used],
            "changes": memory.changes[:used],
            "products": memory.products[:used],
            "scales": np.array([self.value, memory.scale]),
            "counts": np.array([self.step, memory.used, self.converged]),
            "curve": np.array(self.curve),
            "reason": text_array(self.reason),
        }


def _started(problem: Smooth, start: FloatArray | None) -> tuple[FloatArray, float, FloatArray, float]:
    begin = time.perf_counter()
    x = start_of(problem, start)
    return x, *problem(x), begin


def _resumed(rules: LBFGS, problem: Smooth, kept: Arrays) -> _Run:
    """Return a run as it was when it was kept."""
    zeros = np.zeros(problem.shape)
    run = _Run(rules, problem, zeros, 0.0, zeros, 0.0)
    check_kept(kept, run.arrays() | {"curve": np.empty(0)})
    memory = run.memory
    run.x, run.gradient = kept["x"].copy(), kept["gradient"].copy()
    run.value, memory.scale = kept["scales"].tolist()
    run.step, memory.used, converged = kept["counts"].tolist()
    used = min(memory.used, memory.most)
    for name in ("steps", "changes", "products"):
        room = getattr(memory, name)[:used]
        if kept[name].shape != room.shape:
            raise CheckpointError(f"the state that was kept has {len(kept[name])} corrections instead of {used}.")
        room[:] = kept[name]
    run.curve = [(seconds, value) for seconds, value in kept["curve"].tolist()]
    run.reason, run.converged = text_of(kept["reason"]), bool(converged)
    run.begin = time.perf_counter() - run.curve[-1][0]
    return run


class _Memory:
    """The last few steps s and gradient changes y, and the inverse Hessian they imply."""

    def __init__(self, most: int, size: int) -> None:
        self.steps = np.zeros((most, size), dtype=np.float32)
        self.changes = np.zeros((most, size), dtype=np.float32)
        self.products = np.zeros(most)  # s·y
        self.most, self.used, self.scale = most, 0, 1.0

    def forget(self) -> None:
        self.used = 0

    def add(self, step: FloatArray, change: FloatArray) -> None:
        """Remember a step if its curvature is positive."""
        s, y = step.reshape(-1), change.reshape(-1)
        product, square = float(s @ y), float(y @ y)
        if not (np.isfinite(square) and product > 1e-10 * square):
            return
        position = self.used % self.most
        self.steps[position], self.changes[position] = s, y
        self.products[position] = product
        self.scale = product / square
        self.used += 1

    def direction(self, gradient: FloatArray) -> FloatArray:
        """Return −H·gradient by the two-loop recursion; −gradient without a past."""
        d = -gradient.reshape(-1)
        if self.used:
            _two_loops(d, self.steps, self.changes, self.products, self.used, self.scale)
        return d.reshape(gradient.shape)


@kernel
def _dot(small: FloatArray, large: FloatArray) -> float:
    """Return the inner product of a float32 and a float64 vector, in float64."""
    total = 0.0
    for i in range(large.shape[0]):
        total += small[i] * large[i]
    return total


@kernel
def _add(target: FloatArray, factor: float, small: FloatArray) -> None:
    """Add a multiple of a float32 vector to a float64 vector in place."""
    for i in range(target.shape[0]):
        target[i] += factor * small[i]


@kernel
def _two_loops(
    d: FloatArray, steps: AnyArray, changes: AnyArray, products: FloatArray, used: int, scale: float
) -> None:
    """Turn d into H·d in place: from the newest correction to the oldest, and back."""
    most = steps.shape[0]
    oldest = max(0, used - most)
    weights = np.empty(most)
    for number in range(used - 1, oldest - 1, -1):
        i = number % most
        weights[i] = _dot(steps[i], d) / products[i]
        _add(d, -weights[i], changes[i])
    for j in range(d.shape[0]):
        d[j] *= scale
    for number in range(oldest, used):
        i = number % most
        _add(d, weights[i] - _dot(changes[i], d) / products[i], steps[i])
