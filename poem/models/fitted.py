"""A fitted loss model: what it says of the outputs of each context.

A linear one is m(x, y) = Σ over the labels (or the class) of y of x·B, plus x·b: one column of weights for each label
or class, and one for the context alone. Its mean under a policy needs the policy's marginals only, so that no
sum over outputs is ever taken. Of classes, the same holds for the chance that the class is wrong (truth.py).
"""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poem.arrays import BoolArray, FloatArray, IntArray, frozen
from poem.compute import Design, Forest, Threads
from poem.data import Layout, Piece, Shard
from poem.structures import MultiClass


@dataclass(frozen=True)
class LossModel:
    """A fitted model: weights (d + 1, k + 1), and the loss that it starts from.

    Of a hidden ``truth``, the weights are those of the right class, and the last column those of "none". A ``forest``
    adds to what the weights say.
    """

    weights: FloatArray
    centre: float
    truth: bool = False
    forest: Forest | None = None

    @property
    def name(self) -> str:
        """What the model is called."""
        plain = "hidden truth" if self.truth else "linear"
        return plain if self.forest is None else f"boosted {plain}" if self.truth else "boosted"

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

    linear: bool = True  # scores are a product with weights, and nothing more

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
        self._span = 1.0 if self._truth else high - low
        self._weights = np.hstack([model.weights for model in models]) / self._span
        self._offsets = np.array([(model.centre - high) / (high - low) for model in models])
        self._forests = [model.forest for model in models]
        self.linear = self.linear and not any(self._forests)
        self._kept: FloatArray | None = None
        # Trees take longer than a product: what they say is kept even where it is much.
        if keep and (layout.keeps_scores or any(self._forests)):  # weights are not needed any more
            self._kept = self._of_all()
            self.__dict__.pop("_wide", None)
            self.__dict__.pop("_wides", None)
            self._weights = np.empty((0, 0))

    def of_piece(self, shard: Shard, piece: Piece) -> FloatArray:
        """Return the losses of the labels or classes, and in the last column those of the contexts alone, (m, k + 1).

        Where contexts have candidates of their own, these are the losses of the candidates, flat.
        """
        if self._kept is None:
            return self._of_piece(shard, piece)
        return self.layout.design.part(self._kept, shard.places(piece), self._columns)

    def beside(self, weights: FloatArray) -> "Beside":
        """Return the scores of a policy and the losses of a piece at a time, with one product for both if it can be."""
        return Beside(self, weights)

    def of_contexts(self, contexts: IntArray) -> FloatArray:
        """Return the same for some contexts of the log, by their numbers."""
        if self._kept is not None:
            return self._kept[np.searchsorted(self.layout.contexts, contexts)]
        design = self.layout.batch_design
        return self._own(design.batch_scores(self._batch_wide, self._weights.shape[1], contexts), contexts)

    def on(self, layout: Layout) -> "ContextLosses":
        """Return the same losses for the same rows laid out with more features."""
        moved = copy(self)
        moved.layout, moved.linear = layout, False
        if self._kept is None:
            moved._kept = self._of_all()
        return moved

    @cached_property
    def predicted(self) -> FloatArray:
        """What is predicted for the logged outputs, in the layout's order."""
        out = np.empty(len(self.layout))

        def one(shard: Shard, piece: Piece) -> None:
            out[piece.rows] = piece.space.predicted(self.of_piece(shard, piece), piece.y, piece.starts)

        self.layout.each_piece(one, self._threads)
        return out

    def _of_all(self) -> FloatArray:
        """Return the losses of all contexts, each piece written where it belongs."""
        self._prepare()
        design = self.layout.design
        out = np.empty((design.n_contexts, self._columns) if design.borders is None else design.borders[-1])

        def one(shard: Shard, piece: Piece) -> None:
            design.part(out, shard.places(piece), self._columns)[:] = self._of_piece(shard, piece)

        self.layout.each_piece(one, self._threads)
        return frozen(out)

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
        self._add_trees(own, contexts, fold)
        if self._truth:  # a wrong class has the highest loss, which is 0 here, and the right one −1
            own = -MultiClass(self._columns).marginals(own)
            own[:, -1] = 0.0
        else:
            own[:, -1] += self._offsets[fold]
        return own

    def _add_trees(self, own: FloatArray, contexts: IntArray, fold: IntArray) -> None:
        """Add what the trees of each context's own model say."""
        for model, forest in enumerate(self._forests):
            if forest is not None and len(here := np.flatnonzero(fold == model)):
                own[here] += forest.scores(self.layout.X[contexts[here]]) / self._span

    def _prepare(self) -> None:
        """Make what threads share, before they ask for it."""
        _ = self._wide

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

    def of_piece(self, shard: Shard, piece: Piece) -> tuple[FloatArray, FloatArray]:
        """Return the scores, and the losses as :meth:`ContextLosses.of_piece` does."""
        losses, k = self._losses, self._k
        if not self._together:
            return shard.block(piece).scores(self._wide, k), losses.of_piece(shard, piece)
        scores = shard.block(piece).scores(self._wide, k + losses._weights.shape[1])
        return frozen(scores[:, :k]), losses._own(scores[:, k:], losses.layout.contexts[shard.places(piece)])


