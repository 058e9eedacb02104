"""From a path or a data frame to a BanditLog: find the files, read them, say which column is what, check."""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import numpy as np

from poem.data import BanditLog
from poem.data.features import Encoding, Features
from poem.errors import InputError, PoemWarning, ReadError
from poem.files import Table, as_table, check_text, plain_table, room_for, shown
from poem.readers.catalogue import with_catalogue
from poem.readers.checked import log_of
from poem.readers.columns import Columns, Roles, assign
from poem.readers.detect import suffix_format, written_suffixes
from poem.readers.ignored import of_actions, without_columns
from poem.readers.notes import with_notes
from poem.readers.parquet import raw_of
from poem.readers.part_files import read_files
from poem.readers.raw import Origin, RawLog
from poem.readers.registry import NATIVE, format_named
from poem.readers.text_numbers import notes_on_text
from poem.readers.values import whole_numbers
from poem.structures import Wanted

BY_NAME = Columns()


def read_log(
    source: Any,
    *,
    output: str | Sequence[str] | None = None,
    loss: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    columns: Columns | None = None,
    labels: Sequence[Any] | None = None,
    structure: Wanted = None,
    features: Features | Encoding | None = None,
    format: str | None = None,
    side: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    actions_vary: bool = False,
    actions: Any = None,
    identity: bool = False,
    progress: bool = False,
) -> BanditLog:
    """Read a log from a file, a folder of part files, or a data frame.

    Parameters
    ----------
    source : path or data frame
        Parquet, CSV, JSON lines, LibSVM with a table beside it, Vowpal Wabbit's text and DSJSON, the Open Bandit
        Dataset; plain or compressed by gzip, bz2 or zstd. Or a pandas, polars or Arrow table. A file may take half of
        the free memory, or as much as the environment variable ``POEM_MAX_SIZE`` says, such as ``20GB``.
    output : name or names, optional
        The column of what was decided, or several columns of 0/1; ``"output"`` by default.
    loss, reward : name, optional
        The column of what it cost, or of what it earned; ``"loss"`` or ``"reward"`` by default.
    propensity : name, optional
        The column of the probability with which it was decided; ``"propensity"`` by default. ``"missing"`` says that
        it was not logged.
    columns : Columns, optional
        Which column is anything else: context, group, time, logger and more; see :class:`poem.Columns`.
    labels : sequence, optional
        All possible outputs; those of the log by default.
    structure : Structure, its class or its name, optional
        What an output is, such as ``"subset"`` for sets of one size. By default single values are classes, and lists
        or several columns are sets of any size.
    features : Features or Encoding, optional
        A recipe to follow, such as ``policy.features``, or how to make one; see :class:`poem.Encoding`.
    format : str, optional
        ``csv``, ``jsonl``, ``svmlight``, ``vw``, ``dsjson``, ``obd`` or ``parquet``; found by suffix or content.
    side : path, optional
        The table beside a LibSVM file; one of the same name by default.
    delimiter : str, optional
        Of a CSV file; found in its first line by default.
    actions_vary : bool
        Of a DSJSON file: the number or the features of its actions differ between lines, and an action is known by its
        index alone.
    actions : path or data frame, optional
        A catalogue: one row per action, with its id (``"id"``, or as ``columns`` say) and columns that describe it.
        Without a column of candidates all of its actions are available in each row.
    identity : bool
        Give each action a feature of its own besides those that describe it.
    progress : bool
        Show which part file is being read.

    Returns
    -------
    BanditLog

    Warns
    -----
    PoemWarning
        If a column of features holds numbers as text, or a few words among numbers: all of them become categories,
        unless ``features`` says what they are.
    """
    if not isinstance(columns, Columns | None):
        raise InputError(f"columns must be a poem.Columns; found {type(columns).__name__}.")
    if not isinstance(features, Features | Encoding | None):
        raise InputError(f"features must be a poem.Features or a poem.Encoding; found {type(features).__name__}.")
    asked = (columns or BY_NAME).with_named(output=output, loss=loss, reward=reward, propensity=propensity)
    missing = asked.propensity == "missing"
    recipe, encoding = (None, features) if isinstance(features, Encoding) else (features, None)
    raw = read_raw(
        source,
        replace(asked, propensity=None) if missing else asked,
        format=format,
        side=side,
        delimiter=delimiter,
        actions_vary=actions_vary,
        actions=actions,
        identity=identity,
        recipe=recipe,
        progress=progress,
    )
    log = log_of(raw, features=recipe, labels=labels, structure=structure, missing=missing, encoding=encoding)
    for note in notes_on_text(raw, encoding) if recipe is None else ():
        warnings.warn(note, PoemWarning, stacklevel=2)
    return log


