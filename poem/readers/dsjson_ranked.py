"""What could have been chosen and with which probabilities, where lines say so: ``a`` and ``p`` of all lines."""

from array import array
from typing import Any, NamedTuple, NoReturn

import numpy as np
import pyarrow as pa

from poem.arrays import BoolArray, FloatArray, IntArray
from poem.errors import ReadError
from poem.readers.dsjson_features import gathered
from poem.readers.dsjson_lines import MOST_ACTIONS, LineError, shown
from poem.readers.propensities import SUM_OFF

_WHOLE: set[type] = {int}
_NUMBER: set[type] = {int, float}


class Ranking(NamedTuple):
    """Ragged lists of actions (from 1) and their probabilities; rows without them have empty ones."""

    present: BoolArray
    offsets: IntArray
    actions: IntArray
    probabilities: FloatArray

    @property
    def row(self) -> IntArray:
        """Which row each entry is of."""
        return np.repeat(np.arange(len(self.present)), np.diff(self.offsets))

    def arrays(self, counts: IntArray) -> tuple[pa.Array, pa.Array]:
        """Return the actions and the probabilities as Arrow's lists.

        A row without them, or with the chosen action alone, has all of its ``counts`` actions (−1: the line does not
        say how many there are), and no probabilities.
        """
        sizes, sums = np.diff(self.offsets), np.bincount(self.row, self.probabilities, len(counts))
        whole = self.present & ((sizes != 1) | (counts == 1) | (np.abs(sums - 1.0) <= SUM_OFF))
        known, kept = whole | (counts >= 0), whole[self.row]
        every = np.concatenate([[0], np.cumsum(np.where(whole, sizes, np.maximum(counts, 0)))])
        actions = np.arange(every[-1]) - np.repeat(every[:-1], np.diff(every)) + 1
        _, places = gathered(every, np.flatnonzero(whole))
        actions[places] = self.actions[kept]
        offsets = np.concatenate([[0], np.cumsum(np.where(whole, sizes, 0))])
        return listed(every, pa.array(actions), known), listed(offsets, pa.array(self.probabilities[kept]), whole)

    def aligned(self, counts: IntArray) -> pa.Array | None:
        """Return the probabilities in the order of the actions in each row, of which there are ``counts``.

        An action that a whole distribution leaves out had probability 0. A row that has the chosen action alone, with a
        probability below 1, has no distribution.
        """
        sums = np.bincount(self.row, weights=self.probabilities, minlength=len(counts))
        whole = self.present & (np.abs(sums - 1.0) <= SUM_OFF)
        if not whole.any():
            return None
        offsets = np.concatenate([[0], np.cumsum(np.where(whole, counts, 0))])
        kept = whole[self.row]
        values = np.zeros(offsets[-1])
        values[offsets[self.row[kept]] + self.actions[kept] - 1] = self.probabilities[kept]
        return listed(offsets, pa.array(values), whole)


def listed(offsets: IntArray, items: pa.Array, present: BoolArray) -> pa.Array:
    """Return lists, some of which may be missing."""
    mask = None if present.all() else pa.array(~present)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), items, mask=mask)


class Ranked:
    """The rankings of the lines so far."""

    def __init__(self) -> None:
        self.present = array("b")
        self.counts = array("q")
        self.actions = array("q")
        self.probabilities = array("d")

    def add(self, actions: Any, probabilities: Any) -> None:
        """Add the ranking of a line, or that it has none."""
        present = actions is not None and probabilities is not None
        if present:
            actions, probabilities = checked_ranking("a", "p", actions, probabilities)
            self.actions.extend(actions)
            self.probabilities.extend(probabilities)
        self.present.append(present)
        self.counts.append(len(actions) if present else 0)

    def ranking(self, chosen: IntArray, available: IntArray, lines: IntArray, name: str) -> Ranking:
        """Return all rankings, checked.

        ``chosen`` is the action of each row, ``available`` how many there are (−1: the line does not say) and
        ``lines`` where rows stand in the file ``name``.
        """
        found = Ranking(
            np.array(self.present, dtype=bool),
            np.concatenate([[0], np.cumsum(np.array(self.counts, dtype=np.int64))]),
            np.array(self.actions, dtype=np.int64),
            np.array(self.probabilities, dtype=np.float64),
        )
        if _counts_from_zero(found, available):
            found = found._replace(actions=found.actions + 1)
        _check(found, chosen, available, lines, name)
        return found


