"""JSON, byte by byte: blanks, strings, numbers and the three words."""

import numpy as np

from poem.arrays import AnyArray, frozen
from poem.readers.byte_kernels import byte_kernel
from poem.readers.vw_words import COLON, MINUS, NINE, PLUS, POINT, RETURN, SPACE, TAB, ZERO

QUOTE, COMMA, OPEN_ARRAY, BACKSLASH, CLOSE_ARRAY, UNDERSCORE, OPEN_OBJECT, CLOSE_OBJECT = (
    34,
    44,
    91,
    92,
    93,
    95,
    123,
    125,
)
TRUE, FALSE, NULL = 1, 2, 3


def letters(word: str) -> AnyArray:
    """Return a word as kernels compare it."""
    return frozen(np.frombuffer(word.encode(), dtype=np.uint8))


_TRUE, _FALSE, _NULL = letters("true"), letters("false"), letters("null")


@byte_kernel
def after_blanks(data: AnyArray, at: int, stop: int) -> int:
    """Return where the next byte is that is not a blank."""
    while at < stop and (data[at] == SPACE or data[at] == TAB or data[at] == RETURN):
        at += 1
    return at


@byte_kernel
def string_end(data: AnyArray, at: int, stop: int) -> int:
    """Return where the closing quote is of the string whose text begins at ``at``; −1 if it is not a string."""
    while at < stop:
        byte = data[at]
        if byte == QUOTE:
            return at
        if byte < SPACE:
            return -1
        at = at + 1 if byte != BACKSLASH else _escape_end(data, at + 1, stop)
        if at < 0:
            return -1
    return -1


@byte_kernel
def _escape_end(data: AnyArray, at: int, stop: int) -> int:
    """Return where an escape ends whose letter is at ``at``; −1 if it is none."""
    if at >= stop:
        return -1
    byte = data[at]
    if byte in (QUOTE, BACKSLASH, 47, 98, 102, 110, 114, 116):  # " \ / b f n r t
        return at + 1
    if byte != 117 or at + 4 >= stop:
        return -1
    for place in range(at + 1, at + 5):
        letter = data[place] | 32
        if not (ZERO <= data[place] <= NINE or 97 <= letter <= 102):
            return -1
    return at + 5


@byte_kernel
def number_end(data: AnyArray, at: int, stop: int) -> int:
    """Return where the number that begins here ends; −1 if it is not one in JSON."""
    if data[at] == MINUS:
        at += 1
    whole = at
    at = _digits_end(data, at, stop)
    if at == whole or (data[whole] == ZERO and at > whole + 1):
        return -1
    if at < stop and data[at] == POINT:
        fraction = at + 1
        at = _digits_end(data, fraction, stop)
        if at == fraction:
            return -1
    if at < stop and (data[at] | 32) == 101:
        exponent = at + 1
        if exponent < stop and (data[exponent] == PLUS or data[exponent] == MINUS):
            exponent += 1
        at = _digits_end(data, exponent, stop)
        if at == exponent:
            return -1
    return at


@byte_kernel
def _digits_end(data: AnyArray, at: int, stop: int) -> int:
    while at < stop and ZERO <= data[at] <= NINE:
        at += 1
    return at


@byte_kernel
def word_at(data: AnyArray, at: int, stop: int) -> int:
    """Return which of true, false and null begins here; 0 if none does."""
    if begins_with(data, at, stop, _TRUE):
        return TRUE
    if begins_with(data, at, stop, _FALSE):
        return FALSE
    if begins_with(data, at, stop, _NULL):
        return NULL
    return 0


@byte_kernel
def begins_with(data: AnyArray, at: int, stop: int, word: AnyArray) -> bool:
    """Tell whether a text begins with a word."""
    if stop - at < word.size:
        return False
    same = 0
    while same < word.size and data[at + same] == word[same]:
        same += 1
    return bool(same == word.size)


@byte_kernel
def equals(data: AnyArray, at: int, stop: int, word: AnyArray) -> bool:
    """Tell whether a text is a word."""
    return stop - at == word.size and begins_with(data, at, stop, word)


@byte_kernel
def key_at(data: AnyArray, at: int, stop: int) -> tuple[int, int, int]:
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
