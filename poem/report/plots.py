"""Figures → inline SVG. Colours are CSS classes, so that light, dark and print need one drawing.

All are 400 units wide, about the width of a phone: text stays readable when they shrink, and on a wide screen two of
them stand side by side.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from poem.report.markup import element, joined
from poem.report.svg import (
    BOTTOM,
    CHARACTER,
    ROW,
    TOP,
    WIDTH,
    Axis,
    anchor,
    arrow,
    axis_below,
    axis_beside,
    dot,
    line,
    margin,
    padded,
    picture,
    rect,
    words,
)
from poem.report.verdict import Range
from poem.report.wording import cut, percent, short

LABEL_COLUMNS = 18


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
) -> Markup:
    """Draw intervals one below the other, and the one that they are compared with as a band behind them."""
    labels = [cut(mark.label, LABEL_COLUMNS) for mark in marks]
    low, high = _limits([mark.range for mark in marks], reference, headline)
    top, bottom = TOP + 12, TOP + 12 + ROW * len(marks)
    axis = Axis(low, high, margin(labels), WIDTH - 14)
    rows = [
        joined(words(axis.start - 8, y + 4, label, "end", "label"), _interval(mark, axis, y))
        for mark, label, y in zip(marks, labels, _middles(top, len(marks)), strict=True)
    ]
    behind = _band(reference, axis, top, bottom, reference_name)
    return picture(bottom + BOTTOM, description, behind, axis_below(axis, top, bottom, axis_label), *rows)


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
    return padded(max(min([low, *far]), low - room), min(max([high, *far]), high + room))


def _band(reference: Range, axis: Axis, top: float, bottom: float, name: str) -> Markup:
    x = axis.at(reference.value)
    parts = []
    if reference.bounded and reference.high > reference.low:
        left, right = axis.at(reference.low), axis.at(reference.high)
        parts.append(rect(left, top, right - left, bottom - top, "band"))
    label = words(x, top - 5, name, anchor(x, len(name)), "tick")
    return joined(*parts, line(x, top, x, bottom, "reference"), label)


def _interval(mark: Mark, axis: Axis, y: float) -> Markup:
    """Draw one interval; an arrow at an end says that it goes on."""
    one = mark.range
    note = f"{mark.label}: {short(one.value)}, from {short(one.low)} to {short(one.high)}"
    if math.isnan(one.value):
        return words((axis.start + axis.end) / 2, y + 4, "not known", "middle", "tick")
    left, right = axis.at(one.low), axis.at(one.high)
    parts = [line(left, y, right, y, f"whisker {mark.kind}")]
    parts.append(_end(axis, one.low, y, -1.0, mark.kind))
    parts.append(_end(axis, one.high, y, 1.0, mark.kind))
    if axis.low <= one.value <= axis.high:
        parts.append(dot(axis.at(one.value), y, f"{mark.kind} filled"))
    return element("g", element("title", note), *parts)


def _end(axis: Axis, value: float, y: float, way: float, kind: str) -> Markup:
    x = axis.at(value)
    if axis.low <= value <= axis.high:
        return line(x, y - 4, x, y + 4, f"whisker {kind}")
    return arrow(x, y, way, kind)


# ---- shares before and after ----------------------------------------------------------------


@dataclass(frozen=True)
class Move:
    """An output's share before and after."""

    label: str
    before: float
    after: float
    faint: bool = False


def moves(
    all_moves: Sequence[Move], axis_label: str, description: str, show: Callable[[float], str] | None = None
) -> Markup:
    """Draw each output's share in the log as a ring, and under the policy as a dot, with a bar between.

    ``show`` writes what are no shares; these may be below 0.
    """
    labels = [cut(move.label, LABEL_COLUMNS) for move in all_moves]
    ends = [end for move in all_moves for end in (move.before, move.after)]
    low, high = (0.0, max(ends) * 1.03 or 1.0) if show is None else padded(min(0.0, *ends), max(0.0, *ends))
    top, bottom = TOP, TOP + ROW * len(all_moves)
    axis, name = Axis(low, high, margin(labels), WIDTH - 14), show or percent
    rows = [
        joined(words(axis.start - 8, y + 4, label, "end", "label"), _move(move, axis, y, name))
        for move, label, y in zip(all_moves, labels, _middles(top, len(all_moves)), strict=True)
    ]
    below = axis_below(axis, top, bottom, axis_label, show or axis_percent)
    return picture(bottom + BOTTOM, description, below, *rows)


def _move(move: Move, axis: Axis, y: float, show: Callable[[float], str]) -> Markup:
    kind = "rise" if move.after >= move.before else "fall"
    before, after = axis.at(move.before), axis.at(move.after)
    note = f"{move.label}: {show(move.before)} in the log, {show(move.after)} under the new policy"
    faint = " faint" if move.faint else ""
    return element(
        "g",
        element("title", note),
        line(before, y, after, y, f"stem {kind}{faint}"),
        dot(before, y, "ring", radius=3.5),
        dot(after, y, f"{kind} filled"),
    )


