"""Which trees to add to which loss model: the way that predicts held-out logged losses best."""

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from poem.arrays import BoolArray, FloatArray
from poem.compute import Threads
from poem.data import BanditLog, has_kinds, pair_width
from poem.models.boosting import Binned, Boosting, Slopes, base_of, grow, slopes_of
from poem.models.held_out import held_out, some_units

MOST_ROUNDS, PATIENCE = 200, 12
CHANCE, BEHIND = 25, 1.3  # rounds after which a way is given up whose error is so many times the least
SIZES = ((8, 4), (31, 6))  # leaves of a tree, and its depth
FEW_CONTEXTS = 200  # or, where actions have features, rows, below which trees are not tried
MOST_COLUMNS, MOST_WORK = 64, 600  # columns, and columns × features, above which they cost too much
CLEARLY = 0.98  # of the least error of other models that trees must be below: their rounds were chosen by it
ENOUGH_UNITS = 20_000  # of which ways are told apart
TRIED = 2  # parts of the rows that tell which model to begin with; if no tree helps there, none is grown elsewhere


def can_boost(log: BanditLog) -> bool:
    """Tell whether trees are tried on a log."""
    if log.structure.described:
        return has_kinds(log) and pair_width(log) <= MOST_WORK and len(log) >= FEW_CONTEXTS
    columns = len(log.labels)
    few = columns <= MOST_COLUMNS and columns * log.n_features <= MOST_WORK
    return few and suits_trees(log) and log.n_features > 0 and log.n_contexts >= FEW_CONTEXTS


def suits_trees(log: BanditLog) -> bool:
    """Tell whether trees could say something of a log's outputs."""
    if log.structure.described:
        return has_kinds(log)
    return log.available is None or log.structure.lists_outputs


def best_boosting(
    log: BanditLog,
    linear: float,
    truth: float | None,
    least: float,
    bounds: tuple[float, float],
    seed: int,
    threads: Threads,
) -> Boosting | None:
    """Return the way of the least squared error on held-out logged losses, or None if trees do not help at all.

    Where actions have features, trees alone are a way even if lines predict as well: policies of both compete.

    ``linear`` and ``truth`` are the strengths of the models that trees can be added to, ``least`` is the error of the
    best of them.
    """
    some = some_units(log, seed, ENOUGH_UNITS)
    race = _Race(some, held_out(some, seed), bounds, threads)
    (small, large), (low, high) = SIZES, bounds
    first, *others = (Boosting(*start, *small, MOST_ROUNDS) for start in _starts(log, linear, truth))
    race.enter([first], TRIED)
    race.enter(others, TRIED)
    pairs = log.structure.described
    if not race.best.rounds and not pairs:
        return None
    small_trees = replace(race.best if race.best.rounds else others[-1], rounds=MOST_ROUNDS)
    race.enter([small_trees, replace(small_trees, leaves=large[0], depth=large[1])])
    error, found = race.least, race.best
    ahead = error * (high - low) ** 2 < CLEARLY * least
    if pairs and not ahead:  # lines compete anyway; trees alone are something else
        if found.strength is not None or not found.rounds:
            error, found = race.enter([others[-1]])
        if CLEARLY * error * (high - low) ** 2 > least:
            return None
    return replace(found, ahead=ahead) if found.rounds else None


def _starts(log: BanditLog, linear: float, truth: float | None) -> list[tuple[bool, float | None]]:
    """Return the models to begin with: whether it is a hidden truth, and the strength of its linear part."""
    found: list[tuple[bool, float | None]] = [] if truth is None else [(True, truth), (True, None)]
    if log.available is None or log.structure.described:  # what is not available has no place in a sum of columns
        found += [(False, linear), (False, None)]
    return found


class _Race:
    """Ways to boost, one after the other; those that fall far behind are not grown to the end.

    ``least`` is the squared error per row of the ``best`` so far, as a share of the range of losses.
    """

    best: Boosting

    def __init__(
        self, log: BanditLog, parts: Sequence[BoolArray], bounds: tuple[float, float], threads: Threads
    ) -> None:
        self.log, self.parts, self.bounds, self.threads = log, parts, bounds, threads
        self.least, self._judged_on = np.inf, 0
        self._curves: dict[tuple[Boosting, int], FloatArray] = {}
        self._binned: dict[int, Binned] = {}
        self._binning = threading.Lock()

    def enter(self, ways: Sequence[Boosting], most: int | None = None) -> tuple[float, Boosting]:
        """Grow each on all but one part of the rows at a time; keep it if its error on the others is the least.

        Return the least error of these, and whose it is. Only ``most`` of the parts have their turn. Those that were
        judged on fewer are no rivals any more.
        """
        parts = range(len(self.parts[:most]))
        tasks = [(how, part) for how in ways for part in parts if (how, part) not in self._curves]
        threads = Threads() if len(tasks) > 1 else self.threads  # one thread each
        self._curves.update(zip(tasks, self.threads.map(lambda task: self._curve(*task, threads), tasks), strict=True))
        if len(parts) > self._judged_on:
            self.least, self._judged_on = np.inf, len(parts)
        rows = float(np.sum(self.parts[:most]))
        found = []
        for how in ways:
            curves = [self._curves[how, part] for part in parts]
            together = np.sum([one[: min(map(len, curves))] for one in curves], axis=0) / rows
            rounds = int(np.argmin(together))
            found.append((float(together[rounds]), replace(how, rounds=rounds)))
            if together[rounds] < self.least:
                self.least, self.best = found[-1]
        return min(found, key=lambda one: one[0])

    def _curve(self, how: Boosting, part: int, threads: Threads) -> FloatArray:
        """Return the squared error on held-out rows after each round, from none."""
        held = self.parts[part]
        learnt, rest = self.log.take(~held), self.log.take(held)
        model = base_of(learnt, how, self.bounds, threads)
        judge = slopes_of(rest, how, model, self.bounds, threads)
        errors = [judge.missed(judge.start)]
        hopeless = BEHIND * self.least * len(rest)

        def goes_on(columns: FloatArray) -> bool:
            errors.append(judge.missed(columns))
            rounds = len(errors) - 1
            return rounds - int(np.argmin(errors)) < PATIENCE and not (rounds >= CHANCE and min(errors) > hopeless)

        slopes = slopes_of(learnt, how, model, self.bounds, threads)
        grow(slopes, how, judge, goes_on, self._binned_for(part, slopes, judge))
        return np.array(errors)

    def _binned_for(self, part: int, slopes: Slopes, judge: Slopes) -> Binned:
        """Return the contexts of a part, which are the same for all ways."""
        with self._binning:
            if part not in self._binned:
                self._binned[part] = Binned(slopes, judge)
            return self._binned[part]
