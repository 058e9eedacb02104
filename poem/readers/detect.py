"""Which files a path stands for, and what format they have: by suffix, else by content."""

import re
from pathlib import Path

from poem.errors import InputError, ReadError
from poem.files import plain_name
from poem.readers.format import Format, Head
from poem.readers.registry import FORMATS, all_formats

PACKED = re.compile(r"(shard-\d+|kind)\.parquet|manifest\.json")  # files of a packed log
UNFINISHED = "{name} is an unfinished packed log: a pack was interrupted. Run poem pack again, into the same folder."


def files_of(path: Path) -> list[Path]:
    """Return the file itself, or the part files of a folder in the order of their names."""
    if path.is_file():
        if PACKED.fullmatch(path.name) and _is_packed(path.parent):
            raise ReadError(f"{path.name} is part of a packed log. Pass the folder, {str(path.parent)!r}.")
        return [path]
    if not path.is_dir():
        raise ReadError(f"there is no file or folder {str(path)!r}. Check the path.")
    if _is_packed(path):
        raise ReadError(
            f"{path.name} is a packed log, whose shards are no log by themselves. inspect, train, evaluate and report "
            "take it; in Python, open it by poem.open_log. For anything else, pass the original files."
        )
    if is_unfinished(path):
        raise ReadError(UNFINISHED.format(name=path.name))
    if not any(path.iterdir()):
        raise ReadError(f"the folder {path.name!r} is empty. Check the path.")
    files = sorted(file for file in path.rglob("*") if file.is_file() and not _hidden(file.relative_to(path)))
    sides = {side for format in all_formats().values() for side in format.sides(files)}
    known = [file for file in files if file not in sides and suffix_format(file) is not None]
    if not known:
        raise ReadError(f"the folder {path.name!r} has no file of a known kind ({', '.join(known_suffixes())}).")
    return known


def distinct(files: list[Path]) -> list[Path]:
    """Return files of which none may be named twice: its rows would count twice."""
    seen: dict[Path, Path] = {}
    for file in files:
        same = seen.setdefault(file.resolve(), file)
        if same is not file:
            raise InputError(f"{str(same)!r} is given twice. Name each file once.")
    return files


def _is_packed(folder: Path) -> bool:
    return {"manifest.json", "kind.parquet"} <= {file.name for file in folder.iterdir()}


def is_unfinished(folder: Path) -> bool:
    """Tell whether a folder is what a pack left that was killed."""
    return (folder / ".packing").is_dir() and not (folder / "manifest.json").exists()


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
            f"{one[1].name} is {one[0]} and {two[1].name} is {two[0]}; all files of a log must be of one kind."
        )
    return next(iter(formats))
