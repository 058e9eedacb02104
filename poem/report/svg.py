"""Pieces of inline SVG: axes with round ticks, lines, dots and words. Colours are CSS classes."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from poem.report.markup import element, joined
from poem.report.wording import short

WIDTH = 400.0
ROW = 22.0
TOP, BOTTOM = 10.0, 42.0
CHARACTER = 6.4  # the mean width of a character, in units


@dataclass(frozen=True)
class Axis:
    """A scale from numbers to places; ``log`` for powers of ten."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return the place of a number, held to the ends of the axis."""
        low, high, value = (self._scaled(number) for number in (self.low, self.high, value))
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + (self.end - self.start) * min(max(share, 0.0), 1.0), 2)

    def _scaled(self, value: float) -> float:
        return math.log10(max(value, 1e-300)) if self.log else value

    def ticks(self, most: int = 5) -> list[float]:
        """Return round numbers along the axis."""
        return _log_ticks(self.low, self.high, most) if self.log else _ticks(self.low, self.high, most)


def _ticks(low: float, high: float, most: int) -> list[float]:
    if not high > low:
        return [low]
    rough = (high - low) / most
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * factor for factor in (1.0, 2.0, 5.0, 10.0) if power * factor >= rough * (1.0 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(number * step, 12) + 0.0 for number in range(first, last + 1)]


def _log_ticks(low: float, high: float, most: int) -> list[float]:
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        found = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
        inside = [tick for tick in found if low * 0.999 <= tick <= high * 1.001]
        if len(inside) <= most:
            return inside
    return inside[:: math.ceil(len(inside) / most)]


def padded(low: float, high: float, share: float = 0.04) -> tuple[float, float]:
    """Return the ends of an axis with some room beyond them."""
    room = (high - low) * share or abs(high) * 0.1 or 1.0
    return low - room, high + room


# ---- pieces of drawings ---------------------------------------------------------------------


def picture(height: float, description: str, *parts: object) -> Markup:
    """Return a whole picture, with what it shows in words."""
    return element(
        "svg",
        element("title", description),
        *parts,
        class_="plot",
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_label=description,
    )


def words(x: float, y: float, content: object, anchor: str = "start", kind: str = "tick") -> Markup:
    """Return a text."""
    return element("text", content, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    """Return a straight line."""
    return element("line", x1=f"{x1:g}", y1=f"{y1:g}", x2=f"{x2:g}", y2=f"{y2:g}", class_=kind)


def rect(x: float, y: float, width: float, height: float, kind: str, note: str | None = None) -> Markup:
    """Return a rectangle, with a note if one is given."""
    title = () if note is None else (element("title", note),)
    return element("rect", *title, x=f"{x:g}", y=f"{y:g}", width=f"{width:g}", height=f"{height:g}", class_=kind)


def dot(x: float, y: float, kind: str, note: str | None = None, radius: float = 4.0) -> Markup:
    """Return a dot, with a note if one is given."""
    title = () if note is None else (element("title", note),)
    return element("circle", *title, cx=f"{x:g}", cy=f"{y:g}", r=f"{radius:g}", class_=kind)


def arrow(x: float, y: float, way: float, kind: str) -> Markup:
    """Return a head that says: it goes on beyond the end."""
    points = f"{x:g},{y:g} {x - 6 * way:g},{y - 4:g} {x - 6 * way:g},{y + 4:g}"
    return element("polygon", points=points, class_=f"{kind} filled")


def _fitting(axis: Axis, show: Callable[[float], str]) -> list[float]:
    """Return as many ticks as their labels have room for."""
    for most in (6, 5, 4, 3, 2):
        ticks = axis.ticks(most)
        widest = max((len(show(tick)) for tick in ticks), default=1) * CHARACTER + 12.0
        if len(ticks) * widest <= abs(axis.end - axis.start) or most == 2:
            return ticks
    return ticks


def axis_below(axis: Axis, top: float, bottom: float, label: str, show: Callable[[float], str] = short) -> Markup:
    """Return grid lines, tick labels and the name of a horizontal axis."""
    parts = []
    for tick in _fitting(axis, show):
        x = axis.at(tick)
        parts += [line(x, top, x, bottom, "grid"), words(x, bottom + 16, show(tick), "middle")]
    middle = (axis.start + axis.end) / 2
    return joined(*parts, line(axis.start, bottom, axis.end, bottom, "axis"), _named(middle, bottom + 33, label))


def _named(middle: float, y: float, label: str) -> Markup:
    """Return an axis's name in the middle of it, moved inside if it is long."""
    half = len(label) * CHARACTER / 2
    return words(min(max(middle, half), WIDTH - half), y, label, "middle", "name")


def anchor(x: float, length: int) -> str:
    """Keep a label inside the picture."""
    half = length * CHARACTER / 2
    return "end" if x + half > WIDTH else "start" if x - half < 0 else "middle"


def axis_beside(axis: Axis, left: float, right: float, label: str, show: Callable[[float], str] = short) -> Markup:
    """Return grid lines and labels of a vertical axis, with its name above."""
    parts = []
    for tick in axis.ticks(5):
        y = axis.at(tick)
        parts += [line(left, y, right, y, "grid"), words(left - 6, y + 4, show(tick), "end")]
    return joined(*parts, words(0, 11, label, "start", "name"))


def margin(labels: Sequence[str]) -> float:
    """Return the room that labels on the left need."""
    return max((len(label) for label in labels), default=0) * CHARACTER + 10.0
