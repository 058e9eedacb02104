"""One shard as a Parquet file: written whole, read column by column, and checked."""

import hashlib
import threading
from pathlib import Path
from typing import Any

import numpy as np

from poem.data import BanditLog
from poem.errors import PackedError, SizeError
from poem.files import Folder, Table, whole_file
from poem.packed.keys import Keys
from poem.packed.manifest import ShardNote
from poem.packed.rows import table_of

QUANTILES = 128  # evenly spaced parts whose borders a shard notes

_verified: set[tuple[str, str, int | None]] = set()
_lock = threading.Lock()


def write_shard(path: Path, log: BanditLog, keys: Keys, borders: tuple[int, int], *, catalogue: bool) -> ShardNote:
    """Write a log, and return what the manifest says of the shard; ``catalogue`` as in :func:`table_of`."""
    import pyarrow.parquet as pq

    table = table_of(log, keys, np.arange(len(log)), catalogue=catalogue)
    with whole_file(path) as temporary, temporary.open("wb") as file:
        pq.write_table(
            table,
            file,
            compression="lz4",
            use_dictionary=False,
            write_statistics=False,
            row_group_size=max(1, len(log)),
            write_page_checksum=True,
        )
    return ShardNote(
        name=path.name,
        low=borders[0],
        high=borders[1],
        rows=len(log),
        contexts=log.n_contexts,
        units=len(np.unique(keys.unit)),
        nonzeros=int(log.X.nnz if hasattr(log.X, "nnz") else log.X.size),
        candidates=0 if log.available is None else len(log.available),
        candidate_nonzeros=_own_values(log, catalogue),
        bytes=path.stat().st_size,
        sha256=_digest(path.open("rb")),
        loss=(float(log.loss.min()), float(log.loss.max()), float(log.loss.mean())),
        quantiles=_quantiles(log),
    )


def _own_values(log: BanditLog, catalogue: bool) -> int:
    """Return how many values the features of candidates have, unless a catalogue holds them."""
    offers = log.available
    if offers is None or offers.features is None or catalogue:
        return 0
    z = offers.features
    return int(z.nnz if offers.row is None else np.diff(z.indptr)[offers.row].sum())


def _quantiles(log: BanditLog) -> dict[str, list[float]]:
    at = np.linspace(0.0, 1.0, QUANTILES + 1)
    names = ("loss",) if log.propensities == "missing" else ("log_propensity", "loss")
    return {name: np.quantile(getattr(log, name), at).tolist() for name in names}


def _digest(file: Any) -> str:
    with file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_present(folder: Folder, note: ShardNote) -> None:
    """Raise if a shard is missing or has another size than when it was packed."""
    size = folder.size(note.name)
    if size is None:
        raise PackedError(f"{folder}: the shard {note.name} is missing. Restore it, or pack the log again.")
    if size != note.bytes:
        raise PackedError(
            f"{folder}: the shard {note.name} has {size:,} bytes, but had {note.bytes:,} when it was packed. It is cut "
            "off or was changed; restore it, or pack the log again."
        )


def read_shard(folder: Folder, note: ShardNote, columns: list[str] | None = None) -> Table:
    """Return all or some columns of a shard; its checksum is checked at first, and after the file has changed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    _verify(folder, note)
    path = folder.path(note.name)
    how: dict[str, Any] = {"use_threads": False, "page_checksum_verification": True}
    try:
        if path is not None:
            return pq.read_table(path, columns=columns, memory_map=True, partitioning=None, **how)
        return pq.read_table(pa.BufferReader(folder.read(note.name)), columns=columns, **how)
    except (OSError, pa.ArrowException) as error:
        raise _changed(folder, note) from error


def _verify(folder: Folder, note: ShardNote) -> None:
    key = (str(folder), note.sha256, folder.changed(note.name))
    with _lock:
        if key in _verified:
            return
    check_present(folder, note)
    try:
        found = _digest(folder.open(note.name))
    except MemoryError as error:
        raise SizeError(f"{folder}: the shard {note.name} does not fit into memory.") from error
    if found != note.sha256:
        raise _changed(folder, note)
    with _lock:
        _verified.add(key)


def _changed(folder: Folder, note: ShardNote) -> PackedError:
    return PackedError(
        f"{folder}: the shard {note.name} was changed after it was packed: its checksum differs. Restore it, or pack "
        "the log again."
    )
