"""Which files a path stands for, and what format they have: by suffix, else by content."""

import re
from pathlib import Path

from poem.errors import InputError, ReadError
from poem.files import content_of, plain_name
from poem.readers import obd
from poem.readers.csv import column_names

SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".svm": "svmlight",
    ".libsvm": "svmlight",
    ".svmlight": "svmlight",
    ".vw": "vw",
    ".dsjson": "dsjson",
}
HEAD = 1 << 16
MARK = b"\xef\xbb\xbf"
VW_LABEL = re.compile(r"\d+(:|$)|'|shared$")
SVM_LINE = re.compile(r"^\s*([-+.\de,]+\s+)?\d+:[-+.\deE]+(\s+\d+:[-+.\deE]+)*\s*(#.*)?$")
DSJSON_KEYS = ('"_label_cost"', '"_labelIndex"', '"_label_probability"')


def files_of(path: Path) -> list[Path]:
    """Return the file itself, or the part files of a folder in the order of their names."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise ReadError(f"there is no file or folder {str(path)!r}. Check the path.")
    files = sorted(file for file in path.rglob("*") if file.is_file() and not _hidden(file.relative_to(path)))
    files = [file for file in files if file.name != obd.ITEMS]
    known = [file for file in files if suffix_format(file) is not None]
    if not known:
        raise ReadError(f"the folder {path.name!r} has no file of a known kind ({', '.join(SUFFIXES)}).")
    return _without_sides(known)


def _without_sides(files: list[Path]) -> list[Path]:
    """Return the files without the tables that stand beside LibSVM files."""
    stems = {_stem(file) for file in files if suffix_format(file) == "svmlight"}
    return [file for file in files if suffix_format(file) == "svmlight" or _stem(file) not in stems]


def _stem(path: Path) -> Path:
    return path.with_name(Path(plain_name(path)).stem)


def _hidden(path: Path) -> bool:
    return any(part.startswith((".", "_")) for part in path.parts)  # _SUCCESS, .crc and the like


def suffix_format(path: Path) -> str | None:
    """Return the format that a file's name stands for."""
    return SUFFIXES.get(Path(plain_name(path)).suffix.lower())


def format_of(path: Path) -> str:
    """Return the format of a file."""
    if path.stat().st_size == 0:
        raise ReadError(f"{path.name} is empty. Pass a file with at least one decision.")
    by_name = suffix_format(path)
    if by_name in ("parquet", "svmlight", "vw", "dsjson"):
        return by_name
    head = content_of(path, HEAD)
    if head.startswith(b"PAR1"):
        return "parquet"
    text = head.removeprefix(MARK).decode(errors="replace")
    first = next((line for line in text.splitlines() if line.strip()), "")
    if by_name == "jsonl" or (by_name is None and first.lstrip().startswith(("{", "["))):
        return "dsjson" if any(key in text for key in DSJSON_KEYS) else "jsonl"
    if by_name is None and _is_vw(first):
        return "vw"
    if by_name is None and SVM_LINE.match(first):
        return "svmlight"
    return "obd" if obd.is_layout(column_names(first)) else "csv"


def _is_vw(line: str) -> bool:
    """Tell Vowpal Wabbit's labels and features from column names with bars between them."""
    labels, bar, features = line.partition("|")
    words = labels.split()
    return bool(bar) and all(map(VW_LABEL.match, words)) and bool(words or " " in features)


def common_format(files: list[Path], given: str | None, known: tuple[str, ...]) -> str:
    """Return the one format of all files."""
    if given is not None:
        if given not in known:
            raise InputError(f"the format must be one of {', '.join(known)}; found {given!r}.")
        return given
    formats = {format_of(file): file for file in files}
    if len(formats) > 1:
        one, two = list(formats.items())[:2]
        raise ReadError(
            f"the folder holds {one[1].name} ({one[0]}) and {two[1].name} ({two[0]}); part files must be of one kind."
        )
    return next(iter(formats))
