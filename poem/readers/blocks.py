"""Files cut into blocks of whole lines, so that files larger than memory can be read one block after the other."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from poem.errors import PoemError, ReadError
from poem.files import Piece, Table, contents_of

LONGEST = 1 << 28  # bytes of a line, or of a block if blocks are longer


@dataclass(frozen=True)
class Block:
    """Some rows of a file; ``read`` parses them into a table, and ``lines`` of the file stand before them."""

    file: Path
    read: Callable[[], Table]
    lines: int = 0


@dataclass(frozen=True)
class Cutting:
    """How a file is cut into blocks, and how these are read.

    Attributes
    ----------
    size : int
        Bytes of a block, decompressed.
    options : dict
        For the reader of the format.
    types : dict, optional
        Types that columns are known to have, in a format that does not say so itself.
    columns : callable, optional
        Returns which columns of a plain table with a schema are needed, for a format that can leave out others.
    """

    size: int
    options: Mapping[str, Any] = field(default_factory=dict)
    types: Mapping[str, Any] = field(default_factory=dict)
    columns: Callable[[Any], Sequence[str]] | None = None


Cut = Callable[[Path, Cutting], Iterator[Block]]


def by_lines(read: Callable[..., Table]) -> Cut:
    """Return how a format is cut whose reader takes any lines of a file."""

    def blocks(path: Path, cutting: Cutting) -> Iterator[Block]:
        options = {**cutting.options, **({"types": cutting.types} if cutting.types else {})}
        lines = 0
        for content in cut(path, cutting.size, last_line):
            if not content.isspace():
                yield Block(path, partial(read, Piece(path.name, content, not lines), **options), lines)
            lines += content.count(b"\n")

    return blocks


def last_line(content: bytes) -> int:
    """Return where the last whole line ends; 0 if there is none."""
    return content.rfind(b"\n") + 1


def cut(path: Path, size: int, end_of: Callable[[bytes], int]) -> Iterator[bytes]:
    """Yield what a file holds in blocks of about ``size`` bytes; ``end_of`` says where the last whole row ends."""
    rest, longest = b"", max(LONGEST, size)
    for more in contents_of(path, size):
        content = rest + more if rest else more
        end = end_of(content)
        if not end and len(content) > longest:
            raise ReadError(
                f"{path.name} has a line of more than {longest:,} bytes ({content[:40].decode(errors='replace')!r}…). "
                "Is a quote never closed? Fix the line."
            )
        if end:
            yield content[:end]
        rest = content[end:]
    if rest:
        yield rest


def moved(error: PoemError, name: str, rows: int, lines: int) -> PoemError:
    """Return an error of a block that names rows and lines as those of the whole file."""

    def in_file(found: re.Match[str]) -> str:
        return f"{found[1]}{int(found[2]) + (rows if found[1].endswith('row ') else lines)}"

    text = re.sub(rf"({re.escape(name)}, (?:row|line) )(\d+)", in_file, str(error))
    return type(error)(text)
