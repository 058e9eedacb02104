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
from poem.errors import InputError
from poem.optimizers.base import OnStep, Optimizer, Smooth, Trace, check_counts, start_of
from poem.optimizers.line_search import search

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
    ) -> Trace:
        begin = time.perf_counter()
        x = start_of(problem, start)
        value, gradient = problem(x)
        curve = [(time.perf_counter() - begin, value)]
        memory = _Memory(self.corrections, x.size)
        reason, converged = "iteration limit", False
        for step in range(1, self.max_iterations + 1):
            if np.abs(gradient).max() <= self.gtol:
                reason, converged = "gradient below gtol", True
                break
            direction = memory.direction(gradient)
            # Without a past, a first step of length 1.
            first = 1.0 if memory.used else 1.0 / float(np.linalg.norm(gradient))
            found = search(problem, x, value, gradient, direction, first)
            if found is None:
                if not memory.used:
                    reason = "no descent along the gradient"
                    break
                memory.forget()
                continue
            direction *= found.length
            x += direction
            memory.add(direction, found.gradient - gradient)
            decrease = (value - found.value) / max(abs(value), abs(found.value), self.floor)
            value, gradient = found.value, found.gradient
            curve.append((time.perf_counter() - begin, value))
            if on_step is not None:
                on_step(step, value)
            stuck = decrease <= STUCK and np.abs(gradient).max() > STEEP
            if stuck and memory.used:
                memory.forget()  # a kink of the clip, or curvature that misleads: once more along the gradient
            elif stuck:
                reason = "stuck where it is steep"
                break
            elif decrease <= self.ftol:
                reason, converged = "decrease below ftol", True
                break
        return Trace(x, value, len(curve) - 1, time.perf_counter() - begin, converged, reason, curve)

    def settings(self) -> dict[str, Any]:
        return {"name": "LBFGS", **asdict(self)}


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
