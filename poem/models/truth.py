"""A loss model with a hidden truth: one class is right, or none, with the probabilities of a softmax of x·V.

m(x, y) = 1 − P(y is right), as a share of the range of losses. Where that is what losses are, as in classification, it
needs far fewer rows than a model that knows nothing of outputs: what speaks against one class speaks for all others.
"None" is there so that it need not, and a class that was never logged is never right: of it, nothing is known. It is no
model of label sets: there, one loss is the sum over all labels, and which of them were wrong would be a guess.
"""

from typing import ClassVar

import numpy as np

from poem.arrays import FloatArray, frozen
from poem.compute import Threads
from poem.data import BanditLog, Layout, Piece
from poem.models.bounded import BoundedLoss, fit_bounded
from poem.models.fitted import LossModel
from poem.structures import MultiClass

SURE = 1e-12  # the least chance to be wrong
NEVER = 30.0  # how far below "none" the score is of a class that is never right


class HiddenTruth(BoundedLoss):
    """The likelihood of what was right and wrong; weights (d + 1, k + 1), with "none" in the last column."""

    strengths: ClassVar[tuple[float, ...]] = tuple(10.0 ** (power / 2) for power in range(2, -9, -1))

    def __init__(self, log: BanditLog, bounds: tuple[float, float], threads: Threads, once: bool = False) -> None:
        super().__init__(log, bounds, threads, once)
        # One class is right whether or not it is available.
        self.layout = Layout(log.with_all_available(), MultiClass(len(log.labels) + 1), True)
        self.shape = (self.layout.design.n_weights, len(log.labels) + 1)
        self.unknown = np.setdiff1d(np.arange(len(log.labels) + 1), log.y)

    @property
    def loss(self) -> FloatArray:
        return self.layout.loss

    def shares(self, w: FloatArray) -> FloatArray:
        wrong: FloatArray = -np.expm1(self.layout.log_prob(w, self.threads))
        return wrong

    def entropy(self, w: FloatArray) -> tuple[float, FloatArray]:
        layout, target = self.layout, self.target
        wide, gradient, coef, total = layout.design.widen(w), np.zeros(self.shape), np.empty(len(layout)), 0.0

        def use(piece: Piece, scores: FloatArray, log_right: FloatArray) -> float:
            goal, wrong = target[piece.rows], np.maximum(-np.expm1(log_right), SURE)
            coef[piece.rows] = (goal - wrong) / wrong  # the slope in the log of the chance to be right
            return -float(goal @ np.log(wrong) + (1.0 - goal) @ log_right)

        for shard in layout.shards:
            scores, entropies = layout.forward(shard, wide, self.threads, use)
            layout.backward(shard, scores, frozen(coef), gradient, self.threads, once=self.once)
            total += sum(entropies)
        return total, gradient

    def free(self, gradient: FloatArray) -> FloatArray:
        # "None" has a constant alone, and so has what was never logged: they are no places to learn about contexts.
        gradient[:-1, self.unknown] = 0.0
        return gradient


def fit_truth(log: BanditLog, strength: float, bounds: tuple[float, float], threads: Threads) -> LossModel:
    """Fit a hidden truth to losses within bounds."""
    return truth_model(fit_bounded(HiddenTruth, log, strength, bounds, threads), log)


def truth_model(weights: FloatArray, log: BanditLog) -> LossModel:
    """Return the model of fitted weights."""
    weights = weights.copy()
    # To the likelihood, classes that were never logged are so many "none" more. One is left to have the chance of all.
    never = np.setdiff1d(np.arange(len(log.labels)), log.y)
    weights[:, never] = weights[:, -1:]
    weights[-1, never] -= NEVER
    weights[-1, -1] += np.log1p(len(never))
    return LossModel(weights, 0.0, truth=True)
