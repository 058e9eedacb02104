"""The gain of a policy over the log, row by row, as terms for betting.

With rewards R in [0, 1], ratios r = h(y|x)/p and any s(x, y) ≥ 0 fixed beforehand,

    t = (r − 1)·R + s(x, y)/p − Σ over y' of s(x, y')

has a mean of at most the gain of h over the logging policy. The mean of r·R counts outputs that the log does not
support as the worst reward, and the mean of s/p is Σ s over the supported outputs only. Where the log supports all
outputs, the mean is the gain itself. As t ≥ −1 − Σ s, terms have a floor, and :mod:`poem.estimators.betting` bounds
their mean.

s makes the terms less noisy. With an imitation g of the logging policy and predicted rewards q, the best choice is

    s = g·max(κ + (1 − h/g)·q, 0),

where the level κ(x) is at most the maximum over y of (h/g − 1)·q. At that level, and if g is the logging policy,
t = (r − 1)·(R − q) + Σ (h − g)·q: the doubly robust difference. No g or q, however wrong, can make the mean of the
terms too high. Σ s may not exceed a cap, which sets the floor: κ rises, like water, until it would, so that the lowest
terms are lifted first.
"""

from dataclasses import dataclass

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.certificates.forms import Form
from poem.certificates.logger import LoggerScores
from poem.compute import Threads, kernel
from poem.data import BanditLog, Layout, Piece, Shard
from poem.estimators import LARGEST_LOG_RATIO
from poem.models import ContextLosses
from poem.structures import Fixed, Structure

CAPS = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0)
PAIRED = tuple(Form(-1.0 - cap) for cap in CAPS)
COUNT = 64  # outputs that Σ s is taken over; where there are more, it is estimated from so many samples
LARGEST_LOG = 50.0  # of h/g
BLOCK_SCORES = 1 << 18  # scores of outputs that a thread holds at a time


@dataclass(frozen=True)
class Control:
    """The parts of s: the scores of a model g of the logging policy, and the rewards q of a loss model.

    Both must come from rows other than those that are bet on.
    """

    logger: LoggerScores
    losses: ContextLosses
    seed: tuple[int, ...] = (0,)


def can_control(log: BanditLog, structure: Structure, units: IntArray) -> bool:
    """Tell whether a control keeps units independent.

    A sum estimated from samples has the same error in all rows of a context, so these must belong to one unit.
    """
    if log.available is not None or not isinstance(structure, Fixed) or structure.every(4 * COUNT) is not None:
        return True  # Σ s is exact
    pairs = np.unique(log.context.astype(np.int64) * (int(units.max()) + 1) + units)
    return len(pairs) == len(np.unique(log.context))


def paired_terms(
    layout: Layout,
    loss: FloatArray,
    weights: FloatArray,
    control: Control | None,
    threads: Threads,
    caps: tuple[float, ...] = CAPS,
    ratio: FloatArray | None = None,
) -> FloatArray:
    """Return the term of every row for every cap, (n, caps), in the layout's order; ``loss`` is scaled to [−1, 0].

    Without a control there is only one cap, 0. Pass ``ratio`` if :func:`ratios` was computed already.
    """
    ratio = ratios(layout, weights, threads) if ratio is None else ratio
    plain = (1.0 - ratio) * loss
    if control is None or not any(caps):
        return plain[:, None]
    return plain[:, None] + _controls(layout, weights, control, threads, caps)


def ratios(layout: Layout, weights: FloatArray, threads: Threads) -> FloatArray:
    """Return h(y|x)/p of every row, in the layout's order."""
    log_ratio = layout.log_prob(weights, threads) - layout.log_propensity
    return np.asarray(np.exp(np.minimum(log_ratio, LARGEST_LOG_RATIO)))


def _controls(
    layout: Layout, weights: FloatArray, control: Control, threads: Threads, caps: tuple[float, ...]
) -> FloatArray:
    """Return s(x, y)/p − Σ s of every row for every cap."""
    out = np.empty((len(layout), len(caps)))
    wide = layout.design.widen(weights)
    for shard in layout.shards:

        def one(piece: Piece, shard: Shard = shard) -> None:
            block = shard.block(piece)
            scores = (block.scores(wide, layout.structure.n_scores), control.logger.of_piece(shard, piece))
            rng = np.random.default_rng([*control.seed, 7, shard.places(piece).start])
            out[piece.rows] = _of_piece(layout, shard, piece, scores, control.losses, rng, frozen(np.array(caps)))

        threads.map(one, shard.pieces)
    return out


