"""What loss models say of candidates, which differ from context to context."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.compute import Design, Threads, ragged_places
from poem.data import Layout, Piece, Shard, pair_scores
from poem.models.fitted import ContextLosses, LossModel


class OfferedLosses(ContextLosses):
    """What several models say of the candidates of each context, flat.

    The constant that a model adds for the context alone is part of each candidate's loss.
    """

    linear = False

    def of_contexts(self, contexts: IntArray) -> FloatArray:
        if self._kept is not None:
            place = np.searchsorted(self.layout.contexts, contexts)
            starts = self._kept_starts
            return self._kept[ragged_places(starts[place], starts[place + 1] - starts[place])]
        if self._truth:
            design, columns = self.layout.batch_design.contexts, self._weights.shape[1]
            return self._looked_up(design.batch_scores(self._batch_wide, columns, contexts), contexts)
        return self._picked(self.layout.batch(contexts)[0], self._batch_wides, contexts)

    def _of_piece(self, shard: Shard, piece: Piece) -> FloatArray:
        block, contexts = shard.block(piece), self.layout.contexts[shard.places(piece)]
        if self._truth:
            return self._looked_up(block.contexts.scores(self._wide, self._weights.shape[1]), contexts)
        return self._picked(block, self._wides, contexts)

    def _prepare(self) -> None:
        _ = self._wide if self._truth else self._wides

    @cached_property
    def _kept_starts(self) -> IntArray:
        borders = self.layout.design.borders
        assert borders is not None
        return borders

    def _looked_up(self, scores: FloatArray, contexts: IntArray) -> FloatArray:
        """Return the losses of candidates that are classes, from the scores of all classes."""
        losses, available = self._own(scores, contexts), self.layout.available
        assert available is not None
        owner = np.repeat(np.arange(len(contexts)), available.starts[contexts + 1] - available.starts[contexts])
        return np.asarray(losses[owner, available.action[available.places(contexts)]])

    def _picked(self, offered: Any, wides: list[FloatArray], contexts: IntArray) -> FloatArray:
        """Of the losses of all models, keep those of each context's own one."""
        fold = np.repeat(self.fold[contexts], np.diff(offered.borders))
        found = self._of_model(0, offered, wides, contexts)
        for model in range(1, len(wides)):
            own = fold == model
            found[own] = self._of_model(model, offered, wides, contexts)[own]
        self._add_pair_trees(found, contexts, fold)
        return found

    def _add_pair_trees(self, found: FloatArray, contexts: IntArray, fold: IntArray) -> None:
        """Add what the trees of each candidate's own model say."""
        available = self.layout.available
        assert available is not None
        for model, forest in enumerate(self._forests):
            if forest is not None and len(here := contexts[self.fold[contexts] == model]):
                found[fold == model] += pair_scores(forest, self.layout.X, available, here) / self._span

    def _of_model(self, model: int, offered: Any, wides: list[FloatArray], contexts: IntArray) -> FloatArray:
        found: FloatArray = offered.scores(wides[model], self._columns) + self._offsets[model]
        if not self.layout.design.intercept:
            constant = self._weights[-1, model * self._columns : (model + 1) * self._columns]
            found += offered.gathered(np.tile(constant, (len(contexts), 1)))
        return found

    @cached_property
    def _wide(self) -> FloatArray:
        return self._widened(self.layout.design.contexts)

    @cached_property
    def _batch_wide(self) -> FloatArray:
        return self._widened(self.layout.batch_design.contexts)

    @cached_property
    def _wides(self) -> list[FloatArray]:
        return self._each_widened(self.layout.design)

    @cached_property
    def _batch_wides(self) -> list[FloatArray]:
        return self._each_widened(self.layout.batch_design)

    def _each_widened(self, design: Design) -> list[FloatArray]:
        each = np.split(self._weights if design.intercept else self._weights[:-1], len(self._offsets), axis=1)
        return [design.widen(weights) for weights in each]


def losses_on(
    layout: Layout,
    models: Sequence[LossModel],
    fold: IntArray,
    bounds: tuple[float, float],
    threads: Threads | None = None,
    keep: bool = True,
) -> ContextLosses:
    """Return what models say of a layout's contexts; see :class:`ContextLosses`."""
    if layout.available is None:
        return ContextLosses(layout, models, fold, bounds, threads, keep)
    return OfferedLosses(layout, models, fold, bounds, threads, keep)
