"""Any log → a packed folder, in memory that does not grow with the log."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from poem.compute import Threads, count_threads
from poem.data import BanditLog
from poem.data.features import Encoding, Features
from poem.errors import InputError, WholeError
from poem.packed.keys import context_numbers
from poem.packed.log import PackedLog, open_log
from poem.packed.rows import has_catalogue
from poem.packed.writing import PackWriter, pack_folder, shards_for, start_anew
from poem.progress import Progress
from poem.readers import Columns, LogBlock, LogStream, RawLog, log_of, read_raw
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
    to encode the rows and to deal them into shards. Files that cannot be cut into blocks (Vowpal Wabbit's text with
    several lines per decision, slots) are read as a whole. The folder is a packed log when its manifest is there, which
    is written last; what an interrupted pack leaves is removed by the next one.

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
            return _dealt(_blocks(source), len(source), None, target, threads, progress)
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise InputError("pack_log takes paths or a BanditLog; write a data frame to a Parquet file first.")
    how: dict[str, Any] = {"format": format, "side": side, "delimiter": delimiter, "progress": progress}
    how |= {"actions_vary": actions_vary, "actions": actions, "identity": identity}
    stream = LogStream(
        paths,
        columns=columns or Columns(),
        labels=labels,
        structure=structure,
        features=features,
        threads=threads,
        **how,
    )
    with pack_folder(target):
        try:
            kind = stream.learn()
            return _dealt(stream.blocks(kind), kind.rows, _columns(kind.common), target, threads, progress)
        except WholeError:
            if len(paths) > 1:
                raise
        start_anew(target)
        raw, log = _whole(paths[0], columns or Columns(), labels, structure, features, how)
        return _dealt(_blocks(log), len(log), _columns(raw), target, threads, progress)


def _whole(
    path: Source,
    columns: Columns,
    labels: Sequence[Any] | None,
    structure: Wanted,
    features: Features | Encoding | None,
    how: dict[str, Any],
) -> tuple[RawLog, BanditLog]:
    """Read a log as a whole."""
    missing = columns.propensity == "missing"
    recipe, encoding = (None, features) if isinstance(features, Encoding) else (features, None)
    asked = replace(columns, propensity=None) if missing else columns
    raw = read_raw(path, asked, structure=structure, recipe=recipe, **how)
    told: dict[str, Any] = {"labels": labels, "structure": structure, "missing": missing}
    return raw, log_of(raw, features=recipe, encoding=encoding, **told)


def _blocks(log: BanditLog) -> Iterator[LogBlock]:
    number = context_numbers(log)
    for rows in np.array_split(np.arange(len(log)), -(-len(log) // BLOCK)):
        yield LogBlock(log.take(rows), None if number is None else number[rows])


def _columns(raw: RawLog) -> dict[str, Any]:
    """Return the columns of a log as a policy's record has them."""
    return asdict(raw.roles) | ({} if raw.actions.id == "id" else {"action_id": raw.actions.id})


def _dealt(
    blocks: Iterable[LogBlock],
    rows: int,
    columns: dict[str, Any] | None,
    folder: Path,
    threads: Threads,
    progress: bool,
) -> PackedLog:
    """Deal a log into shards; its first block tells how many of them there will be."""
    every: Iterator[LogBlock] = iter(blocks)
    first = next(every, None)
    if first is None:
        raise InputError("nothing to pack: the log has no rows.")
    writer = PackWriter(folder, shards_for(rows, first.log), threads, catalogue=has_catalogue(first.log))
    with Progress(f"dealing rows into {folder.name}", rows, progress, unit="rows", after=2.0) as line:
        for block in chain([first], every):
            writer.add(block.log, block.number, block.file)
            line.reached(line.done + len(block.log))
    with Progress(f"writing {folder.name}", writer.count, progress, unit="shards", after=2.0) as line:
        writer.finish(line, columns)
    return open_log(folder)
