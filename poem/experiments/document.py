"""A document of tables and pictures, as Markdown and as one self-contained HTML page."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from string import Template


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table: a heading, and rows that begin with their names."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A picture: its file beside the Markdown, its SVG for the page, and what it shows in words."""

    file: str
    svg: bytes
    alt: str


@dataclass(frozen=True)
class Section:
    """A heading and what is under it."""

    title: str
    blocks: Sequence[Text | Grid | Picture]


def to_markdown(sections: Sequence[Section]) -> str:
    """Return the sections as Markdown; pictures are linked to."""
    return "\n".join(f"## {section.title}\n\n" + "\n".join(map(_markdown, section.blocks)) for section in sections)


def _markdown(block: Text | Grid | Picture) -> str:
    if isinstance(block, Text):
        return block.text + "\n"
    if isinstance(block, Picture):
        return f"![{block.alt}]({block.file})\n"
    lines = [block.head, ["---", *["---:"] * (len(block.head) - 1)], *block.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_html(title: str, sections: Sequence[Section]) -> str:
    """Return the sections as one page that needs nothing else."""
    parts = [f"<section><h2>{escape(s.title)}</h2>{''.join(map(_html, s.blocks))}</section>" for s in sections]
    return PAGE.substitute(title=escape(title), body="\n".join(parts))


def _html(block: Text | Grid | Picture) -> str:
    if isinstance(block, Text):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Picture):
        # As an image, so that the ids inside one picture cannot meet those of another.
        data = base64.b64encode(block.svg).decode()
        return f'<img alt="{escape(block.alt)}" src="data:image/svg+xml;base64,{data}">'
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in block.head)
    return f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{_html_rows(block)}</tbody></table></div>'


def _html_rows(grid: Grid) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in row[1:])}</tr>'
        for row in grid.rows
    )


PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
:root { color-scheme: light dark; --line: #8884; --quiet: #777; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { line-height: 1.2; text-wrap: balance; }
h2 { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; margin: 1rem 0; }
th, td { padding: .25rem .75rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th[scope=row], thead th:first-child { text-align: left; font-weight: 600; }
thead th { vertical-align: bottom; color: var(--quiet); white-space: normal; }
tbody tr:hover { background: #8881; }
p { max-width: 46rem; }
img { max-width: 100%; background: #fff; border-radius: 6px; }
@media print { h2 { break-before: page; } }
</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")
