"""Vowpal Wabbit's text with one decision per line, read in one compiled pass."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray
from poem.compute import exact_kernel
from poem.readers.vw_features import COSTS, PROBABILITIES, delay, new_names, read_features, with_room
from poem.readers.vw_labels import label_span, next_word, outcome
from poem.readers.vw_problems import (
    BAD_ACTION,
    FINE,
    NO_COST,
    NO_LABEL,
    SEVERAL_COSTS,
    SHARED_AMONG_LINES,
)
from poem.readers.vw_words import BAR, COLON, LATE, NEWLINE, SHARED_WORD, decimal, find, is_blank, is_word, line_at


@exact_kernel
def scan(data: AnyArray, most_rows: int, most_features: int) -> Any:
    """Read all lines; return what is wrong, where it starts and stops, and what poem.readers.vw_lines calls _Lines."""
    actions = np.empty(most_rows, dtype=np.int64)
    costs = np.empty(most_rows)
    probabilities = np.empty(most_rows)
    stops = np.empty(most_rows, dtype=np.int64)
    codes = np.empty(most_features, dtype=np.int32)
    values = np.empty(most_features)
    slots, hashes, keys, late = new_names()
    rows, features, names, delayed = 0, 0, 0, 0
    problem, wrong_start, wrong_stop = FINE, 0, 0

    at = 0
    while at < data.size:
        line, stop, at = line_at(data, at)
        if is_blank(data, line, stop):
            continue
        slots, hashes, keys, late = with_room(stop - line, names, delayed, slots, hashes, keys, late)
        bar = find(data, line, stop, BAR)
        problem, wrong_start, wrong_stop, action, cost_at, cost_stop, chance_at, chance_stop = _label(data, line, bar)
        if problem != FINE:
            break
        actions[rows] = action
        kind, costs[rows], start, _ = decimal(data, cost_at, cost_stop)
        if kind == LATE:
            delayed = delay(late, delayed, start, cost_stop, COSTS, rows)
        kind, probabilities[rows], start, _ = decimal(data, chance_at, chance_stop)
        if kind == LATE:
            delayed = delay(late, delayed, start, chance_stop, PROBABILITIES, rows)
        problem, wrong_start, wrong_stop, features, names, delayed = read_features(
            data, bar, stop, features, names, delayed, codes, values, slots, hashes, keys, late
        )
        if problem != FINE:
            break
        stops[rows] = features
        rows += 1
    return (
        problem,
        wrong_start,
        wrong_stop,
        actions[:rows],
        costs[:rows],
        probabilities[:rows],
        stops[:rows],
        codes[:features],
        values[:features],
        keys[:names],
        late[:delayed],
    )


@exact_kernel
def _label(data: AnyArray, line: int, bar: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Return what is wrong and where, the action, and where its cost and its probability are."""
    action, cost_at, cost_stop, chance_at, chance_stop = 0, 0, 0, 0, 0
    line_stop = min(find(data, bar, data.size, NEWLINE), bar + 61)
    at, label_stop = label_span(data, line, bar)
    words = 0
    while True:
        start, at = next_word(data, at, label_stop)
        if start == at:
            break
        if is_word(data, start, at, SHARED_WORD):
            return SHARED_AMONG_LINES, line, line_stop, 0, 0, 0, 0, 0
        words += 1
        if action and find(data, start, at, COLON) < at:
            return SEVERAL_COSTS, start, at, 0, 0, 0, 0, 0
        found = outcome(data, start, at)
        problem, wrong_start, wrong_stop, number = found[:4]
        if problem == FINE and number == 0:
            return BAD_ACTION, start, at, 0, 0, 0, 0, 0
        if problem != FINE:
            return problem, wrong_start, wrong_stop, 0, 0, 0, 0, 0
        if found[4]:
            action, cost_at, cost_stop, chance_at, chance_stop = found[3:]
    if action == 0:
        return (NO_COST if words else NO_LABEL), line, line_stop, 0, 0, 0, 0, 0
    return FINE, 0, 0, action, cost_at, cost_stop, chance_at, chance_stop
