"""Mini-batch AdaGrad. Slopes that need the whole log are frozen at the start of each epoch.

For POEM the frozen slopes are the constants of the paper's majoriser of √Var, so each epoch descends on
Q(w; w_t) of Proposition 1.
"""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

from poem.arrays import FloatArray, IntArray
from poem.compute import kernel
from poem.errors import InputError
from poem.optimizers.base import Batches, OnStep, Optimizer, Problem, SparseRows, Trace, check_counts, start_of


@dataclass(frozen=True)
class AdaGrad(Optimizer):
    """AdaGrad with progressive validation.

    ``max_batches`` and ``min_epochs`` limit the work: at most the larger of the two, and no stop in the
    first epoch. Every ``check_every`` batches, the running mean of the batch losses (each taken before its
    step) is compared with the best so far. After ``patience`` checks without improvement, the best weights
    are returned. A batch gradient shorter than ``tol`` also ends the search. ``initial`` is the initial sum
    of squared gradients: the larger it is, the shorter are the first steps.
    """

    batch_size: int = 100
    step: float = 1.0
    max_batches: int = 1000
    min_epochs: int = 2
    check_every: int = 50
    patience: int = 5
    tol: float = 1e-6
    initial: float = 1.0

    def __post_init__(self) -> None:
        check_counts(self, "batch_size", "max_batches", "min_epochs", "check_every", "patience")
        for name in ("step", "initial"):
            if not getattr(self, name) > 0.0:
                raise InputError(f"{name} must be above 0; found {getattr(self, name)}.")

    def minimize(
        self,
        problem: Problem,
        start: FloatArray | None = None,
        *,
        rng: Generator | None = None,
        on_step: OnStep | None = None,
    ) -> Trace:
        rng = np.random.default_rng(0) if rng is None else rng
        run = _Run(self, problem, problem.for_batches(start_of(problem, start)), on_step)
        reason = "batch limit"
        while run.batches < self._limit(problem):
            run.begin_epoch()
            stopped = run.epoch(problem.shuffled(rng.permutation(problem.n_rows)), self._limit(problem))
            if stopped:
                reason = stopped
                break
        return run.finish(reason)

    def _limit(self, problem: Problem) -> int:
        per_epoch = -(-problem.n_rows // self.batch_size)
        return max(self.max_batches, self.min_epochs * per_epoch)

    def settings(self) -> dict[str, Any]:
        return {"name": "AdaGrad", **asdict(self)}


@dataclass
class _Run:
    """The state of one minimisation."""

    rules: AdaGrad
    problem: Problem
    w: FloatArray
    on_step: OnStep | None
    begin: float = field(default_factory=time.perf_counter)
    batches: int = 0
    epochs: int = 0
    loss_total: float = 0.0
    best_loss: float = np.inf
    checks_without_gain: int = 0
    curve: list[tuple[float, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.accumulator = np.full_like(self.w, self.rules.initial)
        self.shrunk_at = np.zeros(len(self.w), dtype=np.int64)  # batches whose l2 is in w
        self.best_w = self.w.copy()
        centre = self.problem.centre_for_batches if self.problem.l2 else None
        self.centre = np.empty((0, 0), dtype=self.w.dtype) if centre is None else centre

    def begin_epoch(self) -> None:
        """Record the objective and freeze its slopes at the current weights."""
        value, self.slopes = self.problem.frozen_point(self.w)
        self.curve.append((time.perf_counter() - self.begin, value))

    def epoch(self, rows: Batches, limit: int) -> str | None:
        """Process all rows once; return the reason to stop, or None."""
        size = self.rules.batch_size
        for first in range(0, self.problem.n_rows, size):
            loss, gradient = rows.batch(self.w, slice(first, first + size), self.slopes)
            self.loss_total += loss
            self._update(gradient)
            self.batches += 1
            if self.batches % self.rules.check_every == 0:
                if self.on_step is not None:
                    self.on_step(self.batches, self.curve[-1][1])
                stopped = self._check(float(np.linalg.norm(gradient.values)))
                if stopped:
                    return stopped
            if self.batches >= limit:
                break
        self._settle_l2()
        self.epochs += 1
        return None

    def _update(self, gradient: SparseRows) -> None:
        rows, values = gradient.rows, gradient.values
        if self.problem.l2:
            _add_due_l2(self.w, self.centre, rows, values, self.problem.l2, self.shrunk_at, self.batches + 1)
        _step(self.w, self.accumulator, rows, values, self.rules.step)

    def _settle_l2(self) -> None:
        """Apply the l2 steps that rows without a gradient have missed."""
        if self.problem.l2:
            rows, values = np.arange(len(self.w)), np.zeros_like(self.w)
            _add_due_l2(self.w, self.centre, rows, values, self.problem.l2, self.shrunk_at, self.batches)
            _step(self.w, self.accumulator, rows, values, self.rules.step)

    def _check(self, gradient_norm: float) -> str | None:
        """Compare the running loss with the best one; return the reason to stop, or None."""
        running = self.loss_total / self.batches
        if not np.isfinite(gradient_norm):
            np.copyto(self.w, self.best_w)
            return "diverged"
        if running < self.best_loss:
            self._settle_l2()
            self.best_loss, self.checks_without_gain = running, 0
            np.copyto(self.best_w, self.w)
        else:
            self.checks_without_gain += 1
        if self.epochs == 0:
            return None
        if gradient_norm < self.rules.tol:
            return "gradient below tol"
        if self.checks_without_gain >= self.rules.patience:
            np.copyto(self.w, self.best_w)
            return "progressive validation"
        return None

    def finish(self, reason: str) -> Trace:
        """Evaluate the last weights and close the trace."""
        if reason not in ("progressive validation", "diverged"):  # the best weights have theirs
            self._settle_l2()
        if not np.isfinite(self.w).all():
            np.copyto(self.w, self.best_w)
            reason = "diverged"
        self.begin_epoch()
        seconds, value = self.curve[-1]
        weights = self.problem.from_batches(self.w)
        return Trace(
            weights, value, self.batches, seconds, reason not in ("batch limit", "diverged"), reason, self.curve
        )


@kernel
def _add_due_l2(
    w: FloatArray,
    centre: FloatArray,
    rows: IntArray,
    gradient: FloatArray,
    l2: float,
    shrunk_at: IntArray,
    now: int,
) -> None:
    """Add the l2 gradient of all batches since each row was last touched; other rows stay untouched.

    An empty ``centre`` is 0.
    """
    for i in range(rows.shape[0]):
        r = rows[i]
        due = w.dtype.type(l2 * (now - shrunk_at[r]))
        shrunk_at[r] = now
        for j in range(gradient.shape[1]):
            off = w[r, j] - centre[r, j] if centre.shape[0] else w[r, j]
            gradient[i, j] += due * off


@kernel
def _step(w: FloatArray, accumulator: FloatArray, rows: IntArray, gradient: FloatArray, step: float) -> None:
    """Update some rows of w in place; add the squared gradient before the step."""
    eta = w.dtype.type(step)
    for i in range(rows.shape[0]):
        r = rows[i]
        for j in range(gradient.shape[1]):
            g = gradient[i, j]
            total = accumulator[r, j] + g * g
            accumulator[r, j] = total
            w[r, j] -= eta * g / np.sqrt(total)
