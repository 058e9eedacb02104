"""A catalogue: a table of actions beside the log, one row per action."""

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from poem.arrays import IntArray
from poem.errors import InputError, ReadError
from poem.files import (
    Column,
    as_table,
    check_text,
    coded,
    coded_strings,
    did_you_mean,
    is_category,
    is_number,
    is_text,
    plain_table,
    shown,
)
from poem.readers.columns import INDEXES, check_names
from poem.readers.part_files import read_files
from poem.readers.raw import Origin, RawActions


def with_catalogue(actions: RawActions, source: Any) -> RawActions:
    """Return actions with the catalogue that stands in a file or a data frame, checked."""
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "iloc"):
        table, origin = as_table(source, "the catalogue"), Origin("the catalogue")
        check_text(table, origin.name)
    elif isinstance(source, str | os.PathLike):
        raw, _ = read_files(Path(source))
        table, origin = raw.table, raw.origin
    else:
        raise InputError(f"actions must be a path or a data frame, one row per action; found {type(source).__name__}.")
    check_names(table.column_names, origin.name)
    table = plain_table(table.replace_schema_metadata(None))
    if actions.id not in table.column_names:
        raise ReadError(
            f"{origin.name} has no column {actions.id!r} that holds the id of each action."
            f"{did_you_mean(actions.id, table.column_names)} Name it with --action-id (action_id=). It has "
            f"{shown(table.column_names)}."
        )
    kept = [name for name in table.column_names if name not in INDEXES]
    found = replace(actions, catalogue=table.select(kept), origin=origin)
    _check_ids(found)
    return found


def _check_ids(actions: RawActions) -> None:
    assert actions.catalogue is not None
    column, place = actions.catalogue.column(actions.id), actions.origin.place
    if not (is_text(column.type) or is_number(column.type) or is_category(column.type)):
        raise ReadError(
            f"{actions.origin.name}, column {actions.id!r} holds {column.type}; an id is a string or a number. Name "
            "another column with --action-id (action_id=)."
        )
    if not len(column):
        raise ReadError(f"{actions.origin.name} has no rows. Add one row per action.")
    codes, distinct = coded_strings(column)
    if np.any(codes < 0):
        raise ReadError(f"{place(int(np.argmin(codes)))}, column {actions.id!r}: the id is missing. Name each action.")
    first = np.unique(codes, return_index=True)[1]
    if len(first) < len(codes):
        row = int(np.setdiff1d(np.arange(len(codes)), first)[0])
        raise ReadError(
            f"{place(row)}, column {actions.id!r} has the action {distinct[int(codes[row])].as_py()!r} a second time. "
            "Keep one row per action."
        )


def catalogue_rows(actions: RawActions, ids: Column, place_of: Callable[[int], str]) -> IntArray:
    """Return the row of the catalogue in which each candidate stands; ``place_of`` names a candidate."""
    assert actions.catalogue is not None
    codes, distinct = coded_strings(actions.catalogue.column(actions.id))
    row_of = dict(zip(distinct.to_pylist(), np.argsort(codes).tolist(), strict=True))
    numbers, named = coded_strings(ids)
    rows = np.array([row_of.get(name, -1) for name in named.to_pylist()])[numbers]
    if np.any(rows < 0):
        at = int(np.argmin(rows))
        raise ReadError(
            f"{place_of(at)}: the action {named[int(numbers[at])].as_py()!r} is not in {actions.origin.name}. Add it "
            "there, or drop the candidate."
        )
    return rows


def catalogue_ids(actions: RawActions) -> list[Any]:
    """Return what each row of the catalogue is called."""
    assert actions.catalogue is not None
    codes, distinct = coded(actions.catalogue.column(actions.id))
    values = distinct.to_pylist()
    return [values[code] for code in codes]
