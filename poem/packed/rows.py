"""The rows of a log as an Arrow table of plain bytes, and back: the columns of a shard.

Features are stored in the first row of each context, as the bytes of a sparse or dense row, so that a shard becomes
a matrix without a loop over its rows.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, BoolArray, IntArray, frozen
from poem.compute import is_sparse
from poem.data import BanditLog
from poem.files import Table
from poem.packed.keys import Keys
from poem.structures import Available

NAMED = ("group", "logger")  # columns of any type
PLAIN = ("loss", "log_propensity")


def table_of(log: BanditLog, keys: Keys, order: IntArray, *, catalogue: bool, cuts: BoolArray | None = None) -> Table:
    """Return the rows of a log in an order in which those of one context stand side by side.

    ``catalogue`` tells whether candidates are numbers of rows that all share. ``cuts`` marks rows before which a
    context must be stored anew, since another table begins there.
    """
    import pyarrow as pa

    context = log.context[order]
    first = np.ones(len(order), dtype=bool)
    first[1:] = context[1:] != context[:-1]
    if cuts is not None:
        first |= cuts
    columns: dict[str, Any] = {name: pa.array(values) for name, values in keys.take(order).columns().items()}
    columns |= {"first": pa.array(first), "y": _outputs(log.y[order])}
    columns |= {name: pa.array(getattr(log, name)[order]) for name in PLAIN}
    for name in (*NAMED, "time"):
        if getattr(log, name) is not None:
            columns[name] = pa.array(getattr(log, name)[order])
    columns |= _contexts(log, context[first], first)
    if log.available is not None:
        columns |= _offers(offers_of(log.available, context[first], catalogue), first)
    return pa.table(columns)


def has_catalogue(log: BanditLog) -> bool:
    """Tell whether candidates share the features of a catalogue: they are then numbers of its rows."""
    offers = log.available
    if offers is None or offers.features is None or offers.row is None:
        return False
    return bool(offers.features.shape[0] <= len(log.labels))


def kind_of_log(log: BanditLog, catalogue: bool) -> BanditLog:
    """Return the first row of a log: what says which kind of log it is."""
    one = log.take(np.arange(1)).on_contexts(log.context[:1], np.zeros(1, dtype=np.int64))
    return (
        one if log.available is None else one.replaced(available=offers_of(log.available, log.context[:1], catalogue))
    )


def offers_of(every: Available, contexts: IntArray, catalogue: bool) -> Available:
    """Return what is available in some contexts, with features that are no one else's unless there is a catalogue."""
    offers = every.of(contexts)
    if offers.features is None or catalogue:
        return offers
    return Available(offers.starts, offers.action, offers.features[offers.row])


def some_rows(log: BanditLog, rows: AnyArray, catalogue: bool) -> BanditLog:
    """Return some rows with the contexts and candidates that they saw, and nothing of others."""
    some = log.take(rows)
    contexts, number = np.unique(some.context, return_inverse=True)
    found = some.on_contexts(contexts, number)
    return found if log.available is None else found.replaced(available=offers_of(log.available, contexts, catalogue))


def _outputs(y: AnyArray) -> Any:
    """Return the codes of each row's output, however many it has."""
    return _blobs(np.ascontiguousarray(y), np.arange(len(y) + 1, dtype=np.int64) * (y.size // len(y)))


def _contexts(log: BanditLog, contexts: IntArray, first: BoolArray) -> dict[str, Any]:
    every = len(contexts) == log.n_contexts and bool(np.array_equal(contexts, np.arange(log.n_contexts)))
    X = log.X if every else log.X[contexts]
    if not is_sparse(X):
        borders = np.arange(X.shape[0] + 1, dtype=np.int64) * X.shape[1]
        return {"value": _blobs(np.ascontiguousarray(X, dtype=np.float64), borders, first)}
    index = X.indices.astype(np.int32, copy=False)
    return {"index": _blobs(index, X.indptr, first), "value": _blobs(X.data, X.indptr, first)}


def _offers(offers: Available, first: BoolArray) -> dict[str, Any]:
    """Return the candidates of each context: actions, and their features or the numbers of those that all share."""
    found = {"action": _blobs(offers.action, offers.starts, first)}
    if offers.features is None:
        return found
    if offers.row is not None:
        return found | {"row": _blobs(offers.row, offers.starts, first)}
    z = offers.features
    borders = z.indptr[offers.starts]
    lengths = np.diff(z.indptr).astype(np.int32)
    return found | {
        "z.length": _blobs(lengths, offers.starts, first),
        "z.index": _blobs(z.indices.astype(np.int32, copy=False), borders, first),
        "z.value": _blobs(z.data, borders, first),
    }


def _blobs(values: Any, borders: AnyArray, first: BoolArray | None = None) -> Any:
    """Return values between borders as one blob per row; rows that are not the first of a context have empty ones."""
    import pyarrow as pa

    borders = np.asarray(borders, dtype=np.int64)
    values = np.ascontiguousarray(values).reshape(-1)[borders[0] : borders[-1]]
    offsets = (borders - borders[0]) * values.itemsize
    if first is not None:
        offsets = offsets[np.append(0, np.cumsum(first))]
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, dtype=np.int64)), pa.py_buffer(values)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


