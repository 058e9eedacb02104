"""Which rows of a log are in which part of it."""

from typing import TYPE_CHECKING, Any

import numpy as np

from poem.arrays import AnyArray, BoolArray, IntArray
from poem.errors import InputError, LogError

if TYPE_CHECKING:
    from poem.data.log import BanditLog


def checked_rows(rows: Any, n: int) -> AnyArray:
    """Return the positions of some of n rows, given as such or as a mask."""
    chosen = np.asarray(rows)
    if chosen.dtype == bool:
        if chosen.shape != (n,):
            raise InputError(f"a mask must have one value for each of the {n} rows; found {chosen.shape}.")
        chosen = np.flatnonzero(chosen)
    if chosen.ndim != 1 or (len(chosen) and chosen.dtype.kind not in "iu"):
        raise InputError(f"rows must be a mask or a list of positions; found {chosen.dtype} of shape {chosen.shape}.")
    if len(chosen) and (chosen.max() >= n or chosen.min() < -n):
        raise InputError(f"rows must be below {n}; found {chosen.max()} (and {chosen.min()} as the lowest).")
    if len(chosen) == 0:
        raise LogError("the log is empty: no rows were taken. Take at least one row.")
    return chosen


def random_mask(log: "BanditLog", fraction: float, rng: np.random.Generator, by: str | None) -> BoolArray:
    """Return which rows are in a random ``fraction`` of the rows, groups or units."""
    if not 0.0 < fraction < 1.0:
        raise InputError(f"fraction must be between 0 and 1; found {fraction}. Use 0.25 for a quarter.")
    unit = _split_units(log, by)
    n_units = int(unit.max()) + 1
    if n_units < 2:
        raise InputError("cannot split: the log has one row or one group only. Pass more of them, or by='row'.")
    n_held = min(max(1, round(fraction * n_units)), n_units - 1)
    held = np.zeros(n_units, dtype=bool)
    held[rng.permutation(n_units)[:n_held]] = True
    return held[unit]


def latest_mask(log: "BanditLog", fraction: float) -> BoolArray:
    """Return which rows are the latest ``fraction`` of them; rows of one moment stay together."""
    if log.time is None:
        raise InputError("a split by time needs a log with time=; this one has none. Name the column of times.")
    if not 0.0 < fraction < 1.0:
        raise InputError(f"fraction must be between 0 and 1; found {fraction}. Use 0.25 for the latest quarter.")
    moments, counts = np.unique(log.time, return_counts=True)
    if len(moments) < 2:
        raise InputError("cannot split by time: all of the rows have the same time. Pass finer times.")
    # The cut is where the later share is nearest to what was asked for.
    later = 1.0 - np.cumsum(counts)[:-1] / len(log)
    return np.asarray(log.time > moments[int(np.argmin(np.abs(later - fraction)))])


def _split_units(log: "BanditLog", by: str | None) -> IntArray:
    if by == "group" and log.group is None:
        raise InputError("by='group' needs a log with group=; this one has none. Use by='row'.")
    if by not in (None, "row", "group", "unit"):
        raise InputError(f"by must be 'row', 'group' or 'unit'; found {by!r}.")
    if by == "unit":
        return log.units()
    if log.group is None or by == "row":
        return np.arange(len(log), dtype=np.int64)
    return numbered(log.group)


def numbered(values: AnyArray) -> IntArray:
    """Number distinct values from 0."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def places_of(positions: IntArray) -> IntArray | slice:
    """Return neighbours in ascending order as a slice, of which a view is taken instead of a copy."""
    first, last = int(positions[0]), int(positions[-1])
    neighbours = last - first == len(positions) - 1 and bool(np.all(np.diff(positions) == 1))
    return slice(first, last + 1) if neighbours else positions
