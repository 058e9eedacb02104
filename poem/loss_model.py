"""Fit a model of the loss that is linear in φ(x, y) to logged losses.

Ridge regression through the structure's own products; its strength is chosen on held-out logged losses.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from poem.arrays import BoolArray, FloatArray, IntArray, frozen
from poem.errors import InputError
from poem.kernel import Threads
from poem.layout import Layout
from poem.linear_loss import LossModel
from poem.log import BanditLog
from poem.matrix import is_sparse
from poem.structures import Structure, structure_of
from poem.structures.packed import packed_zeros

STRENGTHS: tuple[float, ...] = tuple(
    10.0 ** (power / 2) for power in range(-4, 7)
)  # of the ridge, in mean squared norms of x
MOST_STEPS = 200
TOLERANCE, ROUGH = 1e-4, 1e-3  # of the residual: for a model, and to tell strengths apart
HELD_OUT = 0.2
FEW_SCORES = 50_000  # units × scores up to which each fifth is held out in turn
MANY_UNITS = 100_000  # of which models are told apart, at most: strengths do not grow with the log


class Products:
    """The design of a ridge regression on φ(x, y), as the two products with it."""

    def __init__(self, log: BanditLog, structure: Structure, threads: Threads) -> None:
        self.layout, self.threads = Layout(log, structure, True), threads
        self.structure, self.k = structure, structure.n_scores
        self.shape = (self.layout.design.n_weights, self.k + 1)

    def forward(self, w: FloatArray) -> FloatArray:
        """Return the predictions of all rows, in the layout's order."""
        out = np.empty(len(self.layout))
        wide = self.layout.design.widen(w)
        for shard in self.layout.shards:

            def one(piece: Any, shard: Any = shard) -> None:
                block = shard.design.block(piece.contexts.start, piece.contexts.stop)
                scores = block.scores(wide, self.k + 1)
                chosen = self.structure.chosen(frozen(scores[:, :-1]), piece.y, piece.starts)
                out[piece.rows] = chosen + np.repeat(scores[:, -1], np.diff(piece.starts))

            self.threads.map(one, shard.pieces)
        return out

    def backward(self, rows: FloatArray) -> FloatArray:
        """Return the transposed product with one number a row."""
        out = np.zeros(self.shape)
        for shard in self.layout.shards:
            slopes = packed_zeros(shard.design.n_contexts, self.k + 1)

            def one(piece: Any, slopes: FloatArray = slopes) -> None:
                coef = frozen(rows[piece.rows])
                slopes[piece.contexts, : self.k] = self.structure.spread(coef, piece.y, piece.starts)
                slopes[piece.contexts, self.k] = np.add.reduceat(coef, piece.starts[:-1])

            self.threads.map(one, shard.pieces)
            shard.design.add_transposed(out, slopes, self.threads)
        return out


def fit_loss_model(
    log: BanditLog, strength: float | None = None, *, seed: int = 0, threads: Threads | None = None
) -> tuple[LossModel, float]:
    """Fit a model to logged losses; return it with its strength, chosen on held-out rows if not given."""
    threads = threads or Threads()
    if strength is None:
        strength = _chosen_strength(log, seed, threads)
    centre = float(log.loss.mean())
    products = Products(log, structure_of(log), threads)
    (weights,) = _ridge(products, products.layout.loss - centre, (strength * mean_square(log),))
    return LossModel(weights, centre), strength


def _chosen_strength(log: BanditLog, seed: int, threads: Threads) -> float:
    """Return the strength of the least squared error on held-out logged losses."""
    log = some_units(log, seed)
    parts = held_out(log, seed)
    return linear_error(log, parts, threads)[0] if parts else 1.0


def some_units(log: BanditLog, seed: int) -> BanditLog:
    """Return the rows of so many units, drawn at random, as it takes to choose a model."""
    units = log.units()
    count = int(units.max()) + 1
    if count <= MANY_UNITS:
        return log
    chosen = np.zeros(count, dtype=bool)
    chosen[np.random.default_rng([seed, 6]).permutation(count)[:MANY_UNITS]] = True
    return log.take(chosen[units])


