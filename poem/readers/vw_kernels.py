"""Vowpal Wabbit's text, read byte by byte in compiled loops; :mod:`poem.readers.vw` says what is followed."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute import exact_kernel

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _PLUS, _MINUS, _POINT = 9, 10, 13, 32, 39, 43, 45, 46
_ZERO, _NINE, _COLON, _BRACKET, _CARET, _END_BRACKET, _BAR = 48, 57, 58, 91, 94, 93, 124

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


# What a span of text turned out to be.
_NUMBER = 0
_LATE = 1
_NO_NUMBER = 2
_CATEGORY = 3

# Which array a number that is read late belongs to.
COSTS = 0
PROBABILITIES = 1
VALUES = 2

# 10^0 … 10^22 are doubles without rounding, so that one product or quotient with a whole number up to 2^53 is exact.
_LARGEST_EXACT = 2**53
_POWERS = frozen(np.array([float(10**k) for k in range(23)]))
_LARGEST_ACTION = 2**31 - 1

_FNV_START = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


@exact_kernel
def count(data: AnyArray) -> tuple[int, int]:
    """Return how many lines there are at most, and how many blanks: each feature follows one."""
    newlines, blanks = 0, 0
    for byte in data:
        newlines += byte == _NEWLINE
        blanks += (byte == _SPACE) | (byte == _TAB)
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
        line, stop, at = _line(data, at)
        if _is_blank(data, line, stop):
            continue
        # Room for all that the line can hold. The loop over its features must not replace arrays: numba would then
        # count references to them at each step, which takes as long as the reading itself.
        while names + stop - line > hashes.size:
            hashes = np.concatenate((hashes, np.empty_like(hashes)))
            keys = _doubled_rows(keys)
            slots = _wider(slots, hashes, names)
        while delayed + stop - line > late.shape[0]:
            late = _doubled_rows(late)
        bar = _find(data, line, stop, _BAR)
        problem, wrong_start, wrong_stop, action, cost_at, cost_stop, chance_at, chance_stop = _label(data, line, bar)
        if problem != FINE:
            break
        actions[rows] = action
        kind, costs[rows], start, _ = _decimal(data, cost_at, cost_stop)
        if kind == _LATE:
            delayed = _delay(late, delayed, start, cost_stop, COSTS, rows)
        kind, probabilities[rows], start, _ = _decimal(data, chance_at, chance_stop)
        if kind == _LATE:
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
        seed = _hashed(data, space, space_stop, np.uint64(_FNV_START))
        unnamed = 0
        while at < stop and data[at] != _BAR:
            at += 1  # The blank before the feature, or before nothing.
            if at == stop or _is_boundary(data[at]):
                continue
            start = at
            problem, kind, value, value_at, name_stop, at = _feature(data, start, stop)
            if problem != FINE:
                return problem, value_at, at, features, names, delayed
            if start == name_stop:
                start, name_stop = -1 - unnamed, 0
                unnamed += 1
            if kind != _CATEGORY:
                value *= weight
                if not np.isfinite(value):
                    return BAD_VALUE, value_at, at, features, names, delayed
                if value == 0.0:
                    continue
                if kind == _LATE:
                    delayed = _delay(late, delayed, value_at, at, VALUES, features)
                if weight_stop > weight_at:
                    delayed = _delay(late, delayed, weight_at, weight_stop, VALUES, features)
            mixed = _hashed(data, start, name_stop, seed)
            slot = _slot(data, slots, hashes, keys, mixed, space, space_stop, start, name_stop)
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
def _line(data: AnyArray, at: int) -> tuple[int, int, int]:
    """Return where the line at ``at`` starts and stops, without mark and line end, and where the next one starts."""
    newline = _find(data, at, data.size, _NEWLINE)
    start, stop = at, newline
    if newline - at >= 3 and data[at] == 0xEF and data[at + 1] == 0xBB and data[at + 2] == 0xBF:
        start += 3
    while stop > start and data[stop - 1] == _RETURN:
        stop -= 1
    return start, stop, newline + 1


@exact_kernel
def _find(data: AnyArray, at: int, stop: int, wanted: int) -> int:
    while at < stop and data[at] != wanted:
        at += 1
    return at


@exact_kernel
def _is_blank(data: AnyArray, at: int, stop: int) -> bool:
    while at < stop and (data[at] == _SPACE or data[at] == _TAB):
        at += 1
    return at == stop


@exact_kernel
def _is_boundary(byte: int) -> bool:
    return byte in (_SPACE, _TAB, _BAR)


@exact_kernel
def _is_digit(byte: int) -> bool:
    return _ZERO <= byte <= _NINE


@exact_kernel
def _digit(byte: Any) -> Any:
    # Signed: with an unsigned number among them, numba would go on in floating point.
    return np.int64(byte) - _ZERO


@exact_kernel
def _label(data: AnyArray, line: int, bar: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Return what is wrong and where, the action, and where its cost and its probability are."""
    action, cost_at, cost_stop, chance_at, chance_stop = 0, 0, 0, 0, 0
    line_stop = min(_find(data, bar, data.size, _NEWLINE), bar + 61)
    tab = _find(data, line, bar, _TAB)
    at = line if tab == bar else tab + 1
    words = 0
    while True:
        while at < bar and data[at] == _SPACE:
            at += 1
        start = at
        at = _find(data, start, bar, _SPACE)
        if start == bar:
            break
        if at == bar or (data[start] == _QUOTE and _is_blank(data, at, bar)):
            break  # A tag.
        if _is_shared(data, start, at):
            return SHARED, line, line_stop, 0, 0, 0, 0, 0
        words += 1
        colon = _find(data, start, at, _COLON)
        number = _action(data, start, colon)
        if number < 1:
            return BAD_ACTION, start, at, 0, 0, 0, 0, 0
        if colon == at:
            continue
        if action:
            return SEVERAL_COSTS, start, at, 0, 0, 0, 0, 0
        action, cost_at = number, colon + 1
        cost_stop = _find(data, cost_at, at, _COLON)
        kind, value, _, end = _decimal(data, cost_at, cost_stop)
        if kind == _NO_NUMBER or end != cost_stop:
            return BAD_COST, cost_at, cost_stop, 0, 0, 0, 0, 0
        if cost_stop == at:
            return NO_PROBABILITY, start, at, 0, 0, 0, 0, 0
        chance_at, chance_stop = cost_stop + 1, at
        if _find(data, chance_at, at, _COLON) < at:
            return TOO_MANY_PARTS, start, at, 0, 0, 0, 0, 0
        kind, value, _, end = _decimal(data, chance_at, chance_stop)
        if kind == _NO_NUMBER or end != at or (kind == _NUMBER and not 0.0 < value <= 1.0):
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
def _action(data: AnyArray, at: int, stop: int) -> int:
    """Return the whole number, or 0 if it is none that an action can have."""
    number = 0
    for place in range(at, stop):
        if not _ZERO <= data[place] <= _NINE:
            return 0
        number = 10 * number + _digit(data[place])
        if number > _LARGEST_ACTION:
            return 0
    return number


