"""A loss that is linear in φ(x, y), fitted to logged losses.

Ridge regression through the structure's own products; its strength is chosen on held-out logged losses.
"""

from collections.abc import Callable, Sequence

import numpy as np

from poem.arrays import BoolArray, FloatArray, frozen
from poem.compute import Threads
from poem.data import BanditLog, Layout, Piece, Shard, mean_square
from poem.models.fitted import LossModel
from poem.models.held_out import held_out, some_units
from poem.structures import Structure

STRENGTHS: tuple[float, ...] = tuple(
    10.0 ** (power / 2) for power in range(-4, 7)
)  # of the ridge, in mean squared norms of x
MOST_STEPS = 200
TOLERANCE, ROUGH = 1e-4, 1e-3  # of the residual: for a model, and to tell strengths apart


class Products:
    """The design of a ridge regression on φ(x, y), as the two products with it.

    ``once`` says that the rows are not used again: nothing is prepared for a second time.
    """

    def __init__(self, log: BanditLog, structure: Structure, threads: Threads, once: bool = False) -> None:
        self.layout, self.threads, self.once = Layout(log, structure, True), threads, once
        self.k = structure.n_scores
        self.shape = (self.layout.design.n_weights, self.k + 1)

    def forward(self, w: FloatArray) -> FloatArray:
        """Return the predictions of all rows, in the layout's order."""
        out = np.empty(len(self.layout))
        wide = self.layout.design.widen(w)
        for shard in self.layout.shards:

            def one(piece: Piece, shard: Shard = shard) -> None:
                block = shard.block(piece)
                out[piece.rows] = piece.space.predicted(block.scores(wide, self.k + 1), piece.y, piece.starts)

            self.threads.map(one, shard.pieces)
        return out

    def backward(self, rows: FloatArray) -> FloatArray:
        """Return the transposed product with one number a row."""
        out = np.zeros(self.shape)
        for shard in self.layout.shards:
            slopes = shard.design.room(self.k + 1)

            def one(piece: Piece, shard: Shard = shard, slopes: FloatArray = slopes) -> None:
                part = shard.design.part(slopes, piece.contexts, self.k + 1)
                part[...] = piece.space.spread_predicted(frozen(rows[piece.rows]), piece.y, piece.starts)

            self.threads.map(one, shard.pieces)
            if self.once:
                shard.design.add_once(out, slopes)
            else:
                shard.design.add_transposed(out, slopes, self.threads)
        return out

    def normal(self, w: FloatArray) -> FloatArray:
        """Return AᵀA·w."""
        return self.backward(self.forward(w))


def fit_linear(log: BanditLog, strength: float, threads: Threads) -> LossModel:
    """Fit a linear model to logged losses."""
    centre = float(log.loss.mean())
    products = Products(log, log.structure, threads)
    target = products.backward(products.layout.loss - centre)
    (weights,) = ridge(products.normal, target, (strength * mean_square(log),))
    return LossModel(weights, centre)


def linear_strength(log: BanditLog, seed: int, threads: Threads) -> float:
    """Return the strength of the least squared error on held-out logged losses."""
    log = some_units(log, seed)
    parts = held_out(log, seed)
    return linear_error(log, parts, threads)[0] if parts else 1.0


def linear_error(log: BanditLog, parts: Sequence[BoolArray], threads: Threads) -> tuple[float, float]:
    """Return the strength of the least squared error on held-out logged losses, and that error."""
    scale = mean_square(log)
    ridges = tuple(strength * scale for strength in STRENGTHS)
    errors = np.sum([_linear_errors(log, held, ridges, threads) for held in parts], axis=0) / np.sum(parts)
    return STRENGTHS[int(np.argmin(errors))], float(min(errors))


def _linear_errors(log: BanditLog, held: BoolArray, ridges: tuple[float, ...], threads: Threads) -> list[float]:
    """Return the sum of squared errors of each ridge on held-out rows."""
    train, rest = log.take(~held), log.take(held)
    structure = log.structure
    centre = float(train.loss.mean())
    products = Products(train, structure, threads)
    found = ridge(products.normal, products.backward(products.layout.loss - centre), ridges, ROUGH)
    judge = Products(rest, structure, threads)
    return [float(np.sum((judge.layout.loss - centre - judge.forward(weights)) ** 2)) for weights in found]


def ridge(
    normal: Callable[[FloatArray], FloatArray],
    target: FloatArray,
    strengths: tuple[float, ...],
    tolerance: float = TOLERANCE,
) -> list[FloatArray]:
    """Solve (AᵀA + s)w = Aᵀt for several s at once; ``normal`` multiplies with AᵀA, and ``target`` is Aᵀt.

    Conjugate gradients for shifted systems: all of them share one Krylov space, so that they cost one
    product each step together. The least shift is the one that decides when to stop.
    """
    least = min(strengths)
    shifts = np.array(strengths) - least
    r = target.copy()
    solutions = [np.zeros_like(r) for _ in strengths]
    directions = [r.copy() for _ in strengths]
    p, square = r.copy(), float(np.vdot(r, r))
    first, last_step, growth = square, -1.0, 0.0
    old, now = np.ones(len(shifts)), np.ones(len(shifts))
    for _ in range(MOST_STEPS):
        if square <= tolerance**2 * first or first == 0.0:
            break
        q = normal(p) + least * p
        step = -square / float(np.vdot(p, q))
        bottom = step * growth * (old - now) + old * last_step * (1.0 - shifts * step)
        new = np.where(now == 0.0, 0.0, now * old * last_step / np.where(bottom == 0.0, 1.0, bottom))
        ratio = np.divide(new, now, out=np.zeros_like(new), where=now != 0.0)
        for solution, direction, scale in zip(solutions, directions, ratio, strict=True):
            solution -= (step * scale) * direction
        r += step * q
        square, before = float(np.vdot(r, r)), square
        growth_now = square / before
        for direction, scale, part in zip(directions, ratio, new, strict=True):
            direction *= growth_now * scale * scale
            direction += part * r
        p = r + growth_now * p
        old, now, last_step, growth = now, new, step, growth_now
    return solutions
