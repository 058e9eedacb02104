"""Vowpal Wabbit's text, read in one compiled pass; :mod:`poem.readers.vw` says what is followed."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import exact_kernel
from poem.readers.vw_names import FNV_START, hashed, slot_of, wider
from poem.readers.vw_words import (
    BAR,
    CATEGORY,
    COLON,
    LATE,
    NEWLINE,
    NO_NUMBER,
    NUMBER,
    QUOTE,
    SPACE,
    TAB,
    action_number,
    decimal,
    find,
    is_blank,
    is_boundary,
    line_at,
    looks_like_number,
    name_stop_from,
)

# What the kernel found wrong; the texts are the reader's.
FINE = 0
SHARED = 1
NO_LABEL = 2
NO_COST = 3
SEVERAL_COSTS = 4
BAD_ACTION = 5
NO_PROBABILITY = 6
TOO_MANY_PARTS = 7
BAD_COST = 8
BAD_PROBABILITY = 9
BAD_VALUE = 10
NO_VALUE = 11
BAD_WEIGHT = 12
NO_NAMESPACE = 13

# Which array a number that is read late belongs to.
COSTS = 0
PROBABILITIES = 1
VALUES = 2


@exact_kernel
def count(data: AnyArray) -> tuple[int, int]:
    """Return how many lines there are at most, and how many blanks: each feature follows one."""
    newlines, blanks = 0, 0
    for byte in data:
        newlines += byte == NEWLINE
        blanks += (byte == SPACE) | (byte == TAB)
    return newlines + 1, blanks


@exact_kernel
def scan(data: AnyArray, most_rows: int, most_features: int) -> Any:
    """Read all lines; return what is wrong, where it starts and stops, and the fields of _Scanned."""
    actions = np.empty(most_rows, dtype=np.int64)
    costs = np.empty(most_rows)
    probabilities = np.empty(most_rows)
    stops = np.empty(most_rows, dtype=np.int64)
    codes = np.empty(most_features, dtype=np.int32)
    values = np.empty(most_features)
    # Names are found by a hash and then compared byte by byte: equal hashes of different names do no harm.
    slots = np.full(2048, -1, dtype=np.int32)
    hashes = np.empty(1024, dtype=np.uint64)
    keys = np.empty((1024, 4), dtype=np.int64)
    late = np.empty((1024, 4), dtype=np.int64)
    rows, features, names, delayed = 0, 0, 0, 0
    problem, wrong_start, wrong_stop = FINE, 0, 0

    at = 0
    while at < data.size:
        line, stop, at = line_at(data, at)
        if is_blank(data, line, stop):
            continue
        # Room for all that the line can hold. The loop over its features must not replace arrays: numba would then
        # count references to them at each step, which takes as long as the reading itself.
        while names + stop - line > hashes.size:
            hashes = np.concatenate((hashes, np.empty_like(hashes)))
            keys = _doubled_rows(keys)
            slots = wider(slots, hashes, names)
        while delayed + stop - line > late.shape[0]:
            late = _doubled_rows(late)
        bar = find(data, line, stop, BAR)
        problem, wrong_start, wrong_stop, action, cost_at, cost_stop, chance_at, chance_stop = _label(data, line, bar)
        if problem != FINE:
            break
        actions[rows] = action
        kind, costs[rows], start, _ = decimal(data, cost_at, cost_stop)
        if kind == LATE:
            delayed = _delay(late, delayed, start, cost_stop, COSTS, rows)
        kind, probabilities[rows], start, _ = decimal(data, chance_at, chance_stop)
        if kind == LATE:
            delayed = _delay(late, delayed, start, chance_stop, PROBABILITIES, rows)
        problem, wrong_start, wrong_stop, features, names, delayed = _features(
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
def _features(
    data: AnyArray,
    at: int,
    stop: int,
    features: int,
    names: int,
    delayed: int,
    codes: AnyArray,
    values: FloatArray,
    slots: AnyArray,
    hashes: AnyArray,
    keys: IntArray,
    late: IntArray,
) -> tuple[int, int, int, int, int, int]:
    """Read all namespaces from the first bar on; return what is wrong and where, and the new counts."""
    while at < stop:
        space = at + 1
        problem, at, space_stop, weight, weight_at, weight_stop = _namespace(data, space, stop)
        if problem != FINE:
            return problem, space - 1, at, features, names, delayed
        seed = hashed(data, space, space_stop, np.uint64(FNV_START))
        unnamed = 0
        while at < stop and data[at] != BAR:
            at += 1  # The blank before the feature, or before nothing.
            if at == stop or is_boundary(data[at]):
                continue
            start = at
            problem, kind, value, value_at, name_stop, at = _feature(data, start, stop)
            if problem != FINE:
                return problem, value_at, at, features, names, delayed
            if start == name_stop:
                start, name_stop = -1 - unnamed, 0
                unnamed += 1
            if kind != CATEGORY:
                value *= weight
                if not np.isfinite(value):
                    return BAD_VALUE, value_at, at, features, names, delayed
                if value == 0.0:
                    continue
                if kind == LATE:
                    delayed = _delay(late, delayed, value_at, at, VALUES, features)
                if weight_stop > weight_at:
                    delayed = _delay(late, delayed, weight_at, weight_stop, VALUES, features)
            mixed = hashed(data, start, name_stop, seed)
            slot = slot_of(data, slots, hashes, keys, mixed, space, space_stop, start, name_stop)
            if slots[slot] < 0:
                slots[slot] = names
                hashes[names] = mixed
                keys[names, 0] = space
                keys[names, 1] = space_stop
                keys[names, 2] = start
                keys[names, 3] = name_stop
                names += 1
            codes[features] = slots[slot]
            values[features] = value
            features += 1
    return FINE, 0, 0, features, names, delayed


@exact_kernel
def _label(data: AnyArray, line: int, bar: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Return what is wrong and where, the action, and where its cost and its probability are."""
    action, cost_at, cost_stop, chance_at, chance_stop = 0, 0, 0, 0, 0
    line_stop = min(find(data, bar, data.size, NEWLINE), bar + 61)
    tab = find(data, line, bar, TAB)
    at = line if tab == bar else tab + 1
    words = 0
    while True:
        while at < bar and data[at] == SPACE:
            at += 1
        start = at
        at = find(data, start, bar, SPACE)
        if start == bar:
            break
        if at == bar or (data[start] == QUOTE and is_blank(data, at, bar)):
            break  # A tag.
        if _is_shared(data, start, at):
            return SHARED, line, line_stop, 0, 0, 0, 0, 0
        words += 1
        colon = find(data, start, at, COLON)
        number = action_number(data, start, colon)
        if number < 1:
            return BAD_ACTION, start, at, 0, 0, 0, 0, 0
        if colon == at:
            continue
        if action:
            return SEVERAL_COSTS, start, at, 0, 0, 0, 0, 0
        action, cost_at = number, colon + 1
        cost_stop = find(data, cost_at, at, COLON)
        kind, value, _, end = decimal(data, cost_at, cost_stop)
        if kind == NO_NUMBER or end != cost_stop:
            return BAD_COST, cost_at, cost_stop, 0, 0, 0, 0, 0
        if cost_stop == at:
            return NO_PROBABILITY, start, at, 0, 0, 0, 0, 0
        chance_at, chance_stop = cost_stop + 1, at
        if find(data, chance_at, at, COLON) < at:
            return TOO_MANY_PARTS, start, at, 0, 0, 0, 0, 0
        kind, value, _, end = decimal(data, chance_at, chance_stop)
        if kind == NO_NUMBER or end != at or (kind == NUMBER and not 0.0 < value <= 1.0):
            return BAD_PROBABILITY, chance_at, at, 0, 0, 0, 0, 0
    if action == 0:
        return (NO_COST if words else NO_LABEL), line, line_stop, 0, 0, 0, 0, 0
    return FINE, 0, 0, action, cost_at, cost_stop, chance_at, chance_stop


