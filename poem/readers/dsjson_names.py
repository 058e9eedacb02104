"""The names of features in a DSJSON file: written from keys and strings as they stand there, and told apart."""

import json
import re

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, BoolArray, IntArray, frozen
from poem.errors import ReadError
from poem.readers.byte_kernels import byte_kernel
from poem.readers.dsjson_features import Block, Lists, gathered
from poem.readers.dsjson_lines import LineError, check_encodable
from poem.readers.json_words import BACKSLASH, QUOTE, UNDERSCORE, begins_with, letters
from poem.readers.vw_words import BAR, CARET, COLON, SPACE, TAB

_MOST_BYTES = 2**31 - 1
_UNDERSCORED = str.maketrans(" \t:|", "____")
# A key, and what follows it if its value is a string; the text is what stands between the quotes.
_NAME = re.compile(rb'((?:[^"\\]|\\.)*)(?:"[ \t\r]*:[ \t\r]*"(.*))?', re.DOTALL)
_TEXT = letters('_text"')


class Names:
    """The names so far; each block of lines has its own, and only in the end are equal ones one."""

    def __init__(self) -> None:
        self._parts = [pa.array([], pa.string())]
        self._count = 0
        self._bytes = 0

    def spelled(self, lists: list[Lists], keys: IntArray, block: Block) -> list[Lists]:
        """Return lists with codes of names in place of codes of keys; a text becomes its words."""
        used = np.zeros(len(keys), dtype=bool)
        for one in lists:
            used[one.codes] = True
        which = np.flatnonzero(used)
        names, is_odd = _written(block.content, keys[which])
        # A key that is written in Python may have any number of names; they come after all others.
        codes, counts = self._count + np.arange(len(which)), np.ones(len(which), dtype=np.int64)
        odd = [_names(block, *keys[code].tolist()) for code in which[is_odd].tolist()]
        counts[is_odd] = [len(some) for some in odd]
        offsets = np.concatenate([[0], np.cumsum(counts)])
        places = np.repeat(codes, counts).astype(np.int32)
        places[np.repeat(is_odd, counts)] = self._count + len(which) + np.arange(sum(map(len, odd)))
        self._add(names)
        self._add(pa.array([name for some in odd for name in some], pa.string()))
        of_code = np.zeros(len(keys), dtype=np.int64)
        of_code[which] = np.arange(len(which))
        return [_replaced(one, of_code, offsets, places) for one in lists]

    def _add(self, names: pa.Array) -> None:
        self._parts.append(names)
        self._count += len(names)
        self._bytes += names.nbytes

    def distinct(self, name: str) -> tuple[AnyArray, pa.Array]:
        """Return the number of each name, and the distinct names; ``name`` is that of the file."""
        if self._bytes > _MOST_BYTES:
            raise ReadError(f"{name} has {self._bytes} bytes of names, more than 2^31. Split it, and read the parts.")
        found = pa.concat_arrays(self._parts).dictionary_encode()
        return found.indices.to_numpy(), found.dictionary


def _replaced(lists: Lists, of_code: IntArray, offsets: IntArray, places: AnyArray) -> Lists:
    """Return lists in which each code stands for a list of others: mostly one, but a text has many words."""
    rows = of_code[lists.codes]
    counts = np.diff(offsets)[rows]
    if (counts == 1).all():
        return lists._replace(codes=places[offsets[rows]])
    before = np.concatenate([[0], np.cumsum(counts)])
    return Lists(before[lists.offsets], places[gathered(offsets, rows)[1]], np.repeat(lists.values, counts))


def _names(block: Block, space: int, space_stop: int, start: int, stop: int) -> list[str]:
    """Return the name of a feature, or the names of the words of a text."""
    content = block.content
    try:
        prefix = "" if space < 0 else _unescaped(content[space:space_stop]) + "^"
        if start < 0:
            return [f"{prefix}[{-1 - start}]"]
        found = _NAME.fullmatch(content[start:stop])
        assert found is not None
        name, text = _unescaped(found[1]), found[2]
        if text is None:
            return [prefix + name]
        text = _unescaped(text)
    except LineError as problem:
        raise LineError(str(problem), block.first + content.count(b"\n", 0, max(space, start))) from None
    if name == "_text":
        return [prefix + word.translate(_UNDERSCORED) for word in re.split("[ \t]+", text) if word]
    return [f"{prefix}{name}^{text.translate(_UNDERSCORED)}"]


def _unescaped(text: bytes) -> str:
    if b"\\" not in text:
        return text.decode()
    plain: str = json.loads(b'"' + text + b'"')
    check_encodable(plain)
    return plain


# ---- kernels ----------------------------------------------------------------------------------


def _written(content: bytes, keys: IntArray) -> tuple[pa.Array, BoolArray]:
    """Return the names of keys, and which are left out here: places in arrays, texts, and what has escapes."""
    lengths = np.maximum(keys[:, 1] - keys[:, 0], 0) + np.maximum(keys[:, 3] - keys[:, 2], 0)
    out = np.empty(int(lengths.sum()) + len(keys), dtype=np.uint8)
    offsets, is_odd = np.zeros(len(keys) + 1, dtype=np.int32), np.zeros(len(keys), dtype=np.bool_)
    _write(frozen(np.frombuffer(content, dtype=np.uint8)), frozen(keys, np.int64), out, offsets, is_odd)
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(offsets), pa.py_buffer(out[: offsets[-1]])), is_odd


@byte_kernel
def _write(data: AnyArray, keys: IntArray, out: AnyArray, offsets: AnyArray, is_odd: AnyArray) -> None:
    """Write the names of keys one after another; those that are left out are empty."""
    begin = 0
    for key in range(keys.shape[0]):
        start, stop = keys[key, 2], keys[key, 3]
        odd = start < 0 or begins_with(data, start, stop, _TEXT)
        at = begin
        if keys[key, 0] >= 0:
            for place in range(keys[key, 0], keys[key, 1]):
                out[at] = data[place]
                odd |= data[place] == BACKSLASH
                at += 1
            out[at] = CARET
            at += 1
        # Quotes: after the key, before the text of a category.
        quotes, place = 0, start
        while place < stop and not odd:
            byte = data[place]
            if byte == BACKSLASH:
                odd = True
            elif byte == QUOTE:
                if quotes == 0:
                    out[at] = CARET
                    at += 1
                quotes += 1
            elif quotes == 0:
                out[at] = byte
                at += 1
            elif quotes == 2:
                out[at] = UNDERSCORE if byte in (SPACE, TAB, COLON, BAR) else byte
                at += 1
            place += 1
        is_odd[key] = odd
        begin = begin if odd else at
        offsets[key + 1] = begin