@exact_kernel
def _namespace(data: AnyArray, at: int, stop: int) -> tuple[int, int, int, float, int, int]:
    """Return what is wrong, where reading goes on, where the name stops, the weight, and its place if it is late."""
    name_stop = _name_stop(data, at, stop)
    if name_stop == stop or data[name_stop] != _COLON:
        return FINE, name_stop, name_stop, 1.0, 0, 0
    weight_stop = name_stop + 1
    while weight_stop < stop and not _is_boundary(data[weight_stop]):
        weight_stop += 1
    if name_stop == at:
        return NO_NAMESPACE, weight_stop, name_stop, 1.0, 0, 0
    kind, weight, weight_at, end = _decimal(data, name_stop + 1, weight_stop)
    if kind == _NO_NUMBER or end != weight_stop:
        return BAD_WEIGHT, weight_stop, name_stop, 1.0, 0, 0
    if kind == _LATE:
        return FINE, weight_stop, name_stop, 1.0, weight_at, weight_stop
    return FINE, weight_stop, name_stop, weight, 0, 0


@exact_kernel
def _name_stop(data: AnyArray, at: int, stop: int) -> int:
    while at < stop and data[at] != _COLON and not _is_boundary(data[at]):
        at += 1
    return at


@exact_kernel
def _feature(data: AnyArray, at: int, stop: int) -> tuple[int, int, float, int, int, int]:
    """Return what is wrong, the kind of value, the value, where it is, where the name stops, and where reading goes on.

    The name of a category goes on to the end of its text.
    """
    name_stop = _name_stop(data, at, stop)
    if name_stop == stop or data[name_stop] != _COLON:
        return FINE, _NUMBER, 1.0, name_stop, name_stop, name_stop
    value_at = name_stop + 1
    if value_at == stop or _is_boundary(data[value_at]):
        return NO_VALUE, _NO_NUMBER, 0.0, at, name_stop, value_at
    kind, value, number_at, end = _decimal(data, value_at, stop)
    if kind != _NO_NUMBER and (end == stop or _is_boundary(data[end])):
        return FINE, kind, value, number_at, name_stop, end
    end = value_at
    while end < stop and data[end] != _SPACE and data[end] != _TAB:  # Not at a bar: a category may have one.
        end += 1
    if _looks_like_number(data, value_at, end):
        return BAD_VALUE, _NO_NUMBER, 0.0, value_at, name_stop, end
    return FINE, _CATEGORY, 1.0, value_at, end, end


