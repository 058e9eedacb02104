"""Text that is shown: tables and sheets of them, plain, in a terminal and in a notebook; and JSON."""

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, Group
    from rich.table import Table
    from rich.text import Text

# Characters that change what a terminal shows of others, or cannot be written: controls, marks of direction, separators
# of lines, and halves of surrogate pairs, which stand for the bytes of a file name that is not UTF-8.
UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
BREAKS = re.compile("[\t\n]")
CONSONANT_Y = re.compile("(?<![aeiou])y$")
GAP = 2  # columns between two columns of a table
# How a line begins in a terminal, and the colour of that beginning; the first one that fits counts.
TONES = (
    (r"Certified:|Answer: (estimated to be )?better|Answer: ship\.|Verdict: fit for learning:", "bold green"),
    (r"Not certified:|Answer: [^.,:]*|Verdict: [^:.]*", "bold yellow"),
    (r"Warning:|Chosen:|Provided that:|Gain:|Best:|Against:", "bold"),
)


def visible(text: str) -> str:
    """Return a text with escapes such as ``\\x1b`` in place of characters that could act on a terminal."""
    return UNSEEN.sub(_escape, text)


def visible_line(text: str) -> str:
    """Return the same as one line: what comes from a log must not look like a line of poem's own."""
    return BREAKS.sub(_escape, visible(text))


def counted(number: int, what: str) -> str:
    """Return a number of things, one or several: ``1 row``, ``2 classes``, ``1,200 entries``."""
    several = f"{what}es" if what.endswith("s") else f"{CONSONANT_Y.sub('ie', what)}s"
    return f"{number:,} {what if number == 1 else several}"


def rounded(count: float) -> int:
    """Return a number of things with two digits that count, at least 1."""
    return int(float(f"{max(count, 1.0):.1e}"))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()


@dataclass(frozen=True)
class Grid:
    """A table of text: the first ``left`` columns are aligned to the left, the others to the right."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "head", tuple(map(visible_line, self.head)))
        object.__setattr__(self, "rows", tuple(tuple(map(visible_line, row)) for row in self.rows))

    def __str__(self) -> str:
        from rich.cells import cell_len  # characters of East Asian scripts take two columns

        lines = [self.head, *self.rows]
        widths = [max(cell_len(line[column]) for line in lines) for column in range(len(self.head))]
        text = ["  ".join(map(self._padded, range(len(widths)), line, widths, map(cell_len, line))) for line in lines]
        return "\n".join([text[0].rstrip(), "  ".join("─" * width for width in widths), *map(str.rstrip, text[1:])])

    def _padded(self, column: int, cell: str, width: int, length: int) -> str:
        room = " " * (width - length)
        return cell + room if column < self.left else room + cell

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "Iterator[Table]":
        from rich import box
        from rich.table import Table
        from rich.text import Text

        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        words = self._longest_words()
        whole = sum(words) + GAP * len(words) <= options.max_width  # cells are folded between words, if there is room
        for number, (name, word) in enumerate(zip(self.head, words, strict=True)):
            side: Literal["left", "right"] = "left" if number < self.left else "right"
            table.add_column(Text(name), justify=side, overflow="fold", min_width=word if whole else None)
        for row in self.rows:
            table.add_row(*map(Text, row))
        yield table

    def _longest_words(self) -> list[int]:
        from rich.cells import cell_len

        columns = zip(self.head, *self.rows, strict=True)
        return [max(cell_len(word) for cell in column for word in (cell.split() or [""])) for column in columns]

    def html(self) -> str:
        """Return an HTML table; whatever a name holds is escaped."""
        head = "".join(map(self._cell, range(len(self.head)), ["th"] * len(self.head), self.head))
        body = "".join(
            f"<tr>{''.join(map(self._cell, range(len(row)), ['td'] * len(row), row))}</tr>" for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def _cell(self, column: int, kind: str, content: str) -> str:
        side = "left" if column < self.left else "right"
        return f'<{kind} style="text-align:{side}">{escape(content)}</{kind}>'


class Sheet:
    """Lines of text and tables, one below the other: plain as a string, coloured by rich, and as HTML."""

    def __init__(self, *parts: str | Grid) -> None:
        self.parts = tuple(visible(part) if isinstance(part, str) else part for part in parts)

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts))

    def __rich__(self) -> "Group":
        from rich.console import Group

        return Group(*(part if isinstance(part, Grid) else coloured(part) for part in self.parts))

    def html(self) -> str:
        """Return HTML for a notebook; whatever a text holds is escaped."""
        parts = (part.html() if isinstance(part, Grid) else _paragraphs(part) for part in self.parts)
        return f"<div>{''.join(parts)}</div>"


def coloured(text: str) -> "Text":
    """Return a text whose answers, verdicts and warnings stand out; no part of it is taken for markup."""
    from rich.text import Text

    found = Text("\n").join(Text(line) for line in text.split("\n"))
    position = 0
    for line in text.split("\n"):
        for pattern, style in TONES:
            if match := re.match(pattern, line):
                found.stylize(style, position, position + match.end())
                break
        position += len(line) + 1
    return found


def _paragraphs(text: str) -> str:
    lines = (f"<p>{escape(line)}</p>" for line in text.split("\n") if line)
    return "".join(lines)


def as_json(content: Any, indent: int | None = 2) -> str:
    """Return content as JSON, which knows no infinity and no NaN: they are null."""
    return harmless_json(json.dumps(_finite(content), ensure_ascii=False, indent=indent, default=str, allow_nan=False))


def harmless_json(text: str) -> str:
    """Return JSON of the same content, with JSON's escapes for what could act on a terminal or is not UTF-8."""
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _finite(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content
