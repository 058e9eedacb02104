"""Any log → a packed folder, in memory that does not grow with the log."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from poem.compute import Threads, count_threads
from poem.data import BanditLog
from poem.data.features import Encoding, Features
from poem.errors import InputError
from poem.packed.log import PackedLog, open_log
from poem.packed.writing import PackWriter, pack_folder, shards_for
from poem.progress import Progress
from poem.readers import Columns, LogKind, LogStream
from poem.structures import Wanted

BLOCK = 250_000  # rows of a log in memory that are packed at a time

Source = str | os.PathLike[str]


def pack_log(
    source: BanditLog | Source | Sequence[Source],
    folder: str | os.PathLike[str],
    *,
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
    n_jobs: int | None = -1,
    progress: bool = False,
) -> PackedLog:
    """Pack a log into a folder of shards, for logs that are larger than memory.

    Files are read twice, block by block: first to learn which outputs there are and how columns become features, then
    to encode the rows and to deal them into shards. The folder is a packed log when its manifest is there, which is
    written last; what an interrupted pack leaves is removed by the next one.

    Parameters
    ----------
    source : path, several paths, or BanditLog
        Files of one format, or folders of part files.
    folder : path
        A new or empty folder.
    columns, labels, structure, features, format, side, delimiter, actions_vary, actions, identity
        As in :func:`poem.read_log`.
    n_jobs : int
        Threads; -1 is all cores.
    progress : bool
        Show how far the work is.

    Returns
    -------
    PackedLog
    """
    target, threads = Path(folder), Threads(count_threads(n_jobs))
    if isinstance(source, BanditLog):
        with pack_folder(target):
            blocks = source.shards(-(-len(source) // BLOCK))
            return _dealt(blocks, len(source), None, target, threads, progress)
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise InputError("pack_log takes paths or a BanditLog; write a data frame to a Parquet file first.")
    stream = LogStream(
        paths,
        columns=columns or Columns(),
        labels=labels,
        structure=structure,
        features=features,
        format=format,
        side=side,
        delimiter=delimiter,
        actions_vary=actions_vary,
        actions=actions,
        identity=identity,
        threads=threads,
        progress=progress,
    )
    with pack_folder(target):
        kind = stream.learn()
        return _dealt(stream.logs(kind), kind.rows, _columns(kind), target, threads, progress)


def _columns(kind: LogKind) -> dict[str, Any]:
    """Return the columns of a log as a policy's record has them."""
    id_of = kind.common.actions.id
    return asdict(kind.common.roles) | ({} if id_of == "id" else {"action_id": id_of})


def _dealt(
    logs: Iterable[BanditLog],
    rows: int,
    columns: dict[str, Any] | None,
    folder: Path,
    threads: Threads,
    progress: bool,
) -> PackedLog:
    """Deal logs into shards; the first one tells how many of them there will be."""
    every: Iterator[BanditLog] = iter(logs)
    first = next(every, None)
    if first is None:
        raise InputError("nothing to pack: the log has no rows.")
    writer = PackWriter(folder, shards_for(rows, first), threads)
    with Progress(f"dealing rows into {folder.name}", rows, progress, unit="rows", after=2.0) as line:
        for log in chain([first], every):
            writer.add(log)
            line.reached(line.done + len(log))
    with Progress(f"writing {folder.name}", writer.count, progress, unit="shards", after=2.0) as line:
        writer.finish(line, columns)
    return open_log(folder)
