"""Rows that are held out to choose a loss model; those of one unit are always together."""

import numpy as np

from poem.arrays import BoolArray
from poem.data import BanditLog, sample_of

HELD_OUT = 0.2
FEW_SCORES = 50_000  # units × scores up to which each fifth is held out in turn
MANY_UNITS = 100_000  # of which models are told apart, at most: strengths do not grow with the log


def some_units(log: BanditLog, seed: int, most: int | None = None) -> BanditLog:
    """Return the rows of so many units, drawn at random, as it takes to choose a model."""
    return sample_of(log, most or MANY_UNITS, seed)


def held_out(log: BanditLog, seed: int) -> list[BoolArray]:
    """Return which rows are held out, once or in turn, to choose a model; none if the log cannot be cut.

    A fifth of few units says more of the units than of the model: there, each fifth has its turn.
    """
    units = log.units()
    count = int(units.max()) + 1
    drawn = np.random.default_rng([seed, 3]).random(count)[units]
    turns = range(round(1.0 / HELD_OUT) if count * log.structure.n_scores <= FEW_SCORES else 1)
    parts = [(turn * HELD_OUT <= drawn) & (drawn < (turn + 1) * HELD_OUT) for turn in turns]
    return [held for held in parts if held.any() and not held.all()]
