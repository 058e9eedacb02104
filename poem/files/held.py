"""A folder that one process uses at a time: others are refused, and what a killed one left behind is removed."""

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from poem.errors import BusyError, WriteError
from poem.files.whole import remove_leftovers

try:
    from fcntl import LOCK_EX, LOCK_NB, flock

    HAS_LOCKS = True
except ImportError:  # Windows
    HAS_LOCKS = False

LOCK = ".poem.lock"


@contextmanager
def held_folder(folder: Path, own: re.Pattern[str], advice: str) -> Iterator[None]:
    """Keep other processes out of a folder; ``own`` are the names of the files that are written whole in it.

    The system releases the lock of a process that is killed. Where there are no locks (Windows, some network file
    systems), nobody is kept out, and nothing is removed: the files may be those of a process that still runs.
    """
    lock = folder / LOCK
    handle = _held(lock, advice)
    if handle is None:
        yield
        return
    try:
        remove_leftovers(folder, own)
        yield
    finally:
        with suppress(OSError):
            lock.unlink()
        os.close(handle)


def _held(lock: Path, advice: str) -> int | None:
    """Return the open file that holds the lock, or None if there are no locks."""
    if not HAS_LOCKS:
        return None
    while True:
        handle = _opened(lock)
        try:
            flock(handle, LOCK_EX | LOCK_NB)
        except BlockingIOError as error:
            holder = os.read(handle, 200).decode("utf-8", "replace") or "another process"
            os.close(handle)
            raise BusyError(f"the folder {str(lock.parent)!r} is in use by {holder}. {advice}") from error
        except OSError:
            os.close(handle)
            return None
        if _is_at(handle, lock):
            _sign(handle)
            return handle
        os.close(handle)  # the process that held it has just ended and removed it


def _sign(handle: int) -> None:
    """Say who holds the lock, if there is room on the disk."""
    with suppress(OSError):
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {platform.node()}".encode())


def _opened(lock: Path) -> int:
    try:
        return os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise WriteError(
            f"cannot write to the folder {str(lock.parent)!r}: {error.strerror or error}. Check its permissions, or "
            "choose another one."
        ) from error


def _is_at(handle: int, path: Path) -> bool:
    """Tell whether an open file still is the one at a path."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
