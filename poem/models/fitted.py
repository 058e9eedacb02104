"""A fitted loss model: what it says of the outputs of each context.

A linear one is m(x, y) = Σ over the labels (or the class) of y of x·B, plus x·b: one column of weights for each label
or class, and one for the context alone. Its mean under a policy needs the policy's marginals only, so that no
sum over outputs is ever taken. Of classes, the same holds for the chance that the class is wrong (truth.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from poem.arrays import BoolArray, FloatArray, IntArray, frozen
from poem.compute import Design, Threads
from poem.data import Layout, Piece, Shard
from poem.structures import MultiClass


@dataclass(frozen=True)
class LossModel:
    """A fitted model: weights (d + 1, k + 1), and the loss that it starts from.

    Of a hidden ``truth``, the weights are those of the right class, and the last column those of "none".
    """

    weights: FloatArray
    centre: float
    truth: bool = False

    @property
    def name(self) -> str:
        """What the model is called."""
        return "hidden truth" if self.truth else "linear"

    @property
    def preference(self) -> FloatArray:
        """The weights (d + 1, k) of a policy that prefers what has a low loss."""
        return self.weights[:, :-1] if self.truth else -self.weights[:, :-1]


class ContextLosses:
    """What several models say of a layout's contexts, of which each takes one, on a scale of [−1, 0].

    Parameters
    ----------
    layout : Layout
    models : sequence of LossModel
        All of one kind.
    fold : (n_contexts,) int
        Which model each context of the log takes: for cross-fitting, one that has not seen it.
    bounds : (lowest, highest)
        The losses that become −1 and 0.
    threads : Threads, optional
    keep : bool
        Keep the losses if they are few: worth it where they are asked for more than once.
    """

    linear: ClassVar[bool] = True  # scores are a product with weights, and nothing more

    def __init__(
        self,
        layout: Layout,
        models: Sequence[LossModel],
        fold: IntArray,
        bounds: tuple[float, float],
        threads: Threads | None = None,
        keep: bool = True,
    ) -> None:
        low, high = bounds
        self.layout, self.fold, self._threads = layout, fold, threads or Threads()
        self._columns = layout.structure.n_scores + 1
        self._truth = models[0].truth
        self._weights = np.hstack([model.weights for model in models]) / (1.0 if self._truth else high - low)
        self._offsets = np.array([(model.centre - high) / (high - low) for model in models])
        self._kept: FloatArray | None = None
        if keep and len(layout.shards) == 1:
            # Losses are kept only while they are few, like scores; weights are not needed any more.
            self._kept = self._of_shard(layout.shards[0])
            del self._wide
            self._weights = np.empty((0, 0))

    def of_piece(self, shard: Shard, piece: Piece) -> tuple[FloatArray, FloatArray]:
        """Return the losses of the labels or classes (m, k), and those of the contexts alone (m,)."""
        losses = self._kept[piece.contexts] if self._kept is not None else self._of_piece(shard, piece)
        return frozen(losses[:, :-1]), losses[:, -1]

    def beside(self, weights: FloatArray) -> "Beside":
        """Return the scores of a policy and the losses of a piece at a time, with one product for both if it can be."""
        return Beside(self, weights)

    def of_contexts(self, contexts: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the same for some contexts of the log, by their numbers."""
        if self._kept is not None:
            losses = self._kept[np.searchsorted(self.layout.contexts, contexts)]
        else:
            design = self.layout.batch_design
            losses = self._own(design.batch_scores(self._batch_wide, self._weights.shape[1], contexts), contexts)
        return frozen(losses[:, :-1]), losses[:, -1]

    @cached_property
    def predicted(self) -> FloatArray:
        """What is predicted for the logged outputs, in the layout's order."""
        out, structure = np.empty(len(self.layout)), self.layout.structure
        for shard in self.layout.shards:

            def one(piece: Piece, shard: Shard = shard) -> None:
                losses, alone = self.of_piece(shard, piece)
                chosen = structure.chosen(losses, piece.y, piece.starts)
                out[piece.rows] = chosen + np.repeat(alone, np.diff(piece.starts))

            self._threads.map(one, shard.pieces)
        return out

    def _of_shard(self, shard: Shard) -> FloatArray:
        found = np.empty((len(self.layout.contexts), self._columns))
        _ = self._wide  # made once, before threads ask for it

        def one(piece: Piece) -> None:
            found[piece.contexts] = self._of_piece(shard, piece)

        self._threads.map(one, shard.pieces)
        return frozen(found)

    def _of_piece(self, shard: Shard, piece: Piece) -> FloatArray:
        scores = shard.block(piece).scores(self._wide, self._weights.shape[1])
        return self._own(scores, self.layout.contexts[shard.places(piece)])

    def _own(self, scores: FloatArray, contexts: IntArray) -> FloatArray:
        """Of the scores of all models, keep those of each context's own one."""
        if not self.layout.design.intercept:
            scores = scores + self._weights[-1]
        fold = self.fold[contexts]
        by_model = scores.reshape(len(scores), len(self._offsets), self._columns)
        own = by_model[:, 0].copy() if len(self._offsets) == 1 else by_model[np.arange(len(scores)), fold]
        if self._truth:  # a wrong class has the highest loss, which is 0 here, and the right one −1
            own = -MultiClass(self._columns).marginals(own)
            own[:, -1] = 0.0
        else:
            own[:, -1] += self._offsets[fold]
        return own

    @cached_property
    def _wide(self) -> FloatArray:
        return self._widened(self.layout.design)

    @cached_property
    def _batch_wide(self) -> FloatArray:
        return self._widened(self.layout.batch_design)

    def _widened(self, design: Design) -> FloatArray:
        return design.widen(self._weights if design.intercept else self._weights[:-1])


