"""Risk = structure × estimator (× loss model) + λ·stderr + l2: the only place where they meet."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute import RowGradient, SomeContexts, SummedGradient, Threads
from poem.data import Layout, Piece, Shard
from poem.errors import InputError
from poem.estimators import MeanObjective, Objective, Point
from poem.models import ContextLosses
from poem.structures import Space

# How many batches are prepared at a time, and the bytes that these take at most; one batch may take more.
PREPARED, PREPARED_BYTES = 8, 1 << 22
LARGEST_COEF = 1e15  # its square is still far from float32's largest number
SMALLEST_SLOPE = 1e-25  # float32 weights do not feel less, and processors take ten times as long near 1e-38


class Risk:
    """The training objective of the paper's Eq. (6): R̂ᴹ(w) + λ·√(Var(u)/n) + ½·l2·‖w − centre‖².

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
    losses : ContextLosses, optional
        What an estimator that needs a loss model rests on.
    centre : array of the weights' shape, optional
        Where the l2 penalty pulls to; 0 by default.
    """

    def __init__(
        self,
        layout: Layout,
        loss: FloatArray,
        estimator: Objective,
        *,
        lam: float = 0.0,
        l2: float = 0.0,
        losses: ContextLosses | None = None,
        centre: FloatArray | None = None,
        threads: Threads | None = None,
    ) -> None:
        if lam < 0.0 or l2 < 0.0:
            raise InputError(f"lam and l2 must not be negative; found lam={lam}, l2={l2}.")
        if estimator.needs_model and losses is None:
            raise InputError(f"{estimator.name} needs a loss model to learn with, and none was given.")
        self.layout, self.estimator = layout, estimator
        self.losses = losses if estimator.needs_model else None
        self.loss = loss if self.losses is None else loss - self.losses.predicted
        self.log_divisor = estimator.log_divisor(layout.log_propensity)
        self.lam, self.l2, self.centre = lam, l2, centre
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
        ratio, base, wide = np.empty(self.n_rows), self._base(), self.layout.design.widen(w)
        sums, scores = self._forward(wide, ratio, base)
        point = self.estimator.point(sums, self.n_rows)
        penalty, grad = self._penalty(w)
        coef = self._coefficients(ratio, base, point.slopes(self.lam))
        for shard, kept in zip(self.layout.shards, scores, strict=True):
            # Scores are kept only while they are few; a second product is cheaper than swapping.
            again = self.layout.forward(shard, wide, self.threads, _ignore)[0] if kept is None else kept
            self.layout.backward(shard, again, coef, grad, self.threads, self._slopes_of_base(shard, base))
        return point.objective(self.lam) + penalty, grad

    def point(self, w: FloatArray) -> Point:
        """Return value and standard error (without l2) at some weights."""
        ratio = np.empty(self.n_rows)
        sums, _ = self._forward(self.layout.design.widen(w), ratio, self._base())
        return self.estimator.point(sums, self.n_rows)

    def ratios(self, w: FloatArray) -> FloatArray:
        """Return the importance ratio of each row as it is used: clipped, if there is a clip."""
        ratio = np.empty(self.n_rows)
        self._forward(self.layout.design.widen(w), ratio, self._base())
        return ratio

    def _base(self) -> FloatArray | None:
        """Return room for the loss model's mean under the policy, of each row."""
        return None if self.losses is None else np.empty(self.n_rows)

    def _penalty(self, w: FloatArray) -> tuple[float, FloatArray]:
        """Return the l2 penalty and its gradient."""
        if not self.l2:
            return 0.0, np.zeros(self.shape)
        off = w if self.centre is None else w - self.centre
        return 0.5 * self.l2 * float(np.vdot(off, off)), self.l2 * off

    def _forward(
        self, wide: FloatArray, ratio: FloatArray, base: FloatArray | None
    ) -> tuple[FloatArray, list[list[FloatArray] | None]]:
        """Fill ``ratio`` and ``base``; return the estimator's sums and, of each shard, the scores if they are few."""
        layout = self.layout
        parts: list[FloatArray] = []
        kept: list[list[FloatArray] | None] = []
        for shard in layout.shards:
            scores, sums = layout.forward(shard, wide, self.threads, partial(self._use, shard, ratio, base))
            parts.extend(sums)
            kept.append(scores if layout.keeps_scores else None)
        return np.sum(parts, axis=0), kept

    def _use(
        self,
        shard: Shard,
        ratio: FloatArray,
        base: FloatArray | None,
        piece: Piece,
        scores: FloatArray,
        log_prob: FloatArray,
    ) -> FloatArray:
        """Fill ``ratio`` and ``base`` for the rows of a piece; return its sums."""
        rows, estimator = piece.rows, self.estimator
        ratio[rows] = estimator.ratios(log_prob - self.log_divisor[rows])
        if base is None or self.losses is None:
            return estimator.sums(ratio[rows], self.loss[rows])
        values = self.losses.of_piece(shard, piece)
        base[rows] = np.repeat(piece.space.mean_under(scores, values), np.diff(piece.starts))
        return estimator.sums(ratio[rows], self.loss[rows], base[rows])

    def _coefficients(self, ratio: FloatArray, base: FloatArray | None, slopes: FloatArray) -> FloatArray:
        """Turn ratios into coefficients, and bases into theirs, in place: more arrays of rows are not needed."""

        def one(rows: slice) -> None:
            found, slope = self._coefficients_in(rows, ratio, base, slopes)
            ratio[rows] = found
            if base is not None and slope is not None:
                base[rows] = slope

        self.threads.map(one, (piece.rows for shard in self.layout.shards for piece in shard.pieces))
        return frozen(ratio)

    def _coefficients_in(
        self, rows: slice, ratio: FloatArray, base: FloatArray | None, slopes: FloatArray
    ) -> tuple[FloatArray, FloatArray | None]:
        """Return the coefficients of some rows, and those of their bases."""
        estimator, own = self.estimator, None if base is None else base[rows]
        found = estimator.coefficients(ratio[rows], self.loss[rows], slopes, own)
        if own is None:
            return found, None
        assert isinstance(estimator, MeanObjective)
        return found, estimator.base_coefficients(ratio[rows], self.loss[rows], slopes, own)

    def sums_and_gradients(self, w: FloatArray, slopes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the estimator's sums, and the gradients of slopes·sums for each row of ``slopes``, in one pass.

        The objective is a smooth function of the sums: together with those of other rows, this is all it needs.
        """
        layout, wide, n = self.layout, self.layout.design.widen(w), self.n_rows
        ratio, base = np.empty(n), self._base()
        coef, slope = np.empty(n), None if base is None else np.empty(n)
        parts: list[FloatArray] = []
        grads = np.zeros((len(slopes), *self.shape))
        for shard in layout.shards:
            scores, sums = layout.forward(shard, wide, self.threads, partial(self._use, shard, ratio, base))
            parts.extend(sums)
            rows = slice(shard.pieces[0].rows.start, shard.pieces[-1].rows.stop)
            for grad, wanted in zip(grads, slopes, strict=True):
                coef[rows], own = self._coefficients_in(rows, ratio, base, wanted)
                if slope is not None and own is not None:
                    slope[rows] = own
                more = self._slopes_of_base(shard, slope)
                layout.backward(shard, scores, frozen(coef), grad, self.threads, more, once=True)
        return np.sum(parts, axis=0), grads

    def _slopes_of_base(
        self, shard: Shard, base: FloatArray | None
    ) -> Callable[[Piece, FloatArray], FloatArray] | None:
        """Return what turns the bases' coefficients into slopes in the scores of a piece."""
        losses_of = self.losses
        if base is None or losses_of is None:
            return None

        def more(piece: Piece, scores: FloatArray) -> FloatArray:
            coef = np.add.reduceat(base[piece.rows], piece.starts[:-1])
            return piece.space.pull_back_mean(scores, losses_of.of_piece(shard, piece), coef)

        return more

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
        return point.objective(self.lam) + self._penalty(w)[0], point.slopes(self.lam)

    @property
    def centre_for_batches(self) -> FloatArray | None:
        """Where l2 pulls to, in the form that batches work on."""
        return None if self.centre is None else self.for_batches(self.centre)

    def epoch(self, rng: Generator, size: int) -> Iterator["Batch"]:
        """Yield all rows in a random order, in batches of a size."""
        return self.batches(rng.permutation(self.n_rows), size)

    def batches(self, order: IntArray, size: int) -> Iterator["Batch"]:
        """Yield all rows in some order, in batches of a size; with threads, the next ones are prepared meanwhile."""
        layout = self.layout
        context, y = frozen(layout.context[order]), frozen(layout.y[order])
        log_divisor, loss = self.log_divisor[order], self.loss[order]
        height = size * max(1, min(PREPARED, int(PREPARED_BYTES / (size * layout.context_bytes))))

        def prepared(first: int) -> list[tuple[SomeContexts, Space]]:
            return layout.batches(context[first : first + height], size)

        starts = range(0, len(order), size)
        found = chain.from_iterable(self.threads.ahead(prepared, range(0, len(order), height)))
        for first, (some, space) in zip(starts, found, strict=True):
            rows = slice(first, first + size)
            yield Batch(self, some, space, y[rows], log_divisor[rows], loss[rows])


@dataclass(frozen=True)
class Batch:
    """Some rows of a risk, in the order of an epoch."""

    risk: Risk
    some: SomeContexts
    space: Space
    y: AnyArray
    log_divisor: FloatArray
    loss: FloatArray

    def __call__(self, wide: FloatArray, slopes: FloatArray) -> tuple[float, RowGradient | SummedGradient]:
        """Return the mean of the rows' losses under the weights, and the batch's mean gradient (without l2)."""
        risk, some, space, y, loss = self.risk, self.some, self.space, self.y, self.loss
        estimator, size, k = risk.estimator, len(loss), risk.layout.structure.n_scores
        starts = _one_row_each(size)
        scores = some.scores(wide, k)
        ratio = estimator.ratios(space.log_prob(scores, y, starts) - self.log_divisor)
        slopes = slopes * (risk.n_rows / size)
        mean = float(ratio @ loss) / size
        base, more = None, None
        if risk.losses is not None:
            assert isinstance(estimator, MeanObjective)
            values = risk.losses.of_contexts(some.contexts)
            base = space.mean_under(scores, values)
            slope = _bounded(estimator.base_coefficients(ratio, loss, slopes, base))
            more = space.pull_back_mean(scores, values, slope)
            mean += float(base.mean())
        coef = _bounded(estimator.coefficients(ratio, loss, slopes, base))
        pulled = space.pull_back(scores, y, starts, frozen(coef))
        pulled = pulled if more is None else pulled + more
        pulled *= np.abs(pulled) > SMALLEST_SLOPE
        return mean, some.transposed(pulled, k, wide.dtype.type)


def _bounded(coef: FloatArray) -> FloatArray:
    return np.minimum(np.maximum(coef, -LARGEST_COEF), LARGEST_COEF)


@lru_cache(maxsize=8)
def _one_row_each(size: int) -> IntArray:
    """Return the starts of contexts with one row each."""
    return frozen(np.arange(size + 1))


def _ignore(piece: Piece, scores: FloatArray, log_prob: FloatArray) -> None:
    """A forward pass whose scores alone are wanted."""
