"""Rungs: many candidates compete on few units, and those that do well there on more.

Few units tell poor candidates from good ones. What takes long is to learn every candidate from many rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from poem.data import BanditLog, folds_of, sample_of
from poem.learning.arguments import Split
from poem.learning.portfolio import Recipe
from poem.learning.selection import Candidate

FEW_UNITS = 10_000  # up to which all candidates compete in all rows
SIZES = (20_000, 60_000)  # units of a rung
FINALISTS = 6  # candidates that reach the next rung …
OF_A_LEARNER = 2  # … and those of one learner among them: its strengths are much alike
ENOUGH_HELD = 25_000  # units that tell finalists apart
ALL = 1 << 30


@dataclass(frozen=True)
class Rung:
    """Rows that candidates compete on, how they are split, and how many candidates come here at the most."""

    log: BanditLog
    splits: tuple[Split, ...]
    most: int = ALL


def rungs_of(log: BanditLog, seed: int) -> list[Rung]:
    """Return the rungs of a log with many units; none if there are few."""
    if int(log.units().max()) < FEW_UNITS:
        return []
    first, *others = (sample_of(log, size, seed) for size in SIZES)
    return [Rung(first, _halves(first, seed, 1)), *(_higher(other, seed) for other in others)]


def _higher(log: BanditLog, seed: int) -> Rung:
    many = int(log.units().max()) >= 2 * ENOUGH_HELD
    return Rung(log, _halves(log, seed, 1 if many else 2), FINALISTS)


def _halves(log: BanditLog, seed: int, turns: int) -> tuple[Split, ...]:
    """Learn from one half of the units and judge on the other one, once or in turn."""
    fold, unit = folds_of(log, 2, seed), log.units()
    return tuple(Split(log.take(fold != part), log.take(fold == part), unit[fold == part]) for part in range(turns))


def finalists(ordered: Sequence[Candidate], most: int) -> list[Candidate]:
    """Return the first of some candidates that are in order, with a few of each learner at the most."""
    found: list[Candidate] = []
    for one in ordered:
        alike = sum(other.recipe.learner == one.recipe.learner for other in found)
        if alike < OF_A_LEARNER and len(found) < most:
            found.append(one)
    return found


def latest(recipes: Sequence[Recipe], rounds: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Return the candidate of each recipe, of the last contest that it was in."""
    found = {id(one.recipe): one for candidates in rounds for one in candidates}
    return [found[id(recipe)] for recipe in recipes]
