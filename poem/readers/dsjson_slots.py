"""Lines of DSJSON that fill several slots: one decision for each slot, among the actions that are left."""

from array import array
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from poem.readers.dsjson_features import Lists
from poem.readers.dsjson_lines import (
    LineError,
    Object,
    number_of,
    probability_of,
    shown,
)
from poem.readers.dsjson_ranked import checked_ranking, listed
from poem.readers.format import SLOT_NAME
from poem.readers.propensities import SUM_OFF

Outcome = tuple[int, float, float]


class Slots:
    """What rows that are slots have besides the columns of all rows; actions and slots are numbered in each block."""

    def __init__(self) -> None:
        self.slots = array("q")
        self.numbers = array("q")
        """Which slot of its line each row is, from 0."""
        self.candidates = array("q")
        """The available actions of one row after another."""
        self.counts = array("q")
        self.distributions: list[list[float] | None] = []

    def add(self, slots: list[Any], outcomes: Any, actions: int, first: tuple[int, int]) -> Iterator[Outcome]:
        """Add the slots of a line, and yield their outcomes; ``first`` numbers its first action and slot."""
        if type(outcomes) is not list or not all(type(outcome) is tuple for outcome in outcomes):
            raise LineError(f"_outcomes is {shown(outcomes)}, not an array of objects. Log one object per slot.")
        if len(outcomes) != len(slots):
            raise LineError(
                f"there are {len(slots)} slots and {len(outcomes)} outcomes. Log one object in _outcomes per slot."
            )
        taken: set[int] = set()
        for number, (slot, pairs) in enumerate(zip(slots, outcomes, strict=True)):
            outcome = dict(pairs)
            try:
                left = _left(dict(slot), actions, taken)
                chosen, distribution = _choice(dict(slot), outcome, left)
                if outcome.get("_skipLearn") is not True:
                    yield _labelled(outcome, pairs, left.index(chosen) + 1)
                    self.slots.append(first[1] + number)
                    self.numbers.append(number)
                    self.candidates.extend(first[0] + action for action in left)
                    self.counts.append(len(left))
                    self.distributions.append(distribution)
            except LineError as problem:
                raise LineError(f"slot {number + 1}: {problem}") from None
            taken.add(chosen)

    def features(self, names: pa.Array) -> tuple[Lists, pa.Array]:
        """Return the feature that tells slots apart, of each row, and the names with these."""
        number = np.array(self.numbers, dtype=np.int64)
        own = pa.array([SLOT_NAME.format(slot) for slot in range(int(number.max(initial=-1)) + 1)], pa.string())
        every = pa.concat_arrays([names, own])
        return Lists(np.arange(len(number) + 1), len(names) + number, np.ones(len(number))), every

    def distribution(self) -> pa.Array | None:
        """Return the probabilities of each row's candidates, where they are known."""
        present = np.array([one is not None for one in self.distributions], dtype=bool)
        if not present.any():
            return None
        counts = np.where(present, np.array(self.counts, dtype=np.int64), 0)
        flat = [value for one in self.distributions for value in one or ()]
        return listed(np.concatenate([[0], np.cumsum(counts)]), pa.array(flat, pa.float64()), present)


def _labelled(outcome: dict[str, Any], pairs: Object, action: int) -> Outcome:
    """Return the action, its cost and its probability."""
    if sum(key == "_label_cost" for key, _ in pairs) > 1:
        raise LineError("there are several labels: _label_cost is there twice. A slot has one.")
    if outcome.get("_label_cost") is None:
        raise LineError(
            'the outcome has no _label_cost. Join rewards and decisions first, or mark it with "_skipLearn": true.'
        )
    cost = number_of("_label_cost", outcome["_label_cost"])
    return action, cost, probability_of("the first of _p", _listed(outcome["_p"])[0])


def _left(slot: dict[str, Any], actions: int, taken: set[int]) -> list[int]:
    """Return the actions that a slot may have, counted from 0: those it names, or all, but none of slots before."""
    named = slot.get("_inc")
    if named is None:
        named = range(actions)
    elif type(named) is not list or not all(type(action) is int and 0 <= action < actions for action in named):
        raise LineError(f"_inc is {shown(named)}, not an array of actions from 0 to {actions - 1}.")
    elif len(set(named)) < len(named):
        raise LineError(f"_inc has an action twice: {shown(named)}. Name each action once.")
    left = [action for action in named if action not in taken]
    if not left:
        raise LineError("no action is left for it: slots before have all of them. Log fewer slots, or more actions.")
    return left


def _choice(slot: dict[str, Any], outcome: dict[str, Any], left: list[int]) -> tuple[int, list[float] | None]:
    """Return what a slot was filled with, and the probability of each action that was left, if it was logged."""
    if None not in (slot.get("_id"), outcome.get("_id")) and slot["_id"] != outcome["_id"]:
        raise LineError(
            f"its _id is {shown(slot['_id'])}, and that of its outcome is {shown(outcome['_id'])}. Log outcomes in the "
            "order of the slots."
        )
    for key in ("_a", "_p"):
        if outcome.get(key) in (None, []):
            raise LineError(f"the outcome has no {key}. Log the actions and their probabilities, the chosen one first.")
    ranked, probabilities = checked_ranking("_a", "_p", *(_listed(outcome[key]) for key in ("_a", "_p")))
    if len(set(ranked)) < len(ranked):
        raise LineError(f'"_a" has an action twice: {shown(ranked)}. Name each action once.')
    strange = [action for action in ranked if action not in left]
    if strange:
        raise LineError(
            f'"_a" has the action {strange[0]}, which is not available: {shown(left)} are. Actions are counted from 0; '
            "one that fills a slot is not available to later ones."
        )
    total = sum(probabilities)
    if abs(total - 1.0) <= SUM_OFF:
        known = dict(zip(ranked, probabilities, strict=True))
        return ranked[0], [known.get(action, 0.0) for action in left]
    if len(ranked) == 1:
        return ranked[0], None
    raise LineError(f'the probabilities in "_p" add up to {total:.6g}, not to 1. Log that of each available action.')


def _listed(value: Any) -> Any:
    # One action may stand without brackets.
    return value if type(value) is list else [value]
