"""CSV files cut into blocks of whole records: a quoted value may hold newlines."""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np

from poem.arrays import AnyArray, frozen
from poem.compute import exact_kernel
from poem.files import Piece, Table
from poem.readers.blocks import Block, Cut, Cutting, cut

NEWLINE, RETURN, QUOTE = 10, 13, 34
AT_START, IN_FIELD, IN_QUOTES, AFTER_QUOTE = 0, 1, 2, 3


def by_records(read: Callable[..., Table], known: Callable[..., tuple[str, list[str]]]) -> Cut:
    """Return how a format is cut that is CSV; ``known(path, delimiter)`` tells the delimiter and columns of text.

    Each block begins with the file's line of names.
    """

    def blocks(path: Path, cutting: Cutting) -> Iterator[Block]:
        import pyarrow as pa

        options = dict(cutting.options)
        options["delimiter"], padded = known(path, options.get("delimiter"))
        types = dict.fromkeys((*options.pop("texts", ()), *padded), pa.string()) | dict(cutting.types)
        parts = cut(path, cutting.size, partial(last_record, delimiter=ord(options["delimiter"])))
        first = next(parts, b"")
        end = _names_end(frozen(np.frombuffer(first, np.uint8)), ord(options["delimiter"])) or len(first)
        names = first[:end]
        for number, content in enumerate(chain([first[end:]], parts)):
            if not (number and content.isspace()):
                yield Block(path, partial(read, Piece(path.name, names + content), **options, types=types))

    return blocks


def last_record(content: bytes, delimiter: int) -> int:
    """Return where the last whole record ends; 0 if there is none."""
    if b'"' not in content:
        return content.rfind(b"\n") + 1
    return int(_last_end(frozen(np.frombuffer(content, np.uint8)), delimiter))


@exact_kernel
def _next_state(state: int, byte: int, delimiter: int) -> int:
    """Return where in a field one is after a byte, as Arrow sees it: quotes count at the beginning of a field only."""
    if state == IN_QUOTES:
        return AFTER_QUOTE if byte == QUOTE else IN_QUOTES
    if state == AFTER_QUOTE and byte == QUOTE:
        return IN_QUOTES
    if byte in (NEWLINE, RETURN, delimiter):
        return AT_START
    return IN_QUOTES if state == AT_START and byte == QUOTE else IN_FIELD


@exact_kernel
def _last_end(text: AnyArray, delimiter: int) -> int:
    end, state = 0, AT_START
    for at in range(text.size):
        state = _next_state(state, text[at], delimiter)
        if state == AT_START and text[at] == NEWLINE:
            end = at + 1
    return end


@exact_kernel
def _names_end(text: AnyArray, delimiter: int) -> int:
    """Return where the first record ends that is not blank; 0 if none does."""
    state, begun = AT_START, False
    for at in range(text.size):
        state = _next_state(state, text[at], delimiter)
        if state == AT_START and text[at] == NEWLINE and begun:
            return at + 1
        begun = begun or text[at] not in (NEWLINE, RETURN)
    return 0