def axis_percent(share: float) -> str:
    """Return a share for an axis."""
    return f"{short(100.0 * share)}%"


# ---- weights --------------------------------------------------------------------------------


def weights(bins: Sequence[tuple[float, float, float, float]], description: str) -> Markup:
    """Draw (low, high, share of rows, share of weight) as pairs of bars on a logarithmic axis."""
    height, left = 210.0, 46.0
    low, high = min(bins[0][0], 0.5), max(bins[-1][1], 2.0)
    across = Axis(low, high, left, WIDTH - 12, log=True)
    up = Axis(0.0, max(max(rows, weight) for *_, rows, weight in bins) * 1.05, height - BOTTOM, 26.0)
    bars = [bar for one in bins for bar in _pair(one, across, up)]
    one = across.at(1.0)
    return picture(
        height,
        description,
        axis_beside(up, left, WIDTH - 12, "share", axis_percent),
        *bars,
        line(one, 22.0, one, height - BOTTOM, "reference"),
        words(one, 17, "weight 1", anchor(one, 8)),
        axis_below(across, height - BOTTOM, height - BOTTOM, "weight of a row (new ÷ logged probability)"),
    )


def _pair(one: tuple[float, float, float, float], across: Axis, up: Axis) -> Iterator[Markup]:
    low, high, rows, weight = one
    left, right = across.at(low), across.at(high)
    half, floor = (right - left) / 2, up.at(0.0)
    where = f"weights from {short(low)} to {short(high)}"
    for x, share, kind, what in ((left, rows, "rows", "rows"), (left + half, weight, "mass", "all weight")):
        top = up.at(share)
        if floor > top:
            yield rect(
                round(x + 0.5, 2),
                top,
                max(round(half - 0.7, 2), 0.5),
                round(floor - top, 2),
                kind,
                f"{where}: {percent(share)} of {what}",
            )


def clip_curve(
    points: Sequence[tuple[float, float]], clip: float, reference: Range, axis_label: str, description: str
) -> Markup:
    """Draw the clipped estimate for each clip, with the clip that is used and the logged mean."""
    height = 210.0
    low, high = padded(*_ends([value for _, value in points] + [reference.value]), 0.1)
    up = Axis(low, high, height - BOTTOM, 26.0)
    left = max(len(short(tick)) for tick in up.ticks(5)) * CHARACTER + 12.0
    across = Axis(1.0, max(points[-1][0], 2.0) * 1.1, left, WIDTH - 12, log=True)
    path = " ".join(f"{across.at(x):g},{up.at(y):g}" for x, y in points)
    logged = up.at(reference.value)
    used = _clip_mark(clip, across, height) if 1.0 <= clip <= across.high else Markup("")
    return picture(
        height,
        description,
        axis_beside(up, left, WIDTH - 12, axis_label),
        line(left, logged, WIDTH - 12, logged, "reference"),
        words(WIDTH - 12, logged + 13 if logged < 44 else logged - 5, "logged", "end"),
        used,
        element("polyline", points=path, class_="curve"),
        *(dot(across.at(x), up.at(y), "new filled", f"clip {short(x)}: {short(y)}", 3.0) for x, y in points),
        axis_below(across, height - BOTTOM, height - BOTTOM, "largest weight that is let through"),
    )


def _clip_mark(clip: float, across: Axis, height: float) -> Markup:
    x, name = across.at(clip), "clipped IPS"
    return joined(line(x, 22.0, x, height - BOTTOM, "guide"), words(x, 17, name, anchor(x, len(name))))


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
) -> Markup:
    """Draw pairs around the diagonal, with two standard errors up and down."""
    height = 260.0
    ends = [end for pair in pairs for end in (pair.expected, pair.seen - 2 * pair.error, pair.seen + 2 * pair.error)]
    low, high = padded(*_ends(ends))
    up = Axis(low, high, height - BOTTOM, 22.0)
    left = max(len(show(tick)) for tick in up.ticks(5)) * CHARACTER + 12.0
    across = Axis(low, high, left, WIDTH - 14)
    return picture(
        height,
        description,
        axis_beside(up, left, WIDTH - 14, up_label, show),
        axis_below(across, 22.0, height - BOTTOM, across_label, show),
        line(across.at(low), up.at(low), across.at(high), up.at(high), "reference"),
        *(_agreeing(pair, across, up, show) for pair in pairs),
    )


def _agreeing(pair: Pair, across: Axis, up: Axis, show: Callable[[float], str]) -> Markup:
    x = across.at(pair.expected)
    note = f"{pair.label}: expected {show(pair.expected)}, seen {show(pair.seen)}"
    return element(
        "g",
        element("title", note),
        line(x, up.at(pair.seen - 2 * pair.error), x, up.at(pair.seen + 2 * pair.error), "whisker new"),
        dot(x, up.at(pair.seen), "new filled", radius=3.2),
    )
