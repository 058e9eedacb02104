"""The loss model of a direct policy, fitted to all shards of a packed log: sums over shards, as everywhere."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray
from poem.backends import Backend
from poem.compute import Threads
from poem.data import BanditLog, mean_square
from poem.models.bounded import SOLVER, BoundedLoss, fit_bounded
from poem.models.chosen import Strengths
from poem.models.linear import Products, ridge
from poem.models.logistic import Logistic
from poem.models.truth import HiddenTruth, truth_model
from poem.optimizers import Keeper
from poem.packed import PackedLog, ShardNote


@dataclass(frozen=True)
class ShardEntropy:
    """The task of one shard: the sum of its cross-entropies, and its gradient."""

    kind: type[BoundedLoss]
    log: PackedLog
    bounds: tuple[float, float]
    weights: FloatArray

    def __call__(self, note: ShardNote) -> tuple[float, FloatArray]:
        """Read the shard, and sum over its rows."""
        return self.kind(self.log.read(note), self.bounds, Threads(), once=True).entropy(self.weights)


@dataclass(frozen=True)
class ShardNormal:
    """The task of one shard: AᵀA·weights, or without weights Aᵀ(loss − centre), of a linear model."""

    log: PackedLog
    centre: float
    weights: FloatArray | None

    def __call__(self, note: ShardNote) -> FloatArray:
        """Read the shard, and sum over its rows."""
        log = self.log.read(note)
        products = Products(log, log.structure, Threads(), once=True)
        if self.weights is None:
            return products.backward(products.layout.loss - self.centre)
        return products.normal(self.weights)


class ShardedBounded:
    """A problem for an optimizer: a bounded model of the losses of all shards.

    ``sample`` is the same model of a sample, which knows the ridge and what is not learnt.
    """

    def __init__(self, sample: BoundedLoss, log: PackedLog, backend: Backend) -> None:
        self.sample, self.log, self.backend, self.shape = sample, log, backend, sample.shape

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean cross-entropy with a ridge, and its gradient."""
        total, gradient = 0.0, np.zeros(self.shape)
        task = ShardEntropy(type(self.sample), self.log, self.sample.bounds, w)
        for value, part in self.backend.each(task, self.log.shards):
            total += value
            gradient += part
        return self.sample.ridged(w, total, gradient, len(self.log))


def preference_on_shards(
    sample: BanditLog,
    strengths: Strengths,
    bounds: tuple[float, float],
    log: PackedLog,
    backend: Backend,
    keeper: Keeper | None = None,
) -> FloatArray:
    """Return the weights (d + 1, k) that prefer a low loss, by the best model without trees, of all shards.

    The kind of the model and its strength are those that suit the sample.
    """
    where = log, backend, keeper
    if strengths.logistic is not None:
        return -_bounded(Logistic, sample, strengths.logistic, bounds, *where)[:, :-1]
    if strengths.truth is not None:
        weights = _bounded(HiddenTruth, sample, strengths.truth, bounds, *where)
        return truth_model(weights, sample).preference
    return -_linear(sample, strengths.linear, log, backend)[:, :-1]


def _bounded(
    kind: type[BoundedLoss],
    sample: BanditLog,
    strength: float,
    bounds: tuple[float, float],
    log: PackedLog,
    backend: Backend,
    keeper: Keeper | None,
) -> FloatArray:
    """Begin with the weights of the sample: a few steps are left."""
    start = fit_bounded(kind, sample, strength, bounds, Threads())
    model = kind(sample, bounds, Threads())
    model.ridge = strength * mean_square(sample)
    return SOLVER.minimize(ShardedBounded(model, log, backend), start, keeper=keeper).weights


def _linear(sample: BanditLog, strength: float, log: PackedLog, backend: Backend) -> FloatArray:
    rows, total = 0, 0.0
    for note in log.shards:
        losses = log.column(note, "loss")
        rows, total = rows + len(losses), total + float(losses.sum())
    centre = total / rows

    def summed(weights: FloatArray | None) -> FloatArray:
        parts = backend.each(ShardNormal(log, centre, weights), log.shards)
        out = next(parts).copy()
        for part in parts:
            out += part
        return out

    (found,) = ridge(summed, summed(None), (strength * mean_square(sample),))
    return found
