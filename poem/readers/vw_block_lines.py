"""Vowpal Wabbit's text in blocks, one line per action, read in one compiled pass: what each line is, and its features.

Features of shared lines and slots are told apart from those of actions: both have their own names and values.
"""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import exact_kernel
from poem.readers.vw_features import new_names, read_features, with_room
from poem.readers.vw_labels import label_span, next_word
from poem.readers.vw_problems import (
    BAD_KEYWORD,
    FINE,
    HAS_LABEL,
    LABEL_TOUCHES_BAR,
    NO_BAR,
    ONLY_BLANKS,
    SHARED_HAS_LABEL,
    SLATES,
    TWO_FORMS,
)
from poem.readers.vw_words import (
    ACTION_WORD,
    BAR,
    CCB_WORD,
    COLON,
    QUOTE,
    SHARED_WORD,
    SLATES_WORD,
    SLOT_WORD,
    SPACE,
    find,
    is_blank,
    is_word,
    line_at,
)

# What a line is; all lines of a file are with slots (ccb) or without.
BREAK = 0
SHARED = 1
ACTION = 2
SLOT = 3


@exact_kernel
def scan_lines(data: AnyArray, at: int, end: int, most_lines: int, most_features: int, with_slots: bool) -> Any:
    """Read all lines of a piece of the file.

    Returns what is wrong, where it starts and stops; of each line what it is, where it starts, where its label starts
    and stops and where its features stop; codes, values, keys and late numbers of contexts, and those of actions.
    """
    kinds = np.empty(most_lines, dtype=np.int8)
    spans = np.empty((most_lines, 4), dtype=np.int64)
    codes, values = np.empty(most_features, dtype=np.int32), np.empty(most_features)
    action_codes, action_values = np.empty(most_features, dtype=np.int32), np.empty(most_features)
    slots, hashes, keys, late = new_names()
    action_slots, action_hashes, action_keys, action_late = new_names()
    counts, action_counts = np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64)
    lines, problem, wrong_start, wrong_stop = 0, FINE, 0, 0
    while at < end and problem == FINE:
        length = line_at(data, at)[2] - at
        slots, hashes, keys, late = with_room(length, counts[1], counts[2], slots, hashes, keys, late)
        action_slots, action_hashes, action_keys, action_late = with_room(
            length, action_counts[1], action_counts[2], action_slots, action_hashes, action_keys, action_late
        )
        problem, wrong_start, wrong_stop, at, lines = _scan_while_room(
            data,
            at,
            end,
            lines,
            with_slots,
            kinds,
            spans,
            counts,
            codes,
            values,
            slots,
            hashes,
            keys,
            late,
            action_counts,
            action_codes,
            action_values,
            action_slots,
            action_hashes,
            action_keys,
            action_late,
        )
    return (
        problem,
        wrong_start,
        wrong_stop,
        kinds[:lines],
        spans[:lines],
        (codes[: counts[0]], values[: counts[0]], keys[: counts[1]], late[: counts[2]]),
        (
            action_codes[: action_counts[0]],
            action_values[: action_counts[0]],
            action_keys[: action_counts[1]],
            action_late[: action_counts[2]],
        ),
    )