class Beside:
    """The scores of a policy and what models say of the same contexts.

    ``weights`` are the policy's, (d, k) or (d + 1, k) as the layout's design has them.
    """

    def __init__(self, losses: ContextLosses, weights: FloatArray) -> None:
        self._losses, self._k = losses, weights.shape[1]
        design = losses.layout.design
        self._together = losses.linear and losses._kept is None and design.intercept
        self._wide = design.widen(np.hstack([weights, losses._weights]) if self._together else weights)

    def of_piece(self, shard: Shard, piece: Piece) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the scores (m, k), the losses of the outputs (m, k), and those of the contexts alone (m,)."""
        losses, k = self._losses, self._k
        if not self._together:
            return shard.block(piece).scores(self._wide, k), *losses.of_piece(shard, piece)
        scores = shard.block(piece).scores(self._wide, k + losses._weights.shape[1])
        own = losses._own(scores[:, k:], losses.layout.contexts[shard.places(piece)])
        return frozen(scores[:, :k]), frozen(own[:, :-1]), own[:, -1]


class CautiousLosses(ContextLosses):
    """What other models say, with the worst loss for outputs that have no support.

    Parameters
    ----------
    losses : ContextLosses
    supported : (n_contexts, k) bool
        Which outputs have support in each context of the log.
    """

    linear: ClassVar[bool] = False

    def __init__(self, losses: ContextLosses, supported: BoolArray) -> None:
        self.layout, self._losses, self._supported, self._threads = losses.layout, losses, supported, losses._threads

    def of_piece(self, shard: Shard, piece: Piece) -> tuple[FloatArray, FloatArray]:
        return self._with_worst(*self._losses.of_piece(shard, piece), self.layout.contexts[shard.places(piece)])

    def of_contexts(self, contexts: IntArray) -> tuple[FloatArray, FloatArray]:
        return self._with_worst(*self._losses.of_contexts(contexts), contexts)

    def _with_worst(self, values: FloatArray, alone: FloatArray, contexts: IntArray) -> tuple[FloatArray, FloatArray]:
        return frozen(np.where(self._supported[contexts], values, -alone[:, None])), alone


class ListedLosses(ContextLosses):
    """The losses of all outputs in all contexts, as a table.

    Parameters
    ----------
    layout : Layout
    table : (n_contexts, k)
        Of each context of the log.
    bounds : (lowest, highest)
        The losses that become −1 and 0.
    threads : Threads
    """

    linear: ClassVar[bool] = False

    def __init__(self, layout: Layout, table: FloatArray, bounds: tuple[float, float], threads: Threads) -> None:
        self.layout, self._threads = layout, threads
        self._table, (self._low, self._high) = table, bounds

    def of_piece(self, shard: Shard, piece: Piece) -> tuple[FloatArray, FloatArray]:
        return self.of_contexts(self.layout.contexts[shard.places(piece)])

    def of_contexts(self, contexts: IntArray) -> tuple[FloatArray, FloatArray]:
        scaled = (self._table[contexts] - self._high) / (self._high - self._low)
        return frozen(scaled), np.zeros(len(contexts))
