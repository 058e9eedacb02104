"""A log laid out for computing: rows in the order of their contexts, contexts cut into shards.

Scores are computed per context and per shard, so that cost grows with unique contexts and memory
never holds contexts × outputs beyond one shard.
"""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute import (
    CatalogueDesign,
    DenseDesign,
    Design,
    GrownDesign,
    Matrix,
    OfferedDesign,
    SomeContexts,
    Threads,
    TouchedDesign,
    design_of,
    is_catalogue,
    pairs,
    touches_few,
)
from poem.data.log import BanditLog
from poem.structures import Available, Space, Structure

SHARD_SCORES = 1 << 22  # 32 MiB of scores
OFFERED_SCORES = 1 << 20  # of contexts whose candidates are scored from them: 8 MiB stay in a cache

R = TypeVar("R")


@dataclass(frozen=True)
class Piece:
    """Neighbouring contexts and their rows: what one thread handles at a time.

    ``space`` is what the scores of these contexts mean, and ``y`` are outputs in it.
    """

    contexts: slice
    rows: slice
    y: AnyArray
    starts: IntArray
    space: Space


@dataclass(frozen=True)
class Shard:
    """A block of contexts whose scores fit into memory, with the pieces it is worked on in.

    ``first`` is the position of its first context among the layout's.
    """

    first: int
    design: Design
    pieces: tuple[Piece, ...]

    def block(self, piece: Piece) -> Design:
        """Return the contexts of a piece as a view."""
        return self.design.block(piece.contexts.start, piece.contexts.stop)

    def places(self, piece: Piece) -> slice:
        """Return the positions of a piece's contexts among the layout's."""
        return slice(self.first + piece.contexts.start, self.first + piece.contexts.stop)


