"""Files that are there whole or not at all, and files that may be compressed."""

import io
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from poem.errors import InputError, ReadError, WriteError
from poem.files.room import room

# What compressed files begin with; bz2's is followed by π, so that a column may be called BZh1.
MAGIC = {"gzip": rb"\x1f\x8b\x08", "bz2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)", "zstd": rb"\x28\xb5\x2f\xfd"}
COMPRESSED = (".gz", ".bz2", ".zst", ".zstd")
TEMPORARY = re.compile(r"\.(.+)\.[a-z0-9_]{8}")  # what mkstemp makes of the name of a file, as whole_file asks
BLOCK = 1 << 24  # bytes that are decompressed at a time


@dataclass(frozen=True)
class Piece:
    """Some whole lines of a file, decompressed and in memory: what readers take in place of a file.

    ``is_first`` says that the file begins with them.
    """

    name: str
    content: bytes
    is_first: bool = True


Source = Path | Piece


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give a temporary file beside ``path`` to write to; it takes its place when all went well, and goes if not."""
    if not path.parent.is_dir():
        raise InputError(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}. Make it first.")
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder. Name a file.")
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as error:
        raise _cannot_write(path, error) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, content: bytes) -> Path:
    """Write a file so that it is there whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_bytes(content)
    return path


def remove_leftovers(folder: Path, own: re.Pattern[str]) -> None:
    """Remove what killed processes left of the files with names in ``own``; none of them may be written meanwhile."""
    for path in folder.iterdir():
        found = TEMPORARY.fullmatch(path.name)
        if found and own.fullmatch(found[1]):
            path.unlink(missing_ok=True)


def _cannot_write(path: Path, error: OSError) -> WriteError:
    reason = error.strerror or str(error)
    return WriteError(
        f"cannot write {str(path)!r}: {reason}. No partial file was left; check the disk space and the permissions."
    )


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def compression_of(path: Source) -> str | None:
    """Return how a file is compressed, by its first bytes: what its name says may not be true."""
    if isinstance(path, Piece):
        return None
    with path.open("rb") as file:
        head = file.read(16)
    return next((name for name, magic in MAGIC.items() if re.match(magic, head)), None)


@contextmanager
def for_arrow(path: Source) -> Iterator[Any]:
    """Give what Arrow can read a file from: its path, or the open file if the path is not UTF-8, which Arrow needs."""
    if isinstance(path, Piece):
        import pyarrow as pa

        yield pa.py_buffer(path.content)
    elif is_encodable(str(path)):
        yield path
    else:
        with path.open("rb") as file:
            yield file


def is_encodable(text: str) -> bool:
    """Tell whether a text can be written as UTF-8; the name of a file may hold other bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_name(path: Path) -> str:
    """Return a file's name without the suffix of its compression."""
    return path.stem if path.suffix.lower() in COMPRESSED else path.name


def content_of(path: Source, most: int | None = None) -> bytes:
    """Return what a file holds, or the first ``most`` bytes of it, decompressed."""
    if isinstance(path, Piece):
        return path.content if most is None else path.content[:most]
    if most is not None:
        return next(contents_of(path, most), b"")
    limit = room()
    found = io.BytesIO()  # grows in place, and gives its bytes away without a copy
    for block in contents_of(path, BLOCK):
        limit.check(path.name, found.tell() + len(block))
        found.write(block)
    return found.getvalue()


def contents_of(path: Path, size: int) -> Iterator[bytes]:
    """Yield what a file holds, decompressed, ``size`` bytes at a time."""
    import pyarrow as pa

    try:
        with for_arrow(path) as source, pa.input_stream(source, compression=compression_of(path)) as stream:
            while block := stream.read(size):
                yield bytes(block)
    except MemoryError as error:
        raise ReadError(
            f"{path.name} does not fit into memory. Split it into parts, or write it as Parquet."
        ) from error
    except (OSError, pa.ArrowException) as error:
        raise ReadError(f"{path.name} cannot be read: {error}. It may be damaged or cut off; copy it again.") from error
