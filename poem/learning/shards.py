"""A recipe that was chosen on a sample, followed on all shards of a packed log."""

import time
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TypeVar, cast

import numpy as np

from poem.arrays import FloatArray
from poem.backends import Backend
from poem.estimators import Objective
from poem.learning.portfolio import GROWN, Recipe
from poem.models import LossModel
from poem.objectives import Risk, ShardedRisk, ShardObjective
from poem.optimizers import Keeper, Trace
from poem.packed import PackedLog
from poem.progress import Progress

OnStep = Callable[[int, float], None]
T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Source:
    """The packed log that a fit reads: its fingerprint, and how much memory it may take."""

    fingerprint: str
    memory: int


@dataclass(frozen=True)
class Shards:
    """What a recipe is followed on, and where.

    With ``warm``, optimizers begin where the recipe ends on the sample, else at its own start. ``n_rows`` are those of
    the whole log, with what is held out. ``adaptive`` says that propensities change with time.
    """

    log: PackedLog
    backend: "Metered"
    warm: bool
    n_rows: int
    adaptive: bool = False

    def objective(
        self, estimator: Objective, bounds: tuple[float, float], intercept: bool, models: tuple[LossModel, ...]
    ) -> ShardObjective:
        """Return what each shard is asked for."""
        return ShardObjective(self.log, estimator, bounds, intercept, models)


class Metered(Backend):
    """A backend that says how far each pass over the shards is, and how fast."""

    def __init__(self, backend: Backend) -> None:
        self.backend, self.line, self._passes = backend, cast("Progress | None", None), 0

    def each(self, task: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
        """Yield the results in the order of the pieces."""
        self._passes += 1
        total = sum(getattr(piece, "rows", 1) for piece in pieces)
        begin, done = time.monotonic(), 0
        for piece, result in zip(pieces, self.backend.each(task, pieces), strict=True):
            yield result
            done += getattr(piece, "rows", 1)
            if self.line is not None:
                rate = done / max(time.monotonic() - begin, 1e-9)
                left = (total - done) / rate
                text = f"(pass {self._passes} over {total:,} rows: {rate:,.0f} per second, {left:.0f} s left)"
                self.line.note(text, has_time=True)


def follows_shards(recipe: Recipe) -> bool:
    """Tell whether a recipe can be followed on shards.

    Policies with trees, those of corrected loss models, and imitations of the log come from the sample.
    """
    learner = recipe.learner
    if learner.estimator is None:
        return learner.start in ("direct", "tilted")
    return learner.start not in GROWN and not learner.cautious and not learner.additive


def followed(
    recipe: Recipe,
    risk: Risk,
    objective: ShardObjective,
    shards: Shards,
    start: FloatArray | None,
    rng: np.random.Generator,
    on_step: OnStep,
    keeper: Keeper | None,
) -> tuple[Trace, tuple[float, float]]:
    """Minimise the risk of all shards; return the trace, and the mean weight and the share of rows at the clip.

    ``risk`` is that of the sample, with λ and l2 as for all shards.
    """
    optimizer, begin = recipe.learner.optimizer, start
    if shards.warm:
        sample = copy(risk)
        if recipe.c is not None:
            sample.lam *= (risk.n_rows / len(shards.log)) ** 0.5  # λ* grows with the square root of the rows
        begin = optimizer.minimize(sample, start, rng=rng, on_step=on_step).weights
    whole = ShardedRisk(objective, lam=risk.lam, l2=risk.l2, centre=start, backend=shards.backend)
    trace = optimizer.minimize(whole, begin, rng=rng, on_step=on_step, keeper=keeper)
    return trace, whole.weights_of_rows(trace.weights)