class Layout:
    """The rows of a log in the order of their contexts.

    One that is not ``alone`` takes weights for batches in the plain order of features, which other layouts share.

    Attributes
    ----------
    order : (n,) int
        ``log.loss[order]`` is :attr:`loss`, and so on.
    y, loss, log_propensity
        The log's arrays in that order; where contexts have candidates of their own, ``y`` is a position among them.
    context : (n,) int
        Which context of the log each row saw, ascending.
    contexts : (m,) int
        The contexts of the log that any row saw, ascending: those of the design.
    X : matrix
        All contexts of the log.
    context_bytes : float
        The mean memory that a context and its candidates take.
    shards : tuple of Shard
    """

    def __init__(
        self,
        log: BanditLog,
        structure: Structure,
        intercept: bool,
        max_scores: int = SHARD_SCORES,
        alone: bool = True,
    ) -> None:
        self.structure, self._alone = structure, alone
        self.order, starts = log.rows_by_context()
        used = np.flatnonzero(np.diff(starts))
        # A part of a log shares its X with the whole: contexts that no row saw would be scored for nothing.
        self._used = None if len(used) == log.n_contexts else used
        self.contexts: IntArray = used
        self.available = log.available
        self.X = log.X
        self.context_bytes = log.nbytes / max(1, log.n_contexts)
        self.design = self._design(intercept, self._used)
        self._batch_design: Design | None = None
        self._building = threading.Lock()
        starts = starts[np.append(used, log.n_contexts)]
        in_order = bool(np.all(log.context[1:] >= log.context[:-1]))

        def ordered(values: AnyArray) -> AnyArray:
            return values if in_order else frozen(values[self.order])

        self.y = ordered(log.y if log.available is None else frozen(log.available.positions(log.context, log.y)))
        self.loss: FloatArray = ordered(log.loss)
        self.log_propensity: FloatArray = ordered(log.log_propensity)
        self.context: IntArray = ordered(log.context)
        self.shards = tuple(self._cut(starts, max_scores))
        # Scores of candidates are flat, and few beside those of contexts that they come from.
        self.keeps_scores = len(self.shards) == 1 or (
            log.available is not None and len(log.available.action) <= max_scores
        )

    def __len__(self) -> int:
        return len(self.loss)

    @property
    def n_contexts(self) -> int:
        """The number of all contexts of the log."""
        return int(self.X.shape[0])

    @property
    def batch_design(self) -> Design:
        """All contexts in the form that batches want, made when it is first asked for."""
        if self._used is None and isinstance(self.design, DenseDesign):
            return self.design
        with self._building:
            if self._batch_design is None:
                self._batch_design = self._design(self.design.intercept, for_batches=self._alone)
        return self._batch_design

    def batch(self, contexts: IntArray) -> tuple[SomeContexts, Space]:
        """Return some contexts of the log, by their numbers, and what their scores mean."""
        return self.batches(contexts, len(contexts))[0]

    def batches(self, contexts: IntArray, size: int) -> list[tuple[SomeContexts, Space]]:
        """Return the same cut into batches of a size."""
        return [(some, self.structure.space(some.borders)) for some in self.batch_design.batches(contexts, size)]

    def _design(self, intercept: bool, rows: IntArray | None = None, for_batches: bool = False) -> Design:
        offers = self.available if self.available is None or rows is None else self.available.of(rows)
        if offers is None:
            return design_of(self.X, intercept, rows, for_batches)
        return offered_design(self.X, intercept, rows, for_batches, self.structure, offers)

    def _cut(self, starts: IntArray, max_scores: int) -> Iterator[Shard]:
        k = self.structure.n_scores
        most = max_scores if self.available is None else min(max_scores, OFFERED_SCORES)
        height = max(1, int(most / self.design.scores_per_context(k)))
        for first in range(0, self.design.n_contexts, height):
            last = min(first + height, self.design.n_contexts)
            block = self.design if (first, last) == (0, self.design.n_contexts) else self.design.block(first, last)
            borders = starts[first : last + 1]
            yield Shard(first, block, tuple(self._piece(block, borders, a, b) for a, b in pairs(block.cuts(k))))

    def _piece(self, design: Design, borders: IntArray, first: int, last: int) -> Piece:
        rows = slice(int(borders[first]), int(borders[last]))
        starts = frozen(borders[first : last + 1] - borders[first])
        space = self.structure.space(design.block(first, last).borders)
        return Piece(slice(first, last), rows, self.y[rows], starts, space)

    def each_piece(self, work: Callable[[Shard, Piece], None], threads: Threads) -> None:
        """Do something with all pieces, shard by shard."""
        for shard in self.shards:
            threads.map(partial(work, shard), shard.pieces)

    def forward(
        self, shard: Shard, w: FloatArray, threads: Threads, use: Callable[[Piece, FloatArray, FloatArray], R]
    ) -> tuple[list[FloatArray], list[R]]:
        """Score each piece of a shard with wide weights and hand its scores and log-probabilities to ``use``."""
        k = self.structure.n_scores

        def one(piece: Piece) -> tuple[FloatArray, R]:
            scores = shard.block(piece).scores(w, k)
            return scores, use(piece, scores, piece.space.log_prob(scores, piece.y, piece.starts))

        results = threads.map(one, shard.pieces)
        return [scores for scores, _ in results], [used for _, used in results]

    def backward(
        self,
        shard: Shard,
        scores: list[FloatArray],
        coef: FloatArray,
        grad: FloatArray,
        threads: Threads,
        more: Callable[[Piece, FloatArray], FloatArray] | None = None,
        once: bool = False,
    ) -> None:
        """Add Σᵢ coefᵢ·∇log h(yᵢ|xᵢ) over the rows of a shard to ``grad``.

        ``more`` returns what else the objective has for slopes in the scores of a piece. ``once`` says that the rows
        are not used again.
        """
        k = self.structure.n_scores
        slopes = shard.design.room(k)

        def one(work: tuple[Piece, FloatArray]) -> None:
            piece, piece_scores = work
            part = shard.design.part(slopes, piece.contexts, k)
            part[...] = piece.space.pull_back(piece_scores, piece.y, piece.starts, coef[piece.rows])
            if more is not None:
                part += more(piece, piece_scores)

        threads.map(one, zip(shard.pieces, scores, strict=True))
        if once:
            shard.design.add_once(grad, slopes)
        else:
            shard.design.add_transposed(grad, slopes, threads)

    def log_prob(self, w: FloatArray, threads: Threads) -> FloatArray:
        """Return log h(yᵢ|xᵢ) of every row, in the layout's order."""
        out = np.empty(len(self))

        def keep(piece: Piece, scores: FloatArray, log_prob: FloatArray) -> None:
            out[piece.rows] = log_prob

        wide = self.design.widen(w)
        for shard in self.shards:
            self.forward(shard, wide, threads, keep)
        return out


def offered_design(
    X: Matrix, intercept: bool, rows: IntArray | None, for_batches: bool, structure: Structure, available: Available
) -> Design:
    """Return all or some contexts with the candidates of each."""
    kind, k = (X, intercept, rows, for_batches), structure.n_scores
    if available.more is None or for_batches:
        return _offered(*kind, k, available.joined())
    return GrownDesign(_offered(*kind, k - 1, available), available.more)


def _offered(
    X: Matrix, intercept: bool, rows: IntArray | None, for_batches: bool, k: int, available: Available
) -> OfferedDesign:
    """Return the same for candidates without a feature that is kept apart."""
    pointers, columns, values, row = available.features_or_identity(k)
    z = (pointers, columns, values, k)
    contexts = design_of(X, intercept, rows, for_batches)
    if isinstance(contexts, DenseDesign) and not for_batches and is_catalogue(contexts, available.starts, z, k):
        return CatalogueDesign(contexts, available.starts, row, z)
    if touches_few(available.starts, row, z, k, for_batches):
        contexts = design_of(X, intercept, rows) if for_batches else contexts
        return TouchedDesign(contexts, available.starts, row, z)
    return OfferedDesign(contexts, available.starts, row, z)