def held_out(log: BanditLog, seed: int) -> list[BoolArray]:
    """Return which rows are held out, once or in turn, to choose a model; none if the log cannot be cut.

    A fifth of few units says more of the units than of the model: there, each fifth has its turn.
    """
    units = log.units()
    count = int(units.max()) + 1
    drawn = np.random.default_rng([seed, 3]).random(count)[units]
    turns = range(round(1.0 / HELD_OUT) if count * structure_of(log).n_scores <= FEW_SCORES else 1)
    parts = [(turn * HELD_OUT <= drawn) & (drawn < (turn + 1) * HELD_OUT) for turn in turns]
    return [held for held in parts if held.any() and not held.all()]


def linear_error(log: BanditLog, parts: Sequence[BoolArray], threads: Threads) -> tuple[float, float]:
    """Return the strength of the least squared error on held-out logged losses, and that error."""
    scale = mean_square(log)
    ridges = tuple(strength * scale for strength in STRENGTHS)
    errors = np.sum([_linear_errors(log, held, ridges, threads) for held in parts], axis=0) / np.sum(parts)
    return STRENGTHS[int(np.argmin(errors))], float(min(errors))


def _linear_errors(log: BanditLog, held: BoolArray, ridges: tuple[float, ...], threads: Threads) -> list[float]:
    """Return the sum of squared errors of each ridge on held-out rows."""
    train, rest = log.take(~held), log.take(held)
    structure = structure_of(log)
    centre = float(train.loss.mean())
    products = Products(train, structure, threads)
    found = _ridge(products, products.layout.loss - centre, ridges, ROUGH)
    judge = Products(rest, structure, threads)
    return [float(np.sum((judge.layout.loss - centre - judge.forward(weights)) ** 2)) for weights in found]


def mean_square(log: BanditLog) -> float:
    """Return the mean squared norm of a context, with its constant."""
    X = log.X
    squares = float((X.data**2).sum()) if is_sparse(X) else float(np.einsum("ij,ij->", X, X))
    return squares / log.n_contexts + 1.0


def _ridge(
    products: Products, target: FloatArray, strengths: tuple[float, ...], tolerance: float = TOLERANCE
) -> list[FloatArray]:
    """Solve (AᵀA + s)w = Aᵀt for several s at once.

    Conjugate gradients for shifted systems: all of them share one Krylov space, so that they cost one
    product each step together. The least shift is the one that decides when to stop.
    """
    least = min(strengths)
    shifts = np.array(strengths) - least
    r = products.backward(target)
    solutions = [np.zeros_like(r) for _ in strengths]
    directions = [r.copy() for _ in strengths]
    p, square = r.copy(), float(np.vdot(r, r))
    first, last_step, growth = square, -1.0, 0.0
    old, now = np.ones(len(shifts)), np.ones(len(shifts))
    for _ in range(MOST_STEPS):
        if square <= tolerance**2 * first or first == 0.0:
            break
        q = products.backward(products.forward(p)) + least * p
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


# ---- one model for each fold ----------------------------------------------------------------


@dataclass(frozen=True)
class CrossFitted:
    """Models of which none has seen the rows that it predicts: ``fold`` says which one each row takes."""

    models: tuple[LossModel, ...]
    fold: IntArray

    def of_rows(self, rows: IntArray) -> "CrossFitted":
        """Return the models for some rows of the log."""
        return CrossFitted(self.models, self.fold[rows])


def folds_of(log: BanditLog, folds: int, seed: int) -> IntArray:
    """Deal the log's independent units into folds; return the fold of each row."""
    units = log.units()
    count = int(units.max()) + 1
    if not isinstance(folds, int) or not 2 <= folds <= count:
        raise InputError(f"folds must be from 2 to the number of independent units, {count}; found {folds}.")
    order = np.random.default_rng([seed, 4]).permutation(count)
    return np.asarray((order % folds)[units])


def folds_by_context(log: BanditLog, folds: int, seed: int) -> IntArray:
    """Deal the contexts that occur into folds of about equal size; return the fold of each context of the log."""
    fold = np.zeros(log.n_contexts, dtype=np.int64)
    seen = np.unique(log.context)
    fold[seen] = np.random.default_rng([seed, 5]).permutation(len(seen)) % folds
    return fold


def cross_fit(log: BanditLog, folds: int = 2, *, seed: int = 0, threads: Threads | None = None) -> CrossFitted:
    """Fit one loss model for each fold of the log's units on all other folds."""
    fold = folds_of(log, folds, seed)
    strength = _chosen_strength(log, seed, threads or Threads())
    models = [fit_loss_model(log.take(fold != part), strength, threads=threads)[0] for part in range(folds)]
    return CrossFitted(tuple(models), fold)
