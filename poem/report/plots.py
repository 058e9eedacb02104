"""Figures → inline SVG. Colours are CSS classes, so that light, dark and print need one drawing.

All are 400 units wide, about the width of a phone: text stays readable when they shrink, and on a wide screen two of
them stand side by side.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from poem.report.markup import Html, element, joined
from poem.report.verdict import Range
from poem.report.wording import cut, percent, short

WIDTH = 400.0
ROW = 22.0
TOP, BOTTOM = 10.0, 42.0
CHARACTER = 6.4  # the mean width of a character, in units
LABEL_COLUMNS = 18


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


def _padded(low: float, high: float, share: float = 0.04) -> tuple[float, float]:
    room = (high - low) * share or abs(high) * 0.1 or 1.0
    return low - room, high + room


# ---- pieces of drawings ---------------------------------------------------------------------


def _svg(height: float, description: str, *parts: object) -> Html:
    return element(
        "svg",
        element("title", description),
        *parts,
        class_="plot",
        viewBox=f"0 0 {WIDTH:g} {height:g}",
        role="img",
        aria_label=description,
    )


def _text(x: float, y: float, content: object, anchor: str = "start", kind: str = "tick") -> Html:
    return element("text", content, x=f"{x:g}", y=f"{y:g}", text_anchor=anchor, class_=kind)


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Html:
    return element("line", x1=f"{x1:g}", y1=f"{y1:g}", x2=f"{x2:g}", y2=f"{y2:g}", class_=kind)


def _rect(x: float, y: float, width: float, height: float, kind: str, note: str | None = None) -> Html:
    title = () if note is None else (element("title", note),)
    return element("rect", *title, x=f"{x:g}", y=f"{y:g}", width=f"{width:g}", height=f"{height:g}", class_=kind)


def _dot(x: float, y: float, kind: str, note: str | None = None, radius: float = 4.0) -> Html:
    title = () if note is None else (element("title", note),)
    return element("circle", *title, cx=f"{x:g}", cy=f"{y:g}", r=f"{radius:g}", class_=kind)


def _arrow(x: float, y: float, way: float, kind: str) -> Html:
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


def _below(axis: Axis, top: float, bottom: float, label: str, show: Callable[[float], str] = short) -> Html:
    """Return grid lines, tick labels and the name of a horizontal axis."""
    parts = []
    for tick in _fitting(axis, show):
        x = axis.at(tick)
        parts += [_line(x, top, x, bottom, "grid"), _text(x, bottom + 16, show(tick), "middle")]
    middle = (axis.start + axis.end) / 2
    return joined(*parts, _line(axis.start, bottom, axis.end, bottom, "axis"), _named(middle, bottom + 33, label))


def _named(middle: float, y: float, label: str) -> Html:
    """Return an axis's name in the middle of it, moved inside if it is long."""
    half = len(label) * CHARACTER / 2
    return _text(min(max(middle, half), WIDTH - half), y, label, "middle", "name")


def _anchor(x: float, length: int) -> str:
    """Keep a label inside the picture."""
    half = length * CHARACTER / 2
    return "end" if x + half > WIDTH else "start" if x - half < 0 else "middle"


def _beside(axis: Axis, left: float, right: float, label: str, show: Callable[[float], str] = short) -> Html:
    """Return grid lines and labels of a vertical axis, with its name above."""
    parts = []
    for tick in axis.ticks(5):
        y = axis.at(tick)
        parts += [_line(left, y, right, y, "grid"), _text(left - 6, y + 4, show(tick), "end")]
    return joined(*parts, _text(0, 11, label, "start", "name"))


def _margin(labels: Sequence[str]) -> float:
    """Return the room that labels on the left need."""
    return max((len(label) for label in labels), default=0) * CHARACTER + 10.0


# ---- intervals ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mark:
    """One interval of a forest plot."""

    label: str
    range: Range
    kind: str = "new"


def forest(
    marks: Sequence[Mark],
    reference: Range,
    axis_label: str,
    description: str,
    headline: Range | None = None,
    reference_name: str = "logged",
) -> Html:
    """Draw intervals one below the other, and the one that they are compared with as a band behind them."""
    labels = [cut(mark.label, LABEL_COLUMNS) for mark in marks]
    low, high = _limits([mark.range for mark in marks], reference, headline)
    top, bottom = TOP + 12, TOP + 12 + ROW * len(marks)
    axis = Axis(low, high, _margin(labels), WIDTH - 14)
    rows = [
        joined(_text(axis.start - 8, y + 4, label, "end", "label"), _interval(mark, axis, y))
        for mark, label, y in zip(marks, labels, _middles(top, len(marks)), strict=True)
    ]
    behind = _band(reference, axis, top, bottom, reference_name)
    return _svg(bottom + BOTTOM, description, behind, _below(axis, top, bottom, axis_label), *rows)


