"""Exact quantiles of a column of all shards, by counting: nothing of the size of the log is ever held."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.backends import Backend, Threads
from poem.packed.log import PackedLog
from poem.packed.manifest import ShardNote

BUCKETS = 1 << 16
KEPT = 1 << 20  # values of a bucket that may be looked at one by one
DEEPEST = 6  # buckets within buckets, after which what is left are ties


@dataclass(frozen=True)
class Bucket:
    """One of equally wide parts of a range."""

    low: float
    high: float
    number: int


@dataclass(frozen=True)
class Values:
    """The values of a column that lie in a bucket, in a bucket of that, and so on."""

    log: PackedLog
    column: str
    inside: tuple[Bucket, ...] = ()

    def of(self, note: ShardNote) -> FloatArray:
        """Return those of one shard."""
        values: FloatArray = self.log.column(note, self.column)
        for bucket in self.inside:
            values = values[_numbers(values, bucket.low, bucket.high) == bucket.number]
        return values


@dataclass(frozen=True)
class Counted:
    """The task of one shard: how many values lie in each bucket of a range."""

    values: Values
    low: float
    high: float

    def __call__(self, note: ShardNote) -> IntArray:
        """Count."""
        return np.bincount(_numbers(self.values.of(note), self.low, self.high), minlength=BUCKETS)


@dataclass(frozen=True)
class Distinct:
    """The task of one shard: its distinct values, and how often each occurs."""

    values: Values

    def __call__(self, note: ShardNote) -> tuple[AnyArray, IntArray]:
        """Count."""
        return np.unique(self.values.of(note), return_counts=True)


@dataclass(frozen=True)
class Extremes:
    """The task of one shard: its lowest and its highest value."""

    values: Values

    def __call__(self, note: ShardNote) -> tuple[float, float]:
        """Look at all values."""
        found = self.values.of(note)
        return (float(found.min()), float(found.max())) if len(found) else (np.inf, -np.inf)


def extremes_of(log: PackedLog, column: str, backend: Backend | None = None) -> tuple[float, float]:
    """Return the lowest and the highest value of a column."""
    lows, highs = zip(*(backend or Threads()).each(Extremes(Values(log, column)), log.shards), strict=True)
    return min(lows), max(highs)


def quantiles_of(log: PackedLog, column: str, at: Sequence[float], backend: Backend | None = None) -> FloatArray:
    """Return quantiles of a column, exactly those of :func:`numpy.quantile`."""
    backend = backend or Threads()
    places = np.asarray(at, dtype=np.float64) * (len(log) - 1)
    below = np.floor(places).astype(np.int64)
    above = np.minimum(below + 1, len(log) - 1)
    found = _ranked(Values(log, column), sorted({*below.tolist(), *above.tolist()}), backend)
    return np.array([_between(found[a], found[b], place - a) for place, a, b in zip(places, below, above, strict=True)])


def _between(low: float, high: float, share: float) -> float:
    """Interpolate as numpy does, to the last bit."""
    return low + (high - low) * share if share < 0.5 else high - (high - low) * (1.0 - share)


def _ranked(values: Values, ranks: Sequence[int], backend: Backend) -> dict[int, float]:
    """Return the values at some places of the sorted column."""
    low, high = extremes_of(values.log, values.column, backend)
    return _within(values, ranks, low, high, backend)


def _within(values: Values, ranks: Sequence[int], low: float, high: float, backend: Backend) -> dict[int, float]:
    counts = np.zeros(BUCKETS, dtype=np.int64)
    for part in backend.each(Counted(values, low, high), values.log.shards):
        counts += part
    ends = np.cumsum(counts)
    found: dict[int, float] = {}
    numbers = np.searchsorted(ends, ranks, side="right")
    width = (high - low) / BUCKETS
    for number in np.unique(numbers).tolist():
        first = int(ends[number] - counts[number])
        own = [rank for rank, place in zip(ranks, numbers, strict=True) if place == number]
        inside = replace(values, inside=(*values.inside, Bucket(low, high, number)))
        within = [rank - first for rank in own]
        if counts[number] <= KEPT or len(inside.inside) >= DEEPEST or width <= 0.0:
            one = _listed(inside, within, backend)
        else:
            one = _within(inside, within, low + number * width, low + (number + 1) * width, backend)
        found |= {rank: one[place] for rank, place in zip(own, within, strict=True)}
    return found


def _listed(values: Values, ranks: Sequence[int], backend: Backend) -> dict[int, float]:
    distinct, counts = zip(*backend.each(Distinct(values), values.log.shards), strict=True)
    every, place = np.unique(np.concatenate(distinct), return_inverse=True)
    ends = np.cumsum(np.bincount(place, weights=np.concatenate(counts)).astype(np.int64))
    return {rank: float(every[np.searchsorted(ends, rank, side="right")]) for rank in ranks}


def _numbers(values: FloatArray, low: float, high: float) -> IntArray:
    """Return the number of each value's bucket; what lies beyond a border belongs to the last bucket before it."""
    if not high > low:
        return np.zeros(len(values), dtype=np.int64)
    scaled = (values - low) * (BUCKETS / (high - low))
    return np.clip(scaled, 0, BUCKETS - 1).astype(np.int64)
