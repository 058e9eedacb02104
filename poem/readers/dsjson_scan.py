"""The features in lines of DSJSON, read in one compiled pass; :mod:`poem.readers.dsjson` says what is followed.

Only contexts are read here, with their actions and slots. Whatever else a line has is left to Python's parser.
"""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import exact_kernel
from poem.readers.byte_kernels import byte_kernel
from poem.readers.dsjson_roles import (
    ACTIONS,
    BAD_ITEM,
    BAD_NUMBER,
    BLANK,
    CONTEXT,
    CUT,
    FEATURES,
    FINE,
    IS_PLAIN,
    LATER,
    LIST,
    MULTI,
    NOT_JSON,
    NOT_OBJECTS,
    PLAIN,
    PROBLEM,
    SHARED,
    SLOTS,
    SLOTS_AT,
    START,
    STOP,
    TEXT,
    TOO_DEEP,
    TOP,
    UNIT,
    check_special,
    close,
    enter,
    fail,
    inner_role,
)
from poem.readers.json_words import (
    CLOSE_ARRAY,
    CLOSE_OBJECT,
    COMMA,
    FALSE,
    NULL,
    OPEN_ARRAY,
    OPEN_OBJECT,
    QUOTE,
    TRUE,
    UNDERSCORE,
    after_blanks,
    equals,
    key_at,
    number_end,
    string_end,
    word_at,
)
from poem.readers.vw_names import FNV_START, hashed, slot_of, wider
from poem.readers.vw_words import COLON, LATE, MINUS, NEWLINE, NINE, NUMBER, ZERO, decimal, line_at

_DEEPEST = 200


@exact_kernel
def count(data: AnyArray) -> tuple[int, int, int]:
    """Return how many lines, features, and actions or slots there are at most."""
    lines, values, objects = 1, 0, 0
    for byte in data:
        lines += byte == NEWLINE
        values += (byte == COLON) | (byte == COMMA) | (byte == OPEN_ARRAY)
        objects += byte == OPEN_OBJECT
    return lines, values, objects


@exact_kernel
def scan(data: AnyArray, most_lines: int, most_features: int, most_units: int) -> Any:
    """Read the contexts of all lines; return the fields of Scanned."""
    lines = np.zeros((most_lines, LATER + 1), dtype=np.int64)
    codes = np.empty(most_features, dtype=np.int32)
    values = np.empty(most_features)
    owners = np.empty(most_features, dtype=np.int8)
    # How many features each line, action and slot has.
    counts = np.zeros(most_lines, dtype=np.int64)
    units = np.zeros((2, most_units), dtype=np.int64)
    slots = np.full(2048, -1, dtype=np.int32)
    hashes = np.empty(1024, dtype=np.uint64)
    keys = np.empty((1024, 4), dtype=np.int64)
    late = np.empty((1024, 3), dtype=np.int64)
    stack = np.zeros((_DEEPEST, 7), dtype=np.int64)
    # Counts of: features, names, late numbers, actions, slots.
    done = np.zeros(5, dtype=np.int64)

    number, at = 0, 0
    while at < data.size:
        start, stop, at = line_at(data, at)
        start = after_blanks(data, start, stop)
        room = (stop - start) // 2 + 1
        while done[1] + room > hashes.size:
            hashes = np.concatenate((hashes, np.empty_like(hashes)))
            keys = np.concatenate((keys, np.empty_like(keys)))
            slots = wider(slots, hashes, done[1])
        while done[2] + room > late.shape[0]:
            late = np.concatenate((late, np.empty_like(late)))
        line = lines[number]
        before = done.copy()
        for attempt in range(2):
            line[:] = 0
            line[START], line[STOP], line[CUT], line[SLOTS_AT], line[ACTIONS] = start, stop, -1, -1, -1
            line[PLAIN] = attempt
            done[0], done[2], done[3], done[4] = before[0], before[2], before[3], before[4]
            if start < stop:
                _walk(data, line, stack, codes, values, owners, units, slots, hashes, keys, late, done)
            if line[PROBLEM] != IS_PLAIN:
                break
        if line[PROBLEM] != FINE:
            done[0], done[2], done[3], done[4] = before[0], before[2], before[3], before[4]
        line[LATER] = done[2]
        counts[number] = done[0] - before[0]
        if line[ACTIONS] >= 0:
            line[ACTIONS] = done[3] - before[3]
        line[SLOTS] = done[4] - before[4]
        number += 1
    return (
        lines[:number],
        codes[: done[0]],
        values[: done[0]],
        owners[: done[0]],
        counts[:number],
        units[0, : done[3]],
        units[1, : done[4]],
        keys[: done[1]],
        late[: done[2]],
    )


