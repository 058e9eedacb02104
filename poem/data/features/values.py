"""Raw columns of numbers and lists as arrays, checked; errors name the row."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import Matrix
from poem.errors import LogError
from poem.files import (
    Column,
    Place,
    Table,
    column_of,
    decoded,
    first_odd,
    flattened,
    floats,
    is_list,
    is_number,
    lengths,
    numbers_of,
)
from poem.text import counted

FEW = 1001  # numbers of a column that say what is usual in it


def floats_of(column: Column, name: str, place: Place) -> Column:
    """Return a column of numbers as Arrow's doubles, or say where it holds something else."""
    import pyarrow as pa

    column = decoded(column)
    if not is_number(column.type):
        raise LogError(
            f"column {name!r} should hold numbers and holds {column.type}{first_odd(column, place)}. Pass the kind of "
            "column that the recipe was made for."
        )
    return column.cast(pa.float64(), safe=False)


def checked_list_numbers(
    flat: Column, name: str, counts: IntArray, place: Place, fill: float | None = None
) -> FloatArray:
    """Return the numbers of all lists with ``fill`` for those that are missing, or say in which row one is wrong."""
    values = numbers_of(flat, np.float64)
    ends = np.cumsum(counts)
    return without_gaps(values, fill, name, place, lambda at: int(np.searchsorted(ends, at, side="right")))


def without_gaps(
    values: FloatArray, fill: float | None, name: str, place: Place, row_of: Callable[[int], int] = int
) -> FloatArray:
    """Return numbers with ``fill`` for those that are missing; raise if one is infinite, or missing without a fill.

    ``row_of`` says to which row an entry belongs.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):  # one pass and no array of flags in the common case
            return values
    infinite = np.isinf(values)
    bad = np.flatnonzero(infinite if fill is not None or infinite.any() else np.isnan(values))
    if len(bad):
        found = "infinite" if infinite.any() else "empty or NaN"
        raise LogError(
            f"{place(row_of(bad[0]))}, column {name!r} is {found} ({counted(len(bad), 'such value')}). "
            "Fill or drop them, or leave the column out."
        )
    return values if fill is None else np.where(np.isnan(values), fill, values)


def median(column: Column, name: str, place: Place) -> float:
    """Return the lower median of the numbers that are there, which is one of them."""
    values = without_gaps(floats(column), np.nan, name, place)
    return lower_median(values[~np.isnan(values)])


def usual(column: Column) -> float | None:
    """Return about the same of a whole column: that of a few numbers from all over it; None if none is finite."""
    import pyarrow as pa

    if len(column) > FEW:
        column = column.take(pa.array(np.linspace(0, len(column) - 1, FEW).astype(np.int64)))
    values = floats(column)
    values = values[np.isfinite(values)]
    return lower_median(values) if len(values) else None


def lower_median(values: FloatArray) -> float:
    """Return the lower one of the two numbers in the middle, or the one in the middle."""
    middle = (len(values) - 1) // 2
    return float(np.partition(values, middle)[middle])


def check_numeric_lists(column: Column, name: str) -> None:
    """Raise unless each row holds a list of numbers."""
    if not is_list(column.type) or not is_number(column.type.value_type):
        raise LogError(f"column {name!r} should hold lists of numbers and holds {column.type}.")


def starts_of(counts: IntArray) -> IntArray:
    """Return where each row begins, and the end."""
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def positions_of(column: Column, name: str, place: Place) -> tuple[AnyArray, IntArray]:
    """Return the positions in all lists of a column, and where each row begins."""
    import pyarrow as pa

    kind = column.type.value_type if is_list(column.type) else column.type
    if not is_list(column.type) or not (pa.types.is_integer(kind) or pa.types.is_null(kind)):
        raise LogError(f"column {name!r} should hold lists of whole numbers and holds {column.type}.")
    starts = starts_of(lengths(column))
    flat = flattened(column)
    flat = flat.cast(pa.int32()) if pa.types.is_null(kind) else flat  # lists that are all empty have no type
    if flat.null_count:
        row = _row_at(starts, int(np.flatnonzero(np.asarray(flat.is_null()))[0]))
        raise LogError(
            f"{place(row)}, column {name!r} has a position that is missing "
            f"({counted(flat.null_count, 'such position')}). Fill or drop them."
        )
    positions = numbers_of(flat, flat.type.to_pandas_dtype())
    if len(positions) and (positions.min() < 0 or positions.max() >= 2**31 - 1):
        at = int(np.flatnonzero((positions < 0) | (positions >= 2**31 - 1))[0])
        raise LogError(
            f"{place(_row_at(starts, at))}, column {name!r} has the position {positions[at]}; they count from 0 to "
            "2³¹ − 2. Number the features from 0, or hash them."
        )
    return positions, starts


def _row_at(starts: IntArray, entry: int) -> int:
    """Return the row that an entry of the flat values belongs to."""
    return int(np.searchsorted(starts, entry, side="right")) - 1


def values_beside(table: Table, index: str, name: str, starts: IntArray, place: Place) -> FloatArray:
    """Return the values that stand beside the positions or names of another column."""
    column = column_of(table, name)
    check_numeric_lists(column, name)
    counts, wanted = lengths(column), np.diff(starts)
    if np.any(counts != wanted):
        row = int(np.flatnonzero(counts != wanted)[0])
        raise LogError(
            f"{place(row)} has {wanted[row]} entries in {index!r} and {counts[row]} in {name!r}. "
            "Each entry needs its value; fix or drop such rows."
        )
    return checked_list_numbers(flattened(column), name, counts, place)


def sparse_rows(positions: AnyArray, values: FloatArray, starts: IntArray, size: int) -> Matrix:
    """Return CSR rows of entries at positions from 0 to size − 1; others are left out, equal ones are added."""
    if len(positions) and (positions.min() < 0 or positions.max() >= size):
        kept = (positions >= 0) & (positions < size)
        starts = np.concatenate([[0], np.cumsum(kept)])[starts]
        positions, values = positions[kept], values[kept]
    kind = np.int32 if max(len(values), size) < 2**31 else np.int64
    matrix = sp.csr_array(
        (values, positions.astype(kind, copy=False), starts.astype(kind)), shape=(len(starts) - 1, size)
    )
    if not matrix.has_canonical_format:
        matrix = matrix.copy()  # Arrow's own memory must not be changed
        matrix.sum_duplicates()
    return matrix
