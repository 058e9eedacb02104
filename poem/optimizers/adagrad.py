"""Mini-batch AdaGrad. Slopes that need the whole log are frozen at the start of each epoch.

For POEM the frozen slopes are the constants of the paper's majoriser of √Var, so each epoch descends on
Q(w; w_t) of Proposition 1.
"""

import time
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import RowGradient, SummedGradient, add_terms, inlined, kernel
from poem.errors import InputError
from poem.optimizers.base import OnStep, Optimizer, Problem, SparseRows, Trace, check_counts, start_of

State = tuple[FloatArray, IntArray, FloatArray]  # sums of squares; batches whose l2 is in each row; where l2 pulls to
Terms = tuple[IntArray, AnyArray, FloatArray, FloatArray]  # of a gradient whose rows are sums


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
            stopped = run.epoch(rng, self._limit(problem))
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

    def epoch(self, rng: Generator, limit: int) -> str | None:
        """Process all rows once; return the reason to stop, or None."""
        for batch in self.problem.epoch(rng, self.rules.batch_size):
            loss, gradient = batch(self.w, self.slopes)
            self.loss_total += loss
            self.batches += 1
            checked = self.batches % self.rules.check_every == 0
            squares = self._update(gradient, self.batches, checked)
            if checked:
                if self.on_step is not None:
                    self.on_step(self.batches, self.curve[-1][1])
                stopped = self._check(np.sqrt(squares))
                if stopped:
                    return stopped
            if self.batches >= limit:
                break
        self._settle_l2()
        self.epochs += 1
        return None

    def _update(self, gradient: SparseRows, now: int, measured: bool) -> float:
        """Step along a gradient, with the l2 of its rows that is due; return the sum of its squares if wanted."""
        w, l2, step = self.w, self.problem.l2, self.rules.step
        state = self.accumulator, self.shrunk_at, self.centre
        if isinstance(gradient, SummedGradient):
            terms = gradient.ends, gradient.which, gradient.factors, gradient.slopes
            return _step_sums(w, state, gradient.rows, terms, l2, now, step, measured)
        return _step(w, state, gradient.rows, gradient.values, l2, now, step, measured)

    def _settle_l2(self) -> None:
        """Apply the l2 steps that rows without a gradient have missed."""
        if self.problem.l2:
            self._update(RowGradient(np.arange(len(self.w)), np.zeros_like(self.w)), self.batches, False)

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


@inlined
def _add_l2(gradient: FloatArray, own: FloatArray, centre: FloatArray, r: int, due: float) -> None:
    """Add the l2 gradient that is due to that of a row of the weights; an empty ``centre`` is 0."""
    for j in range(gradient.shape[0]):
        off = own[j] - centre[r, j] if centre.shape[0] else own[j]
        gradient[j] += due * off


@inlined
def _move(own: FloatArray, squares: FloatArray, gradient: FloatArray, eta: float) -> None:
    """Update a row of the weights; add the squared gradient before the step."""
    for j in range(gradient.shape[0]):
        g = gradient[j]
        total = squares[j] + g * g
        squares[j] = total
        own[j] -= eta * g / np.sqrt(total)


@inlined
def _squared(gradient: FloatArray) -> float:
    """Return the sum of a row's squares."""
    total = gradient.dtype.type(0.0)
    for j in range(gradient.shape[0]):
        total += gradient[j] * gradient[j]
    return float(total)


@kernel
def _step(
    w: FloatArray, state: State, rows: IntArray, gradient: FloatArray, l2: float, now: int, step: float, measured: bool
) -> float:
    """Update some rows of w along their gradient, and return the sum of its squares if it is to be measured.

    The gradient gets the l2 of all batches since each row was last touched; other rows stay untouched.
    """
    accumulator, shrunk_at, centre = state
    kind, length = w.dtype.type, 0.0
    for i in range(rows.shape[0]):
        r = rows[i]
        if l2:
            _add_l2(gradient[i], w[r], centre, r, kind(l2 * (now - shrunk_at[r])))
            shrunk_at[r] = now
        _move(w[r], accumulator[r], gradient[i], kind(step))
        length += _squared(gradient[i]) if measured else 0.0
    return length


@kernel
def _step_sums(
    w: FloatArray, state: State, rows: IntArray, terms: Terms, l2: float, now: int, step: float, measured: bool
) -> float:
    """Do the same with a gradient whose rows are sums, each of which is used while it is in the cache."""
    accumulator, shrunk_at, centre = state
    ends, which, factors, slopes = terms
    kind, length, first = w.dtype.type, 0.0, 0
    total = np.empty(slopes.shape[1], dtype=slopes.dtype)
    for i in range(rows.shape[0]):
        r = rows[i]
        total[:] = 0.0
        add_terms(first, ends[i], which, factors, slopes, total)
        first = ends[i]
        if l2:
            _add_l2(total, w[r], centre, r, kind(l2 * (now - shrunk_at[r])))
            shrunk_at[r] = now
        _move(w[r], accumulator[r], total, kind(step))
        length += _squared(total) if measured else 0.0
    return length