def _middles(top: float, rows: int) -> Iterator[float]:
    return (top + ROW * (row + 0.5) for row in range(rows))


def _limits(ranges: Sequence[Range], reference: Range, headline: Range | None) -> tuple[float, float]:
    """Return the part of the axis that matters: what is far beyond is cut off, and marked by an arrow."""
    core = [one for one in (reference, headline) if one is not None and one.bounded]
    ends = [end for one in core for end in (one.low, one.high)] or [
        number for one in (reference, *ranges) for number in (one.value, one.low, one.high) if math.isfinite(number)
    ]
    low, high = min(ends, default=0.0), max(ends, default=1.0)
    room = (1.5 * (high - low) or abs(high) or 1.0) if core else 0.0
    far = [end for one in ranges for end in (one.low, one.high) if math.isfinite(end)]
    return _padded(max(min([low, *far]), low - room), min(max([high, *far]), high + room))


def _band(reference: Range, axis: Axis, top: float, bottom: float, name: str) -> Html:
    x = axis.at(reference.value)
    parts = []
    if reference.bounded and reference.high > reference.low:
        left, right = axis.at(reference.low), axis.at(reference.high)
        parts.append(_rect(left, top, right - left, bottom - top, "band"))
    label = _text(x, top - 5, name, _anchor(x, len(name)), "tick")
    return joined(*parts, _line(x, top, x, bottom, "reference"), label)


def _interval(mark: Mark, axis: Axis, y: float) -> Html:
    """Draw one interval; an arrow at an end says that it goes on."""
    one = mark.range
    note = f"{mark.label}: {short(one.value)}, from {short(one.low)} to {short(one.high)}"
    if math.isnan(one.value):
        return _text((axis.start + axis.end) / 2, y + 4, "not known", "middle", "tick")
    left, right = axis.at(one.low), axis.at(one.high)
    parts = [_line(left, y, right, y, f"whisker {mark.kind}")]
    parts.append(_end(axis, one.low, y, -1.0, mark.kind))
    parts.append(_end(axis, one.high, y, 1.0, mark.kind))
    if axis.low <= one.value <= axis.high:
        parts.append(_dot(axis.at(one.value), y, f"{mark.kind} filled"))
    return element("g", element("title", note), *parts)


def _end(axis: Axis, value: float, y: float, way: float, kind: str) -> Html:
    x = axis.at(value)
    if axis.low <= value <= axis.high:
        return _line(x, y - 4, x, y + 4, f"whisker {kind}")
    return _arrow(x, y, way, kind)


# ---- shares before and after ----------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """An output's share before and after."""

    label: str
    before: float
    after: float
    faint: bool = False


def moves(all_moves: Sequence[Move], axis_label: str, description: str) -> Html:
    """Draw each output's share in the log as a ring, and under the policy as a dot, with a bar between."""
    labels = [cut(move.label, LABEL_COLUMNS) for move in all_moves]
    highest = max(max(move.before, move.after) for move in all_moves)
    top, bottom = TOP, TOP + ROW * len(all_moves)
    axis = Axis(0.0, highest * 1.03 or 1.0, _margin(labels), WIDTH - 14)
    rows = [
        joined(_text(axis.start - 8, y + 4, label, "end", "label"), _move(move, axis, y))
        for move, label, y in zip(all_moves, labels, _middles(top, len(all_moves)), strict=True)
    ]
    return _svg(bottom + BOTTOM, description, _below(axis, top, bottom, axis_label, axis_percent), *rows)


def _move(move: Move, axis: Axis, y: float) -> Html:
    kind = "rise" if move.after >= move.before else "fall"
    before, after = axis.at(move.before), axis.at(move.after)
    note = f"{move.label}: {percent(move.before)} in the log, {percent(move.after)} under the new policy"
    faint = " faint" if move.faint else ""
    return element(
        "g",
        element("title", note),
        _line(before, y, after, y, f"stem {kind}{faint}"),
        _dot(before, y, "ring", radius=3.5),
        _dot(after, y, f"{kind} filled"),
    )


def axis_percent(share: float) -> str:
    """Return a share for an axis."""
    return f"{short(100.0 * share)}%"


# ---- weights --------------------------------------------------------------------------------


