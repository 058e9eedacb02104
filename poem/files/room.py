"""How much memory a file may take when it is read: compressed files and Parquet can become 1,000 times as large."""

import io
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from poem.errors import InputError, SizeError

VARIABLE = "POEM_MAX_SIZE"
UNITS = {"": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
UNKNOWN = 8 * 10**9  # bytes that are free on a machine that does not say
_CGROUP = Path("/sys/fs/cgroup")
_GROUP_FILES = (("memory.max", "memory.current"), ("memory.limit_in_bytes", "memory.usage_in_bytes"))
_CACHED = re.compile(r"^(?:total_)?inactive_file (\d+)", re.MULTILINE)  # counts as used, but is given back when needed


def size_of(given: object) -> int:
    """Return a size in bytes: a whole number, or text such as ``"500MB"``, ``"20 GB"`` or ``"20G"``."""
    found = re.fullmatch(r"(\d{1,15}(?:\.\d+)?) *([kMGT]?)B?", str(given).strip())
    size = 0 if found is None else int(float(found[1]) * UNITS[f"{found[2]}B" if found[2] else ""])
    if size < 1:
        raise InputError(f"a size is a number of bytes, or text such as '500MB' or '20GB'; found {given!r}.")
    return size


def shown_size(size: float) -> str:
    """Return a size in words, such as 1.5 GB."""
    unit = max((name for name in UNITS if size >= UNITS[name]), key=UNITS.__getitem__, default="")
    return f"{size / UNITS[unit]:.3g} {unit}" if unit else f"{size:,.0f} bytes"


# ---- the limit ------------------------------------------------------------------------------------


class Room:
    """What may be held in memory while files are read."""

    def __init__(self, max_size: object = None) -> None:
        given = max_size if max_size is not None else os.environ.get(VARIABLE) or None
        self.limit = free_memory() // 2 if given is None else size_of(given)
        self.is_given = given is not None
        self._before = _arrow_bytes()

    def check(self, name: str, more: int = 0) -> None:
        """Raise if what Arrow holds since this was made, and ``more`` bytes for a file, are beyond the limit."""
        size = max(_arrow_bytes() - self._before, 0) + more
        if size <= self.limit:
            return
        why = "" if self.is_given else ", half of the free memory"
        enough = shown_size(2.0 * size).replace(" ", "")
        raise SizeError(
            f"{name} needs at least {shown_size(size)} of memory when it is read; the limit is "
            f"{shown_size(self.limit)}{why}. If you trust the file, allow more, such as {enough} (--max-size, or "
            f"the environment variable {VARIABLE}); else read a part of it."
        )


_ROOM: ContextVar[Room | None] = ContextVar("room", default=None)


@contextmanager
def room_for(max_size: object = None) -> Iterator[None]:
    """Limit what is read inside of this; without a size, an outer limit holds, or else the default."""
    if max_size is None and _ROOM.get() is not None:
        yield
        return
    token = _ROOM.set(Room(max_size))
    try:
        yield
    finally:
        _ROOM.reset(token)


def room() -> Room:
    """Return the limit that holds here."""
    return _ROOM.get() or Room()


class Watched(io.RawIOBase):
    """A file that Arrow reads from; each time it asks for bytes, what it holds by then is checked.

    ``beside`` are bytes that are held besides those of Arrow.
    """

    def __init__(self, file: Any, name: str, beside: int = 0) -> None:
        self._file, self._name, self._beside, self._room = file, name, beside, room()

    def read(self, size: int | None = -1) -> bytes:
        self._room.check(self._name, self._beside)
        return bytes(self._file.read(size if size is None or size >= 0 else None))

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())


# ---- memory ---------------------------------------------------------------------------------------


def free_memory() -> int:
    """Return how many bytes this process can still have: of the machine, and of its container."""
    return max(min([_free_on_machine(), *free_in_groups()]), 0)


def _arrow_bytes() -> int:
    import pyarrow as pa

    return int(pa.total_allocated_bytes())


def _free_on_machine() -> int:
    try:
        found = re.search(r"^MemAvailable: +(\d+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) * 1024
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return UNKNOWN


def free_in_groups(root: Path = _CGROUP, own: Path = Path("/proc/self/cgroup")) -> list[int]:
    """Return what each limit of the control groups of this process leaves free."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return []
    free = []
    for _, controllers, name in (line.split(":", 2) for line in lines if line.count(":") >= 2):
        if controllers and "memory" not in controllers.split(","):
            continue
        top = root if not controllers else root / "memory"
        group = top / name.lstrip("/")
        for folder in (group, *group.parents):
            free += [left for files in _GROUP_FILES if (left := _left(folder, *files)) is not None]
            if folder == top:
                break
    return free


def _left(folder: Path, limit: str, used: str) -> int | None:
    """Return what one control group leaves free; None if it has no limit."""
    try:
        most = (folder / limit).read_text().strip()
        if most == "max":
            return None
        cached = _CACHED.findall((folder / "memory.stat").read_text())
        return int(most) - int((folder / used).read_text()) + int(cached[-1] if cached else 0)
    except (OSError, ValueError):
        return None
