"""The features of all contexts, actions and slots in a DSJSON file: ragged lists of codes and values, and their names."""

import json
import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.errors import ReadError
from poem.readers import dsjson_scan
from poem.readers.dsjson_lines import LineError, check_encodable, line_number
from poem.readers.vw_names import copy_spans

_LARGEST_LIST = 2**31 - 1
_UNDERSCORED = str.maketrans(" \t:|", "____")
_UNDERSCORED_WORD = str.maketrans(":|", "__")
# A key, and what follows it if its value is a string; the text is what stands between the quotes.
_NAME = re.compile(rb'((?:[^"\\]|\\.)*)(?:"[ \t\r]*:[ \t\r]*"(.*))?', re.DOTALL)


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

    def spelled(self, spelling: "Spelling") -> "Lists":
        """Return the lists with codes of names; a text becomes its words."""
        if not spelling.has_texts:
            return self._replace(codes=spelling.codes[spelling.offsets[self.codes]])
        counts = np.diff(spelling.offsets)[self.codes]
        before = np.concatenate([[0], np.cumsum(counts)])
        _, places = gathered(spelling.offsets, self.codes)
        return Lists(before[self.offsets], spelling.codes[places], np.repeat(self.values, counts))

    def arrays(self, names: list[str]) -> tuple[pa.Array, pa.Array]:
        """Return the names and the values as Arrow's lists; the dictionary has just the names that occur."""
        used = np.zeros(len(names), dtype=bool)
        used[self.codes] = True
        codes = (np.cumsum(used, dtype=np.int32) - 1)[self.codes]
        distinct = pa.array([names[code] for code in np.flatnonzero(used)], pa.string())
        offsets = pa.array(self.offsets, pa.int32())
        named = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), distinct)
        return pa.ListArray.from_arrays(offsets, named), pa.ListArray.from_arrays(offsets, pa.array(self.values))


def gathered(offsets: IntArray, rows: AnyArray) -> tuple[IntArray, IntArray]:
    """Return the offsets of some ragged lists, and where their items are."""
    counts = np.diff(offsets)[rows]
    stops = np.cumsum(counts)
    places = np.arange(counts.sum()) + np.repeat(offsets[:-1][rows] - stops + counts, counts)
    return np.concatenate([[0], stops]), places


class Spelling(NamedTuple):
    """The names that codes stand for: one, or for a text all its words."""

    offsets: IntArray
    codes: AnyArray
    names: list[str]
    has_texts: bool


class Contexts(NamedTuple):
    """What one pass over the bytes found."""

    lines: IntArray
    """What is known of each line, by the columns of dsjson_scan."""
    shared: Lists
    """One for each line."""
    actions: Lists
    """One for each action of all lines."""
    slots: Lists
    """One for each slot of all lines."""
    keys: IntArray
    """Of each code: start and stop of its namespace, and of its name."""


def read_contexts(content: bytes, name: str) -> Contexts:
    """Read the features in all lines."""
    data = frozen(np.frombuffer(content, dtype=np.uint8))
    lines, most, objects = dsjson_scan.count(data)
    if most > _LARGEST_LIST:
        raise ReadError(f"{name} may have {most} features, which is more than 2^31. Split it, and read the parts.")
    lines, codes, values, owners, counts, of_actions, of_slots, keys, late = dsjson_scan.scan(
        data, lines, most, objects
    )
    _settle_late_numbers(data, lines, values, late)
    found = []
    stops = np.concatenate([[0], np.cumsum(counts)])
    for owner, sizes in ((dsjson_scan.SHARED, None), (dsjson_scan.ACTION, of_actions), (dsjson_scan.SLOT, of_slots)):
        mine = owners == owner
        offsets = (
            np.concatenate([[0], np.cumsum(mine)])[stops] if sizes is None else np.concatenate([[0], np.cumsum(sizes)])
        )
        found.append(Lists(offsets, codes[mine], values[mine]).without_zeros())
    return Contexts(lines, *found, keys)


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
    which = np.searchsorted(lines[:, dsjson_scan.LATER], bad, side="right")
    lines[which, dsjson_scan.PROBLEM] = dsjson_scan.BAD_NUMBER
    lines[which, dsjson_scan.WRONG : dsjson_scan.WRONG_STOP + 1] = late[bad, :2]


# ---- names ------------------------------------------------------------------------------------


def spelling_of(keys: IntArray, used: AnyArray, content: bytes, name: str) -> Spelling:
    """Return the names of all codes that are used."""
    numbers: dict[str, int] = {}
    codes: list[int] = []
    offsets = np.zeros(len(keys) + 1, dtype=np.int64)
    has_texts = False
    for code in np.flatnonzero(used).tolist():
        space, space_stop, start, stop = keys[code].tolist()
        try:
            names = _names(
                None if space < 0 else content[space:space_stop], -1 - start if start < 0 else content[start:stop]
            )
        except LineError as problem:
            raise ReadError(f"{name}, line {line_number(content, start)}: {problem}") from None
        has_texts |= len(names) != 1
        codes.extend(numbers.setdefault(one, len(numbers)) for one in names)
        offsets[code + 1] = len(names)
    return Spelling(np.cumsum(offsets), np.array(codes, dtype=np.int32), list(numbers), has_texts)


def _names(space: bytes | None, key: bytes | int) -> list[str]:
    """Return the name of a feature, or the names of the words of a text; ``key`` may be a place in an array."""
    prefix = "" if space is None else _unescaped(space) + "^"
    if isinstance(key, int):
        return [f"{prefix}[{key}]"]
    found = _NAME.fullmatch(key)
    assert found is not None
    name, text = _unescaped(found[1]), found[2]
    if text is None:
        return [prefix + name]
    if name == "_text":
        return [prefix + word.translate(_UNDERSCORED_WORD) for word in re.split("[ \t]+", _unescaped(text)) if word]
    return [f"{prefix}{name}^{_unescaped(text).translate(_UNDERSCORED)}"]


def _unescaped(text: bytes) -> str:
    if b"\\" not in text:
        return text.decode()
    plain: str = json.loads(b'"' + text + b'"')
    check_encodable(plain)
    return plain
