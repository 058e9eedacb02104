"""Values of every Arrow type that a table can hold, strange names, and columns of them, for hypothesis."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

DAYS = st.dates(date(1900, 1, 1), date(2100, 1, 1))
MOMENTS = st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1))
SECONDS = MOMENTS.map(lambda moment: moment.replace(microsecond=0))
SPANS = st.timedeltas(timedelta(0), timedelta(9))


def whole(bits, signed=True):
    """Whole numbers of so many bits, with the ends of their range."""
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return st.sampled_from([0, 1, 2, low, high, min(high, 2**53 + 1)]) | st.integers(low, high)


SCALARS = [
    (pa.null(), st.none()),
    (pa.bool_(), st.booleans()),
    *((getattr(pa, f"int{bits}")(), whole(bits)) for bits in (8, 16, 32)),
    (pa.int64(), st.sampled_from([0, 1, 2, -1, 2**31, 2**53 + 1, 2**63 - 1])),
    *((getattr(pa, f"uint{bits}")(), whole(bits, signed=False)) for bits in (8, 16, 32)),
    (pa.uint64(), st.sampled_from([0, 1, 2**63, 2**64 - 1])),
    (pa.float16(), st.sampled_from([0.0, 0.5, 1.0, 65504.0, float("nan")]).map(np.float16)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.sampled_from([0.0, 0.25, 0.5, 1.0, 50.0, -1.0, 1e300]) | st.floats()),
    (pa.decimal128(38, 2), st.decimals(-(10**30), 10**30, places=2)),
    (pa.decimal256(60, 0), st.integers(-(10**50), 10**50).map(Decimal)),
    (pa.string(), st.sampled_from(["a", "b", "0", "1", "", "a b c d e"]) | st.text(max_size=6)),
    (pa.large_string(), st.text(max_size=3)),
    (pa.string_view(), st.text(max_size=3)),
    (pa.binary(), st.binary(max_size=3)),
    (pa.large_binary(), st.binary(max_size=3)),
    (pa.binary(2), st.binary(min_size=2, max_size=2)),
    (pa.date32(), DAYS),
    (pa.date64(), DAYS),
    (pa.timestamp("s"), SECONDS),
    (pa.timestamp("us", "UTC"), MOMENTS),
    (pa.timestamp("ns"), MOMENTS),
    (pa.timestamp("ms", "Europe/Berlin"), SECONDS),
    (pa.time32("s"), st.times().map(lambda moment: time(moment.hour, moment.minute))),
    (pa.time64("us"), st.times()),
    (pa.time64("ns"), st.times()),
    (pa.duration("us"), SPANS),
    (pa.duration("s"), SPANS.map(lambda span: timedelta(seconds=span.seconds))),
    (pa.dictionary(pa.int8(), pa.string()), st.sampled_from(["a", "b", "c"])),
    (pa.dictionary(pa.uint32(), pa.int64()), st.integers(0, 3)),
    (pa.dictionary(pa.int32(), pa.large_string()), st.text(max_size=3)),
    (pa.dictionary(pa.int16(), pa.float64()), st.floats(-9, 9)),
]
HELD = ("int", "uint", "bool", "decimal", "string", "large_string", "dictionary", "null")
# What a feature can be, and what a label can be: the readers refuse the others.
FEATURES = [
    (pa.float64(), st.floats(-9, 9)),
    (pa.float32(), st.floats(-9, 9, width=32)),
    (pa.float16(), st.sampled_from([0.0, 0.5, -1.0]).map(np.float16)),
    *((kind, values) for kind, values in SCALARS if str(kind).startswith(HELD)),
]
LABELS = [
    (pa.string(), st.sampled_from(["a", "b", "c", "<b>", "=1+1", "é🎲", "", "\x1b[31m", "long" * 300])),
    (pa.int64(), st.integers(-3, 9)),
    *((kind, values) for kind, values in SCALARS if str(kind).startswith(HELD[:-1])),
    (pa.float64(), st.sampled_from([0.5, 1.5, 2.0])),
]
TIMES = [
    (kind, values) for kind, values in SCALARS if str(kind).startswith(("timestamp", "date", "int", "uint32", "double"))
]


def seldom(times):
    """True once in so many times."""
    return st.sampled_from([False] * (times - 1) + [True])


NAMES = [
    "x",
    "age",
    "f.index",
    "f.value",
    "f.name",
    "user.age",
    "a[0]",
    "",
    " ",
    "é🎲",
    "naïve\u202ename",
    "line\nbreak",
    "tab\there",
    "\x1b[31mred\x1b[0m",
    "nul\x00",
    "<script>alert(1)</script>",
    "=1+1",
    '=HYPERLINK("x")',
    "a,b",
    'say "hi"',
    "user_*",
    "--json",
    "{x}",
    "%s",
    "age is missing",
    "probability",
    "ranking",
    "index",
    "long" * 700,
]
names = st.sampled_from(NAMES[:7]) | st.sampled_from(NAMES) | st.text(max_size=5)


@st.composite
def pools(draw, kinds, most=5, gaps=True):
    """A type, and a few of its values that columns are filled with."""
    kind, values = draw(st.sampled_from(kinds))
    least = 1 if kind in (pa.null(), pa.bool_()) or draw(seldom(8)) else 2
    pool = draw(st.lists(values, min_size=least, max_size=most, unique_by=str))
    return kind, pool + [None] * (gaps and draw(seldom(4)))


def filled(pool, rows, rng):
    """So many values out of a pool."""
    return [pool[place] for place in rng.integers(0, len(pool), rows).tolist()]


@st.composite
def features(draw, kinds):
    """How a column of a context is made: ``rng, rows → Arrow array``; scalars, lists or structs."""
    kind, pool = draw(pools(kinds))
    shape = draw(st.sampled_from(["scalar"] * 6 + ["list", "large list", "vector", "struct"]))
    size = draw(st.integers(1, 3))
    is_ragged = draw(seldom(8)) or not (pa.types.is_integer(kind) or pa.types.is_floating(kind))

    def make(rng, rows):
        if shape == "scalar":
            return pa.array(filled(pool, rows, rng), kind)
        if shape == "struct":
            inner = pa.array(filled(pool, rows, rng), kind)
            return pa.StructArray.from_arrays([inner, inner], names=["inner", "user.age"])
        ragged = is_ragged and shape != "vector"
        counts = [size] * rows if not ragged else rng.integers(0, size + 1, rows).tolist()
        lists = [filled(pool, count, rng) for count in counts]
        return pa.array(
            lists, {"large list": pa.large_list, "vector": lambda one: pa.list_(one, size)}.get(shape, pa.list_)(kind)
        )

    return make