def _of_piece(
    layout: Layout,
    shard: Shard,
    piece: Piece,
    scores: tuple[FloatArray, FloatArray],
    losses: ContextLosses,
    rng: np.random.Generator,
    caps: FloatArray,
) -> FloatArray:
    """Return s(x, y)/p − Σ s of each row for every cap."""
    space, m, values = piece.space, len(piece.starts) - 1, losses.of_piece(shard, piece)

    def tilts(y: AnyArray, starts: IntArray, part: slice) -> tuple[FloatArray, FloatArray]:
        """Return log g and (h/g − 1)·q of some outputs of some contexts."""
        log_h, log_g = (space.log_prob(frozen(one[part]), frozen(y), starts) for one in scores)
        q = np.clip(-space.predicted(values[part], frozen(y), starts), 0.0, 1.0)
        return log_g, np.expm1(np.minimum(log_h - log_g, LARGEST_LOG)) * q

    def outputs(part: slice) -> tuple[FloatArray, FloatArray, IntArray, bool]:
        """Return (h/g − 1)·q of the outputs that sums go over, their weights, where contexts start, and if exact."""
        y, weight, starts, exact = space.outputs(frozen(scores[1][part]), rng, COUNT)
        return tilts(y, starts, part)[1], weight, starts, exact

    def all_outputs() -> tuple[FloatArray, FloatArray, IntArray, bool]:
        """Return the same for all contexts, a few at a time: there are many outputs for each."""
        found = [outputs(part) for part in _parts(layout, m)]
        if len(found) == 1:
            return found[0]
        tilt, weight = (np.concatenate([one[place] for one in found]) for place in (0, 1))
        return tilt, weight, np.arange(m + 1) * (len(tilt) // m), found[0][3]

    tilt, weight, starts, exact = all_outputs()
    level, total = np.empty((2, m, len(caps)))
    if exact:
        _fill(frozen(tilt), frozen(weight), frozen(starts), caps, level)
    else:  # no tilt is below −1, so that no sum is above κ + 1
        highest = np.maximum.reduceat(tilt, starts[:-1])
        level[:] = np.minimum(highest[:, None], caps - 1.0)
        tilt, weight, starts, _ = all_outputs()  # κ must not come from the samples that the sum is taken over
    _add_up(frozen(tilt), frozen(weight), frozen(starts), level, total)
    rows = np.repeat(np.arange(m), np.diff(piece.starts))
    log_g, own = tilts(piece.y, piece.starts, slice(None))
    odds = np.exp(np.minimum(log_g - layout.log_propensity[piece.rows], LARGEST_LOG_RATIO))
    return odds[:, None] * np.maximum(level[rows] - own[:, None], 0.0) - total[rows]


@kernel
def _fill(tilt: FloatArray, weight: FloatArray, starts: IntArray, caps: FloatArray, level: FloatArray) -> None:
    """Find the levels κ of each context at which Σ weight·max(κ − tilt, 0) reaches the caps, or the highest tilt."""
    for c in range(level.shape[0]):
        first, last = starts[c], starts[c + 1]
        order = first + np.argsort(tilt[first:last])
        for j in range(len(caps)):
            # Step by step: sums of large tilts would lose what is left of the cap.
            mass, left, height = weight[order[0]], caps[j], tilt[order[0]]
            for t in order[1:]:
                rise = tilt[t] - height
                if mass * rise >= left:
                    raised = min(height + left / mass, tilt[t]) if mass > 0.0 else height
                    height = np.nextafter(raised, height) if mass * (raised - height) > left else raised
                    break
                left -= mass * rise
                height = tilt[t]
                mass += weight[t]
            level[c, j] = height


@kernel
def _add_up(tilt: FloatArray, weight: FloatArray, starts: IntArray, level: FloatArray, total: FloatArray) -> None:
    """Sum weight·max(κ − tilt, 0) over the outputs of each context, for every level."""
    for c in range(level.shape[0]):
        for j in range(level.shape[1]):
            total[c, j] = 0.0
            for t in range(starts[c], starts[c + 1]):
                total[c, j] += weight[t] * max(level[c, j] - tilt[t], 0.0)


def _parts(layout: Layout, m: int) -> list[slice]:
    """Cut contexts so that the scores of all their outputs are few; those of candidates are no more than the scores."""
    if layout.available is not None:
        return [slice(None)]
    structure = layout.structure
    each = structure.n_outputs if structure.n_outputs <= 4 * COUNT else COUNT
    step = max(1, BLOCK_SCORES // (each * structure.n_scores))
    return [slice(first, min(first + step, m)) for first in range(0, m, step)]
