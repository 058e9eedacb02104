"""Open a packed folder."""

import os
from functools import lru_cache
from typing import Any

from poem.backends import Backend, Dask
from poem.errors import InputError, PackedError
from poem.files import Folder, size_of
from poem.packed.kind import read_kind
from poem.packed.log import PackedLog, View
from poem.packed.manifest import NAME, manifest_from
from poem.packed.shard_file import check_present
from poem.readers import UNFINISHED, is_unfinished


def is_packed(place: str | os.PathLike[str]) -> bool:
    """Tell whether a folder holds a packed log."""
    return Folder(place).size(NAME) is not None


def open_log(place: str | os.PathLike[str], *, memory: int | str | None = None, backend: Any = None) -> PackedLog:
    """Open a folder that :func:`poem.pack_log` has made; only its manifest is read.

    Parameters
    ----------
    place : path or address
        A folder on this machine, or anywhere that fsspec reaches, such as ``s3://bucket/packed``.
    memory : int or str, optional
        What work on the log may take, about, such as ``"4GB"``; half of the free memory by default.
    backend : Backend or distributed.Client, optional
        Where work on its shards is run: ``poem.Threads()``, or ``poem.Dask(client)`` for a cluster. By default, as many
        threads as ``n_jobs`` of :func:`poem.fit` and others say.
    """
    if type(backend).__module__.startswith("distributed."):
        backend = Dask(backend)
    if not isinstance(backend, Backend | None):
        raise InputError(f"backend must be poem.Threads() or poem.Dask(client); found {backend!r}.")
    size = None if memory is None else size_of(memory)
    if not isinstance(place, str | os.PathLike):
        raise InputError(f"open_log takes the path of a packed folder; found {type(place).__name__}.")
    folder = Folder(place)
    try:
        text = folder.read(NAME)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise PackedError(_why_not(folder)) from error
    except PermissionError as error:
        raise PackedError(f"{folder}: {NAME} cannot be read: {error.strerror or error}.") from error
    manifest = manifest_from(text, str(folder))
    for note in manifest.shards:
        check_present(folder, note)
    return PackedLog(folder, manifest, read_kind(folder, manifest.kind_sha256), memory=size, backend=backend)


def _why_not(folder: Folder) -> str:
    """Say why a place is no packed log."""
    path = folder.path("")
    if path is not None and not path.exists():
        return f"there is no folder {str(folder)!r}. Check the path."
    if path is not None and path.is_file():
        return f"{folder} is a file. Name the folder that `poem pack` has written."
    if path is not None and is_unfinished(path):
        return UNFINISHED.format(name=folder)
    return f"{folder} is no packed log: it has no {NAME}. Name a folder that `poem pack` has written to its end."


def how_to_open(found: object) -> str:
    """Return an advice for a path where a log is needed; nothing for anything else."""
    if not isinstance(found, str | os.PathLike):
        return ""
    return " Read a file by poem.read_log, or open a packed folder by poem.open_log."


@lru_cache(maxsize=8)
def _opened(place: str, digest: str) -> PackedLog:
    """Open a log once per process, however many tasks ask for it; refuse another one that was packed in its place."""
    found = open_log(place)
    if found.manifest.digest != digest:
        raise PackedError(
            f"{place} was packed anew after the log was opened, or workers see another folder there. Open it again."
        )
    return found


def reopened(place: str, digest: str, low: int, high: int, view: View | None, chosen_by: Any) -> PackedLog:
    """Return a part of a log that this process may have open already."""
    part = _opened(place, digest).replaced(low=low, high=high, chosen_by=chosen_by)
    return part if view is None else part.seen_as(view)
