"""A loss model with a hidden truth: one class is right, with the probabilities of a softmax of x·V; others are wrong.

m(x, y) = 1 − P(y is right), as a share of the range of losses. Where that is what losses are, as in classification, it
needs far fewer rows than a model that knows nothing of outputs: what speaks against one class speaks for all others. It
is no model of label sets: there, one loss is the sum over all labels, and which of them were wrong would be a guess.
"""

from typing import ClassVar

import numpy as np

from poem.arrays import FloatArray, frozen
from poem.bounded_loss import BoundedLoss
from poem.kernel import Threads
from poem.layout import Layout, Piece, Shard
from poem.linear_loss import LossModel
from poem.log import BanditLog
from poem.structures import structure_of
from poem.structures.packed import packed_zeros

SURE = 1e-9  # how near to 0 and 1 a share may come


class HiddenTruth(BoundedLoss):
    """The likelihood of what was right and wrong; weights (d + 1, k)."""

    strengths: ClassVar[tuple[float, ...]] = tuple(10.0 ** (power / 2) for power in range(2, -9, -1))

    def __init__(self, log: BanditLog, bounds: tuple[float, float], threads: Threads) -> None:
        super().__init__(log, bounds, threads)
        self.structure = structure_of(log)
        self.layout = Layout(log, self.structure, True)
        self.shape = (self.layout.design.n_weights, self.structure.n_scores)

    @property
    def loss(self) -> FloatArray:
        return self.layout.loss

    def shares(self, w: FloatArray) -> FloatArray:
        out, wide = np.empty(len(self.layout)), self.layout.design.widen(w)
        for shard in self.layout.shards:

            def one(piece: Piece, shard: Shard = shard) -> None:
                out[piece.rows] = self._wrong(piece, self._scores(shard, piece, wide))

            self.threads.map(one, shard.pieces)
        return out

    def entropy(self, w: FloatArray) -> tuple[float, FloatArray]:
        gradient, wide, target = np.zeros(self.shape), self.layout.design.widen(w), self.target
        structure, k, total = self.structure, self.structure.n_scores, 0.0
        for shard in self.layout.shards:
            slopes = packed_zeros(shard.design.n_contexts, k)

            def one(piece: Piece, shard: Shard = shard, slopes: FloatArray = slopes) -> float:
                scores, goal = self._scores(shard, piece, wide), target[piece.rows]
                wrong = self._wrong(piece, scores)
                coef = frozen((goal - wrong) / (wrong * (1.0 - wrong)))  # minus: of the chance to be right
                collected = structure.spread(coef, piece.y, piece.starts)
                slopes[piece.contexts, :k] = structure.pull_back_expected(scores, collected, np.ones(len(scores)))
                return -float(goal @ np.log(wrong) + (1.0 - goal) @ np.log1p(-wrong))

            total += sum(self.threads.map(one, shard.pieces))
            shard.design.add_transposed(gradient, slopes, self.threads)
        return total, gradient

    def _scores(self, shard: Shard, piece: Piece, wide: FloatArray) -> FloatArray:
        block = shard.design.block(piece.contexts.start, piece.contexts.stop)
        return block.scores(wide, self.structure.n_scores)

    def _wrong(self, piece: Piece, scores: FloatArray) -> FloatArray:
        """Return the chance that each logged class is wrong."""
        right = self.structure.chosen(frozen(self.structure.marginals(scores)), piece.y, piece.starts)
        return np.clip(1.0 - right, SURE, 1.0 - SURE)

    @staticmethod
    def model(weights: FloatArray) -> LossModel:
        """Return what was fitted as a loss model."""
        return LossModel(np.hstack([weights, np.zeros((len(weights), 1))]), 0.0, truth=True)
