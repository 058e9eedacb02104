"""Which values of a raw column are missing: null, NaN, or a list that lacks one of its numbers."""

from typing import Any

import numpy as np

from poem.arrays import BoolArray
from poem.files import Column, coded, flattened, floats, is_list, is_number, lengths


def missing_in(column: Column) -> BoolArray:
    """Return which rows of a column have no value, (n,)."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):  # it may hold nulls and NaN
        return np.asarray(coded(column)[0] < 0)
    missing = np.array(column.is_null().to_numpy(), dtype=bool)
    if pa.types.is_floating(column.type):
        return missing | np.isnan(floats(column))
    if is_list(column.type) and is_number(column.type.value_type):
        row = np.repeat(np.arange(len(column)), lengths(column))
        missing[row[np.isnan(floats(flattened(column)))]] = True
    return missing


def count_missing(column: Column) -> int:
    """Return how many rows of a column have no value; without an array of flags if none lacks it."""
    return int(missing_in(column).sum()) if column.null_count or _may_hide(column) else 0


def is_empty(column: Column, missing: int | None = None) -> bool:
    """Tell whether no row of a column has a value; ``missing`` is how many lack it, if that is known."""
    if is_list(column.type):
        return bool(column.null_count == len(column) > 0)
    missing = count_missing(column) if missing is None else missing
    return 0 < len(column) == missing


def as_lists(column: Column, of: Any) -> Column:
    """Return a column without any value, which has no type, as missing lists; others as they are."""
    import pyarrow as pa

    if not pa.types.is_null(column.type):
        return column
    return pa.chunked_array([pa.nulls(len(column), pa.list_(of))])


def _may_hide(column: Column) -> bool:
    """Tell whether values may be missing in a column without nulls."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_dictionary(kind):
        return pa.types.is_floating(kind.value_type) or any(one.dictionary.null_count for one in column.chunks)
    if is_list(kind):
        if not is_number(kind.value_type):
            return False
        column = flattened(column)
    if column.null_count or not pa.types.is_floating(column.type):
        return bool(column.null_count)
    with np.errstate(over="ignore", invalid="ignore"):
        return any(np.isnan(chunk.to_numpy().sum()) for chunk in column.chunks)
