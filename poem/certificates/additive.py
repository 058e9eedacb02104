"""The gain of a policy where losses are sums over labels, row by row, as terms for betting.

Let the logging policy p and the policy h choose each label independently of the others, given x, and let expected
rewards be sums over labels (of anything that depends on x and on one label). Cut the labels into groups b. With the
ratios r = h(y_b|x)/p(y_b|x) of single groups,

    t = Σ over b of (r − 1)·R + z(x, y_b),     where each z has a mean of 0 under p,

has a mean of exactly the gain: r − 1 has a mean of 0 and is independent of all labels of other groups, so that only the
rewards of its own group count. The ratio of a whole label set is the product of the ratios of its labels; here ratios
of groups add up instead.

The more groups, the less noise; but t may be as low as −1 per group. z lifts the lowest terms. If z ≥ (1 − r)⁺ − f for
each group, then t ≥ −Σ f. Such a z exists if f is at least the total variation E(1 − r)⁺ ≤ 1. Of all of them,

    z = max(E[(r − 1)·q] − (r − 1)·q − c, (1 − r)⁺ − f),

with a c that makes its mean 0, leaves the least noise where q is the expected reward given y_b. Any q is valid. In each
context, the labels are cut into as many groups as promise the least noise under a common floor.

All of this takes p of single labels, so that the logging policy itself must be known.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.certificates.forms import Form
from poem.certificates.interactions import Deviations
from poem.certificates.label_groups import LARGEST_LOG, groupings, terms_of_piece
from poem.certificates.logger import LoggerScores
from poem.compute import Threads
from poem.data import Piece, Shard
from poem.models import ContextLosses, corrected_losses

ROOM = (1.0, 1.25, 1.5, 2.0, 3.0, 4.0)  # floors, as multiples of the fewest groups
LEAST = 0.01  # a probability of a label that corrections are divided by


@dataclass(frozen=True)
class Additive:
    """What additive terms rest on: the logging policy itself, and a loss model that has not seen the rows.

    ``noise`` is the mean squared error of that model, on a scale of [−1, 0].
    """

    logger: LoggerScores
    losses: ContextLosses
    noise: float

    @cached_property
    def forms(self) -> tuple[Form, ...]:
        """The forms that terms are computed in: floors from that of the fewest groups on."""
        fewest = groupings(self.losses.layout.structure.n_names)[0]
        return tuple(Form(-room * (len(fewest) - 1), additive=True) for room in ROOM)

    def log_prob(self, shard: Shard, piece: Piece) -> FloatArray:
        """Return the log-probabilities of a piece's labels under the logging policy, off and on, (2, m, labels)."""
        return self.losses.layout.structure.label_log_prob(self.logger.of_piece(shard, piece))


def additive_terms(
    known: Additive, loss: FloatArray, weights: FloatArray, threads: Threads, forms: tuple[Form, ...]
) -> FloatArray:
    """Return the term of every row in some forms, (n, forms), in the layout's order; ``loss`` is scaled to [−1, 0]."""
    out = np.empty((len(loss), len(forms)))

    def of_piece(shard: Shard, piece: Piece, policy: FloatArray, logger: FloatArray) -> None:
        values = known.losses.of_piece(shard, piece)
        out[piece.rows] = terms_of_piece(piece, policy, logger, values, loss[piece.rows], known.noise, forms)

    _each_piece(known, weights, threads, of_piece)
    return out


def excesses(known: Additive, weights: FloatArray, threads: Threads) -> FloatArray:
    """Return Σ (r − 1) over single labels for every row: times R, it has the gain as its mean."""
    out = np.empty(len(known.losses.layout))

    def of_piece(shard: Shard, piece: Piece, policy: FloatArray, logger: FloatArray) -> None:
        out[piece.rows] = _excess(piece, policy, logger)

    _each_piece(known, weights, threads, of_piece)
    return out


