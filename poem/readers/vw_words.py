"""Vowpal Wabbit's text, byte by byte: lines, words and numbers."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, frozen
from poem.compute import exact_kernel

TAB, NEWLINE, RETURN, SPACE, QUOTE, PLUS, MINUS, POINT = 9, 10, 13, 32, 39, 43, 45, 46
COMMA, ZERO, NINE, COLON, BRACKET, CARET, END_BRACKET, BAR = 44, 48, 57, 58, 91, 94, 93, 124

# What a span of text turned out to be.
NUMBER = 0
LATE = 1
NO_NUMBER = 2
CATEGORY = 3

# 10^0 … 10^22 are doubles without rounding, so that one product or quotient with a whole number up to 2^53 is exact.
_LARGEST_EXACT = 2**53
_POWERS = frozen(np.array([float(10**k) for k in range(23)]))
_LARGEST_ACTION = 2**31 - 1

SHARED_WORD = frozen(np.frombuffer(b"shared", np.uint8))
ACTION_WORD = frozen(np.frombuffer(b"action", np.uint8))
SLOT_WORD = frozen(np.frombuffer(b"slot", np.uint8))
CCB_WORD = frozen(np.frombuffer(b"ccb", np.uint8))
SLATES_WORD = frozen(np.frombuffer(b"slates", np.uint8))


@exact_kernel
def line_at(data: AnyArray, at: int) -> tuple[int, int, int]:
    """Return where the line at ``at`` starts and stops, without mark and line end, and where the next one starts."""
    newline = find(data, at, data.size, NEWLINE)
    start, stop = at, newline
    if newline - at >= 3 and data[at] == 0xEF and data[at + 1] == 0xBB and data[at + 2] == 0xBF:
        start += 3
    while stop > start and data[stop - 1] == RETURN:
        stop -= 1
    return start, stop, newline + 1


@exact_kernel
def find(data: AnyArray, at: int, stop: int, wanted: int) -> int:
    """Return where a byte is, or the end."""
    while at < stop and data[at] != wanted:
        at += 1
    return at


@exact_kernel
def is_word(data: AnyArray, at: int, stop: int, word: AnyArray) -> bool:
    """Tell whether the span is this word."""
    if stop - at != word.size:
        return False
    same = 0
    while same < word.size and data[at + same] == word[same]:
        same += 1
    return bool(same == word.size)


@exact_kernel
def is_blank(data: AnyArray, at: int, stop: int) -> bool:
    """Tell whether there is nothing but blanks."""
    while at < stop and (data[at] == SPACE or data[at] == TAB):
        at += 1
    return at == stop


@exact_kernel
def is_boundary(byte: int) -> bool:
    """Tell whether a byte ends a feature."""
    return byte in (SPACE, TAB, BAR)


@exact_kernel
def name_stop_from(data: AnyArray, at: int, stop: int) -> int:
    """Return where the name that begins here ends."""
    while at < stop and data[at] != COLON and not is_boundary(data[at]):
        at += 1
    return at


@exact_kernel
def _is_digit(byte: int) -> bool:
    return ZERO <= byte <= NINE


@exact_kernel
def _digit(byte: Any) -> Any:
    # Signed: with an unsigned number among them, numba would go on in floating point.
    return np.int64(byte) - ZERO


@exact_kernel
def whole_number(data: AnyArray, at: int, stop: int) -> int:
    """Return the whole number, or −1 if it is none, or too large for an action."""
    number = 0
    for place in range(at, stop):
        if not ZERO <= data[place] <= NINE:
            return -1
        number = 10 * number + _digit(data[place])
        if number > _LARGEST_ACTION:
            return -1
    return number if stop > at else -1


@exact_kernel
def decimal(data: AnyArray, at: int, stop: int) -> tuple[int, float, int, int]:
    """Read a decimal number as far as it goes; return its kind and value, where it starts (after a +) and ends.

    The value of a late number is 1: what its array holds until the number is multiplied in.
    """
    negative = at < stop and data[at] == MINUS
    start = at + 1 if at < stop and data[at] == PLUS else at
    at = at + 1 if negative else start
    mantissa, digits, shift, exact = 0, 0, 0, True
    while at < stop and (_is_digit(data[at]) or (shift == 0 and data[at] == POINT)):
        if data[at] == POINT:
            shift = 1  # Digits of the fraction, and one for the point.
        else:
            digits += 1
            shift += shift > 0
            if mantissa <= _LARGEST_EXACT:
                mantissa = 10 * mantissa + _digit(data[at])
            else:
                exact = False
        at += 1
    if digits == 0:
        return NO_NUMBER, 0.0, start, at
    exponent = 0
    if at < stop and (data[at] == 69 or data[at] == 101):
        sign_at = at + 1
        below = sign_at < stop and data[sign_at] == MINUS
        at = sign_at + 1 if below or (sign_at < stop and data[sign_at] == PLUS) else sign_at
        if at == stop or not _is_digit(data[at]):
            return NO_NUMBER, 0.0, start, at
        while at < stop and _is_digit(data[at]):
            exponent = min(10 * exponent + _digit(data[at]), 1_000_000)
            at += 1
        if below:
            exponent = -exponent
    exponent -= max(shift - 1, 0)
    if mantissa == 0:
        return NUMBER, 0.0, start, at
    if not exact or mantissa > _LARGEST_EXACT or abs(exponent) > 22:
        return LATE, 1.0, start, at
    value = float(mantissa)
    if exponent < 0:
        value /= _POWERS[-exponent]
    else:
        value *= _POWERS[exponent]
    return NUMBER, -value if negative else value, start, at


@exact_kernel
def looks_like_number(data: AnyArray, at: int, stop: int) -> bool:
    """Say whether Vowpal Wabbit would read (the start of) this as a number: by itself, or by the C library."""
    if data[at] == 11 or data[at] == 12:
        return True  # The C library skips these.
    plus = data[at] == PLUS
    if plus or data[at] == MINUS:
        at += 1
    point = at < stop and data[at] == POINT
    digit_at = at + 1 if point else at
    if digit_at < stop and _is_digit(data[digit_at]):
        return True
    if stop - at >= 3:
        first, second, third = data[at] | 32, data[at + 1] | 32, data[at + 2] | 32
        if first == 105 and second == 110 and third == 102:  # inf
            return True
        if first == 110 and second == 97 and third == 110:  # nan
            return True
    if plus:
        return False
    # Nothing but a sign, a point and an exponent is 0 to Vowpal Wabbit.
    if point:
        at += 1
    if at < stop and (data[at] | 32) == 101:
        at += 1
        if at < stop and (data[at] == PLUS or data[at] == MINUS):
            at += 1
        while at < stop and _is_digit(data[at]):
            at += 1
    return at == stop or data[at] == BAR
