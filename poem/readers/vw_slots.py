"""Decisions on slots in Vowpal Wabbit's text (``--ccb_explore_adf``): one per slot, among the actions that are left."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import exact_kernel
from poem.readers.vw_block_lines import ACTION, BREAK, SHARED, SLOT
from poem.readers.vw_decisions import line_stop, read_number, room_for_labels
from poem.readers.vw_features import COSTS, DISTRIBUTION, PROBABILITIES
from poem.readers.vw_labels import is_probability, next_word, outcome
from poem.readers.vw_problems import (
    ACTION_AFTER_SLOT,
    BAD_INDEX,
    BAD_PAIR,
    FINE,
    MOST_CANDIDATES,
    NO_ACTIONS,
    NO_SHARED,
    NO_SLOTS,
    NONE_LEFT,
    NOT_AVAILABLE,
    SHARED_NOT_FIRST,
    TOO_MANY_ACTIONS,
    TOO_MANY_WORDS,
    TWICE,
)
from poem.readers.vw_words import COLON, COMMA, find, whole_number

# Where an action stands among the candidates of a slot, if it does not.
_LEFT_OUT = -1
_TAKEN = -2


@exact_kernel
def most_candidates(kinds: AnyArray) -> int:
    """Return how many candidates all slots have together at most."""
    total, actions, slots = 0, 0, 0
    for line in range(kinds.size + 1):
        kind = BREAK if line == kinds.size else kinds[line]
        actions += kind == ACTION
        slots += kind == SLOT
        if kind == BREAK:
            total += actions * slots
            actions, slots = 0, 0
    return total


@exact_kernel
def decide_slots(data: AnyArray, kinds: AnyArray, spans: IntArray, most: int) -> Any:
    """Put lines together.

    Returns what is wrong, where it starts and stops, and of each slot the chosen action (its position among the
    candidates from 1, 0 if there is no label), cost, probability, where it starts, its request, its number within the
    request, where shared features and its own start and stop, where its candidates stop; which actions the candidates
    are, their probabilities, which slots have them; and late numbers.
    """
    most_rows = np.sum(kinds == SLOT)
    chosen = np.zeros(most_rows, dtype=np.int64)
    costs = np.zeros(most_rows)
    probabilities = np.zeros(most_rows)
    facts = np.empty((most_rows, 8), dtype=np.int64)
    candidates = np.empty(most, dtype=np.int64)
    distribution = np.empty(most)
    complete = np.zeros(most_rows, dtype=np.bool_)
    places = np.full(np.sum(kinds == ACTION), _LEFT_OUT, dtype=np.int64)
    late = np.empty((1024, 4), dtype=np.int64)
    rows, delayed, features, actions, filled = 0, 0, 0, 0, 0
    # Of the block so far: where it starts (−1 before its first line), slots, actions before it, shared features.
    block, slots, first_action, shared_at, shared_stop = -1, 0, 0, 0, 0
    problem, wrong_start, wrong_stop = FINE, 0, 0

    for line in range(kinds.size + 1):
        kind = BREAK if line == kinds.size else kinds[line]
        if kind == BREAK:
            if block >= 0 and slots == 0:
                problem = NO_SLOTS if actions > first_action else NO_ACTIONS
                wrong_start, wrong_stop = block, line_stop(data, block)
                break
            block, slots, first_action = -1, 0, actions
            continue
        start, label, label_stop, feature_stop = spans[line]
        problem = _wrong_line(kind, block >= 0, actions - first_action, slots)
        if problem != FINE:
            wrong_start = block if problem == TOO_MANY_ACTIONS else start
            wrong_stop = line_stop(data, wrong_start)
            break
        if kind == SHARED:
            block, shared_at, shared_stop = start, features, feature_stop
            features = shared_stop
        elif kind == ACTION:
            actions += 1
        else:
            facts[rows, :7] = (start, block, slots, shared_at, shared_stop, features, feature_stop)
            features = feature_stop
            slots += 1
            here = places[first_action:actions]
            late = room_for_labels(late, delayed, label_stop - label)
            problem, wrong_start, wrong_stop, outcome_at, outcome_stop, comma = _words(data, label, label_stop, here)
            if problem == FINE:
                begin, filled = filled, _list_candidates(here, first_action, candidates, distribution, filled)
                if filled == begin:
                    problem, wrong_start, wrong_stop = NONE_LEFT, start, line_stop(data, start)
            if problem != FINE:
                break
            facts[rows, 7] = filled
            if outcome_at < outcome_stop:
                found = outcome(data, outcome_at, comma)
                problem, wrong_start, wrong_stop, number = found[:4]
                if problem == FINE:
                    problem, place = _place(here, number)
                    wrong_start, wrong_stop = outcome_at, outcome_stop
                if problem != FINE:
                    break
                chosen[rows] = place - begin + 1
                delayed = read_number(data, found[4], found[5], costs, rows, COSTS, late, delayed)
                delayed = read_number(data, found[6], found[7], probabilities, rows, PROBABILITIES, late, delayed)
                if comma < outcome_stop:
                    complete[rows] = True
                    delayed = read_number(data, found[6], found[7], distribution, place, DISTRIBUTION, late, delayed)
                    problem, wrong_start, wrong_stop, delayed = _pairs(
                        data, comma, outcome_stop, here, distribution, late, delayed
                    )
                    if problem != FINE:
                        break
                here[number] = _TAKEN
            rows += 1
    return (
        problem,
        wrong_start,
        wrong_stop,
        chosen[:rows],
        costs[:rows],
        probabilities[:rows],
        facts[:rows],
        candidates[:filled],
        np.maximum(distribution[:filled], 0.0),
        complete[:rows],
        late[:delayed],
    )


@exact_kernel
def _wrong_line(kind: int, started: bool, actions: int, slots: int) -> int:
    """Return what is wrong with a line after those of its block so far."""
    if kind == SHARED:
        return SHARED_NOT_FIRST if started else FINE
    if not started:
        return NO_SHARED
    if kind == SLOT:
        return NO_ACTIONS if actions == 0 else FINE
    if slots:
        return ACTION_AFTER_SLOT
    return TOO_MANY_ACTIONS if actions == MOST_CANDIDATES else FINE


@exact_kernel
def _words(data: AnyArray, at: int, stop: int, places: IntArray) -> tuple[int, int, int, int, int, int]:
    """Find the outcome of a slot, and mark the actions that it may not take.

    Returns what is wrong and where, and where the outcome starts, stops and has its first comma.
    """
    for action in range(places.size):
        if places[action] != _TAKEN:
            places[action] = 0
    outcome_at, outcome_stop, lists = 0, 0, 0
    while True:
        start, at = next_word(data, at, stop)
        if start == at:
            return FINE, 0, 0, outcome_at, outcome_stop, find(data, outcome_at, outcome_stop, COMMA)
        if find(data, start, at, COLON) < at:
            if outcome_stop:
                return TOO_MANY_WORDS, start, stop, 0, 0, 0
            outcome_at, outcome_stop = start, at
            continue
        lists += 1
        if lists > 1:
            return TOO_MANY_WORDS, start, stop, 0, 0, 0
        problem, wrong_start, wrong_stop = _keep_listed(data, start, at, places)
        if problem != FINE:
            return problem, wrong_start, wrong_stop, 0, 0, 0


@exact_kernel
def _keep_listed(data: AnyArray, at: int, stop: int, places: IntArray) -> tuple[int, int, int]:
    """Mark all actions but those of a list such as 0,2,3 as left out."""
    for action in range(places.size):
        if places[action] != _TAKEN:
            places[action] = _LEFT_OUT
    while at <= stop:
        comma = find(data, at, stop, COMMA)
        number = whole_number(data, at, comma)
        if not 0 <= number < places.size:
            return BAD_INDEX, at, comma
        if places[number] == 0:
            return TWICE, at, stop
        if places[number] != _TAKEN:
            places[number] = 0
        at = comma + 1
    return FINE, 0, 0


@exact_kernel
def _list_candidates(
    places: IntArray, first_action: int, candidates: IntArray, distribution: FloatArray, filled: int
) -> int:
    """Write down which actions a slot may take, and where each of them stands; return how many there are now."""
    for action in range(places.size):
        if places[action] >= 0:
            places[action] = filled
            candidates[filled] = first_action + action
            distribution[filled] = -1.0  # not known yet
            filled += 1
    return filled


@exact_kernel
def _place(places: IntArray, action: int) -> tuple[int, int]:
    """Return what is wrong, and where an action stands among the candidates."""
    if not 0 <= action < places.size:
        return BAD_INDEX, 0
    return (FINE if places[action] >= 0 else NOT_AVAILABLE), places[action]


@exact_kernel
def _pairs(
    data: AnyArray, at: int, stop: int, places: IntArray, distribution: FloatArray, late: IntArray, delayed: int
) -> tuple[int, int, int, int]:
    """Read the probabilities of the actions that were not chosen: action:probability after each comma."""
    while at < stop:
        start = at + 1
        at = find(data, start, stop, COMMA)
        colon = find(data, start, at, COLON)
        if colon == at or not is_probability(data, colon + 1, at, True):
            return BAD_PAIR, start, at, delayed
        problem, place = _place(places, whole_number(data, start, colon))
        if problem == FINE and distribution[place] >= 0.0:
            problem = TWICE
        if problem != FINE:
            return problem, start, at, delayed
        delayed = read_number(data, colon + 1, at, distribution, place, DISTRIBUTION, late, delayed)
    return FINE, 0, 0, delayed
