"""Decisions among the actions of a block of Vowpal Wabbit's text: one per block, labelled on the chosen action."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import exact_kernel
from poem.readers.vw_block_lines import BREAK, SHARED
from poem.readers.vw_features import COSTS, PROBABILITIES, delay, doubled_rows
from poem.readers.vw_labels import next_word, outcome
from poem.readers.vw_problems import (
    FINE,
    LINE_AMONG_BLOCKS,
    MOST_CANDIDATES,
    NO_ACTIONS,
    SECOND_COST,
    SEVERAL_LABELS,
    SHARED_NOT_FIRST,
    TOO_MANY_ACTIONS,
)
from poem.readers.vw_words import LATE, NEWLINE, decimal, find


@exact_kernel
def decide(data: AnyArray, kinds: AnyArray, spans: IntArray, most_rows: int) -> Any:
    """Put lines together.

    Returns what is wrong, where it starts and stops, and of each decision the chosen action (its position from 1, 0 if
    there is no label), cost, probability, where it starts, where its shared features and its actions stop; and late
    numbers.
    """
    chosen = np.zeros(most_rows, dtype=np.int64)
    costs = np.zeros(most_rows)
    probabilities = np.zeros(most_rows)
    starts = np.empty(most_rows, dtype=np.int64)
    feature_stops = np.empty(most_rows, dtype=np.int64)
    action_stops = np.empty(most_rows, dtype=np.int64)
    late = np.empty((1024, 4), dtype=np.int64)
    rows, delayed, features, actions = 0, 0, 0, 0
    size, first_action, number = 0, 0, 0  # of the block so far: lines, actions before it, number in its label
    problem, wrong_start, wrong_stop = FINE, 0, 0

    for line in range(kinds.size + 1):
        kind = BREAK if line == kinds.size else kinds[line]
        if kind == BREAK:
            if size == 0:
                continue
            problem = _wrong_block(size, actions - first_action, number)
            if problem != FINE:
                wrong_start, wrong_stop = starts[rows], line_stop(data, starts[rows])
                break
            feature_stops[rows], action_stops[rows] = features, actions
            rows += 1
            size, first_action, number = 0, actions, 0
            continue
        start, label, label_stop, feature_stop = spans[line]
        size += 1
        if size == 1:
            starts[rows] = start
        if kind == SHARED:
            features = feature_stop
            if size > 1:
                problem, wrong_start, wrong_stop = SHARED_NOT_FIRST, start, line_stop(data, start)
                break
            continue
        actions += 1
        if actions - first_action > MOST_CANDIDATES:
            problem, wrong_start, wrong_stop = TOO_MANY_ACTIONS, starts[rows], line_stop(data, starts[rows])
            break
        found = _single_outcome(data, label, label_stop)
        problem, wrong_start, wrong_stop = found[:3]
        if problem == FINE and found[4] and chosen[rows]:
            problem, wrong_start, wrong_stop = SECOND_COST, label, label_stop
        if problem != FINE:
            break
        if found[4]:
            chosen[rows], number = actions - first_action, found[3]
            late = room_for_labels(late, delayed, label_stop - label)
            delayed = read_number(data, found[4], found[5], costs, rows, COSTS, late, delayed)
            delayed = read_number(data, found[6], found[7], probabilities, rows, PROBABILITIES, late, delayed)
    return (
        problem,
        wrong_start,
        wrong_stop,
        chosen[:rows],
        costs[:rows],
        probabilities[:rows],
        starts[:rows],
        feature_stops[:rows],
        action_stops[:rows],
        late[:delayed],
    )


@exact_kernel
def _wrong_block(lines: int, actions: int, number: int) -> int:
    """Return what is wrong with a block as a whole."""
    if actions == 0:
        return NO_ACTIONS
    return LINE_AMONG_BLOCKS if lines == 1 and number > 0 else FINE


@exact_kernel
def _single_outcome(data: AnyArray, label: int, label_stop: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Return what :func:`outcome` finds in a label of one word, or of none."""
    start, stop = next_word(data, label, label_stop)
    if start == stop:
        return FINE, 0, 0, 0, 0, 0, 0, 0
    second, second_stop = next_word(data, stop, label_stop)
    if second < second_stop:
        return SEVERAL_LABELS, start, label_stop, 0, 0, 0, 0, 0
    return outcome(data, start, stop)


@exact_kernel
def line_stop(data: AnyArray, start: int) -> int:
    """Return where a line stops, or something beyond what messages show of it."""
    return find(data, start, min(data.size, start + 80), NEWLINE)


@exact_kernel
def room_for_labels(late: IntArray, delayed: int, length: int) -> IntArray:
    """Return an array with room for all numbers of a label."""
    while delayed + length > late.shape[0]:
        late = doubled_rows(late)
    return late


@exact_kernel
def read_number(
    data: AnyArray, at: int, stop: int, into: FloatArray, place: int, which: int, late: IntArray, delayed: int
) -> int:
    """Read a number that was found to be one into an array; return how many are late."""
    kind, into[place], start, _ = decimal(data, at, stop)
    return delay(late, delayed, start, stop, which, place) if kind == LATE else delayed
