"""A recipe that was chosen on a sample, followed on all shards of a packed log."""

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray
from poem.backends import Backend
from poem.estimators import Objective
from poem.learning.portfolio import GROWN, Recipe
from poem.models import LossModel
from poem.objectives import Risk, ShardedRisk, ShardObjective
from poem.optimizers import Trace
from poem.packed import PackedLog

OnStep = Callable[[int, float], None]


@dataclass(frozen=True)
class Shards:
    """What a recipe is followed on, and where.

    With ``warm``, optimizers begin where the recipe ends on the sample, else at its own start.
    """

    log: PackedLog
    backend: Backend
    warm: bool

    def objective(
        self, estimator: Objective, bounds: tuple[float, float], intercept: bool, models: tuple[LossModel, ...]
    ) -> ShardObjective:
        """Return what each shard is asked for."""
        return ShardObjective(self.log, estimator, bounds, intercept, models)


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
    whole = ShardedRisk(objective, lam=risk.lam, l2=risk.l2, centre=start, backend=shards.backend)
    trace = optimizer.minimize(whole, begin, rng=rng, on_step=on_step)
    return trace, whole.weights_of_rows(trace.weights)
