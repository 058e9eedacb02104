"""When decisions were made: a raw log's column of times as seconds."""

import numpy as np

from poem.arrays import FloatArray
from poem.errors import ReadError
from poem.files import Column, coded, decoded, floats, is_number, is_text
from poem.readers.raw import RawLog
from poem.readers.values import present
from poem.text import counted

PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY = 86_400.0
AS_TIMES = "Use numbers, dates or ISO 8601 such as 2026-11-16T08:30:00Z, all with a zone or all without one."


def times_of(raw: RawLog) -> FloatArray | None:
    """Return when each decision was made: seconds for dates and times, numbers as they are."""
    import pyarrow as pa

    name = raw.roles.time
    if name is None:
        return None
    column = decoded(raw.table.column(name))
    if is_number(column.type):
        return present(raw, name)
    moments = moments_of(column) if is_text(column.type) else column
    if moments is None or not (pa.types.is_timestamp(moments.type) or pa.types.is_date(moments.type)):
        raise ReadError(
            f"{raw.origin.name}, column {name!r} should hold times and holds {column.type}{_no_moment(raw, column)}. "
            f"{AS_TIMES}"
        )
    seconds = _seconds(moments)
    empty = np.flatnonzero(np.isnan(seconds))
    if len(empty):
        raise ReadError(
            f"{raw.origin.place(int(empty[0]))}, column {name!r} is empty ({counted(len(empty), 'such row')}). Drop "
            "such rows, or do without times."
        )
    return seconds


def moments_of(column: Column) -> Column | None:
    """Return ISO strings as moments, all with a zone or all without one; None if some are neither."""
    import pyarrow as pa

    for zone in ("UTC", None):
        for unit in ("us", "ns"):
            try:
                return column.cast(pa.timestamp(unit, tz=zone))
            except pa.ArrowException:
                continue
    return None


def _no_moment(raw: RawLog, column: Column) -> str:
    """Say where the first string is that is not a time."""
    import pyarrow as pa

    if not is_text(column.type):
        return ""
    codes, distinct = coded(column)
    first = moments_of(pa.chunked_array([distinct.slice(0, 1)]))
    for code in range(len(distinct)):
        one = moments_of(pa.chunked_array([distinct.slice(code, 1)]))
        if one is None or first is None or one.type.tz != first.type.tz:
            row = int(np.flatnonzero(codes == code)[0])
            return f" ({raw.origin.place(row)}: {distinct[code].as_py()[:40]!r})"
    return ""


def _seconds(moments: Column) -> FloatArray:
    """Return moments or dates as seconds; what is missing is NaN."""
    import pyarrow as pa

    if pa.types.is_date32(moments.type):
        return floats(moments.cast(pa.int32())) * DAY
    unit = "ms" if pa.types.is_date64(moments.type) else moments.type.unit
    return floats(moments.cast(pa.int64())) / PER_SECOND[unit]
