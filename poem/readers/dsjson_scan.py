"""The features in lines of DSJSON, read in one compiled pass; :mod:`poem.readers.dsjson` says what is followed.

Only contexts are read here, with their actions and slots. Whatever else a line has is left to Python's parser.
"""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import exact_kernel
from poem.readers.byte_kernels import byte_kernel
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
    after_blanks,
    begins_with,
    equals,
    letters,
    number_end,
    string_end,
    word_at,
)
from poem.readers.vw_names import FNV_START, hashed, slot_of, wider
from poem.readers.vw_words import COLON, LATE, MINUS, NEWLINE, NINE, NUMBER, ZERO, decimal, line_at

# What the kernel found wrong; the texts are the reader's.
FINE = 0
NOT_JSON = 1
TOO_DEEP = 2
NOT_AN_ARRAY = 3
NOT_AN_OBJECT = 4
BAD_ITEM = 5
BAD_TEXT = 6
BAD_NUMBER = 7
INNER_LABEL = 8
SLATE = 9
REPEATED = 10
IS_PLAIN = 11  # not wrong: the actions stand beside the label

# Whose a feature is.
SHARED, ACTION, SLOT = 0, 1, 2

# The columns of what is known of a line.
START, STOP, CUT, CUT_STOP, PROBLEM, WRONG, WRONG_STOP, PLAIN, ACTIONS, SLOTS, SLOTS_AT, SLOTS_STOP, LATER = range(13)

_DEEPEST = 200
# What an object or array is there for. In the last three, members are features.
_SKIPPED, _TOP, _LIST, _CONTEXT, _UNIT, _FEATURES = range(6)
_C, _MULTI, _SLOT_LIST, _LABEL = letters("c"), letters("_multi"), letters("_slots"), letters("_label")
_TEXT, _SLOT_ID, _UNDERSCORE, _BLANK = letters("_text"), letters("_slot_id"), letters("_"), letters(" ")


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
def _fail(line: IntArray, problem: int, start: int, stop: int) -> None:
    line[PROBLEM], line[WRONG], line[WRONG_STOP] = problem, start, stop


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
        return _fail(line, NOT_JSON, at, stop)
    features, delayed, owner = done[0], done[2], SHARED
    # The object or array that we are in; those around it are on the stack.
    role, is_object, members, numbers = (_CONTEXT if line[PLAIN] else _TOP), True, 0, 0
    space, space_stop, seed = -1, 0, _seed(data, -1, 0)
    depth = 1
    at += 1
    while depth > 0:
        at = after_blanks(data, at, stop)
        if at == stop:
            return _fail(line, NOT_JSON, at, stop)
        if data[at] == (CLOSE_OBJECT if is_object else CLOSE_ARRAY):
            at += 1
            depth -= 1
            owner = _close(line, role, owner, at)
            role, is_object, members = stack[depth, 0], stack[depth, 1] > 0, stack[depth, 2]
            space, space_stop, numbers = stack[depth, 3], stack[depth, 4], stack[depth, 5]
            seed = np.uint64(stack[depth, 6])
            continue
        if members > 0:
            if data[at] != COMMA:
                return _fail(line, NOT_JSON, at, stop)
            at = after_blanks(data, at + 1, stop)
        members += 1
        key, key_stop = at, at
        if is_object:
            key, key_stop, at = _key_at(data, at, stop)
        if at >= stop:
            return _fail(line, NOT_JSON, at, stop)

        byte = data[at]
        if byte in (OPEN_OBJECT, OPEN_ARRAY):
            if depth == _DEEPEST:
                return _fail(line, TOO_DEEP, at, stop)
            inner = _inner_role(data, line, role, is_object, key, key_stop, byte == OPEN_OBJECT)
            if line[PROBLEM] != FINE:
                return None
            stack[depth, 0], stack[depth, 1], stack[depth, 2] = role, is_object, members
            stack[depth, 3], stack[depth, 4], stack[depth, 5] = space, space_stop, numbers
            stack[depth, 6] = np.int64(seed)
            owner = _enter(data, line, inner, owner, key, key_stop, at)
            if inner == _UNIT:
                units[owner - 1, done[2 + owner]] = 0
                done[2 + owner] += 1
            if is_object or inner == _UNIT:
                is_default = inner != _FEATURES or equals(data, key, key_stop, _BLANK)
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
            return _fail(line, NOT_JSON, begin, stop)
        if role <= _LIST:
            if role == _LIST or (role == _TOP and equals(data, key, key_stop, _MULTI)):
                return _fail(line, NOT_AN_OBJECT if role == _LIST else NOT_AN_ARRAY, begin, at)
            continue
        if not is_object:
            if name >= 0 and word_at(data, begin, at) != NULL:
                return _fail(line, BAD_ITEM, begin, at)
        elif begins_with(data, key, key_stop, _UNDERSCORE):
            _check_special(data, line, role, key, key_stop, begin, at)
            if line[PROBLEM] != FINE:
                return None
            kept = kept and equals(data, key, key_stop, _TEXT)
        if not kept:
            continue
        if not np.isfinite(value):
            return _fail(line, BAD_NUMBER, begin, at)
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
        return _fail(line, NOT_JSON, at, stop)
    done[0], done[2] = features, delayed
    return None


