"""Which files a path stands for, and what format they have: by suffix, else by content."""

from pathlib import Path

from poem.errors import InputError, ReadError
from poem.files import plain_name
from poem.readers.format import Format, Head
from poem.readers.registry import FORMATS, all_formats


def files_of(path: Path) -> list[Path]:
    """Return the file itself, or the part files of a folder in the order of their names."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ReadError(f"there is no file or folder {str(path)!r}. Check the path.")
    if {"manifest.json", "kind.parquet"} <= {file.name for file in path.iterdir()}:
        raise ReadError(
            f"{path.name} is a packed log, whose shards are no log by themselves. inspect, train, evaluate and report "
            "take it; in Python, open it by poem.open_log."
        )
    files = sorted(file for file in path.rglob("*") if file.is_file() and not _hidden(file.relative_to(path)))
    sides = {side for format in all_formats().values() for side in format.sides(files)}
    known = [file for file in files if file not in sides and suffix_format(file) is not None]
    if not known:
        raise ReadError(f"the folder {path.name!r} has no file of a known kind ({', '.join(known_suffixes())}).")
    return known


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)  # _SUCCESS, .crc and the like


def known_suffixes() -> tuple[str, ...]:
    """Return what the names of files can end in."""
    return tuple(suffix for format in all_formats().values() for suffix in format.suffixes)


def written_suffixes() -> tuple[str, ...]:
    """Return what the names of files can end in that poem writes."""
    return tuple(suffix for format in all_formats().values() if format.write for suffix in format.suffixes)


def suffix_format(path: Path) -> str | None:
    """Return the format that a file's name stands for."""
    suffix = Path(plain_name(path)).suffix.lower()
    return next((name for name, format in all_formats().items() if suffix in format.suffixes), None)


def format_of(path: Path) -> str:
    """Return the format of a file."""
    if path.stat().st_size == 0:
        raise ReadError(f"{path.name} is empty. Pass a file with at least one decision.")
    claimed, head = suffix_format(path), Head.of(path)
    known = all_formats()
    possible = [name for name, one in known.items() if claimed in (None, name, one.refines) or one.has_magic]
    return next(name for name in reversed(possible) if name == claimed or _looks(known, name, claimed, head))


def _looks(known: dict[str, Format], name: str, claimed: str | None, head: Head) -> bool:
    """Tell whether a file looks like a format, and like the one that it refines unless the suffix says so."""
    general = known[name].refines
    return known[name].looks(head) and (general in (None, claimed) or known[general].looks(head))


def common_format(files: list[Path], given: str | None) -> str:
    """Return the one format of all files."""
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"the format must be one of {', '.join(FORMATS)}; found {given!r}.")
        return given
    formats = {format_of(file): file for file in files}
    if len(formats) > 1:
        one, two = list(formats.items())[:2]
        raise ReadError(
            f"the folder holds {one[1].name} ({one[0]}) and {two[1].name} ({two[0]}); part files must be of one kind."
        )
    return next(iter(formats))
