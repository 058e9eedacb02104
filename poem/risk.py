"""Risk = structure × estimator + λ·stderr + l2: the only place where the two meet."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.errors import InputError
from poem.estimators.base import Objective, Point
from poem.kernel import Threads
from poem.layout import Layout, Piece
from poem.structures.linear import RowGradient
from poem.structures.packed import lanes_for

LARGEST_COEF = 1e15  # its square is still far from float32's largest number


class Risk:
    """The training objective of the paper's Eq. (6): R̂ᴹ(w) + λ·√(Var(u)/n) + ½·l2·‖w‖².

    Parameters
    ----------
    layout : Layout
        The training rows; shared by all risks over the same rows.
    loss : (n,) array
        The scaled loss of each row, in the layout's order.
    estimator : Objective
        With its clip set.
    lam, l2 : float
        λ of the variance penalty and the strength of the l2 penalty.
    """

    def __init__(
        self,
        layout: Layout,
        loss: FloatArray,
        estimator: Objective,
        *,
        lam: float = 0.0,
        l2: float = 0.0,
        threads: Threads | None = None,
    ) -> None:
        if lam < 0.0 or l2 < 0.0:
            raise InputError(f"lam and l2 must not be negative; found lam={lam}, l2={l2}.")
        self.layout, self.loss, self.estimator = layout, loss, estimator
        self.lam, self.l2 = lam, l2
        self.threads = threads or Threads()

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the weights."""
        return self.layout.design.n_weights, self.layout.structure.n_scores

    @property
    def n_rows(self) -> int:
        """The number of rows that batches are drawn from."""
        return len(self.layout)

    # ---- the whole log --------------------------------------------------------------------

    def __call__(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its gradient."""
        ratio, wide = np.empty(self.n_rows), self.layout.design.widen(w)
        sums, scores = self._forward(wide, ratio)
        point = self.estimator.point(sums, self.n_rows)
        grad = self.l2 * w if self.l2 else np.zeros(self.shape)
        coef = self._coefficients(ratio, point.slopes(self.lam))
        for shard, kept in zip(self.layout.shards, scores, strict=True):
            # Scores are kept only while they are few; a second product is cheaper than swapping.
            again = self.layout.forward(shard, wide, self.threads, _ignore)[0] if kept is None else kept
            self.layout.backward(shard, again, coef, grad, self.threads)
        return point.objective(self.lam) + self._penalty(w), grad

    def point(self, w: FloatArray) -> Point:
        """Return value and standard error (without l2) at some weights."""
        return self.estimator.point(self._forward(self.layout.design.widen(w), np.empty(self.n_rows))[0], self.n_rows)

    def ratios(self, w: FloatArray) -> FloatArray:
        """Return the clipped importance ratio of each row."""
        ratio = np.empty(self.n_rows)
        self._forward(self.layout.design.widen(w), ratio)
        return ratio

    def _penalty(self, w: FloatArray) -> float:
        return 0.5 * self.l2 * float(np.vdot(w, w)) if self.l2 else 0.0

    def _forward(self, wide: FloatArray, ratio: FloatArray) -> tuple[FloatArray, list[list[FloatArray] | None]]:
        """Fill ``ratio``; return the estimator's sums and, if there is but one shard, its scores."""
        layout, estimator = self.layout, self.estimator

        def use(piece: Piece, log_prob: FloatArray) -> FloatArray:
            rows = piece.rows
            ratio[rows] = estimator.ratios(log_prob - layout.log_propensity[rows])
            return estimator.sums(ratio[rows], self.loss[rows])

        parts: list[FloatArray] = []
        kept: list[list[FloatArray] | None] = []
        for shard in layout.shards:
            scores, sums = layout.forward(shard, wide, self.threads, use)
            parts.extend(sums)
            kept.append(scores if len(layout.shards) == 1 else None)
        return np.sum(parts, axis=0), kept

    def _coefficients(self, ratio: FloatArray, slopes: FloatArray) -> FloatArray:
        """Turn ratios into coefficients, in place: a second array of rows is not needed."""

        def one(rows: slice) -> None:
            ratio[rows] = self.estimator.coefficients(ratio[rows], self.loss[rows], slopes)

        self.threads.map(one, (piece.rows for shard in self.layout.shards for piece in shard.pieces))
        return frozen(ratio)

    # ---- batches of rows, with weights in a form of their own ---------------------------------

    def for_batches(self, w: FloatArray) -> FloatArray:
        """Return a copy of w in the form that batches work on: wide, in float32.

        Batches move as many bytes as they touch weights; their noise is far above 1e-7.
        """
        return self.layout.batch_design.widen(w, np.float32)

    def from_batches(self, wide: FloatArray) -> FloatArray:
        """Return weights for batches as plain weights."""
        return self.layout.batch_design.narrow(wide, self.shape[1])

    def frozen_point(self, wide: FloatArray) -> tuple[float, FloatArray]:
        """Return the objective and its slopes in the sums, to be held for one epoch.

        For IPS, n·slopes = (1 + λ√n·A, λ√n·B): the constants of the paper's Proposition 1.
        """
        w = self.from_batches(wide)
        point = self.point(w)
        return point.objective(self.lam) + self._penalty(w), point.slopes(self.lam)

    def shuffled(self, order: IntArray) -> "ShuffledRows":
        """Return all rows in some order, to take batches from."""
        layout = self.layout
        return ShuffledRows(
            self,
            layout.context[order],
            frozen(layout.y[order]),
            layout.log_propensity[order],
            self.loss[order],
        )


@dataclass(frozen=True)
class ShuffledRows:
    """The rows of a risk in the order of one epoch."""

    risk: Risk
    context: IntArray
    y: AnyArray
    log_propensity: FloatArray
    loss: FloatArray

    def batch(self, wide: FloatArray, rows: slice, slopes: FloatArray) -> tuple[float, RowGradient]:
        """Return the mean of the rows' losses under the weights, and the batch's mean gradient (without l2)."""
        layout, estimator = self.risk.layout, self.risk.estimator
        structure, design = layout.structure, layout.batch_design
        contexts, y, loss = self.context[rows], self.y[rows], self.loss[rows]
        size = len(loss)
        starts = _one_row_each(size)
        scores = design.batch_scores(wide, structure.n_scores, contexts)
        ratio = estimator.ratios(structure.log_prob(scores, y, starts) - self.log_propensity[rows])
        coef = estimator.coefficients(ratio, loss, slopes * (self.risk.n_rows / size))
        coef = np.minimum(np.maximum(coef, -LARGEST_COEF), LARGEST_COEF)
        pulled = np.zeros((size, lanes_for(structure.n_scores)), dtype=wide.dtype)
        pulled[:, : structure.n_scores] = structure.pull_back(scores, y, starts, frozen(coef))
        return float(ratio @ loss) / size, design.batch_transposed(contexts, pulled)


@lru_cache(maxsize=8)
def _one_row_each(size: int) -> IntArray:
    """Return the starts of contexts with one row each."""
    return frozen(np.arange(size + 1))


def _ignore(piece: Piece, log_prob: FloatArray) -> None:
    """A forward pass whose scores alone are wanted."""
