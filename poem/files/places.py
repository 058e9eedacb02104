"""Folders on this machine or anywhere that fsspec reaches: what a packed log is read from."""

import os
from pathlib import Path
from typing import Any, BinaryIO

from poem.errors import InputError


class Folder:
    """A folder whose files can be read: a path, or an address such as ``s3://bucket/packed``."""

    def __init__(self, place: str | os.PathLike[str]) -> None:
        self.place = os.fspath(place)
        self._system: Any
        self._root: str
        self._system, self._root = _system_of(self.place) if "://" in self.place else (None, self.place)

    def __reduce__(self) -> Any:
        return Folder, (self.place,)

    def __str__(self) -> str:
        return self.place

    @property
    def name(self) -> str:
        """The last part of its address."""
        return Path(self._root).name or self.place

    def path(self, name: str) -> Path | None:
        """Return the path of a file, if it is on this machine."""
        return Path(self._root) / name if self._system is None else None

    def open(self, name: str) -> BinaryIO:
        """Open a file to read it."""
        if self._system is None:
            return (Path(self._root) / name).open("rb")
        found: BinaryIO = self._system.open(f"{self._root}/{name}", "rb")
        return found

    def read(self, name: str) -> bytes:
        """Return what a file holds."""
        with self.open(name) as file:
            return file.read()

    def size(self, name: str) -> int | None:
        """Return how many bytes a file has; None if it is not there."""
        try:
            if self._system is None:
                return (Path(self._root) / name).stat().st_size
            return int(self._system.size(f"{self._root}/{name}"))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def changed(self, name: str) -> int | None:
        """Return when a file on this machine was last changed, in ns; None elsewhere, or if it is not there."""
        path = self.path(name)
        try:
            return None if path is None else path.stat().st_mtime_ns
        except OSError:
            return None


def _system_of(place: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError as error:
        raise InputError(
            f"{place!r} needs fsspec, which is not installed. Install it (pip install 'poem[dask]'), and the file "
            "system's own package, such as s3fs or gcsfs."
        ) from error
    try:
        system, root = fsspec.core.url_to_fs(place)
    except (ImportError, ValueError) as error:
        raise InputError(f"{place!r} cannot be opened: {error}.") from error
    return system, str(root).rstrip("/")
