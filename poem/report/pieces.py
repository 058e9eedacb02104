"""The pieces that all sections of the page are made of: tables, figures, and the words that go with an interval."""

from collections.abc import Iterable, Sequence

from poem.report.content import Content
from poem.report.markup import Html, element, joined
from poem.report.verdict import Range
from poem.report.wording import cut

LABEL_WIDTH = 60  # characters of a label in a table
NOTHING = Html("")


def paragraphs(lines: Iterable[object]) -> Html:
    """Return one paragraph for each line."""
    return joined(*(element("p", line) for line in lines))


def items(lines: Iterable[object]) -> Html:
    """Return a list."""
    return element("ul", *(element("li", line) for line in lines))


def section(name: str, heading: str, *parts: object, kind: str | None = None) -> Html:
    """Return a part of the page under a heading of its own."""
    return element("section", element("h2", heading, id=name), *parts, class_=kind, aria_labelledby=name)


def side_by_side(*parts: Html) -> Html:
    """Return parts beside each other where there is room, and below each other on a phone."""
    return element("div", *parts, class_="pair")


def figure(heading: str, picture: Html, caption: object) -> Html:
    """Return a picture with what it is above, and how to read it below."""
    return element("figure", element("h3", heading), picture, element("figcaption", "How to read this: ", caption))


def key(kind: str) -> Html:
    """Return a spot of a colour, to name it in a caption."""
    return element("span", class_=f"key {kind}", aria_hidden="true")


def pill(verdict: str) -> Html:
    """Return trust, caution or don't in its colour."""
    return element("span", verdict, class_=f"pill {verdict.replace(chr(39), '')}")


def table(caption: str, head: Sequence[object], rows: Iterable[Html]) -> Html:
    """Return a table that scrolls in a box of its own; such a box must be reachable by keyboard."""
    top = element("tr", *(cell if isinstance(cell, Html) else element("th", cell, scope="col") for cell in head))
    inside = element("table", element("thead", top), element("tbody", *rows))
    return element("div", inside, class_="scroll", tabindex="0", role="region", aria_label=caption)


def row(cells: Iterable[object], kind: str | None = None) -> Html:
    """Return a row of a table; what is no cell yet becomes one."""
    ready = (cell if isinstance(cell, Html) and cell.startswith("<td") else element("td", cell) for cell in cells)
    return element("tr", *ready, class_=kind)


def words(content: object) -> Html:
    """Return a cell of text, which may take several lines."""
    return element("td", content, class_="words")


def words_head(content: object) -> Html:
    """Return the head of a column of text."""
    return element("th", content, scope="col", class_="words")


def label(name: str, extra: object = "") -> Html:
    """Return a cell with a name from the log, cut if it is very long."""
    shown = cut(name, LABEL_WIDTH)
    return element("td", shown, extra, class_="label", title=name if shown != name else None)


def ends(one: Range, content: Content, *, signed: bool = False) -> str:
    """Return an interval in the page's decimals."""
    return content.decimals.interval(one.low, one.high, signed=signed)


def level(content: Content) -> str:
    """Return the level of the intervals."""
    return f"{100.0 * content.facts.level:g}%"