# ---- and back -------------------------------------------------------------------------------------


def log_of_rows(table: Table, kind: BanditLog) -> BanditLog:
    """Return the log of a shard's table; ``kind`` is a log with the same labels, features and structure."""
    first = _plain(table, "first")
    heads = np.flatnonzero(first)
    fields: dict[str, Any] = {name: frozen(_plain(table, name)) for name in PLAIN if name in table.column_names}
    fields |= {name: _named(table, name) for name in NAMED}
    fields["time"] = None if kind.time is None else frozen(_plain(table, "time"))
    fields["context"] = frozen(np.cumsum(first) - 1, np.int64)
    fields["y"] = frozen(_decoded(table, kind.y))
    fields["X"] = _matrix(table, kind, heads)
    fields["available"] = None if kind.available is None else _available(table, kind.available, heads)
    return kind.replaced(**fields)


def outputs_of(table: Table, kind: BanditLog) -> AnyArray:
    """Return the logged outputs alone, as codes."""
    return frozen(_decoded(table, kind.y))


def _plain(table: Table, name: str) -> AnyArray:
    return np.asarray(_column(table, name).to_numpy(zero_copy_only=False))


def _column(table: Table, name: str) -> Any:
    import pyarrow as pa

    column = table.column(name)
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _named(table: Table, name: str) -> AnyArray | None:
    if name not in table.column_names:
        return None
    values = _plain(table, name)
    return frozen(values.astype(str) if values.dtype == object else values)


def _decoded(table: Table, like: AnyArray) -> AnyArray:
    values, _ = _content(table, "y", like.dtype)
    return values.reshape(table.num_rows, *like.shape[1:])


def _matrix(table: Table, kind: BanditLog, heads: IntArray) -> Any:
    values, borders = _content(table, "value", np.float64)
    if not is_sparse(kind.X):
        return frozen(values.reshape(len(heads), kind.n_features))
    index, _ = _content(table, "index", np.int32)
    return _csr(values, index, _at(borders, heads), kind.n_features)


def _available(table: Table, like: Available, heads: IntArray) -> Available:
    action, borders = _content(table, "action", np.int32)
    starts = _at(borders, heads)
    if like.features is None:
        return Available(starts, action)
    if like.row is not None:
        return Available(starts, action, like.features, _content(table, "row", np.int32)[0])
    lengths, index = (_content(table, f"z.{name}", np.int32)[0] for name in ("length", "index"))
    pointers = np.append(0, np.cumsum(lengths))
    return Available(
        starts, action, _csr(_content(table, "z.value", np.float64)[0], index, pointers, like.features.shape[1])
    )


def _csr(values: AnyArray, index: AnyArray, pointers: IntArray, width: int) -> Any:
    found = sp.csr_array((len(pointers) - 1, width), dtype=np.float64)
    small = np.int32 if pointers[-1] < 2**31 else np.int64
    found.data, found.indices, found.indptr = frozen(values), frozen(index), frozen(pointers, small)
    return found


def _content(table: Table, name: str, dtype: Any) -> tuple[AnyArray, IntArray]:
    """Return all values of a column of blobs, and where those of each row begin."""
    column = _column(table, name)
    _, offsets, content = column.buffers()
    borders = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    size = np.dtype(dtype).itemsize
    if content is None:
        return np.empty(0, dtype=dtype), borders
    flat = np.frombuffer(content, np.uint8)[borders[0] : borders[-1]]
    return flat.view(dtype), (borders - borders[0]) // size


def _at(borders: IntArray, heads: IntArray) -> IntArray:
    return np.append(borders[heads], borders[-1])
