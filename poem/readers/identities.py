"""Who or what a raw log's rows belong to: columns of names, compared and kept."""

import numpy as np

from poem.arrays import AnyArray, IntArray
from poem.errors import ReadError
from poem.files import Column, coded, is_number, strings
from poem.readers.raw import RawLog
from poem.readers.values import check_exact

MOST_CHARACTERS = 1 << 32


def identities_of(raw: RawLog, role: str) -> AnyArray | None:
    """Return numbers that are equal where a column's values are; each row without a value is one of its own."""
    name = getattr(raw.roles, role)
    if name is None:
        return None
    codes, distinct = _named_values(raw, role, name)
    alone = codes < 0
    codes[alone] = len(distinct) + np.arange(int(alone.sum()))
    return codes


def names_of(raw: RawLog, role: str) -> AnyArray | None:
    """Return a column's values: numbers as they are, anything else as strings."""
    name = getattr(raw.roles, role)
    if name is None:
        return None
    codes, distinct = _named_values(raw, role, name, as_text=not is_number(raw.table.column(name).type))
    empty = np.flatnonzero(codes < 0)
    if len(empty):
        raise ReadError(f"{raw.origin.place(int(empty[0]))}, column {name!r} is empty. Each row needs its {role}.")
    values = distinct.to_pylist()
    # numpy gives each string the room of the longest one: a single long one could take all memory.
    wide = len(codes) * max(len(str(value)) for value in values) > MOST_CHARACTERS
    return np.array(values, dtype=object if wide else None)[codes]


def _named_values(raw: RawLog, role: str, name: str, as_text: bool = False) -> tuple[IntArray, Column]:
    """Return ``(codes, distinct values)`` of a column of names."""
    import pyarrow as pa

    column = raw.table.column(name)
    try:
        codes, distinct = coded(column)
        distinct = strings(distinct) if as_text else distinct
    except pa.ArrowException as error:
        raise ReadError(
            f"{raw.origin.name}, column {name!r} holds {column.type}; a {role} is a string or a number."
        ) from error
    if pa.types.is_floating(distinct.type):
        check_exact(raw, name, distinct.to_pylist())
    return codes, distinct