@byte_kernel
def _walk(
    data: AnyArray,
    line: IntArray,
    stack: IntArray,
    codes: AnyArray,
    values: FloatArray,
    owners: AnyArray,
    units: IntArray,
    slots: AnyArray,
    hashes: AnyArray,
    keys: IntArray,
    late: IntArray,
    done: IntArray,
) -> None:
    """Read one line: go through all its objects and arrays, and keep what is a feature."""
    at, stop = line[START], line[STOP]
    if data[at] != OPEN_OBJECT:
        return fail(line, NOT_JSON, at, stop)
    features, delayed, owner = done[0], done[2], SHARED
    # The object or array that we are in; those around it are on the stack.
    role, is_object, members, numbers = (CONTEXT if line[PLAIN] else TOP), True, 0, 0
    space, space_stop, seed = -1, 0, _seed(data, -1, 0)
    depth = 1
    at += 1
    while depth > 0:
        at = after_blanks(data, at, stop)
        if at == stop:
            return fail(line, NOT_JSON, at, stop)
        if data[at] == (CLOSE_OBJECT if is_object else CLOSE_ARRAY):
            at += 1
            depth -= 1
            owner = close(line, role, owner, at)
            role, is_object, members = stack[depth, 0], stack[depth, 1] > 0, stack[depth, 2]
            space, space_stop, numbers = stack[depth, 3], stack[depth, 4], stack[depth, 5]
            seed = np.uint64(stack[depth, 6])
            continue
        if members > 0:
            if data[at] != COMMA:
                return fail(line, NOT_JSON, at, stop)
            at = after_blanks(data, at + 1, stop)
        members += 1
        key, key_stop = at, at
        if is_object:
            key, key_stop, at = key_at(data, at, stop)
        if at >= stop:
            return fail(line, NOT_JSON, at, stop)

        byte = data[at]
        if byte in (OPEN_OBJECT, OPEN_ARRAY):
            if depth == _DEEPEST:
                return fail(line, TOO_DEEP, at, stop)
            inner = inner_role(data, line, role, is_object, space, key, key_stop, byte == OPEN_OBJECT)
            if line[PROBLEM] != FINE:
                return None
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = role, is_object, members
            stack[depth, 3], stack[depth, 4], stack[depth, 5] = space, space_stop, numbers
            stack[depth, 6] = np.int64(seed)
            owner = enter(data, line, inner, owner, key, key_stop, at)
            if inner == UNIT:
                units[owner - 1, done[2 + owner]] = 0
                done[2 + owner] += 1
            if is_object or inner == UNIT:
                is_default = inner != FEATURES or equals(data, key, key_stop, BLANK)
                space, space_stop = (-1, 0) if is_default else (key, key_stop)
                seed = _seed(data, space, space_stop)
            role, is_object, members, numbers = inner, byte == OPEN_OBJECT, 0, 0
            depth += 1
            at += 1
            continue

        value, kept, name, name_stop, kind, begin = 1.0, False, key, key_stop, NUMBER, at
        if byte == QUOTE:
            at = string_end(data, at + 1, stop)
            kept, name_stop = True, at
            at += 1
        elif byte == MINUS or ZERO <= byte <= NINE:
            at = number_end(data, at, stop)
            if at > 0:
                kind, value, _, _ = decimal(data, begin, at)
                if not is_object:
                    name, name_stop = -1 - numbers, 0
                    numbers += 1
                kept = value != 0.0
        else:
            word = word_at(data, at, stop)
            kept = word == TRUE
            at = at + (5 if word == FALSE else 4) if word else -1
        if at <= 0:
            return fail(line, NOT_JSON, begin, stop)
        if role <= LIST:
            if role == LIST or (role == TOP and equals(data, key, key_stop, MULTI)):
                return fail(line, NOT_OBJECTS, begin, at)
            continue
        if not is_object:
            if name >= 0 and word_at(data, begin, at) != NULL:
                return fail(line, BAD_ITEM, space if space >= 0 else begin, at)
        elif key < key_stop and data[key] == UNDERSCORE:
            check_special(data, line, role, key, key_stop, begin, at)
            if line[PROBLEM] != FINE:
                return None
            kept = kept and equals(data, key, key_stop, TEXT)
        if not kept:
            continue
        if not np.isfinite(value):
            return fail(line, BAD_NUMBER, begin, at)
        if kind == LATE:
            late[delayed, 0], late[delayed, 1], late[delayed, 2] = begin, at, features
            delayed += 1
        codes[features] = _code(data, seed, space, space_stop, name, name_stop, slots, hashes, keys, done)
        values[features] = value
        owners[features] = owner
        features += 1
        if owner != SHARED:
            units[owner - 1, done[2 + owner] - 1] += 1
    if after_blanks(data, at, stop) != stop:
        return fail(line, NOT_JSON, at, stop)
    done[0], done[2] = features, delayed
    return None


@byte_kernel
def _seed(data: AnyArray, space: int, space_stop: int) -> Any:
    return hashed(data, space, space_stop, np.uint64(FNV_START))


@byte_kernel
def _code(
    data: AnyArray,
    seed: Any,
    space: int,
    space_stop: int,
    name: int,
    name_stop: int,
    slots: AnyArray,
    hashes: AnyArray,
    keys: IntArray,
    done: IntArray,
) -> Any:
    """Return the number of a feature's name."""
    mixed = hashed(data, name, name_stop, seed)
    slot = slot_of(data, slots, hashes, keys, mixed, space, space_stop, name, name_stop)
    if slots[slot] < 0:
        new = done[1]
        slots[slot] = new
        hashes[new] = mixed
        keys[new, 0], keys[new, 1], keys[new, 2], keys[new, 3] = space, space_stop, name, name_stop
        done[1] += 1
    return slots[slot]
