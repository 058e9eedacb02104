"""Labels in Vowpal Wabbit's text: what stands before the first bar of a line."""

from poem.arrays import AnyArray
from poem.compute import exact_kernel
from poem.readers.vw_problems import BAD_ACTION, BAD_COST, BAD_PROBABILITY, FINE, NO_PROBABILITY, TOO_MANY_PARTS
from poem.readers.vw_words import COLON, NO_NUMBER, NUMBER, QUOTE, SPACE, TAB, decimal, find, whole_number


@exact_kernel
def label_span(data: AnyArray, line: int, bar: int) -> tuple[int, int]:
    """Return where the words before the bar start, which is after a tab, and where they stop, which is before a tag."""
    tab = find(data, line, bar, TAB)
    start = line if tab == bar else tab + 1
    last_stop = bar
    while last_stop > start and data[last_stop - 1] == SPACE:
        last_stop -= 1
    last = last_stop
    while last > start and data[last - 1] != SPACE:
        last -= 1
    tagged = last < last_stop and (last_stop == bar or data[last] == QUOTE)
    return start, last if tagged else last_stop


@exact_kernel
def next_word(data: AnyArray, at: int, stop: int) -> tuple[int, int]:
    """Return where the next word starts and stops; there is none if it is empty."""
    while at < stop and data[at] == SPACE:
        at += 1
    return at, find(data, at, stop, SPACE)


@exact_kernel
def outcome(data: AnyArray, start: int, stop: int) -> tuple[int, int, int, int, int, int, int, int]:
    """Read ``action`` or ``action:cost:probability``.

    Returns what is wrong and where it starts and stops, the action, and where cost and probability start and stop; all
    of these are 0 for an action alone.
    """
    colon = find(data, start, stop, COLON)
    number = whole_number(data, start, colon)
    if number < 0:
        return BAD_ACTION, start, stop, 0, 0, 0, 0, 0
    if colon == stop:
        return FINE, 0, 0, number, 0, 0, 0, 0
    cost_at = colon + 1
    cost_stop = find(data, cost_at, stop, COLON)
    kind, _, _, end = decimal(data, cost_at, cost_stop)
    if kind == NO_NUMBER or end != cost_stop:
        return BAD_COST, cost_at, cost_stop, 0, 0, 0, 0, 0
    if cost_stop == stop:
        return NO_PROBABILITY, start, stop, 0, 0, 0, 0, 0
    chance_at = cost_stop + 1
    if find(data, chance_at, stop, COLON) < stop:
        return TOO_MANY_PARTS, start, stop, 0, 0, 0, 0, 0
    if not is_probability(data, chance_at, stop, False):
        return BAD_PROBABILITY, chance_at, stop, 0, 0, 0, 0, 0
    return FINE, 0, 0, number, cost_at, cost_stop, chance_at, stop


@exact_kernel
def is_probability(data: AnyArray, start: int, stop: int, may_be_zero: bool) -> bool:
    """Tell whether this is a probability, as far as can be told before a late number is read."""
    kind, value, _, end = decimal(data, start, stop)
    if kind == NO_NUMBER or end != stop:
        return False
    return kind != NUMBER or 0.0 < value <= 1.0 or (may_be_zero and value == 0.0)
