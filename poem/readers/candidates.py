"""What could have been chosen in each row: lists of ids or of structs, or all actions of a catalogue."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from poem.arrays import AnyArray, IntArray
from poem.errors import ReadError
from poem.files import Column, Table, coded, flattened, is_category, is_list, is_number, is_text, lengths, plain_table
from poem.readers.catalogue import catalogue_rows
from poem.readers.raw import RawLog
from poem.text import counted


@dataclass(frozen=True)
class Listed:
    """All candidates of some rows, one after the other.

    Attributes
    ----------
    counts : (m,) int
        How many candidates each row has.
    ids : pyarrow.ChunkedArray
        What each candidate is called: its id, or its position, counted from 1.
    columns : pyarrow.Table, optional
        The raw columns of each candidate, without its id.
    row : (N,) int, optional
        The row of the catalogue that describes each candidate.
    place : callable
        Names a row.
    """

    counts: IntArray
    ids: Column
    columns: Table | None
    row: AnyArray | None
    place: Callable[[int], str]

    def owner(self, candidate: int) -> int:
        """Return the row that a candidate belongs to."""
        return int(np.searchsorted(np.cumsum(self.counts), candidate, side="right"))

    def place_of(self, candidate: int) -> str:
        """Name a candidate by its row and its position there, counted from 1."""
        row = self.owner(candidate)
        return f"{self.place(row)}, candidate {candidate - int(self.counts[:row].sum()) + 1}"


def listed(raw: RawLog, rows: IntArray | None = None) -> Listed:
    """Return the candidates of some rows of a log, or of all; see :attr:`RawLog.has_candidates`."""
    place = raw.origin.place if rows is None else lambda row: raw.origin.place(int(rows[row]))
    if raw.roles.candidates is None:
        return _whole_catalogue(raw, raw.table.num_rows if rows is None else len(rows), place)
    column = _lists(raw, raw.roles.candidates)
    column = column if rows is None else column.take(rows)
    counts, flat = _present(raw, column, place)
    columns, ids = None, flat
    if _are_structs(flat):
        columns, ids = _split(raw, flat, counts)
    found = Listed(counts, ids, columns, None, place)
    _check_ids(raw, found)
    if raw.actions.catalogue is None:
        return found
    return Listed(counts, ids, columns, catalogue_rows(raw.actions, ids, found.place_of), place)


def candidate_ids(raw: RawLog) -> tuple[IntArray, Column]:
    """Return how many candidates each row has, and what they are called; rows without a list have none."""
    if raw.roles.candidates is None:
        found = _whole_catalogue(raw, raw.table.num_rows, raw.origin.place)
        return found.counts, found.ids
    column = _lists(raw, raw.roles.candidates)
    counts, flat = lengths(column), flattened(column)
    return counts, _split(raw, flat, counts)[1] if _are_structs(flat) else flat


def candidate_columns(raw: RawLog) -> Table | None:
    """Return the raw columns of all candidates, without their ids; None if they have no others."""
    name = raw.roles.candidates
    if name is None or not fields_of(raw):
        return None
    column = _lists(raw, name)
    return _split(raw, flattened(column), lengths(column))[0]


def is_described(raw: RawLog) -> bool:
    """Tell whether the candidates of a log have features."""
    return raw.actions.catalogue is not None or bool(action_columns(raw))


def action_columns(raw: RawLog) -> list[str]:
    """Return the names of the columns that describe actions."""
    import pyarrow as pa

    names = [] if raw.actions.catalogue is None else raw.actions.catalogue.column_names
    names = [*names, *plain_table(pa.schema(fields_of(raw)).empty_table()).column_names]
    return [name for name in names if name != raw.actions.id]


def fields_of(raw: RawLog) -> list[Any]:
    """Return the fields of candidates; none if these are ids alone."""
    if raw.roles.candidates is None:
        return []
    kind = raw.table.schema.field(raw.roles.candidates).type
    return list(kind.value_type) if is_list(kind) and _is_struct(kind.value_type) else []


def _lists(raw: RawLog, name: str) -> Column:
    column = raw.table.column(name)
    if not is_list(column.type):
        raise ReadError(
            f"{raw.origin.name}, column {name!r} should hold lists of candidates and holds {column.type}. "
            "CSV cannot hold lists: write JSON lines or Parquet."
        )
    return column


def _present(raw: RawLog, column: Column, place: Callable[[int], str]) -> tuple[IntArray, Column]:
    """Return the length of each list and all values, or say which row has no candidates."""
    counts, flat = lengths(column), flattened(column)
    if len(counts) and counts.min() < 1:
        row = int(np.argmin(counts))
        raise ReadError(
            f"{place(row)}, column {raw.roles.candidates!r}: there are no candidates "
            f"({counted(int((counts < 1).sum()), 'such row')}). Each decision needs at least one; "
            "drop such rows, or leave the column out (--ignore, ignore=)."
        )
    if flat.null_count:
        missing = int(np.flatnonzero(np.asarray(flat.is_null()))[0])
        found = Listed(counts, flat, None, None, place)
        raise ReadError(
            f"{found.place_of(missing)}, column {raw.roles.candidates!r} is missing "
            f"({counted(flat.null_count, 'such candidate')}). Fill or drop it."
        )
    return counts, flat


def _is_struct(kind: object) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_struct(kind))


def _are_structs(flat: Column) -> bool:
    return _is_struct(flat.type)


def _split(raw: RawLog, flat: Column, counts: IntArray) -> tuple[Table | None, Column]:
    """Return the raw columns of structs, and their ids: a field, or else positions from 1."""
    import pyarrow as pa

    table = plain_table(pa.Table.from_struct_array(flat))
    name, names = raw.actions.id, table.column_names
    if name in names:
        rest = [other for other in names if other != name]
        return table.select(rest) if rest else None, table.column(name)
    if name != "id" or raw.actions.catalogue is not None:
        raise ReadError(
            f"{raw.origin.name}, column {raw.roles.candidates!r}: candidates have no field {name!r} that holds their "
            f"id; they have {', '.join(map(repr, names[:8]))}. Name it (--action-id, action_id=)."
        )
    starts = np.cumsum(counts) - counts
    return table, pa.chunked_array([pa.array(np.arange(len(flat)) - np.repeat(starts, counts) + 1)])


def _check_ids(raw: RawLog, found: Listed) -> None:
    kind = found.ids.type
    if not (is_text(kind) or is_number(kind) or is_category(kind)):
        raise ReadError(
            f"{raw.origin.name}, column {raw.roles.candidates!r} holds {raw.table.column(raw.roles.candidates).type}; "
            "candidates are strings or numbers, or structs with a field of ids."
        )
    codes, _ = coded(found.ids)
    if np.any(codes < 0):
        raise ReadError(
            f"{found.place_of(int(np.argmin(codes)))}, column {raw.roles.candidates!r} has no id. Name each candidate."
        )


def _whole_catalogue(raw: RawLog, rows: int, place: Callable[[int], str]) -> Listed:
    """Return the candidates of rows in which all actions of the catalogue are available."""
    import pyarrow as pa

    actions = raw.actions
    assert actions.catalogue is not None
    size = actions.catalogue.num_rows
    row = np.tile(np.arange(size, dtype=np.int32), rows)
    ids = actions.catalogue.column(actions.id).take(pa.array(row))
    return Listed(np.full(rows, size, dtype=np.int64), ids, None, row, place)