@exact_kernel
def _scan_while_room(
    data: AnyArray,
    at: int,
    end: int,
    lines: int,
    with_slots: bool,
    kinds: AnyArray,
    spans: IntArray,
    counts: IntArray,
    codes: AnyArray,
    values: FloatArray,
    slots: AnyArray,
    hashes: AnyArray,
    keys: IntArray,
    late: IntArray,
    action_counts: IntArray,
    action_codes: AnyArray,
    action_values: FloatArray,
    action_slots: AnyArray,
    action_hashes: AnyArray,
    action_keys: IntArray,
    action_late: IntArray,
) -> tuple[int, int, int, int, int]:
    """Read lines while there is room for another; return what is wrong and where, where to go on, and how many lines.

    ``counts`` are how many features, names and late numbers there are. No array is replaced here: numba would count
    references to all of them at each line.
    """
    features, names, delayed = counts
    action_features, action_names, action_delayed = action_counts
    problem, wrong_start, wrong_stop = FINE, 0, 0
    while at < end:
        line, stop, following = line_at(data, at)
        length = stop - line
        if names + length > hashes.size or delayed + length > late.shape[0]:
            break
        if action_names + length > action_hashes.size or action_delayed + length > action_late.shape[0]:
            break
        bar = find(data, line, stop, BAR)
        problem, wrong_stop, kind, label, label_stop = _line(data, line, bar, stop, with_slots)
        if problem != FINE:
            wrong_start = label
            break
        if kind == ACTION:
            problem, wrong_start, wrong_stop, action_features, action_names, action_delayed = read_features(
                data,
                bar,
                stop,
                action_features,
                action_names,
                action_delayed,
                action_codes,
                action_values,
                action_slots,
                action_hashes,
                action_keys,
                action_late,
            )
        else:
            problem, wrong_start, wrong_stop, features, names, delayed = read_features(
                data, bar, stop, features, names, delayed, codes, values, slots, hashes, keys, late
            )
        if problem != FINE:
            break
        kinds[lines] = kind
        spans[lines, 0] = line
        spans[lines, 1] = label
        spans[lines, 2] = label_stop
        spans[lines, 3] = action_features if kind == ACTION else features
        lines += 1
        at = following
    counts[0], counts[1], counts[2] = features, names, delayed
    action_counts[0], action_counts[1], action_counts[2] = action_features, action_names, action_delayed
    return problem, wrong_start, wrong_stop, at, lines


@exact_kernel
def _line(data: AnyArray, line: int, bar: int, stop: int, with_slots: bool) -> tuple[int, int, int, int, int]:
    """Return what is wrong and where it stops, what the line is, where its label (or what is wrong) starts and stops.

    The words that say what the line is are no part of its label.
    """
    if line == stop:
        return FINE, 0, BREAK, stop, stop
    if bar == stop:
        return (ONLY_BLANKS if is_blank(data, line, stop) else NO_BAR), stop, BREAK, line, stop
    label, label_stop = label_span(data, line, bar)
    if _is_hidden_label(data, label_stop, bar):
        return LABEL_TOUCHES_BAR, bar, BREAK, line, stop
    start, word_stop = next_word(data, label, label_stop)
    if is_word(data, start, word_stop, SLATES_WORD):
        return SLATES, bar, BREAK, line, stop
    is_ccb = is_word(data, start, word_stop, CCB_WORD)
    if is_ccb != with_slots:
        return TWO_FORMS, stop, BREAK, line, stop
    if is_ccb:
        return _ccb_line(data, line, word_stop, label_stop, stop)
    if not is_word(data, start, word_stop, SHARED_WORD):
        return FINE, 0, ACTION, label, label_stop
    if not is_blank(data, word_stop, label_stop):
        return SHARED_HAS_LABEL, stop, BREAK, line, stop
    return FINE, 0, SHARED, label_stop, label_stop


@exact_kernel
def _ccb_line(data: AnyArray, line: int, at: int, label_stop: int, stop: int) -> tuple[int, int, int, int, int]:
    start, at = next_word(data, at, label_stop)
    if is_word(data, start, at, SLOT_WORD):
        return FINE, 0, SLOT, at, label_stop
    is_shared = is_word(data, start, at, SHARED_WORD)
    if not is_shared and not is_word(data, start, at, ACTION_WORD):
        return BAD_KEYWORD, stop, BREAK, line, stop
    if not is_blank(data, at, label_stop):
        return HAS_LABEL, stop, BREAK, line, stop
    return FINE, 0, SHARED if is_shared else ACTION, label_stop, label_stop


@exact_kernel
def _is_hidden_label(data: AnyArray, at: int, bar: int) -> bool:
    """Tell whether the tag in front of the bar was meant as a label."""
    while at < bar and data[at] == SPACE:
        at += 1
    if at == bar or data[bar - 1] == SPACE or data[at] == QUOTE:
        return False
    return (
        find(data, at, bar, COLON) < bar
        or is_word(data, at, bar, SHARED_WORD)
        or is_word(data, at, bar, ACTION_WORD)
        or is_word(data, at, bar, SLOT_WORD)
    )
