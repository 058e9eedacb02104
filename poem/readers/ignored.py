"""Columns of actions that are left out: fields of candidates, and columns of the catalogue."""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

import numpy as np

from poem.errors import ReadError
from poem.files import Column, lengths, shown
from poem.readers.candidates import fields_of
from poem.readers.columns import Columns, Roles
from poem.readers.raw import RawLog

BY_NAME = "candidates"  # what the column is called by default


def of_actions(raw: RawLog, columns: Columns, known: Roles) -> tuple[str, ...]:
    """Return the patterns of what to leave out that name columns of actions, such as candidates.price."""
    begin = f"{columns.candidates or known.candidates or BY_NAME}."
    names = raw.table.column_names
    return tuple(
        pattern
        for pattern in columns.ignored()
        if pattern.startswith(begin) and not any(fnmatchcase(name, pattern) for name in names)
    )


def without_columns(raw: RawLog, patterns: Sequence[str]) -> RawLog:
    """Return a log without the columns of actions that some patterns name."""
    if not patterns:
        return raw
    own = [pattern.partition(".")[2] for pattern in patterns]
    catalogue, fields = raw.actions.catalogue, [field.name for field in fields_of(raw)]
    names = [
        name for name in (*(() if catalogue is None else catalogue.column_names), *fields) if name != raw.actions.id
    ]
    for pattern, wanted in zip(patterns, own, strict=True):
        if not any(fnmatchcase(name, wanted) for name in names):
            raise ReadError(f"{raw.origin.name} has no column {pattern!r} to ignore. Actions have {shown(names)}.")
    dropped = [name for name in names if any(fnmatchcase(name, wanted) for wanted in own)]
    if catalogue is not None:
        kept = [name for name in catalogue.column_names if name not in dropped]
        raw = replace(raw, actions=replace(raw.actions, catalogue=catalogue.select(kept)))
    name = raw.roles.candidates
    if name is None or not set(dropped) & set(fields):
        return raw
    at = raw.table.column_names.index(name)
    return replace(raw, table=raw.table.set_column(at, name, _without_fields(raw, name, dropped)))


def _without_fields(raw: RawLog, name: str, dropped: Sequence[str]) -> Column:
    """Return lists of structs without some fields."""
    import pyarrow as pa

    column = raw.table.column(name)
    kept = [field.name for field in fields_of(raw) if field.name not in dropped]
    if not kept:
        raise ReadError(f"{raw.origin.name}, column {name!r}: nothing is left of candidates. Ignore the column itself.")
    chunks = []
    for chunk in column.chunks:
        flat = chunk.flatten()
        structs = pa.StructArray.from_arrays([flat.field(field) for field in kept], kept, mask=flat.is_null())
        starts = pa.array(np.append(0, np.cumsum(lengths(pa.chunked_array([chunk])))))
        chunks.append(pa.LargeListArray.from_arrays(starts, structs, mask=chunk.is_null()))
    return pa.chunked_array(chunks)