def checked_ranking(a: str, p: str, actions: Any, probabilities: Any) -> tuple[list[int], list[float]]:
    """Return a list of whole numbers and one of probabilities, of one length."""
    for key, found in ((a, actions), (p, probabilities)):
        if type(found) is not list:
            raise LineError(f'"{key}" is {shown(found)}, not an array. Log one entry for each candidate.')
    if not _all_of(_WHOLE, actions) or min(actions, default=0) < 0 or max(actions, default=0) > MOST_ACTIONS:
        bad = next(action for action in actions if type(action) is not int or not 0 <= action <= MOST_ACTIONS)
        raise LineError(f'"{a}" has {shown(bad)}, which is not an action. Actions are whole numbers from 1.')
    if len(actions) != len(probabilities):
        raise LineError(
            f'"{a}" has {len(actions)} entries and "{p}" has {len(probabilities)}. Log one probability per candidate.'
        )
    if not _all_of(_NUMBER, probabilities):
        bad = next(probability for probability in probabilities if type(probability) not in _NUMBER)
        raise LineError(f"{p} is {shown(bad)}, not a finite number. Log a number that a double can hold.")
    for bad in (min(probabilities, default=0), max(probabilities, default=0)):
        if not 0.0 <= bad <= 1.0:
            raise LineError(f'"{p}" has {bad:g}, which is not a probability. Log numbers between 0 and 1.')
    return actions, probabilities


def _all_of(types: set[type], items: list[Any]) -> bool:
    return types.issuperset(map(type, items))


def _counts_from_zero(found: Ranking, available: IntArray) -> bool:
    """Tell whether ``a`` counts from 0: each line has a 0, and none has as high a number as it has actions."""
    row = found.row
    zeros = np.bincount(row, weights=found.actions == 0, minlength=len(found.present))
    return bool(found.present.any() and (zeros[found.present] > 0).all() and (found.actions < available[row]).all())


def _check(found: Ranking, chosen: IntArray, available: IntArray, lines: IntArray, name: str) -> None:
    def refuse(row: int, problem: str) -> NoReturn:
        raise ReadError(f"{name}, line {lines[row]}: {problem}")

    row, actions = found.row, found.actions
    for bad in np.flatnonzero(actions < 1)[:1]:
        refuse(row[bad], f'"a" has {actions[bad]}, which is not an action. Actions are whole numbers from 1.')
    for bad in np.flatnonzero((available[row] >= 0) & (actions > available[row]))[:1]:
        refuse(row[bad], f'"a" has {actions[bad]}, but there are {available[row[bad]]} actions in _multi. Check "a".')
    order = np.lexsort((actions, row))
    twice = (np.diff(actions[order]) == 0) & (np.diff(row[order]) == 0)
    for bad in np.flatnonzero(twice)[:1]:
        bad = order[bad]
        refuse(row[bad], f'"a" has an action twice: {_shown_row(found, row[bad])}. Name each candidate once.')
    met = np.bincount(row, weights=actions == chosen[row], minlength=len(chosen))
    for bad in np.flatnonzero(found.present & (met == 0))[:1]:
        refuse(
            bad,
            f'the label is for action {chosen[bad]}, which is not in "a": {_shown_row(found, bad)}. Check _labelIndex.',
        )


def check_sums(found: Ranking, lines: IntArray, name: str) -> None:
    """Raise for probabilities that do not add up to 1, unless that of the chosen action is the only one."""
    counts = np.diff(found.offsets)
    sums = np.bincount(found.row, weights=found.probabilities, minlength=len(counts))
    for bad in np.flatnonzero(found.present & (np.abs(sums - 1.0) > SUM_OFF) & ((counts != 1) | (sums > 1.0)))[:1]:
        raise ReadError(
            f'{name}, line {lines[bad]}: the probabilities in "p" add up to {sums[bad]:.6g}, not to 1. Log the '
            'probability of each candidate, or leave out "a" and "p".'
        )


def _shown_row(found: Ranking, row: int) -> str:
    _, places = gathered(found.offsets, np.array([row]))
    return shown(found.actions[places].tolist())