class ChangedLosses(ContextLosses):
    """What other models say, changed.

    Parameters
    ----------
    losses : ContextLosses
    change : function (values, contexts) -> (m, k)
        Returns the losses of the labels from what the models say of some contexts of the log, (m, k + 1).
    """

    linear = False

    def __init__(self, losses: ContextLosses, change: Callable[[FloatArray, IntArray], FloatArray]) -> None:
        self.layout, self._losses, self._change, self._threads = losses.layout, losses, change, losses._threads

    def of_piece(self, shard: Shard, piece: Piece) -> FloatArray:
        return self._changed(self._losses.of_piece(shard, piece), self.layout.contexts[shard.places(piece)])

    def of_contexts(self, contexts: IntArray) -> FloatArray:
        return self._changed(self._losses.of_contexts(contexts), contexts)

    def _changed(self, values: FloatArray, contexts: IntArray) -> FloatArray:
        return np.column_stack([self._change(values, contexts), values[:, -1]])


def cautious_losses(losses: ContextLosses, supported: BoolArray) -> ChangedLosses:
    """Return models that take outputs without support, (n_contexts, k), to have the worst loss."""
    return ChangedLosses(losses, lambda values, at: np.where(supported[at], values[:, :-1], -values[:, -1:]))


def corrected_losses(losses: ContextLosses, more: FloatArray) -> ChangedLosses:
    """Return models with ``more``, (n_contexts, k), added to what they say of each label."""
    return ChangedLosses(losses, lambda values, at: np.asarray(values[:, :-1] + more[at]))


class ListedLosses(ContextLosses):
    """The losses of all outputs in all contexts, as a table.

    Parameters
    ----------
    layout : Layout
    table : (n_contexts, k), or flat
        Of each context of the log; where contexts have candidates of their own, one loss per candidate.
    bounds : (lowest, highest)
        The losses that become −1 and 0.
    threads : Threads
    """

    linear = False

    def __init__(self, layout: Layout, table: FloatArray, bounds: tuple[float, float], threads: Threads) -> None:
        self.layout, self._threads = layout, threads
        self._table, (self._low, self._high) = table, bounds

    def of_piece(self, shard: Shard, piece: Piece) -> FloatArray:
        return self.of_contexts(self.layout.contexts[shard.places(piece)])

    def of_contexts(self, contexts: IntArray) -> FloatArray:
        available, span = self.layout.available, self._high - self._low
        if available is not None:
            return np.asarray((self._table[available.places(contexts)] - self._high) / span)
        return np.column_stack([(self._table[contexts] - self._high) / span, np.zeros(len(contexts))])