def weights(bins: Sequence[tuple[float, float, float, float]], description: str) -> Html:
    """Draw (low, high, share of rows, share of weight) as pairs of bars on a logarithmic axis."""
    height, left = 210.0, 46.0
    low, high = min(bins[0][0], 0.5), max(bins[-1][1], 2.0)
    across = Axis(low, high, left, WIDTH - 12, log=True)
    up = Axis(0.0, max(max(rows, weight) for *_, rows, weight in bins) * 1.05, height - BOTTOM, 26.0)
    bars = [bar for one in bins for bar in _pair(one, across, up)]
    one = across.at(1.0)
    return _svg(
        height,
        description,
        _beside(up, left, WIDTH - 12, "share", axis_percent),
        *bars,
        _line(one, 22.0, one, height - BOTTOM, "reference"),
        _text(one, 17, "weight 1", _anchor(one, 8)),
        _below(across, height - BOTTOM, height - BOTTOM, "weight of a row (new ÷ logged probability)"),
    )


def _pair(one: tuple[float, float, float, float], across: Axis, up: Axis) -> Iterator[Html]:
    low, high, rows, weight = one
    left, right = across.at(low), across.at(high)
    half, floor = (right - left) / 2, up.at(0.0)
    where = f"weights from {short(low)} to {short(high)}"
    for x, share, kind, what in ((left, rows, "rows", "rows"), (left + half, weight, "mass", "all weight")):
        top = up.at(share)
        if floor > top:
            yield _rect(
                round(x + 0.5, 2),
                top,
                max(round(half - 0.7, 2), 0.5),
                round(floor - top, 2),
                kind,
                f"{where}: {percent(share)} of {what}",
            )


def clip_curve(
    points: Sequence[tuple[float, float]], clip: float, reference: Range, axis_label: str, description: str
) -> Html:
    """Draw the clipped estimate for each clip, with the clip that is used and the logged mean."""
    height = 210.0
    low, high = _padded(*_ends([value for _, value in points] + [reference.value]), 0.1)
    up = Axis(low, high, height - BOTTOM, 26.0)
    left = max(len(short(tick)) for tick in up.ticks(5)) * CHARACTER + 12.0
    across = Axis(1.0, max(points[-1][0], 2.0) * 1.1, left, WIDTH - 12, log=True)
    path = " ".join(f"{across.at(x):g},{up.at(y):g}" for x, y in points)
    logged = up.at(reference.value)
    used = _clip_mark(clip, across, height) if 1.0 <= clip <= across.high else Html("")
    return _svg(
        height,
        description,
        _beside(up, left, WIDTH - 12, axis_label),
        _line(left, logged, WIDTH - 12, logged, "reference"),
        _text(WIDTH - 12, logged + 13 if logged < 44 else logged - 5, "logged", "end"),
        used,
        element("polyline", points=path, class_="curve"),
        *(_dot(across.at(x), up.at(y), "new filled", f"clip {short(x)}: {short(y)}", 3.0) for x, y in points),
        _below(across, height - BOTTOM, height - BOTTOM, "largest weight that is let through"),
    )


def _clip_mark(clip: float, across: Axis, height: float) -> Html:
    x, name = across.at(clip), "clipped IPS"
    return joined(_line(x, 22.0, x, height - BOTTOM, "guide"), _text(x, 17, name, _anchor(x, len(name))))


def _ends(values: Sequence[float]) -> tuple[float, float]:
    finite = [value for value in values if math.isfinite(value)]
    return (min(finite), max(finite)) if finite else (0.0, 1.0)


# ---- what should be equal -------------------------------------------------------------------


@dataclass(frozen=True)
class Pair:
    """Two numbers that should be equal, the second with its standard error."""

    label: str
    expected: float
    seen: float
    error: float


def agreement(
    pairs: Sequence[Pair],
    across_label: str,
    up_label: str,
    description: str,
    show: Callable[[float], str] = short,
) -> Html:
    """Draw pairs around the diagonal, with two standard errors up and down."""
    height = 260.0
    ends = [end for pair in pairs for end in (pair.expected, pair.seen - 2 * pair.error, pair.seen + 2 * pair.error)]
    low, high = _padded(*_ends(ends))
    up = Axis(low, high, height - BOTTOM, 22.0)
    left = max(len(show(tick)) for tick in up.ticks(5)) * CHARACTER + 12.0
    across = Axis(low, high, left, WIDTH - 14)
    return _svg(
        height,
        description,
        _beside(up, left, WIDTH - 14, up_label, show),
        _below(across, 22.0, height - BOTTOM, across_label, show),
        _line(across.at(low), up.at(low), across.at(high), up.at(high), "reference"),
        *(_agreeing(pair, across, up, show) for pair in pairs),
    )


def _agreeing(pair: Pair, across: Axis, up: Axis, show: Callable[[float], str]) -> Html:
    x = across.at(pair.expected)
    note = f"{pair.label}: expected {show(pair.expected)}, seen {show(pair.seen)}"
    return element(
        "g",
        element("title", note),
        _line(x, up.at(pair.seen - 2 * pair.error), x, up.at(pair.seen + 2 * pair.error), "whisker new"),
        _dot(x, up.at(pair.seen), "new filled", radius=3.2),
    )
