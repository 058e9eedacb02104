"""Namespaces and features of a line of Vowpal Wabbit's text; :mod:`poem.readers.vw` says what is followed."""

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import exact_kernel
from poem.readers.vw_names import FNV_START, hashed, slot_of, wider
from poem.readers.vw_problems import BAD_VALUE, BAD_WEIGHT, FINE, NO_NAMESPACE, NO_VALUE
from poem.readers.vw_words import (
    BAR,
    CATEGORY,
    COLON,
    LATE,
    NO_NUMBER,
    NUMBER,
    SPACE,
    TAB,
    decimal,
    is_boundary,
    looks_like_number,
    name_stop_from,
)

# Which array a number that is read late belongs to.
VALUES = 0
COSTS = 1
PROBABILITIES = 2
DISTRIBUTION = 3


@exact_kernel
def new_names() -> tuple[AnyArray, AnyArray, IntArray, IntArray]:
    """Return room for a few names and late numbers: slots, hashes, keys, late.

    Names are found by a hash and then compared byte by byte: equal hashes of different names do no harm.
    """
    slots = np.full(2048, -1, dtype=np.int32)
    hashes = np.empty(1024, dtype=np.uint64)
    return slots, hashes, np.empty((1024, 4), dtype=np.int64), np.empty((1024, 4), dtype=np.int64)


@exact_kernel
def with_room(
    length: int, names: int, delayed: int, slots: AnyArray, hashes: AnyArray, keys: IntArray, late: IntArray
) -> tuple[AnyArray, AnyArray, IntArray, IntArray]:
    """Return arrays with room for all that a line of this length can hold.

    The loop over its features must not replace arrays: numba would then count references to them at each step, which
    takes as long as the reading itself.
    """
    while names + length > hashes.size:
        hashes = np.concatenate((hashes, np.empty_like(hashes)))
        keys = doubled_rows(keys)
        slots = wider(slots, hashes, names)
    while delayed + length > late.shape[0]:
        late = doubled_rows(late)
    return slots, hashes, keys, late


@exact_kernel
def read_features(
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
                    delayed = delay(late, delayed, value_at, at, VALUES, features)
                if weight_stop > weight_at:
                    delayed = delay(late, delayed, weight_at, weight_stop, VALUES, features)
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
def delay(late: IntArray, count: int, start: int, stop: int, which: int, place: int) -> int:
    """Note a number that the kernel cannot read exactly; return how many there are."""
    late[count, 0] = start
    late[count, 1] = stop
    late[count, 2] = which
    late[count, 3] = place
    return count + 1


@exact_kernel
def doubled_rows(array: IntArray) -> IntArray:
    """Return an array with as many rows again."""
    return np.concatenate((array, np.empty_like(array)))