@byte_kernel
def _seed(data: AnyArray, space: int, space_stop: int) -> Any:
    return hashed(data, space, space_stop, np.uint64(FNV_START))


@byte_kernel
def _enter(data: AnyArray, line: IntArray, role: int, owner: int, key: int, key_stop: int, at: int) -> int:
    """Note where something begins, and return whose the features in it are."""
    if role == _CONTEXT:
        line[CUT] = at
    elif role == _LIST:
        if not equals(data, key, key_stop, _MULTI):
            line[SLOTS_AT] = at
            return SLOT
        line[ACTIONS] = 0
        if line[PLAIN]:
            line[CUT] = at
        return ACTION
    return owner


@byte_kernel
def _close(line: IntArray, role: int, owner: int, at: int) -> int:
    """Note where something ends, and return whose the features after it are."""
    if role == _CONTEXT and not line[PLAIN]:
        line[CUT_STOP] = at
    elif role == _LIST:
        if owner == SLOT:
            line[SLOTS_STOP] = at
        elif line[PLAIN]:
            line[CUT_STOP] = at
        return SHARED
    return owner


@byte_kernel
def _key_at(data: AnyArray, at: int, stop: int) -> tuple[int, int, int]:
    """Return where a key starts and stops, and where its value starts: nowhere if this is no key."""
    if at == stop or data[at] != QUOTE:
        return at, at, stop
    end = string_end(data, at + 1, stop)
    if end < 0:
        return at, at, stop
    colon = after_blanks(data, end + 1, stop)
    if colon == stop or data[colon] != COLON:
        return at, at, stop
    return at + 1, end, after_blanks(data, colon + 1, stop)


@byte_kernel
def _inner_role(
    data: AnyArray, line: IntArray, role: int, in_object: bool, key: int, key_stop: int, is_object: bool
) -> int:
    """Return what an object or array is there for, by where it stands and by its key."""
    if role == _SKIPPED:
        return _SKIPPED
    if role == _LIST:
        if not is_object:
            _fail(line, NOT_AN_OBJECT, key, key)
        return _UNIT
    if role == _TOP:
        if equals(data, key, key_stop, _MULTI):
            _fail(line, IS_PLAIN, key, key_stop)
        if not is_object or not equals(data, key, key_stop, _C):
            return _SKIPPED
        if line[CUT] >= 0:
            _fail(line, REPEATED, key, key_stop)
        return _CONTEXT
    if not in_object:
        if not is_object:
            _fail(line, BAD_ITEM, key, key + 1)
        return _FEATURES
    if not begins_with(data, key, key_stop, _UNDERSCORE):
        return _FEATURES
    if role == _CONTEXT:
        is_multi = equals(data, key, key_stop, _MULTI)
        if is_multi or equals(data, key, key_stop, _SLOT_LIST):
            if is_object:
                _fail(line, NOT_AN_ARRAY, key, key_stop)
            elif (line[ACTIONS] if is_multi else line[SLOTS_AT]) >= 0:
                _fail(line, REPEATED, key, key_stop)
            return _LIST
    _check_special(data, line, role, key, key_stop, key - 1, key - 1)
    return _SKIPPED


@byte_kernel
def _check_special(data: AnyArray, line: IntArray, role: int, key: int, key_stop: int, begin: int, stop: int) -> None:
    """Find what is wrong with a key that starts with an underscore, in a context or among features."""
    if equals(data, key, key_stop, _TEXT):
        if data[begin] != QUOTE or begin < key:
            _fail(line, BAD_TEXT, begin, stop)
    elif role == _CONTEXT and (equals(data, key, key_stop, _MULTI) or equals(data, key, key_stop, _SLOT_LIST)):
        _fail(line, NOT_AN_ARRAY, key, key_stop)
    elif role == _UNIT and equals(data, key, key_stop, _SLOT_ID):
        _fail(line, SLATE, key, key_stop)
    elif role != _FEATURES and not (line[PLAIN] and role == _CONTEXT) and begins_with(data, key, key_stop, _LABEL):
        _fail(line, INNER_LABEL, key, key_stop)


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
