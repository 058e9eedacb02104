"""A recipe that was chosen on a sample, followed on all shards of a packed log."""

import time
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field

import numpy as np

from poem.arrays import FloatArray
from poem.backends import Backend
from poem.estimators import Objective
from poem.learning.portfolio import GROWN, Recipe
from poem.models import LossModel
from poem.objectives import Risk, ShardedRisk, ShardObjective
from poem.optimizers import Trace
from poem.packed import PackedLog
from poem.progress import Progress

OnStep = Callable[[int, float], None]


@dataclass(frozen=True)
class Shards:
    """What a recipe is followed on, and where.

    With ``warm``, optimizers begin where the recipe ends on the sample, else at its own start. ``n_rows`` and
    ``digest`` are of the whole log, with what is held out.
    """

    log: PackedLog
    backend: Backend
    warm: bool
    n_rows: int
    digest: str
    meter: "Meter" = field(default_factory=lambda: Meter(), compare=False)

    def objective(
        self, estimator: Objective, bounds: tuple[float, float], intercept: bool, models: tuple[LossModel, ...]
    ) -> ShardObjective:
        """Return what each shard is asked for."""
        return ShardObjective(self.log, estimator, bounds, intercept, models)


class Meter:
    """Says how far a pass over the shards is, and how fast."""

    def __init__(self) -> None:
        self.line: Progress | None = None
        self._total = self._done = self._passes = 0
        self._begin = time.monotonic()

    def over(self, rows: int) -> "Meter":
        """Begin with passes over so many rows."""
        self._total, self._done, self._passes = rows, 0, 0
        return self

    def __call__(self, rows: int) -> None:
        """Note that a shard of so many rows is done."""
        if self._done == 0:
            self._begin, self._passes = time.monotonic(), self._passes + 1
        self._done += rows
        rate = self._done / max(time.monotonic() - self._begin, 1e-9)
        if self.line is not None:
            left = max(self._total - self._done, 0) / rate
            self.line.note(
                f"(pass {self._passes} over {self._total:,} rows: {rate:,.0f} per second, {left:.0f} s left)"
            )
        if self._done >= self._total:
            self._done = 0


def follows_shards(recipe: Recipe) -> bool:
    """Tell whether a recipe can be followed on shards.

    Policies of loss models alone, with trees, or with regions without support come from the sample.
    """
    learner = recipe.learner
    return learner.estimator is not None and learner.start not in GROWN and not learner.cautious


def followed(
    recipe: Recipe,
    risk: Risk,
    objective: ShardObjective,
    shards: Shards,
    start: FloatArray | None,
    rng: np.random.Generator,
    on_step: OnStep,
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
    meter = shards.meter.over(len(shards.log))
    whole = ShardedRisk(objective, lam=risk.lam, l2=risk.l2, centre=start, backend=shards.backend, on_shard=meter)
    trace = optimizer.minimize(whole, begin, rng=rng, on_step=on_step)
    return trace, whole.weights_of_rows(trace.weights)
