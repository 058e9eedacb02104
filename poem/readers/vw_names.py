"""Names of features in Vowpal Wabbit's text: told apart by a hash and byte by byte, and written out."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, IntArray
from poem.compute import exact_kernel
from poem.readers.vw_words import BRACKET, CARET, COLON, END_BRACKET, ZERO

FNV_START = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


@exact_kernel
def hashed(data: AnyArray, start: int, stop: int, seed: Any) -> Any:
    """Go on with the FNV-1a hash ``seed``; a feature without a name has −1 − k for its start."""
    mixed = (seed ^ np.uint64(0xFF)) * np.uint64(_FNV_PRIME)  # No byte of UTF-8: ends what came before.
    if start < 0:
        return (mixed ^ np.uint64(-start)) * np.uint64(_FNV_PRIME)
    for place in range(start, stop):
        mixed = (mixed ^ np.uint64(data[place])) * np.uint64(_FNV_PRIME)
    return mixed


@exact_kernel
def _home(mixed: Any, size: int) -> Any:
    """Return the slot to look in first."""
    return np.int64((mixed ^ (mixed >> np.uint64(32))) & np.uint64(size - 1))


@exact_kernel
def slot_of(
    data: AnyArray,
    slots: AnyArray,
    hashes: AnyArray,
    keys: IntArray,
    mixed: Any,
    space: int,
    space_stop: int,
    start: int,
    stop: int,
) -> int:
    """Return the slot that has this name, or the free one where it belongs."""
    at: int = _home(mixed, slots.size)
    while slots[at] >= 0:
        known = slots[at]
        if (
            hashes[known] == mixed
            and _same(data, keys[known, 0], keys[known, 1], space, space_stop)
            and _same(data, keys[known, 2], keys[known, 3], start, stop)
        ):
            break
        at = (at + 1) & (slots.size - 1)
    return at


@exact_kernel
def _same(data: AnyArray, start: int, stop: int, other_start: int, other_stop: int) -> bool:
    if start < 0 or other_start < 0:
        return start == other_start
    if stop - start != other_stop - other_start:
        return False
    same = 0
    while same < stop - start and data[start + same] == data[other_start + same]:
        same += 1
    return same == stop - start


@exact_kernel
def wider(slots: AnyArray, hashes: AnyArray, names: int) -> AnyArray:
    """Return twice as many slots, with all names in them."""
    wide = np.full(2 * slots.size, -1, dtype=np.int32)
    for name in range(names):
        at = _home(hashes[name], wide.size)
        while wide[at] >= 0:
            at = (at + 1) & (wide.size - 1)
        wide[at] = name
    return wide


@exact_kernel
def copy_spans(data: AnyArray, spans: IntArray, out: AnyArray) -> None:
    """Copy spans of the text, one right after the other."""
    at = 0
    for span in range(spans.shape[0]):
        for place in range(spans[span, 0], spans[span, 1]):
            out[at] = data[place]
            at += 1


@exact_kernel
def measure_names(keys: IntArray, out: IntArray) -> None:
    """Find how many bytes each name of a feature takes."""
    for name in range(keys.shape[0]):
        space = keys[name, 1] - keys[name, 0]
        length = space + 1 if space else 0
        if keys[name, 2] < 0:
            length += 2 + _digits(-1 - keys[name, 2])
        else:
            length += keys[name, 3] - keys[name, 2]
        out[name] = length


@exact_kernel
def _digits(number: int) -> int:
    count = 1
    while number >= 10:
        number //= 10
        count += 1
    return count


@exact_kernel
def write_names(data: AnyArray, keys: IntArray, out: AnyArray) -> None:
    """Write the names of the features one after another."""
    at = 0
    for name in range(keys.shape[0]):
        for place in range(keys[name, 0], keys[name, 1]):
            out[at] = data[place]
            at += 1
        if keys[name, 1] > keys[name, 0]:
            out[at] = CARET
            at += 1
        if keys[name, 2] < 0:
            number = -1 - keys[name, 2]
            digits = _digits(number)
            out[at] = BRACKET
            for place in range(digits):
                out[at + digits - place] = ZERO + number % 10
                number //= 10
            at += digits + 1
            out[at] = END_BRACKET
            at += 1
            continue
        category = False
        for place in range(keys[name, 2], keys[name, 3]):
            # A name has no colon: the first one is that between a category's name and its text.
            if data[place] == COLON and not category:
                out[at] = CARET
                category = True
            else:
                out[at] = data[place]
            at += 1
