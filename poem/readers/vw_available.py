"""Vowpal Wabbit's text with one decision per line: which actions a line says were available."""

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, IntArray
from poem.compute import exact_kernel
from poem.readers.vw_columns import lists
from poem.readers.vw_labels import label_span, next_word
from poem.readers.vw_words import BAR, COLON, find, is_blank, line_at, whole_number


def available_actions(data: AnyArray, rows: int) -> pa.Array | None:
    """Return the actions of each line of a file that was read without a problem; None if none has more than one.

    As to Vowpal Wabbit, a line that names one action has all of them: those that the file names.
    """
    counts = np.zeros(rows, dtype=np.int64)
    read_words(data, counts, np.empty(0, dtype=np.int64))
    if not rows or counts.max() < 2:
        return None
    actions = np.empty(counts.sum(), dtype=np.int64)
    read_words(data, counts, actions)
    every = np.unique(actions)
    alone = counts == 1
    sizes = np.where(alone, len(every), counts)
    filled = np.empty(sizes.sum(), dtype=np.int64)
    of_alone = np.repeat(alone, sizes)
    filled[of_alone] = np.tile(every, int(alone.sum()))
    filled[~of_alone] = actions[~np.repeat(alone, counts)]
    return lists(np.cumsum(sizes), pa.array(filled))


@exact_kernel
def read_words(data: AnyArray, counts: IntArray, actions: IntArray) -> None:
    """Count the words before the bar of each line that is not blank, and read them where there is room for them."""
    row, place, at = 0, 0, 0
    while at < data.size:
        line, stop, at = line_at(data, at)
        if is_blank(data, line, stop):
            continue
        word, label_stop = label_span(data, line, find(data, line, stop, BAR))
        first = place
        while True:
            start, word = next_word(data, word, label_stop)
            if start == word:
                break
            if place < actions.size:
                actions[place] = whole_number(data, start, find(data, start, word, COLON))
            place += 1
        counts[row] = place - first
        row += 1