@exact_kernel
def _is_shared(data: AnyArray, at: int, stop: int) -> bool:
    return bool(
        stop - at == 6
        and data[at] == 115
        and data[at + 1] == 104
        and data[at + 2] == 97
        and data[at + 3] == 114
        and data[at + 4] == 101
        and data[at + 5] == 100
    )


@exact_kernel
def _namespace(data: AnyArray, at: int, stop: int) -> tuple[int, int, int, float, int, int]:
    """Return what is wrong, where reading goes on, where the name stops, the weight, and its place if it is late."""
    name_stop = name_stop_from(data, at, stop)
    if name_stop == stop or data[name_stop] != COLON:
        return FINE, name_stop, name_stop, 1.0, 0, 0
    weight_stop = name_stop + 1
    while weight_stop < stop and not is_boundary(data[weight_stop]):
        weight_stop += 1
    if name_stop == at:
        return NO_NAMESPACE, weight_stop, name_stop, 1.0, 0, 0
    kind, weight, weight_at, end = decimal(data, name_stop + 1, weight_stop)
    if kind == NO_NUMBER or end != weight_stop:
        return BAD_WEIGHT, weight_stop, name_stop, 1.0, 0, 0
    if kind == LATE:
        return FINE, weight_stop, name_stop, 1.0, weight_at, weight_stop
    return FINE, weight_stop, name_stop, weight, 0, 0


@exact_kernel
def _feature(data: AnyArray, at: int, stop: int) -> tuple[int, int, float, int, int, int]:
    """Return what is wrong, the kind of value, the value, where it is, where the name stops, and where reading goes on.

    The name of a category goes on to the end of its text.
    """
    name_stop = name_stop_from(data, at, stop)
    if name_stop == stop or data[name_stop] != COLON:
        return FINE, NUMBER, 1.0, name_stop, name_stop, name_stop
    value_at = name_stop + 1
    if value_at == stop or is_boundary(data[value_at]):
        return NO_VALUE, NO_NUMBER, 0.0, at, name_stop, value_at
    kind, value, number_at, end = decimal(data, value_at, stop)
    if kind != NO_NUMBER and (end == stop or is_boundary(data[end])):
        return FINE, kind, value, number_at, name_stop, end
    end = value_at
    while end < stop and data[end] != SPACE and data[end] != TAB:  # Not at a bar: a category may have one.
        end += 1
    if looks_like_number(data, value_at, end):
        return BAD_VALUE, NO_NUMBER, 0.0, value_at, name_stop, end
    return FINE, CATEGORY, 1.0, value_at, end, end


@exact_kernel
def _delay(late: IntArray, count: int, start: int, stop: int, which: int, place: int) -> int:
    late[count, 0] = start
    late[count, 1] = stop
    late[count, 2] = which
    late[count, 3] = place
    return count + 1


@exact_kernel
def _doubled_rows(array: IntArray) -> IntArray:
    return np.concatenate((array, np.empty_like(array)))