@room_for()
def read_raw(
    source: Any,
    columns: Columns = BY_NAME,
    *,
    structure: Wanted = None,
    format: str | None = None,
    side: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    actions_vary: bool = False,
    actions: Any = None,
    identity: bool = False,
    defaults: Roles | None = None,
    recipe: Features | None = None,
    sides: bool = True,
    described: bool = False,
    progress: bool = False,
) -> RawLog:
    """Read a table and say which of its columns is what; nothing is checked yet.

    ``structure`` says what an output is, unless it is to be inferred. ``defaults`` are the roles of a log that was read
    before; they apply to columns that this one has as well. ``recipe`` says how columns will become features: a column
    that was text there is text here, even if it looks like numbers. ``sides=False`` leaves out the tables beside files
    of contexts. ``described`` says that actions are known by their features, where a format leaves that open.
    """
    ignored: tuple[str, ...] = ()
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "iloc"):
        raw = RawLog(as_table(source, "the log"), Roles(), Origin("the table"))
        check_text(raw.table, raw.origin.name)
    elif isinstance(source, str | os.PathLike):
        options = {"delimiter": delimiter, "actions_vary": actions_vary}
        raw, kind = read_files(
            Path(source),
            format=format,
            side=side,
            options=options,
            recipe=recipe,
            sides=sides,
            described=described,
            progress=progress,
        )
        raw, ignored = replace(raw, categories=kind.categories), kind.ignored if columns.context is None else ()
    else:
        raise InputError(f"a log is a path or a data frame; found {type(source).__name__}.")
    raw = with_meaning(raw, columns, ignored, actions=actions, identity=identity, defaults=defaults)
    return _with_own_contexts(raw if structure is None else replace(raw, structure=structure))


def with_meaning(
    raw: RawLog,
    columns: Columns,
    ignored: Sequence[str] = (),
    *,
    actions: Any = None,
    identity: bool = False,
    defaults: Roles | None = None,
) -> RawLog:
    """Return a log whose columns are known: by its own notes, its format and what the user says; see :func:`read_raw`.

    ``ignored`` are patterns of columns that a format leaves out unless they are named.
    """
    raw = with_notes(replace(raw, table=plain_table(raw.table)))
    present = tuple(pattern for pattern in ignored if _matches(pattern, raw.table))
    raw = _with_actions(raw, columns.action_id, actions, identity)
    return _with_roles(raw, columns, present, defaults)


def _with_actions(raw: RawLog, action_id: str | None, catalogue: Any, identity: bool) -> RawLog:
    """Return a log with what the user says of actions, besides what the file says."""
    if action_id is None and catalogue is None and not identity:
        return raw
    if raw.about.encoded:
        raise InputError(f"{raw.origin.name} holds features of actions already. Leave actions= and identity= out.")
    known = raw.actions
    known = replace(known, id=action_id or known.id, identity=identity or known.identity)
    return replace(raw, actions=known if catalogue is None else with_catalogue(known, catalogue))


