"""What an objective is computed on: rows, the features that a policy sees of them, and what models say of them."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray
from poem.compute import Forest, Threads
from poem.data import BanditLog, Layout, grown_log, mean_square
from poem.errors import InputError
from poem.evaluation import Calibration
from poem.models import (
    ContextLosses,
    LossModel,
    Strengths,
    boosted,
    fit_without_trees,
    losses_on,
    suits_trees,
    without_trees,
)
from poem.structures import Structure

PROBED_CONTEXTS = 2000
MOST_LEAVES = 512  # that are features


@dataclass(frozen=True)
class Ground:
    """Rows in the order of their contexts, their scaled losses, and the trees that some of their features come from.

    ``scale`` is the mean squared norm of a context; ``losses`` are those that estimators rest on, and ``start`` are the
    weights that learning begins with, if the ground has its own.
    """

    layout: Layout
    loss: FloatArray
    scale: float
    forest: Forest | None = None
    losses: ContextLosses | None = None
    start: FloatArray | None = None


def grown_ground(
    log: BanditLog,
    structure: Structure,
    intercept: bool,
    model: LossModel,
    calibration: Calibration,
    threads: Threads,
    *,
    leaves: bool,
) -> Ground:
    """Extend the features of some rows by what a model's trees say, and start from the policy of that model.

    With ``leaves``, those of the first trees over contexts are features as well. The model must then not have seen
    these rows.
    """
    if not can_grow(log, intercept):
        raise InputError("trees over actions need a constant feature. Leave fit_intercept=False out.")
    assert model.forest is not None
    # What trees add is a feature: its size must not depend on the unit of the losses.
    unit = (0.0 if model.truth else calibration.loss_high - calibration.loss_low) or 1.0
    forest = model.forest.scaled(1.0 / unit)
    if not structure.described:
        forest = forest.for_columns(structure.n_scores)
        forest = forest.for_columns(structure.n_scores, forest.first_with(MOST_LEAVES)) if leaves else forest
    extended = grown_log(log, forest, threads)
    layout = Layout(extended, extended.structure, intercept)
    losses: ContextLosses | None = None
    if leaves:
        every = np.zeros(log.n_contexts, dtype=np.int64)
        plain = losses_on(Layout(log, structure, intercept), (model,), every, calibration.loss_range, threads)
        losses = plain.on(layout)
    start = _pair_start(model, unit) if structure.described else _start(model, forest, unit, intercept)
    start = start / (spread_of(layout, start, log, structure) or 1.0)
    return Ground(layout, calibration.scale(layout.loss), mean_square(extended), forest, losses, start)


def model_to_grow(log: BanditLog, strengths: Strengths, bounds: tuple[float, float], threads: Threads) -> LossModel:
    """Return a loss model with trees, or one with a tree that says nothing if none helps."""
    if strengths.boosting is not None:
        return boosted(log, strengths.boosting, bounds, threads)
    if not suits_trees(log):
        raise InputError(
            "no trees can be learnt from this log: its actions have no features but their identity. Leave the "
            "learners 'trees' and 'leaves' out."
        )
    return without_trees(fit_without_trees(log, strengths, bounds, threads), log)


def _start(model: LossModel, forest: Forest, unit: float, intercept: bool) -> FloatArray:
    """Return the weights of the model's own policy, which prefers what has a low loss, on extended features."""
    linear, k = model.preference, forest.n_columns
    trees = np.eye(k) if model.truth else -unit * np.eye(k)
    weights = np.vstack([linear[:-1], trees, np.zeros((forest.n_leaves, k)), linear[-1:]])
    return weights if intercept else weights[:-1]


def _pair_start(model: LossModel, unit: float) -> FloatArray:
    """Return the same where trees are over pairs: what they say is the first feature of each candidate."""
    trees = np.zeros((len(model.weights), 1))
    trees[-1] = -unit
    return np.hstack([trees, model.preference])


def spread_of(layout: Layout, weights: FloatArray, log: BanditLog, structure: Structure) -> float:
    """Return the standard deviation of the scores of some contexts."""
    some = layout.design.block(0, min(layout.design.n_contexts, PROBED_CONTEXTS))
    if structure.lists_outputs:  # what is available does not matter to what was logged at all
        some = some.contexts
    scores = some.scores(some.widen(weights), weights.shape[1])
    known = structure.logged_columns(log.y)
    return float(np.std(scores if some.borders is not None else scores[:, known]))


def can_grow(log: BanditLog, intercept: bool) -> bool:
    """Tell whether a policy can have trees: those over actions are a feature of candidates, in all contexts alike."""
    return intercept or not log.structure.described
