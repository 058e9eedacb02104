"""From a path or a data frame to a BanditLog: find the files, read them, say which column is what, check."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poem.data import BanditLog
from poem.data.features import HASH_SIZE, Features
from poem.errors import InputError, ReadError
from poem.files import Table, as_table, check_text, content_of, plain_table, shown
from poem.progress import Progress
from poem.readers import csv, jsonl, obd, parquet, svmlight
from poem.readers.checked import log_of, whole_numbers
from poem.readers.detect import common_format, files_of
from poem.readers.lines import is_by_line, with_lines
from poem.readers.raw import Origin, RawLog, Roles, Unit, assign, check_names
from poem.structures import Labels, Wanted

NO_ROLES = Roles()
SAMPLED = Roles(output=("action",), loss="cost", propensity="probability")


@dataclass(frozen=True)
class Format:
    """One file format: how a file is read into a table, what its columns are, and what its rows are called.

    ``ignored`` are columns that are no context unless they are named, ``takes`` are arguments of its own.
    """

    read: Callable[..., Table]
    roles: Roles = NO_ROLES
    counted: Literal["row", "line"] = "row"
    ignored: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()


def _read_vw(path: Path) -> Table:
    from poem.readers.vw import read_vw

    content = content_of(path)
    return with_lines(read_vw(content, path.name), content)


def _read_dsjson(path: Path, actions_vary: bool = False) -> Table:
    from poem.readers.dsjson import read_dsjson

    content = content_of(path)
    return with_lines(read_dsjson(content, path.name, actions_vary=actions_vary), content)


FORMATS = {
    "parquet": Format(parquet.read_table),
    "csv": Format(csv.read_table, takes=("delimiter", "texts")),
    "jsonl": Format(jsonl.read_table, counted="line"),
    "svmlight": Format(svmlight.read_contexts, counted="line"),
    "vw": Format(_read_vw, SAMPLED, "line"),
    "dsjson": Format(
        _read_dsjson,
        replace(SAMPLED, time="time", candidates="candidates", distribution="distribution"),
        "line",
        takes=("actions_vary",),
    ),
    "obd": Format(obd.read_table, obd.ROLES, ignored=obd.IGNORED, takes=("delimiter", "texts")),
}


def read_log(
    source: Any,
    *,
    format: str | None = None,
    context: str | Sequence[str] | None = None,
    output: str | Sequence[str] | None = None,
    loss: str | None = None,
    reward: str | None = None,
    propensity: str | None = None,
    propensity_unit: Unit | None = None,
    group: str | None = None,
    time: str | None = None,
    logger: str | None = None,
    candidates: str | None = None,
    distribution: str | None = None,
    ignore: str | Sequence[str] = (),
    labels: Sequence[Any] | None = None,
    structure: Wanted = None,
    features: Features | None = None,
    scale: bool = False,
    one_hot: Collection[str] = (),
    hashed: Collection[str] = (),
    text: Collection[str] = (),
    hash_size: int = HASH_SIZE,
    side: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    actions_vary: bool = False,
    progress: bool = False,
) -> BanditLog:
    """Read a log from a file, a folder of part files, or a data frame.

    Parameters
    ----------
    source : path or data frame
        Parquet, CSV, JSON lines, LibSVM with a table beside it, Vowpal Wabbit's text and DSJSON, the Open Bandit
        Dataset; plain or compressed by gzip, bz2 or zstd. Or a pandas, polars or Arrow table.
    format : str, optional
        ``parquet``, ``csv``, ``jsonl``, ``svmlight``, ``vw``, ``dsjson`` or ``obd``; found by suffix or content.
    context : names or patterns, optional
        The columns of features, such as ``"user_*"``; by default all columns that are nothing else, and are not called
        ``output``, ``loss``, ``reward`` or ``propensity``.
    output : name or names, optional
        What was decided: a column of strings or numbers, a column of lists for label sets, or several columns of
        0/1. ``"output"`` by default.
    loss, reward : name, optional
        One of them; ``"loss"`` or ``"reward"`` by default.
    propensity : name, optional
        ``"propensity"`` by default; ``"missing"`` says that it was not logged.
    propensity_unit : "probability", "percent" or "log", optional
    group, time, logger : name, optional
        Who or what makes rows dependent; when; which of several policies decided. Columns of these names by default.
    candidates, distribution : name, optional
        Lists of what could have been chosen, and with which probability. The output must be one of the candidates;
        distributions stand for the propensity where there is none, and :func:`poem.inspect` compares both.
    ignore : names or patterns
        Columns to leave out.
    labels : sequence, optional
        All possible outputs; those of the log by default.
    structure : Structure, its class or its name, optional
        What an output is, such as ``"subset"`` for sets of one size. By default single values are classes, and lists
        or several columns are sets of any size.
    features : Features, optional
        A recipe to follow, such as ``policy.features``; one is made by the following arguments otherwise.
    scale, one_hot, hashed, text, hash_size
        See :meth:`poem.Features.learn`.
    side : path, optional
        The table that stands beside a LibSVM file; one of the same name by default.
    delimiter : str, optional
        Of a CSV file; found in its first line by default.
    actions_vary : bool
        Of a DSJSON file: the number or the features of its actions differ between lines, and an action is known by its
        index alone.
    progress : bool
        Show which part file is being read.
    """
    missing = propensity == "missing"
    given = {
        "context": context,
        "output": output,
        "loss": loss,
        "reward": reward,
        "propensity": None if missing else propensity,
        "unit": propensity_unit,
        "group": group,
        "time": time,
        "logger": logger,
        "candidates": candidates,
        "distribution": distribution,
    }
    raw = read_raw(
        source,
        given,
        format=format,
        ignore=ignore,
        side=side,
        delimiter=delimiter,
        actions_vary=actions_vary,
        recipe=features,
        progress=progress,
    )
    encoding = {"scale": scale, "one_hot": one_hot, "hashed": hashed, "text": text, "hash_size": hash_size}
    return log_of(raw, features=features, labels=labels, structure=structure, missing=missing, encoding=encoding)


def read_raw(
    source: Any,
    given: Mapping[str, Any] | None = None,
    *,
    format: str | None = None,
    ignore: str | Sequence[str] = (),
    side: str | os.PathLike[str] | None = None,
    delimiter: str | None = None,
    actions_vary: bool = False,
    defaults: Roles | None = None,
    recipe: Features | None = None,
    progress: bool = False,
) -> RawLog:
    """Read a table and say which of its columns is what; nothing is checked yet.

    ``given`` are columns by role; ``defaults`` are those of a log that was read before, used where they are there;
    ``recipe`` is how its columns will become features: what was text then is text here, even if it looks like numbers.
    """
    asked = dict(given or {})
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "iloc"):
        table, origin, kind, labels = as_table(source, "the log"), Origin("the table"), Format(as_table), None
        check_text(table, origin.name)
    elif isinstance(source, str | os.PathLike):
        table, origin, kind, labels = _read_files(
            Path(source), format, side, {"delimiter": delimiter, "actions_vary": actions_vary}, recipe, progress
        )
    else:
        raise InputError(f"a log is a path or a data frame; found {type(source).__name__}.")
    raw = parquet.with_about(RawLog(plain_table(table), kind.roles, origin, labels))
    table = raw.table
    ignore = (ignore,) if isinstance(ignore, str) else ignore
    left_out = [*ignore, *(pattern for pattern in kind.ignored if asked.get("context") is None)]
    present = [pattern for pattern in left_out if pattern in ignore or _matches(pattern, table)]
    known = raw.roles if defaults is None or raw.about.encoded else _merged(raw.roles, defaults, table)
    roles = _without_empty_times(assign(table, origin.name, known, asked, present), asked, table)
    if raw.roles.context and asked.get("context") is None and not ignore:
        roles = replace(roles, context=tuple(name for name in _still_there(raw) if name not in roles.taken()))
    return _with_own_contexts(replace(raw, roles=roles))


def _with_own_contexts(raw: RawLog) -> RawLog:
    """Return part files with numbers of contexts that hold for all of them: each part has counted its own."""
    name = raw.roles.context_id
    if name is None or len(raw.origin.parts) < 2:
        return raw
    import pyarrow as pa

    distinct, number = np.unique(whole_numbers(raw, name), return_inverse=True)
    ids = pa.array(number + len(distinct) * raw.origin.part_of_each_row())
    return replace(raw, table=raw.table.set_column(raw.table.column_names.index(name), name, ids))


def _without_empty_times(roles: Roles, asked: Mapping[str, Any], table: Table) -> Roles:
    """Return roles without a column of times that nobody asked for, if it is all empty: DSJSON may have none."""
    if roles.time is None or asked.get("time") is not None:
        return roles
    column = table.column(roles.time)
    return replace(roles, time=None) if table.num_rows and column.null_count == table.num_rows else roles


def _still_there(raw: RawLog) -> tuple[str, ...]:
    """Return the context as the file says."""
    for name in raw.roles.context:
        if name not in raw.table.column_names:
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
    *,
    format: str | None = None,
    delimiter: str | None = None,
    recipe: Features | None = None,
    progress: bool = False,
) -> RawLog:
    """Read a table of contexts to decide on, by the recipe of a policy; it need not hold anything else."""
    if isinstance(source, str | os.PathLike):
        files = files_of(Path(source))
        if common_format(files, format, tuple(FORMATS)) == "svmlight":
            tables = [svmlight.read_contexts(file) for file in files]
            origin = Origin(Path(source).name, tuple((f.name, t.num_rows) for f, t in zip(files, tables, strict=True)))
            return RawLog(_joined(tables, files), Roles(), origin)
    return read_raw(source, format=format, delimiter=delimiter, recipe=recipe, progress=progress)


def write_log(log: BanditLog | RawLog, path: str | os.PathLike[str]) -> Path:
    """Write a log to a Parquet file, from which an equal one is read; an old file is replaced whole.

    Contexts that no row saw are left out.
    """
    if not isinstance(log, BanditLog | RawLog):
        raise InputError(f"write_log takes a log; found {type(log).__name__}.")
    return parquet.write_raw(parquet.raw_of(log) if isinstance(log, BanditLog) else log, Path(path))


# ---- files ----------------------------------------------------------------------------------------


def _read_files(
    path: Path,
    format: str | None,
    side: Any,
    arguments: Mapping[str, Any],
    recipe: Features | None,
    progress: bool,
) -> tuple[Table, Origin, Format, Labels | None]:
    files = files_of(path)
    name = common_format(files, format, tuple(FORMATS))
    kind = FORMATS[name]
    options = {argument: value for argument, value in arguments.items() if value not in (None, False)}
    for argument in options:
        if argument not in kind.takes:
            whose = " and ".join(other for other, one in FORMATS.items() if argument in one.takes)
            raise InputError(f"{argument} is for {whose}; {path.name} is {name}. Leave it out.")
    if side is not None and name != "svmlight":
        raise InputError(f"a table beside the log (--side, side=) is for LibSVM; {path.name} is {name}.")
    if recipe is not None and "texts" in kind.takes:
        options["texts"] = recipe.texts()
    tables = []
    with Progress(f"reading {path.name}", len(files), progress, after=2.0) as line:
        for file in files:
            table = kind.read(file, **options)
            check_text(table, file.name)
            tables.append(_with_side(file, table, None) if name == "svmlight" and side is None else table)
            line.part_done()
    by_line = kind.counted == "line" and all(map(is_by_line, tables))
    parts = tuple((file.name, table.num_rows) for file, table in zip(files, tables, strict=True))
    origin = Origin(path.name, parts, "line" if by_line else "row")
    table = _joined(tables, files)
    if name == "svmlight" and side is not None:
        table = _with_side(path, table, side)
    return table, origin, kind, obd.items_beside(files[0]) if name == "obd" else None


def _with_side(path: Path, contexts: Table, side: Any) -> Table:
    beside = svmlight.beside(path) if side is None else Path(side)
    files = files_of(beside)
    name = common_format(files, None, tuple(FORMATS))
    if name == "svmlight":
        raise InputError(f"the table beside {path.name} is LibSVM text itself ({beside.name}). Name a CSV or the like.")
    tables = [FORMATS[name].read(file) for file in files]
    for table, file in zip(tables, files, strict=True):
        check_text(table, file.name)
    return svmlight.joined(path, contexts, _joined(tables, files), beside.name)


def _joined(tables: list[Table], files: list[Path]) -> Table:
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
    different = set(table.column_names) ^ set(first.column_names)
    if different:
        raise ReadError(
            f"{name} and {first_name} have different columns: {sorted(different)[0]!r} is in one of them only. Write "
            "them alike."
        )
    notes = [(one.schema.metadata or {}).get(parquet.KEY) for one in (table, first)]
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