def _with_roles(raw: RawLog, columns: Columns, ignored: tuple[str, ...], defaults: Roles | None) -> RawLog:
    """Return a log whose columns are known; ``ignored`` are left out besides those that the user ignores."""
    table = raw.table
    known = raw.roles if defaults is None or raw.about.encoded else _merged(raw.roles, defaults, table)
    of_candidates = of_actions(raw, columns, known)
    columns = replace(columns, ignore=tuple(name for name in columns.ignored() if name not in of_candidates))
    found = assign(table, raw.origin.name, known, replace(columns, ignore=(*columns.ignored(), *ignored)))
    roles = _without_empty_times(found, columns, table)
    if raw.roles.context and columns.context is None and not columns.ignored():
        roles = replace(roles, context=tuple(name for name in _still_there(raw) if name not in roles.taken()))
    return without_columns(replace(raw, roles=roles), of_candidates)


def _with_own_contexts(raw: RawLog) -> RawLog:
    """Return part files with numbers of contexts that hold for all of them: each part has counted its own."""
    name = raw.roles.context_id
    if name is None or len(raw.origin.parts) < 2:
        return raw
    import pyarrow as pa

    distinct, number = np.unique(whole_numbers(raw, name), return_inverse=True)
    ids = pa.array(number + len(distinct) * raw.origin.part_of_each_row())
    return replace(raw, table=raw.table.set_column(raw.table.column_names.index(name), name, ids))


def _without_empty_times(roles: Roles, columns: Columns, table: Table) -> Roles:
    """Return roles without a column of times that nobody asked for, if it is all empty: DSJSON may have none."""
    if roles.time is None or columns.time is not None:
        return roles
    column = table.column(roles.time)
    return replace(roles, time=None) if table.num_rows and column.null_count == table.num_rows else roles


def _still_there(raw: RawLog) -> tuple[str, ...]:
    """Return the context as the file says."""
    known = set(raw.table.column_names)
    for name in raw.roles.context:
        if name not in known:
            raise ReadError(
                f"{raw.origin.name} was written with the column {name!r}, which is no longer there. Name the columns "
                f"of the context (--context, context=), or write it again. It has {shown(raw.table.column_names)}."
            )
    return raw.roles.context


def _merged(roles: Roles, defaults: Roles, table: Table) -> Roles:
    """Return what the file says of its columns, and what another log had, where this one has it as well."""
    found = {}
    for role, value in vars(defaults).items():
        names = value if isinstance(value, tuple) else (value,)
        if role != "unit" and value and set(names) <= set(table.column_names):
            found[role] = value
    if "propensity" in found:
        found["unit"] = defaults.unit
    return replace(roles, **found)


def _matches(pattern: str, table: Table) -> bool:
    return any(fnmatchcase(name, pattern) for name in table.column_names)


def read_contexts(
    source: Any,
    columns: Columns = BY_NAME,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    actions: Any = None,
    defaults: Roles | None = None,
    recipe: Features | None = None,
    described: bool = False,
    progress: bool = False,
) -> RawLog:
    """Read a table of contexts to decide on, by the recipe of a policy; it need not hold anything else."""
    return read_raw(
        source,
        columns,
        format=format,
        delimiter=delimiter,
        actions=actions,
        defaults=defaults,
        recipe=recipe,
        sides=False,
        described=described,
        progress=progress,
    )


def _of_packed(log: object) -> str:
    return " Write a part of it: log.part(0, 0.1).to_log()." if hasattr(log, "to_log") else ""


def write_log(log: BanditLog | RawLog, path: str | os.PathLike[str]) -> Path:
    """Write a log to a Parquet file, from which an equal one is read; an old file is replaced whole.

    Contexts that no row saw are left out.
    """
    if not isinstance(log, BanditLog | RawLog):
        raise InputError(f"write_log takes a log in memory; found {type(log).__name__}.{_of_packed(log)}")
    name = suffix_format(Path(path)) or NATIVE
    write = format_named(name).write
    if write is None:
        raise InputError(
            f"{Path(path).name} would be {name}, which poem reads but does not write. End the name in "
            f"{' or '.join(written_suffixes())}."
        )
    return write(raw_of(log) if isinstance(log, BanditLog) else log, Path(path))
