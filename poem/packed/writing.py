"""A stream of logs → a packed folder: rows are dealt into shards by the hashes of their units.

Rows are first appended to one file per shard, as they come; then each of these files becomes a shard, in which contexts
that several rows saw are stored once. The manifest is written last: a folder without one is not a packed log.
"""

import hashlib
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from poem.arrays import AnyArray, IntArray, frozen
from poem.compute import Threads, exact_kernel, is_sparse
from poem.data import BanditLog
from poem.errors import InputError, WriteError
from poem.files import Table, held_folder, write_whole
from poem.packed.hashing import HashArray, context_hashes
from poem.packed.keys import Keys
from poem.packed.log import ALL
from poem.packed.manifest import KIND, NAME, Manifest, ShardNote
from poem.packed.rows import kind_of_log, log_of_rows, offers_of, table_of
from poem.packed.shard_file import write_shard
from poem.progress import Progress
from poem.readers import write_log

SHARD_BYTES = 64 << 20  # of a shard in memory: what one thread handles at a time
MOST_SHARDS = 100_000
WAITING_BYTES = 256 << 20  # of rows that wait to be appended
OWN = re.compile(r"(shard-\d+|kind)\.parquet|manifest\.json")
WORK = ".packing"


class PackWriter:
    """Deals logs into shards.

    Parameters
    ----------
    folder : path
        A new or empty folder, held by :func:`pack_folder`.
    shards : int
        How many shards there will be.
    catalogue : bool
        Candidates are numbers of rows of one table of features, the same in all logs; see :func:`has_catalogue`.
    """

    def __init__(self, folder: Path, shards: int, threads: Threads, *, catalogue: bool = False) -> None:
        self.folder, self.threads, self.catalogue = folder, threads, catalogue
        self.borders = [ALL * number // shards for number in range(shards + 1)]
        self._cuts: HashArray = np.array(self.borders[1:-1], dtype=np.uint64)
        self._waiting: dict[int, list[Table]] = {}
        self._bytes = 0
        self._kind: BanditLog | None = None
        self._rows = 0

    @property
    def count(self) -> int:
        """The number of shards."""
        return len(self.borders) - 1

    def add(self, log: BanditLog, number: IntArray | None = None, file: int = 0) -> None:
        """Deal the rows of one more log, of the same kind as those before; see :class:`LogBlock` for the rest."""
        if self._kind is None:
            self._kind = kind_of_log(log, self.catalogue)
        keys = Keys.of_log(log, self._rows, number, file)
        self._rows += len(log)
        shard = np.searchsorted(self._cuts, keys.unit, side="right")
        order = np.lexsort((log.context, shard))
        starts = np.searchsorted(shard[order], np.arange(len(self.borders)))
        cuts = np.zeros(len(log), dtype=bool)
        cuts[starts[starts < len(log)]] = True
        table = table_of(log, keys, order, catalogue=self.catalogue, cuts=cuts)
        for place in np.flatnonzero(np.diff(starts)).tolist():
            rows = table.slice(starts[place], starts[place + 1] - starts[place])
            self._waiting.setdefault(place, []).append(rows)
        self._bytes += table.nbytes
        if self._bytes > WAITING_BYTES:
            self._append()

    def _append(self) -> None:
        """Write what waits to the files of its shards."""
        import pyarrow as pa

        for number, tables in self._waiting.items():
            rows = pa.concat_tables(tables).combine_chunks()
            try:
                with self._spilled(number).open("ab") as file, pa.ipc.new_stream(file, rows.schema) as writer:
                    writer.write_table(rows)
            except OSError as error:
                raise _cannot_write(self.folder, error) from error
        self._waiting, self._bytes = {}, 0

    def _spilled(self, number: int) -> Path:
        return self.folder / WORK / f"{number:06d}.arrow"

    def finish(self, line: Progress, columns: dict[str, Any] | None = None) -> Manifest:
        """Turn what was dealt into shards, and write the manifest; ``columns`` are those of the log that was packed."""
        if self._kind is None:
            raise InputError("nothing to pack: the log has no rows.")
        self._append()
        kind = self._kind

        def one(number: int) -> ShardNote | None:
            note = self._shard(number, kind)
            line.part_done()
            return note

        notes = self.threads.map(one, range(self.count))
        content = write_log(kind, self.folder / KIND).read_bytes()
        present = tuple(note for note in notes if note is not None)
        found = Manifest(present, hashlib.sha256(content).hexdigest(), columns)
        write_whole(self.folder / NAME, found.text().encode())
        return found

    def _shard(self, number: int, kind: BanditLog) -> ShardNote | None:
        spilled = self._spilled(number)
        if not spilled.exists():
            return None
        table = _read_streams(spilled)
        log, keys = merged(log_of_rows(table, kind), Keys.of_table(table), catalogue=self.catalogue)
        path = self.folder / f"shard-{number:06d}.parquet"
        borders = (self.borders[number], self.borders[number + 1])
        note = write_shard(path, log, keys, borders, catalogue=self.catalogue)
        spilled.unlink()
        return note


def _read_streams(path: Path) -> Table:
    """Return all tables that were appended to a file, as one."""
    import pyarrow as pa

    tables, end = [], path.stat().st_size
    with pa.memory_map(str(path)) as file:
        while file.tell() < end:
            tables.append(pa.ipc.open_stream(file).read_all())
        return pa.concat_tables(tables).combine_chunks()


def _cannot_write(folder: Path, error: OSError) -> WriteError:
    return WriteError(
        f"cannot write to {str(folder)!r}: {error.strerror or error}. Nothing was packed; check the disk space and the "
        "permissions, and pack again."
    )


def merged(log: BanditLog, keys: Keys, *, catalogue: bool) -> tuple[BanditLog, Keys]:
    """Return a log with its rows in the order of the hashes of their contexts, each of which is stored once.

    Contexts are known by their numbers; where they have none and rows have groups, by what they hold. Rows that are
    units of their own keep their contexts, and are in the order of their own hashes.
    """
    hashes = keys.of_contexts(log)
    if hashes is None and log.group is None:
        rows = np.argsort(keys.unit, kind="stable")
        return log.take(rows).on_contexts(log.context[rows], np.arange(len(rows))), keys.take(rows)
    hashes = context_hashes(log) if hashes is None else hashes
    by_hash = np.argsort(hashes, kind="stable")
    new = np.ones(len(by_hash), dtype=bool)
    same = np.flatnonzero(hashes[by_hash[1:]] == hashes[by_hash[:-1]]) + 1
    new[same[_equal(log, by_hash[same - 1], by_hash[same], catalogue)]] = False
    number = np.empty(len(by_hash), dtype=np.int64)
    number[by_hash] = np.cumsum(new) - 1
    context = number[log.context]
    rows = np.argsort(context, kind="stable")
    return log.take(rows).on_contexts(by_hash[new], context[rows]), keys.take(rows)


def _equal(log: BanditLog, one: IntArray, two: IntArray, catalogue: bool) -> AnyArray:
    """Tell which pairs of contexts are the same, to the bit: hashes may be equal by chance."""
    same = np.ones(len(one), dtype=bool)
    if not len(one):
        return same
    if log.available is not None:
        keys = list(offers_of(log.available, np.concatenate([one, two]), catalogue).keys())
        same &= [a == b for a, b in zip(keys[: len(one)], keys[len(one) :], strict=True)]
    if not is_sparse(log.X):
        return np.asarray(same & (log.X[one] == log.X[two]).all(axis=1))
    X = log.X
    found = np.empty(len(one), dtype=bool)
    _equal_rows(frozen(X.indptr, np.int64), frozen(X.indices), frozen(X.data), frozen(one), frozen(two), found)
    return same & found


@exact_kernel
def _equal_rows(
    pointers: IntArray, columns: AnyArray, data: AnyArray, one: IntArray, two: IntArray, out: AnyArray
) -> None:
    for i in range(out.shape[0]):
        a, b = pointers[one[i]], pointers[two[i]]
        length = pointers[one[i] + 1] - a
        out[i] = length == pointers[two[i] + 1] - b
        t = 0
        while out[i] and t < length:
            out[i] = columns[a + t] == columns[b + t] and data[a + t] == data[b + t]
            t += 1


@contextmanager
def pack_folder(folder: Path) -> Iterator[None]:
    """Hold a folder for packing; what an earlier pack left unfinished is removed, and so is what this one leaves."""
    is_new = not folder.exists()
    try:
        with _made(folder):
            yield
    finally:
        if is_new and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


@contextmanager
def _made(folder: Path) -> Iterator[None]:
    try:
        folder.mkdir(exist_ok=True)
    except FileNotFoundError as error:
        raise InputError(f"cannot write {str(folder)!r}: there is no folder {str(folder.parent)!r}.") from error
    except OSError as error:
        raise InputError(f"cannot write {str(folder)!r}: {error.strerror or error}. Name a folder.") from error
    with held_folder(folder, OWN, "Wait until it has ended, or pack into another folder."):
        if (folder / NAME).exists():
            raise InputError(f"{str(folder)!r} holds a packed log already. Remove it, or pack into another folder.")
        strange = sorted(path.name for path in folder.iterdir() if not _is_own(path.name))
        if strange:
            raise InputError(
                f"{str(folder)!r} is not empty: it holds {strange[0]!r}. Pack into a new or an empty folder."
            )
        _clear(folder)
        (folder / WORK).mkdir()
        try:
            yield
        finally:
            shutil.rmtree(folder / WORK, ignore_errors=True)
            if not (folder / NAME).exists():
                _clear(folder)


def start_anew(folder: Path) -> None:
    """Remove what was dealt so far."""
    for path in (folder / WORK).iterdir():
        path.unlink()


def _is_own(name: str) -> bool:
    return bool(OWN.fullmatch(name)) or name in (WORK, ".poem.lock")


def _clear(folder: Path) -> None:
    shutil.rmtree(folder / WORK, ignore_errors=True)
    for path in folder.iterdir():
        if OWN.fullmatch(path.name):
            path.unlink()


def shards_for(rows: int, sample: BanditLog) -> int:
    """Return how many shards so many rows make, by the size of some of them."""
    return min(max(1, -(-rows * sample.nbytes // (len(sample) * SHARD_BYTES))), MOST_SHARDS)
