"""Columns of a raw log that must hold numbers; errors name file, row and column."""

from typing import Any

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.data import NO_WORDS
from poem.errors import ReadError
from poem.files import EXACT, decoded, first_odd, floats, is_number
from poem.readers.raw import RawLog
from poem.text import counted

AS_NUMBERS = "Store it as numbers, such as with .astype(float) in pandas, or name another column."


def numbers_in(raw: RawLog, name: str) -> FloatArray:
    """Return a column of numbers; what is missing is NaN."""
    column = decoded(raw.table.column(name))
    if not is_number(column.type):
        odd = first_odd(column, raw.origin.place)
        advice = f"Fix such values, or name another column. {NO_WORDS}" if odd else AS_NUMBERS
        raise ReadError(
            f"{raw.origin.name}, column {name!r} should hold numbers and holds {column.type}{odd}. {advice}"
        )
    return floats(column)


def whole_numbers(raw: RawLog, name: str) -> IntArray:
    """Return a column of whole numbers, none of them missing; they do not pass through floats, which would round."""
    import pyarrow as pa

    values = present(raw, name)
    column = raw.table.column(name)
    if not pa.types.is_integer(column.type):
        odd = (values != np.floor(values)) | (np.abs(values) >= EXACT)
        if np.any(odd):
            row = int(np.flatnonzero(odd)[0])
            raise ReadError(f"{raw.origin.place(row)}, column {name!r} has {values[row]:g}; whole numbers are needed.")
        return values.astype(np.int64)
    return np.asarray(column.cast(pa.int64(), safe=False).to_numpy(), dtype=np.int64)


def present(raw: RawLog, name: str) -> FloatArray:
    """Return a column of finite numbers, or say where one is missing."""
    values = numbers_in(raw, name)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ReadError(
            f"{raw.origin.place(int(bad[0]))}, column {name!r} is empty, NaN or infinite "
            f"({counted(len(bad), 'such row')}). Drop or fix them."
        )
    return values


def losses_of(raw: RawLog) -> FloatArray:
    """Return the losses, or the rewards."""
    name = raw.roles.loss if raw.roles.loss is not None else raw.roles.reward
    assert name is not None
    return present(raw, name)


def check_exact(raw: RawLog, name: str, values: list[Any]) -> None:
    """Raise for floats that cannot name anything: infinite ones, and whole numbers that were rounded to floats."""
    odd = [value for value in values if isinstance(value, float) and not abs(value) < EXACT]
    if odd:
        raise ReadError(
            f"{raw.origin.name}, column {name!r} has {odd[0]:g}, a number that was rounded when it was stored as "
            "floating point, or is infinite: different ones cannot be told apart. Store them as strings or int64."
        )