def additive_differences(known: Additive, loss: FloatArray, weights: FloatArray, threads: Threads) -> FloatArray:
    """Return the doubly robust difference of every row, in the layout's order: the least noisy terms, without a floor.

    Σ (r − 1) over single labels times what the loss model does not explain, plus the gain by the model.
    """
    out = known.losses.predicted - loss

    def of_piece(shard: Shard, piece: Piece, policy: FloatArray, logger: FloatArray) -> None:
        rewards = -known.losses.of_piece(shard, piece)[:, :-1]
        gain = ((np.exp(policy[1]) - np.exp(logger[1])) * rewards).sum(axis=1)
        out[piece.rows] = _excess(piece, policy, logger) * out[piece.rows] + np.repeat(gain, np.diff(piece.starts))

    _each_piece(known, weights, threads, of_piece)
    return out


def deviations(known: Additive, loss: FloatArray, units: IntArray) -> Deviations:
    """Return how far labels and losses are from what is expected of them, in the layout's order.

    The policy is the one that the loss model, which has not seen the rows, prefers.
    """
    layout = known.losses.layout
    labels, moved = np.empty((2, len(layout), layout.structure.n_names))
    for shard in layout.shards:
        for piece in shard.pieces:
            on, at = np.exp(known.log_prob(shard, piece)[1]), _contexts_of_rows(piece)
            labels[piece.rows] = np.asarray(piece.y) - on[at]
            moved[piece.rows] = ((known.losses.of_piece(shard, piece)[:, :-1] < 0.0) - on)[at]
    return Deviations(labels, moved, loss - known.losses.predicted, units)


def changes(known: Additive, weights: FloatArray, threads: Threads) -> FloatArray:
    """Return by how much a policy changes the probability of each label, (n, labels), in the layout's order."""
    out = np.empty((len(known.losses.layout), known.losses.layout.structure.n_names))

    def of_piece(shard: Shard, piece: Piece, policy: FloatArray, logger: FloatArray) -> None:
        out[piece.rows] = (np.exp(policy[1]) - np.exp(logger[1]))[_contexts_of_rows(piece)]

    _each_piece(known, weights, threads, of_piece)
    return out


def corrected_by_label(known: Additive, loss: FloatArray) -> ContextLosses:
    """Return a loss model, corrected label by label in each context of the log by its errors there.

    error/p where the label is on, and −error/p where it is off, has the mean by which the model errs more with the
    label than without it. Rare labels are corrected by less.
    """
    layout, error = known.losses.layout, loss - known.losses.predicted
    out = np.zeros((layout.n_contexts, layout.structure.n_names))
    for shard in layout.shards:
        for piece in shard.pieces:
            chances = np.exp(known.log_prob(shard, piece))
            off, on = np.repeat(np.maximum(chances, LEAST), np.diff(piece.starts), axis=1)
            each = error[piece.rows, None] * np.where(np.asarray(piece.y) > 0, 1.0 / on, -1.0 / off)
            rows = np.diff(piece.starts)[:, None]  # at least one, or the layout would not have the context
            out[layout.contexts[shard.places(piece)]] = np.add.reduceat(each, piece.starts[:-1]) / rows
    return corrected_losses(known.losses, out)


def _each_piece(
    known: Additive,
    weights: FloatArray,
    threads: Threads,
    use: Callable[[Shard, Piece, FloatArray, FloatArray], None],
) -> None:
    """Call ``use`` for each piece with the log-probabilities of its labels under both policies, (2, m, labels) each."""
    layout = known.losses.layout
    wide, structure = layout.design.widen(weights), layout.structure
    for shard in layout.shards:

        def one(piece: Piece, shard: Shard = shard) -> None:
            scores = shard.block(piece).scores(wide, structure.n_scores)
            use(shard, piece, structure.label_log_prob(scores), known.log_prob(shard, piece))

        threads.map(one, shard.pieces)


def _contexts_of_rows(piece: Piece) -> IntArray:
    return np.repeat(np.arange(len(piece.starts) - 1), np.diff(piece.starts))


def _excess(piece: Piece, policy: FloatArray, logger: FloatArray) -> FloatArray:
    """Return Σ (r − 1) over the labels of each row."""
    at = _contexts_of_rows(piece)
    off, on = policy - logger
    ratio = np.where(np.asarray(piece.y) > 0, on[at], off[at])
    return np.asarray(np.expm1(np.minimum(ratio, LARGEST_LOG)).sum(axis=1))
