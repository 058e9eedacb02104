"""Parquet, the native format: a table whose metadata say which column is what."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from poem.arrays import AnyArray
from poem.compute import is_sparse
from poem.data import BanditLog
from poem.data.features import Features, Sparse, Vector
from poem.errors import InputError, ReadError
from poem.files import Column, Room, Table, Watched, compression_of, content_of, room, whole_file
from poem.readers.blocks import Block, Cutting
from poem.readers.columns import Roles
from poem.readers.format import Format, Head
from poem.readers.native_candidates import labels_column, native_candidates, row_lists
from poem.readers.notes import noted_structure, notes_of
from poem.readers.parquet_sizes import claimed_size, safe_rows
from poem.readers.raw import About, Origin, RawActions, RawLog

SAME_NAME = ("loss", "reward", "group", "time", "logger", "context_id", "candidates")  # roles and columns
BUFFER, BATCH = 1 << 20, 1 << 16  # bytes of the file, and rows, that are in hand at a time
HOW: dict[str, Any] = {"pre_buffer": False, "buffer_size": BUFFER}
STEP = 1 << 28  # bytes that the rows in hand may take


def read_table(path: Path) -> Table:
    """Read a Parquet file into memory, in steps: decoded at once, it would need three times its memory."""
    with opened(path) as source:
        return _decoded(Watched(source, path.name), path.name)


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    """Open a Parquet file; say what is wrong with it if it cannot be read."""
    import pyarrow as pa

    try:
        packed = compression_of(path) is not None
        with pa.BufferReader(content_of(path)) if packed else path.open("rb") as source:
            yield source
    except ReadError:
        raise
    except (pa.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        raise ReadError(
            f"{path.name} is not a whole Parquet file: {_first_line(error)}. It may be cut off; copy or write it again."
        ) from error


def _decoded(source: Watched, name: str) -> Table:
    """Return the table in an open file, or say that it needs too much memory before it has taken it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    limit = room()
    with pq.ParquetFile(source, **HOW) as file:
        metadata = file.metadata
        limit.check(name, claimed_size(metadata))
        leaves = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
        coded = pq.ParquetFile(source, **HOW, metadata=metadata, read_dictionary=leaves)
        rows = safe_rows(coded, metadata, min(STEP, limit.limit // 4), BATCH)
        try:
            return pa.Table.from_batches(_within(file.iter_batches(batch_size=rows), limit, name), file.schema_arrow)
        except pa.ArrowNotImplementedError:  # categories inside of lists, in a batch that goes over two row groups
            groups = map(file.read_row_group, range(file.num_row_groups))
            return pa.concat_tables(_within(groups, limit, name))


def _within(parts: Iterable[Any], limit: Room, name: str) -> list[Any]:
    """Return all parts of a table, or say that they need too much memory before they have taken it."""
    found = []
    for part in parts:
        found.append(part)
        limit.check(name)
    return found


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


# ---- writing ---------------------------------------------------------------------------------------


def write_raw(raw: RawLog, path: Path) -> Path:
    """Write a raw log with its roles; the file is there whole or not at all."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    used = {*raw.roles.taken(), *raw.roles.context}
    kept = [name for name in raw.table.column_names if name in used]
    table = raw.table.select(kept).replace_schema_metadata(notes_of(raw))
    try:
        with whole_file(path) as temporary, temporary.open("wb") as file:
            pq.write_table(table, file, compression="zstd")
    except pa.ArrowException as error:
        raise InputError(
            f"the log cannot be written as Parquet: {_first_line(error)}. Leave out columns of rare types (--ignore)."
        ) from error
    return path


def raw_of(log: BanditLog) -> RawLog:
    """Return a log as a table of its features, from which an equal log is read."""
    import pyarrow as pa

    first = _first_rows(log)
    columns: dict[str, Any] = {"output": log.structure.to_arrow(log.y, labels_column(log.labels))}
    columns[log.outcome] = pa.array(-log.loss if log.outcome == "reward" else log.loss)
    if log.propensities != "missing":
        columns["log_propensity"] = pa.array(log.log_propensity)
    for name in ("group", "time", "logger"):
        if getattr(log, name) is not None:
            columns[name] = _names(log, name)
    if first is not None:
        columns["context_id"] = pa.array(log.context)
    context, kind = _contexts(log, first)
    candidates, actions = (None, RawActions()) if log.available is None else native_candidates(log, first)
    if candidates is not None:
        columns["candidates"] = candidates
    there = {role: role for role in SAME_NAME if role in columns}
    logged = None if log.propensities == "missing" else "log_propensity"
    roles = Roles(output=("output",), propensity=logged, unit="log", context=tuple(context), **there)
    estimated, missing = log.propensities == "estimated", log.propensities == "missing"
    about = About(True, estimated, missing, log.feature_names, log.features)
    table = pa.table(columns | context)
    recipe, structure = Features((kind,)), noted_structure(log)
    return RawLog(table, roles, Origin("the log"), log.labels, recipe, about, structure, actions)


def _first_rows(log: BanditLog) -> AnyArray | None:
    """Return a mask of the rows that are the first of their contexts; None if each row has a context of its own."""
    if log.n_contexts == len(log) and np.array_equal(log.context, np.arange(len(log))):
        return None
    first = np.zeros(len(log), dtype=bool)
    first[np.unique(log.context, return_index=True)[1]] = True
    return first


def _names(log: BanditLog, name: str) -> Column:
    import pyarrow as pa

    try:
        return pa.array(getattr(log, name))
    except (pa.ArrowException, UnicodeEncodeError, OverflowError) as error:
        raise InputError(
            f"the {name} cannot be written as Parquet ({_first_line(error)}). Convert it to plain strings or numbers."
        ) from error


def _contexts(log: BanditLog, first: AnyArray | None) -> tuple[dict[str, Any], Sparse | Vector]:
    """Return the columns of features, in the first row of each context only, and how they are read."""
    X = log.X if first is None else log.X[log.context[first]]
    if not is_sparse(X):
        starts = np.arange(len(X) + 1, dtype=np.int64) * X.shape[1]
        column = row_lists(starts, np.ascontiguousarray(X).ravel(), first)
        return {"features": column}, Vector("features", log.n_features)
    index, value = (row_lists(X.indptr, entries, first) for entries in (X.indices, X.data))
    lists = {"features.index": index, "features.value": value}
    return lists, Sparse("features.index", "features.value", log.n_features)


def _blocks(path: Path, cutting: Cutting) -> Iterator[Block]:
    from poem.readers.parquet_blocks import blocks

    return blocks(path, cutting)


def _looks(head: Head) -> bool:
    return head.content.startswith(b"PAR1")


FORMAT = Format(read_table, _looks, (".parquet", ".pq"), has_magic=True, write=write_raw, cut=_blocks)
