"""Does the order of rows say what came first? If not, the units that certify are drawn at random."""

from typing import Literal

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray
from poem.compute import compact
from poem.data import BanditLog

BLOCKS = 10  # of rows whose contexts are compared
DIRECTIONS = 64  # in which they are compared, at the most
AT_ONCE = 8  # of them, which are few numbers beside the contexts
WIDE = 2**16  # features, beyond which only those that occur count, and directions are fewer
SORTED = 1e-3  # p-value under which contexts are taken to change along the rows
SORTED_OUTPUTS = 1e-6  # the same for outputs, whose weights have heavy tails
MOST_LOG = 50.0  # of a weight, so that its square is finite

Why = Literal["random", "units"]

# Why nothing is certified if propensities change along such rows, and what to do.
UNORDERED: dict[Why, str] = {
    "units": "propensities change along the rows, so that the logging policy may have learnt from its own log, and "
    "rows of different units alternate. Pass time=, so that the latest can certify",
    "random": "rows are sorted by contexts, outputs or outcomes, propensities change along them, and there are no "
    "times, so that poem cannot tell what came first. Pass time=, or shuffle the rows if the logging policy did not "
    "learn from its own log",
}


def drawn_because(log: BanditLog, seed: int) -> Why | None:
    """Say why the order of rows does not help: they are sorted ("random"), or those of different "units" alternate."""
    if log.time is not None:
        return None
    if is_sorted(log, seed):
        return "random"
    return "units" if alternate(log.units()) else None


def alternate(units: IntArray) -> bool:
    """Tell whether units come back after others, in the order of rows."""
    return int(np.count_nonzero(np.diff(units))) + 1 > len(np.unique(units))


def is_sorted(log: BanditLog, seed: int) -> bool:
    """Tell whether rows are in another order than that of time: by contexts, outputs or losses."""
    steps = np.diff(log.loss)
    by_loss = len(log) >= 3 * BLOCKS and bool(steps.any()) and bool((steps >= 0.0).all() or (steps <= 0.0).all())
    return by_loss or _by_output(log) or _by_context(log, seed)


def _by_output(log: BanditLog) -> bool:
    """Tell whether outputs change along the rows, and not because their propensities do: 1[y = a]/p keeps its mean."""
    if len(log) < 3 * BLOCKS or not log.structure.one_each:
        return False
    common = np.argsort(-np.bincount(log.y), kind="stable")[:AT_ONCE]
    weights = np.exp(np.minimum(-log.log_propensity, MOST_LOG))
    values = np.where(log.y[:, None] == common, weights[:, None], 0.0)
    return bool(_p_values(values).min(initial=1.0) * len(common) < SORTED_OUTPUTS)


def _by_context(log: BanditLog, seed: int) -> bool:
    """Tell whether contexts change along the rows of a log (an analysis of variance in a few directions)."""
    seen, first = np.unique(log.context, return_index=True)
    contexts = seen[np.argsort(first)]
    if len(contexts) < 3 * BLOCKS or log.n_features == 0:
        return False
    rng = np.random.default_rng([seed, 9])
    X = log.X if log.n_features <= WIDE else compact(log.X)[1]
    width = X.shape[1]
    count = DIRECTIONS if width <= WIDE else AT_ONCE
    directions = np.eye(width) if width <= DIRECTIONS else rng.choice([-1.0, 1.0], size=(width, count))
    some = np.split(directions, range(AT_ONCE, directions.shape[1], AT_ONCE), axis=1)
    least = min(_p_values(np.asarray(X @ part)[contexts]).min(initial=1.0) for part in some)
    return bool(least * directions.shape[1] < SORTED)


def _p_values(values: FloatArray) -> FloatArray:
    """Return for each column the chance that the means of its blocks differ so much."""
    n, block = len(values), np.arange(len(values)) * BLOCKS // len(values)
    sizes = np.bincount(block)
    means = np.stack([np.bincount(block, weights=column) for column in values.T], axis=1) / sizes[:, None]
    between = (sizes[:, None] * (means - values.mean(axis=0)) ** 2).sum(axis=0) / (BLOCKS - 1)
    within = np.maximum(((values - means[block]) ** 2).sum(axis=0) / (n - BLOCKS), 0.0)
    usable = values.std(axis=0) > 1e-12
    ratio = between[usable] / np.maximum(within[usable], 1e-300)
    return np.asarray(special.fdtrc(BLOCKS - 1, n - BLOCKS, ratio))
