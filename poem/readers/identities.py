"""Who or what a raw log's rows belong to: columns of names, compared and kept."""

import numpy as np

from poem.arrays import AnyArray, IntArray, frozen
from poem.compute import exact_kernel
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
    if raw.whole is not None:
        return _lasting(codes, distinct, raw.whole.block)
    codes[alone] = len(distinct) + np.arange(int(alone.sum()))
    return codes


def _lasting(codes: IntArray, distinct: Column, block: int) -> IntArray:
    """Return numbers that are the same in all blocks of a log: hashes of 64 bits.

    Two of 100 million values have one number with a probability of 0.0003; two of a million practically never.
    """
    texts = strings(distinct)
    _, starts, content = texts.buffers()
    begin = np.frombuffer(starts, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.zeros(0, dtype=np.uint8) if content is None else np.frombuffer(content, dtype=np.uint8)
    numbers = np.append(_hashes(frozen(begin), frozen(data)), 0)[codes]
    alone = np.flatnonzero(codes < 0)
    places = np.column_stack([np.full(len(alone), -1 - block), alone]).view(np.uint8).ravel()  # no UTF-8: 255 occurs
    numbers[alone] = _hashes(frozen(np.arange(len(alone) + 1) * 16), frozen(places))
    return numbers.view(np.int64)


@exact_kernel
def _hashes(starts: AnyArray, data: AnyArray) -> AnyArray:
    """Return the FNV-1a hash of each run of bytes, mixed once more so that all of its bits count."""
    found = np.empty(starts.size - 1, dtype=np.uint64)
    for at in range(starts.size - 1):
        number = np.uint64(14695981039346656037)
        for place in range(starts[at], starts[at + 1]):
            number = (number ^ np.uint64(data[place])) * np.uint64(1099511628211)
        number = (number ^ (number >> np.uint64(32))) * np.uint64(15485207227816331519)
        found[at] = number ^ (number >> np.uint64(29))
    return found


def names_of(raw: RawLog, role: str) -> AnyArray | None:
    """Return a column's values: numbers as they are, anything else as strings."""
    import pyarrow as pa

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
    large = np.uint64 if pa.types.is_uint64(distinct.type) else None  # some of which numpy would take for floats
    return np.array(values, dtype=object if wide else large)[codes]


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