@exact_kernel
def _decimal(data: AnyArray, at: int, stop: int) -> tuple[int, float, int, int]:
    """Read a decimal number as far as it goes; return its kind and value, where it starts (after a +) and ends.

    The value of a late number is 1: what its array holds until the number is multiplied in.
    """
    negative = at < stop and data[at] == _MINUS
    start = at + 1 if at < stop and data[at] == _PLUS else at
    at = at + 1 if negative else start
    mantissa, digits, shift, exact = 0, 0, 0, True
    while at < stop and (_is_digit(data[at]) or (shift == 0 and data[at] == _POINT)):
        if data[at] == _POINT:
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
        return _NO_NUMBER, 0.0, start, at
    exponent = 0
    if at < stop and (data[at] == 69 or data[at] == 101):
        sign_at = at + 1
        below = sign_at < stop and data[sign_at] == _MINUS
        at = sign_at + 1 if below or (sign_at < stop and data[sign_at] == _PLUS) else sign_at
        if at == stop or not _is_digit(data[at]):
            return _NO_NUMBER, 0.0, start, at
        while at < stop and _is_digit(data[at]):
            exponent = min(10 * exponent + _digit(data[at]), 1_000_000)
            at += 1
        if below:
            exponent = -exponent
    exponent -= max(shift - 1, 0)
    if mantissa == 0:
        return _NUMBER, 0.0, start, at
    if not exact or mantissa > _LARGEST_EXACT or abs(exponent) > 22:
        return _LATE, 1.0, start, at
    value = float(mantissa)
    if exponent < 0:
        value /= _POWERS[-exponent]
    else:
        value *= _POWERS[exponent]
    return _NUMBER, -value if negative else value, start, at


@exact_kernel
def _looks_like_number(data: AnyArray, at: int, stop: int) -> bool:
    """Say whether Vowpal Wabbit would read (the start of) this as a number: by itself, or by the C library."""
    if data[at] == 11 or data[at] == 12:
        return True  # The C library skips these.
    plus = data[at] == _PLUS
    if plus or data[at] == _MINUS:
        at += 1
    point = at < stop and data[at] == _POINT
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
        if at < stop and (data[at] == _PLUS or data[at] == _MINUS):
            at += 1
        while at < stop and _is_digit(data[at]):
            at += 1
    return at == stop or data[at] == _BAR


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


@exact_kernel
def _hashed(data: AnyArray, start: int, stop: int, seed: Any) -> Any:
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
def _slot(
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
def _wider(slots: AnyArray, hashes: AnyArray, names: int) -> AnyArray:
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
            out[at] = _CARET
            at += 1
        if keys[name, 2] < 0:
            number = -1 - keys[name, 2]
            digits = _digits(number)
            out[at] = _BRACKET
            for place in range(digits):
                out[at + digits - place] = _ZERO + number % 10
                number //= 10
            at += digits + 1
            out[at] = _END_BRACKET
            at += 1
            continue
        category = False
        for place in range(keys[name, 2], keys[name, 3]):
            # A name has no colon: the first one is that between a category's name and its text.
            if data[place] == _COLON and not category:
                out[at] = _CARET
                category = True
            else:
                out[at] = data[place]
            at += 1
