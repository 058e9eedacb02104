"""JSON lines: one object per line, read by pyarrow; nested objects become columns such as context.age."""

import codecs
import io
import json
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from poem.arrays import frozen
from poem.errors import ReadError
from poem.files import Piece, Source, Table, Watched, content_of
from poem.readers.blocks import by_lines
from poem.readers.format import MARK, Format, Head
from poem.readers.lines import with_lines

BLOCK, LARGEST_BLOCK = 1 << 20, 2**31 - 1
DEEPEST = 100  # lists and objects in each other: tens of thousands of them end the process inside pyarrow
NEWLINE, RETURN, SPACE, QUOTE, BACKSLASH, LETTER_N, BEYOND_ASCII = 10, 13, 32, 34, 92, 110, 128
OPEN_LIST, CLOSE_LIST, OPEN_OBJECT, CLOSE_OBJECT = 91, 93, 123, 125


def read_table(path: Source, types: Mapping[str, Any] | None = None) -> Table:
    """Read a file of one JSON object per line; ``types`` are those of columns, where they are known already."""
    import pyarrow as pa
    from pyarrow import json as arrow_json

    content = content_of(path)
    head = content[:BLOCK].removeprefix(MARK).lstrip()
    if not head and not content.strip():
        raise ReadError(f"{path.name} is empty. Pass a file with at least one decision.")
    if head[:1] == b"[" and not (isinstance(path, Piece) and not path.is_first):
        raise ReadError(f"{path.name} is a JSON array; one object per line is needed. Write it as JSON lines.")
    _check_utf8(content, path.name)
    _check_shape(content, path.name)
    block = BLOCK
    known = arrow_json.ParseOptions(explicit_schema=pa.schema(list(types.items())) if types else None)
    while True:
        try:
            source = Watched(io.BytesIO(content), path.name, len(content))
            table = arrow_json.read_json(source, arrow_json.ReadOptions(block_size=block), known)
            break
        except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
            if "straddling" in str(error) and block < min(len(content), LARGEST_BLOCK):
                block = min(block * 16, LARGEST_BLOCK)  # a line is longer than a block
                continue
            raise ReadError(
                f"{path.name}{_bad_line(content)} cannot be read as JSON lines: {_without_row(error)}. Each line must "
                "be one whole object, and a field must have one type in all of them; fix or drop such lines."
            ) from error
    return with_lines(table, content)


def _check_utf8(content: bytes, name: str) -> None:
    """Raise for bytes that are not text; block by block, as all of them decoded could take four times the memory."""
    if content.isascii():
        return
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), BLOCK):
        pending = len(decoder.getstate()[0])
        try:
            decoder.decode(content[start : start + BLOCK], final=start + BLOCK >= len(content))
        except UnicodeDecodeError as error:
            at = start - pending + error.start
            line = content.count(b"\n", 0, at) + 1
            raise ReadError(
                f"{name}, line {line}: the bytes {content[at : at + 4]!r} are not UTF-8. Save the file as UTF-8."
            ) from error


def _check_shape(content: bytes, name: str) -> None:
    """Raise for what ends the process inside pyarrow: a line that is null, and nesting of tens of thousands."""
    at, is_null = _first_trouble(frozen(np.frombuffer(content, dtype=np.uint8)), DEEPEST)
    if at < 0:
        return
    line = content.count(b"\n", 0, at) + 1
    if is_null:
        raise ReadError(f"{name}, line {line} is null. Each line must be one whole object; drop such lines.")
    raise ReadError(
        f"{name}, line {line}: lists or objects are nested more than {DEEPEST} deep. Flatten them, or leave the line "
        "out."
    )


@njit(cache=True)
def _first_trouble(text: Any, deepest: int) -> tuple[int, bool]:
    """Return where brackets outside of strings are nested too deeply or a line begins with n; −1 if nowhere."""
    depth, in_string, escaped, line_begins = 0, False, False, True
    for at in range(len(text)):
        byte = text[at]
        if byte in (NEWLINE, RETURN):  # no string goes over a line
            in_string, escaped, line_begins = False, False, True
        elif in_string:
            in_string = escaped or byte != QUOTE
            escaped = byte == BACKSLASH and not escaped
        elif byte == QUOTE:
            in_string, escaped, line_begins = True, False, False
        elif byte in (OPEN_LIST, OPEN_OBJECT):
            depth += 1
            line_begins = False
            if depth > deepest:
                return at, False
        elif byte in (CLOSE_LIST, CLOSE_OBJECT):
            depth = max(depth - 1, 0)
            line_begins = False
        elif byte > SPACE:
            if line_begins and byte == LETTER_N:
                return at, True
            line_begins = line_begins and byte >= BEYOND_ASCII  # a byte order mark begins no line
    return -1, False


def _without_row(error: Exception) -> str:
    """Return what Arrow says without the row, which counts from the beginning of some block."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    return re.sub(r"[. ]* in row \d+$", "", text)[:300]


def _bad_line(content: bytes) -> str:
    """Say which line is not one object, or has a field of another type than before."""
    before: dict[str, type] = {}
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        shown = f", line {number} ({line[:40].decode(errors='replace')!r})"
        try:
            found = json.loads(line.removeprefix(MARK), object_pairs_hook=_distinct_keys)
        except (ValueError, RecursionError):
            return shown
        if not isinstance(found, dict):
            return shown
        for key, value in found.items():
            kind = float if isinstance(value, int) and not isinstance(value, bool) else type(value)
            if value is not None and before.setdefault(key, kind) is not kind:
                return f", line {number}, column {key!r} ({value!r:.40})"
    return ""


def _distinct_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found


def _looks(head: Head) -> bool:
    return head.first_line.lstrip().startswith(("{", "["))


FORMAT = Format(
    read_table, _looks, (".jsonl", ".ndjson", ".json"), takes=("types",), counted="line", cut=by_lines(read_table)
)
