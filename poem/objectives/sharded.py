"""The training objective over the shards of a packed log: a sum over shards, and a smooth function of it.

Each shard gives the estimator's sums and their gradients in one pass. They are added in the order of the shards, so
that the answer does not depend on threads or workers.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.random import Generator

from poem.arrays import FloatArray
from poem.backends import Backend
from poem.compute import Threads, packed_copy
from poem.data import BanditLog, Layout
from poem.errors import InputError
from poem.estimators import Objective, Point
from poem.models import LossModel, losses_on
from poem.objectives.risk import Batch, Risk
from poem.packed import PackedLog, ShardNote, context_folds

SHARD_SCORES = 1 << 20  # 8 MiB of scores stay in a cache
AT_ONCE = 2  # gradients of one pass; more of them cost more than a second pass

Sums = tuple[FloatArray, FloatArray]
R = TypeVar("R")


@dataclass(frozen=True)
class ShardObjective:
    """What the rows of a shard are asked for, except for the weights.

    Attributes
    ----------
    log : PackedLog
    estimator : Objective
        With its clip set.
    bounds : (lowest, highest)
        The losses that become −1 and 0.
    intercept : bool
    models : tuple of LossModel
        What an estimator that needs a loss model rests on: of each fold of the contexts, one that has not seen it.
    """

    log: PackedLog
    estimator: Objective
    bounds: tuple[float, float]
    intercept: bool
    models: tuple[LossModel, ...] = ()

    def risk(self, log: BanditLog) -> Risk:
        """Return the objective of the rows of one shard, without penalties."""
        layout = Layout(log, log.structure, self.intercept, SHARD_SCORES, alone=False)
        low, high = self.bounds
        losses = None
        if self.estimator.needs_model:
            fold = context_folds(log, len(self.models))
            losses = losses_on(layout, self.models, fold, self.bounds, keep=False)
        return Risk(layout, (layout.loss - high) / (high - low), self.estimator, losses=losses)


@dataclass(frozen=True)
class ShardSums:
    """The task of one shard: sums at some weights, and the gradients of slopes·sums for each row of ``slopes``."""

    objective: ShardObjective
    weights: FloatArray
    slopes: FloatArray

    def __call__(self, note: ShardNote) -> Sums:
        """Read the shard, and sum over its rows."""
        risk = self.objective.risk(self.objective.log.read(note))
        return risk.sums_and_gradients(self.weights, self.slopes)


@dataclass(frozen=True)
class ShardWeights:
    """The task of one shard: rows, the sum of the importance ratios, and how many are clipped."""

    objective: ShardObjective
    weights: FloatArray

    def __call__(self, note: ShardNote) -> FloatArray:
        """Read the shard, and sum over its rows."""
        risk = self.objective.risk(self.objective.log.read(note))
        ratio = risk.ratios(self.weights)
        return np.array([len(ratio), ratio.sum(), np.count_nonzero(risk.estimator.clipped(ratio))])


class ShardedRisk:
    """The same as :class:`Risk`, over a packed log.

    Parameters
    ----------
    objective : ShardObjective
    lam, l2 : float
        λ of the variance penalty and the strength of the l2 penalty.
    centre : array of the weights' shape, optional
        Where the l2 penalty pulls to; 0 by default.
    backend : Backend
    """

    def __init__(
        self,
        objective: ShardObjective,
        *,
        lam: float = 0.0,
        l2: float = 0.0,
        centre: FloatArray | None = None,
        backend: Backend,
    ) -> None:
        self.objective, self.backend = objective, backend
        self.lam, self.l2, self.centre = lam, l2, centre
        self.log = objective.log

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights."""
        return self.log.n_features + int(self.objective.intercept), self.log.structure.n_scores

    @property
    def n_rows(self) -> int:
        """The number of rows of all shards."""
        return len(self.log)

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient: in one pass over the shards, or in two if there are many sums.

        The slopes of the sums are known after all shards. So one pass needs a gradient of each sum that counts.
        """
        estimator, n = self.objective.estimator, self.n_rows
        counts = estimator.n_sums if self.lam else estimator.n_value_sums
        penalty, grad = self._penalty(w)
        if counts <= AT_ONCE:
            sums, grads = self._sums(w, np.eye(estimator.n_sums)[:counts])
            point = estimator.point(sums, n)
            for slope, part in zip(point.slopes(self.lam)[:counts], grads, strict=True):
                grad += slope * part
        else:
            point = self.point(w)
            grad += self._sums(w, point.slopes(self.lam)[None])[1][0]
        return point.objective(self.lam) + penalty, grad

    def point(self, w: FloatArray) -> Point:
        """Return value and standard error (without l2) at some weights."""
        return self.objective.estimator.point(
            self._sums(w, np.empty((0, self.objective.estimator.n_sums)))[0], self.n_rows
        )

    def weights_of_rows(self, w: FloatArray) -> tuple[float, float]:
        """Return the mean importance ratio, and the share of rows at the clip."""
        rows, total, clipped = np.sum(list(self._each(ShardWeights(self.objective, w))), axis=0)
        return float(total / rows), float(clipped / rows)

    def _sums(self, w: FloatArray, slopes: FloatArray) -> Sums:
        sums, grads = np.zeros(self.objective.estimator.n_sums), np.zeros((len(slopes), *self.shape))
        for part, part_grads in self._each(ShardSums(self.objective, w, slopes)):
            sums += part
            grads += part_grads
        return sums, grads

    def _each(self, task: Callable[[ShardNote], R]) -> Iterator[R]:
        return self.backend.each(task, self.log.shards)

    def _penalty(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the l2 penalty and its gradient."""
        if not self.l2:
            return 0.0, np.zeros(self.shape)
        off = w if self.centre is None else w - self.centre
        return 0.5 * self.l2 * float(np.vdot(off, off)), self.l2 * off

    # ---- batches of rows: shard by shard, in a random order -----------------------------------

    @property
    def centre_for_batches(self) -> FloatArray | None:
        """Where l2 pulls to, in the form that batches work on."""
        return None if self.centre is None else self.for_batches(self.centre)

    def for_batches(self, w: FloatArray) -> FloatArray:
        """Return a copy of w in the form that batches of all shards work on: wide, in float32."""
        if self.log.kind.available is not None:
            raise InputError("AdaGrad does not go through shards of candidates yet. Leave optimizer= out: L-BFGS does.")
        return packed_copy(w, np.float32)

    def from_batches(self, wide: FloatArray) -> FloatArray:
        """Return weights for batches as plain weights."""
        return wide[:, : self.shape[1]].astype(np.float64)

    def frozen_point(self, wide: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its slopes in the sums, to be held for one epoch."""
        w = self.from_batches(wide)
        point = self.point(w)
        return point.objective(self.lam) + self._penalty(w)[0], point.slopes(self.lam)

    def epoch(self, rng: Generator, size: int) -> Iterator[Batch]:
        """Yield all rows once: shards in a random order, and the rows of each shuffled.

        Units are dealt into shards by their hashes, so that the rows of a shard are a random sample. The next shard is
        read while one is used.
        """
        notes = self.log.shards
        order = [notes[place] for place in rng.permutation(len(notes)).tolist()]
        for log in Threads(2).ahead(self.log.read, order):
            yield from self.objective.risk(log).epoch(rng, size, self.n_rows)
