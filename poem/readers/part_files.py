"""The part files of a log, read one by one into one table, with the tables that stand beside them."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poem.data.features import Features
from poem.errors import InputError, ReadError
from poem.files import Table, check_text, room
from poem.progress import Progress
from poem.readers.columns import check_names
from poem.readers.detect import common_format, files_of
from poem.readers.format import FIXED_ACTIONS, Format
from poem.readers.lines import is_by_line
from poem.readers.notes import ACTIONS_KEY, KEY
from poem.readers.raw import Origin, RawLog
from poem.readers.registry import all_formats, format_named
from poem.text import counted


def read_files(
    path: Path,
    *,
    format: str | None = None,
    side: str | os.PathLike[str] | None = None,
    options: Mapping[str, Any] | None = None,
    recipe: Features | None = None,
    sides: bool = True,
    described: bool = False,
    progress: bool = False,
) -> tuple[RawLog, Format]:
    """Read a file, or the part files of a folder; ``sides=False`` asks for contexts alone, to decide on.

    ``described`` says that actions are known by their features, where a format leaves that open.
    """
    files = files_of(path)
    name = common_format(files, format)
    kind = format_named(name)
    asked = reader_options(kind, options or {}, recipe, f"{path.name} is {name}")
    wanted = {"unlabelled": not sides, "described": described}
    asked |= {name: True for name, is_wanted in wanted.items() if is_wanted and name in kind.takes}
    if side is not None and kind.beside is None:
        raise InputError(f"a table beside the log (--side, side=) is for LibSVM; {path.name} is {name}.")
    tables = []
    with Progress(f"reading {path.name}", len(files), progress, after=2.0) as line:
        for file in files:
            has_side = sides and side is None and kind.beside is not None
            tables.append(read_part(file, kind, asked) if has_side else checked_table(kind.read(file, **asked), file))
            line.part_done()
    by_line = kind.counted == "line" and all(map(is_by_line, tables))
    parts = tuple((file.name, table.num_rows) for file, table in zip(files, tables, strict=True))
    table = joined(tables, files)
    if side is not None:
        table = _with_side(path, table, Path(side))
    labels = None if kind.labels is None else kind.labels(files[0])
    return RawLog(table, kind.roles, Origin(path.name, parts, "line" if by_line else "row"), labels), kind


def read_part(file: Path, kind: Format, options: Mapping[str, Any], side: Path | None = None) -> Table:
    """Read one file, with the table beside it if it holds contexts only."""
    table = checked_table(kind.read(file, **options), file)
    return table if kind.beside is None else _with_side(file, table, side or kind.beside(file))


def reader_options(kind: Format, given: Mapping[str, Any], recipe: Features | None, found: str) -> dict[str, Any]:
    """Return the options of a format's reader; refuse those of other formats."""
    options = {name: value for name, value in given.items() if value not in (None, False)}
    for name in options:
        if name not in kind.takes:
            whose = " and ".join(other for other, one in all_formats().items() if name in one.takes)
            raise InputError(f"{name} is for {whose}; {found}. Leave it out.")
    if recipe is not None and "texts" in kind.takes:
        options["texts"] = recipe.texts()
    return options


def checked_table(table: Table, file: Path) -> Table:
    """Return a table that was read, if there is room for it and its text is text."""
    room().check(file.name)
    check_text(table, file.name)
    return table


# ---- tables beside files of contexts --------------------------------------------------------------


def _with_side(path: Path, contexts: Table, beside: Path) -> Table:
    """Return the contexts of a file with the table of outputs, losses and propensities that stands beside it."""
    files = files_of(beside)
    kind = format_named(common_format(files, None))
    if kind.beside is not None:
        raise InputError(f"the table beside {path.name} is LibSVM text itself ({beside.name}). Name a CSV or the like.")
    side = joined([checked_table(kind.read(file), file) for file in files], files)
    if contexts.num_rows != side.num_rows:
        raise ReadError(
            f"{path.name} has {counted(contexts.num_rows, 'row')} and {beside.name} has {side.num_rows:,}. "
            "Both must hold the same decisions in the same order."
        )
    for name in contexts.column_names:
        side = side.append_column(name, contexts.column(name))
    return side


# ---- many tables, one table -----------------------------------------------------------------------


def joined(tables: list[Table], files: list[Path]) -> Table:
    """Return the tables of part files as one; they must have the same columns, and the same notes of poem's own."""
    import pyarrow as pa

    if len(tables) == 1:
        return tables[0]
    for table, file in zip(tables, files, strict=True):
        _check_alike(table, file.name, tables[0], files[0].name)
    try:
        return pa.concat_tables(tables, promote_options="permissive")
    except pa.ArrowException as error:
        raise ReadError(
            f"the part files{_column_of_two_types(tables, files)} have columns of different types: "
            f"{str(error).splitlines()[0]}. Write them alike."
        ) from error


def _check_alike(table: Table, name: str, first: Table, first_name: str) -> None:
    check_names(table.column_names, name)
    actions = [(one.schema.metadata or {}).get(FIXED_ACTIONS) for one in (table, first)]
    if actions[0] != actions[1]:
        raise ReadError(
            f"{name} and {first_name} have different actions, so that an index does not mean the same in both. Put all "
            "lines into one file, or pass --actions-vary (actions_vary=True) if an index does mean the same action."
        )
    different = set(table.column_names) ^ set(first.column_names)
    if different:
        raise ReadError(
            f"{name} and {first_name} have different columns: {sorted(different)[0]!r} is in one of them only. Write "
            "them alike."
        )
    notes = [[(one.schema.metadata or {}).get(key) for key in (KEY, ACTIONS_KEY)] for one in (table, first)]
    if notes[0] != notes[1]:
        raise ReadError(
            f"{name} and {first_name} were written by poem with other labels, features or columns. Read them one by "
            "one, and join them by BanditLog.concat."
        )


def _column_of_two_types(tables: list[Table], files: list[Path]) -> str:
    """Say in which file and column the first type stands that does not go with that of the first file."""
    import pyarrow as pa

    for table, file in zip(tables, files, strict=True):
        for field in table.schema:
            other = tables[0].schema.field(field.name)
            try:
                pa.unify_schemas([pa.schema([other]), pa.schema([field])], promote_options="permissive")
            except pa.ArrowException:
                return f" {files[0].name} ({other.type}) and {file.name} ({field.type}), column {field.name!r},"
    return ""
