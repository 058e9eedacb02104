"""Any log → a packed folder, in memory that does not grow with the log."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from poem.compute import Threads, count_threads
from poem.data import BanditLog
from poem.data.features import Encoding, Features
from poem.errors import InputError, MismatchError, WholeError
from poem.packed.keys import context_numbers
from poem.packed.log import PackedLog
from poem.packed.opening import open_log
from poem.packed.rows import has_catalogue
from poem.packed.writing import PackWriter, pack_folder, shards_for, start_anew
from poem.progress import Progress
from poem.readers import Columns, Likeness, LogBlock, LogStream, RawLog, log_of, read_raw
from poem.structures import Wanted

BLOCK = 250_000  # rows of a log in memory that are packed at a time

Source = str | os.PathLike[str]


@runtime_checkable
class Reader(Protocol):
    """A policy: it knows how its own log was read."""

    def likeness(self) -> Likeness:
        """Return how a log is read to be like the policy's own."""

    def log_prob_of(self, log: BanditLog) -> Any:
        """Return the logarithms of the probabilities of the logged outputs."""


def pack_log(
    source: BanditLog | Source | Sequence[Source],
    folder: str | os.PathLike[str],
    *,
    policy: Reader | None = None,
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
    policy : Policy or FlooredPolicy, optional
        Pack the log the way the policy's own log was read: with its columns, features and outputs. Do so with each log
        that the policy will be evaluated on. Without it, a log gets features and outputs of its own.
    columns, labels, structure, features, format, side, delimiter, actions_vary, actions, identity
        As in :func:`poem.read_log`. ``labels``, ``structure``, ``features`` and ``identity`` are those of ``policy``,
        if there is one.
    n_jobs : int
        Threads; -1 is all cores.
    progress : bool
        Show how far the work is.

    Returns
    -------
    PackedLog
    """
    given = {"labels": labels, "structure": structure, "features": features, "identity": identity or None}
    like = _likeness(policy, given)
    target, threads = Path(folder), Threads(count_threads(n_jobs))
    if isinstance(source, BanditLog):
        if policy is not None:
            policy.log_prob_of(source.take(np.arange(1)))  # says what does not fit
        with pack_folder(target):
            return _dealt(_blocks(source), len(source), None, target, threads, progress)
    if isinstance(source, PackedLog):
        raise InputError(f"{source.folder} is packed already. Copy the folder, or pass the original files.")
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if not all(isinstance(path, str | os.PathLike) for path in paths):
        raise InputError("pack_log takes paths or a BanditLog; write a data frame to a Parquet file first.")
    asked = like.named(columns or Columns())
    how: dict[str, Any] = {"format": format, "side": side, "delimiter": delimiter, "progress": progress}
    how |= {"actions_vary": actions_vary, "actions": actions, "identity": identity}
    known: dict[str, Any] = {"labels": labels, "structure": structure, "features": features}
    if policy is not None:
        known = {"labels": like.labels, "structure": like.structure, "features": like.features}
    stream = LogStream(paths, columns=asked, like=like, threads=threads, **known, **how)
    with pack_folder(target):
        try:
            kind = stream.learn()
            blocks = _checked(stream.blocks(kind), kind.common, like)
            return _dealt(blocks, kind.rows, _columns(kind.common), target, threads, progress)
        except WholeError:
            if len(paths) > 1:
                raise
        start_anew(target)
        raw, log = _whole(paths[0], asked, like, known, how)
        blocks = _checked(_blocks(log), raw, like)
        return _dealt(blocks, len(log), _columns(raw), target, threads, progress)


def _likeness(policy: Any, given: dict[str, Any]) -> Likeness:
    """Return how a log is read to be like a policy's own; what the policy says must not be given as well."""
    if policy is None:
        return Likeness()
    if not isinstance(policy, Reader):
        raise InputError(f"policy must be a poem.Policy; found {type(policy).__name__}. poem.load_policy reads a file.")
    twice = [name for name, value in given.items() if value is not None]
    if twice:
        raise InputError(f"{twice[0]}= has no effect: features and outputs are those of policy=. Leave it out.")
    return policy.likeness()


def _whole(
    path: Source, columns: Columns, like: Likeness, known: dict[str, Any], how: dict[str, Any]
) -> tuple[RawLog, BanditLog]:
    """Read a log as a whole."""
    missing, features = columns.propensity == "missing", known["features"]
    recipe, encoding = (None, features) if isinstance(features, Encoding) else (features, None)
    asked = replace(columns, propensity=None) if missing else columns
    before: dict[str, Any] = {"defaults": like.roles, "described": like.described}
    raw = read_raw(path, asked, structure=known["structure"], recipe=recipe, **before, **how)
    told: dict[str, Any] = {"labels": known["labels"], "structure": known["structure"], "missing": missing}
    return raw, log_of(raw, features=recipe, encoding=encoding, action_features=like.action_features, **told)


def _checked(blocks: Iterable[LogBlock], raw: RawLog, like: Likeness) -> Iterator[LogBlock]:
    """Yield the blocks of a log, or say why they are not like the log of a policy."""
    strange: MismatchError | None = None
    for number, block in enumerate(blocks):
        if number == 0:
            like.check(raw, block.log)
        if number == 0 or strange is not None:  # until one of the features occurs
            strange = _strangeness(raw, block.log, like)
        yield block
    if strange is not None:
        raise strange


def _strangeness(raw: RawLog, log: BanditLog, like: Likeness) -> MismatchError | None:
    try:
        like.check_known(raw, log)
    except MismatchError as error:
        return error
    return None


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
