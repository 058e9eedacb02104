"""The features of all contexts, actions and slots in a DSJSON file: ragged lists of codes and values."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.readers.dsjson_roles import ACTION, BAD_NUMBER, LATER, PROBLEM, SHARED, SLOT, WRONG, WRONG_STOP
from poem.readers.dsjson_scan import count, scan
from poem.readers.vw_names import copy_spans

_BLOCK = 1 << 23


class Lists(NamedTuple):
    """Ragged lists of features, such as one for each line."""

    offsets: IntArray
    codes: AnyArray
    values: FloatArray

    def taken(self, rows: IntArray) -> "Lists":
        """Return some of the lists, in another order or more than once."""
        offsets, places = gathered(self.offsets, rows)
        return Lists(offsets, self.codes[places], self.values[places])

    def without_zeros(self) -> "Lists":
        """Return the lists without features of value 0."""
        kept = self.values != 0.0
        if kept.all():
            return self
        before = np.concatenate([[0], np.cumsum(kept)])
        return Lists(before[self.offsets], self.codes[kept], self.values[kept])

    def joined(self, other: "Lists") -> "Lists":
        """Return lists that have the features of both."""
        rows = len(self.offsets) - 1
        both = Lists(
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.values, other.values]),
        ).taken(np.arange(2 * rows).reshape(2, rows).T.ravel())
        return both._replace(offsets=both.offsets[::2])

    def named(self, code_of: AnyArray) -> "Lists":
        """Return the lists with other codes."""
        return self._replace(codes=code_of[self.codes])

    def arrays(self, names: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the names and the values as Arrow's lists; the dictionary has just the names that occur."""
        used = np.zeros(len(names), dtype=bool)
        used[self.codes] = True
        codes = (np.cumsum(used, dtype=np.int32) - 1)[self.codes]
        named = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), names.filter(pa.array(used)))
        offsets = pa.array(self.offsets, pa.int32())
        return pa.ListArray.from_arrays(offsets, named), pa.ListArray.from_arrays(offsets, pa.array(self.values))

    @classmethod
    def chained(cls, parts: "list[Lists]") -> "Lists":
        """Return the lists of all parts, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0))
        before = np.cumsum([0, *(len(part.codes) for part in parts)])
        return cls(
            np.concatenate([[0], *(start + part.offsets[1:] for start, part in zip(before, parts, strict=False))]),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.values for part in parts]),
        )


def gathered(offsets: IntArray, rows: AnyArray) -> tuple[IntArray, IntArray]:
    """Return the offsets of some ragged lists, and where their items are."""
    counts = np.diff(offsets)[rows]
    stops = np.cumsum(counts)
    places = np.arange(counts.sum()) + np.repeat(offsets[:-1][rows] - stops + counts, counts)
    return np.concatenate([[0], stops]), places


class Contexts(NamedTuple):
    """What one pass over the bytes found."""

    lines: IntArray
    """What is known of each line, by the columns of dsjson_roles."""
    shared: Lists
    """One for each line."""
    actions: Lists
    """One for each action of all lines."""
    slots: Lists
    """One for each slot of all lines."""
    keys: IntArray
    """Of each code: start and stop of its namespace, and of its name."""


class Block(NamedTuple):
    """Some of a file's lines."""

    content: bytes
    first: int
    """The number of its first line, from 0."""


def blocks_of(content: bytes, size: int = _BLOCK) -> Iterator[Block]:
    """Cut a file into blocks of whole lines, of about this many bytes."""
    start = first = 0
    while start < len(content):
        stop = content.find(b"\n", start + size) + 1 or len(content)
        part = content[start:stop] if stop - start < len(content) else content
        yield Block(part, first)
        first += part.count(b"\n")
        start = stop


def read_contexts(block: Block) -> Contexts:
    """Read the features in all lines of a block."""
    data = frozen(np.frombuffer(block.content, dtype=np.uint8))
    lines, codes, values, owners, counts, of_actions, of_slots, keys, late = scan(data, *count(data))
    _settle_late_numbers(data, lines, values, late)
    stops = np.concatenate([[0], np.cumsum(counts)])
    shared, of_action, of_slot = owners == SHARED, owners == ACTION, owners == SLOT
    return Contexts(
        lines,
        Lists(np.concatenate([[0], np.cumsum(shared)])[stops], codes[shared], values[shared]).without_zeros(),
        Lists(np.concatenate([[0], np.cumsum(of_actions)]), codes[of_action], values[of_action]).without_zeros(),
        Lists(np.concatenate([[0], np.cumsum(of_slots)]), codes[of_slot], values[of_slot]).without_zeros(),
        keys,
    )


def _settle_late_numbers(data: AnyArray, lines: IntArray, values: FloatArray, late: IntArray) -> None:
    """Fill in the numbers that the kernel could not read exactly: Arrow rounds as Python's ``float`` does."""
    if len(late) == 0:
        return
    offsets = np.concatenate([[0], np.cumsum(late[:, 1] - late[:, 0])])
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    copy_spans(data, frozen(late, np.int64), text)
    strings = pa.LargeStringArray.from_buffers(len(late), pa.py_buffer(offsets), pa.py_buffer(text))
    numbers = strings.cast(pa.float64()).to_numpy(zero_copy_only=False)
    values[late[:, 2]] = numbers
    bad = np.flatnonzero(~np.isfinite(numbers))
    which = np.searchsorted(lines[:, LATER], bad, side="right")
    lines[which, PROBLEM] = BAD_NUMBER
    lines[which, WRONG : WRONG_STOP + 1] = late[bad, :2]
