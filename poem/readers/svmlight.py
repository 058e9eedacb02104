"""LibSVM's sparse text; what was decided stands in a table beside it."""

import io
import itertools
import re
from pathlib import Path

import numpy as np

from poem.errors import ReadError
from poem.files import COMPRESSED, Table, content_of, plain_name
from poem.readers.format import MARK, Format, Head
from poem.readers.lines import check_parsed, with_lines

SUFFIXES = (".svm", ".libsvm", ".svmlight")
BESIDE = (".csv", ".tsv", ".parquet", ".jsonl")
MOST = 2**31 - 1  # features
LINE = re.compile(r"^\s*([-+.\de,]+\s+)?\d+:[-+.\deE]+(\s+\d+:[-+.\deE]+)*\s*(#.*)?$")


def read_table(path: Path) -> Table:
    """Read the sparse rows; positions are those of the file, labels are not used."""
    import pyarrow as pa
    from sklearn.datasets import load_svmlight_file

    content = content_of(path).removeprefix(MARK)
    check_parsed(content, path.name)
    if not content.strip():
        raise ReadError(f"{path.name} is empty. Pass a file with at least one decision.")
    try:
        # As label sets: rows may then also have one label, or none.
        X, _ = load_svmlight_file(io.BytesIO(content), zero_based=True, multilabel=True)
    except (ValueError, OverflowError, MemoryError, IndexError) as error:
        raise ReadError(
            f"{path.name}{_bad_line(content)} cannot be read as LibSVM text: {error}. Fix the line: labels, and then "
            "growing positions from 0 to 2³¹ − 2 with their values."
        ) from error
    if X.shape[1] > MOST:
        raise ReadError(
            f"{path.name}{_bad_line(content)} has the position {X.shape[1] - 1}; they count from 0 to 2³¹ − 2. Number "
            "the features anew, or hash them."
        )
    starts = pa.array(X.indptr.astype(np.int32))
    table = pa.table(
        {
            "features.index": pa.ListArray.from_arrays(starts, pa.array(X.indices.astype(np.int32))),
            "features.value": pa.ListArray.from_arrays(starts, pa.array(X.data)),
        }
    )
    return with_lines(table, content)


def beside(path: Path) -> Path:
    """Return the table of outputs, losses and propensities that stands beside a LibSVM file."""
    stem = Path(plain_name(path)).stem
    names = [stem + suffix + compressed for suffix in BESIDE for compressed in ("", *COMPRESSED)]
    found = [path.with_name(name) for name in names if path.with_name(name).is_file()]
    if not found:
        raise ReadError(
            f"{path.name} holds contexts only. Put a table of output, loss and propensity with the same rows beside it "
            f"({stem}.csv or {stem}.parquet), or name it with --side."
        )
    return found[0]


def _bad_line(content: bytes) -> str:
    """Say which line is not labels and then positions with values, in growing order."""
    for number, line in enumerate(content.splitlines(), 1):
        if not _is_sound(line.partition(b"#")[0].split()):
            return f", line {number} ({line[:40].decode(errors='replace')!r})"
    return ""


def _is_sound(words: list[bytes]) -> bool:
    pairs = [word.split(b":") for word in words if not word.startswith(b"qid:")]
    labels = pairs.pop(0)[0].split(b",") if pairs and len(pairs[0]) == 1 else []
    try:
        positions = [int(position) for position, _ in pairs]
        _ = list(map(float, labels)), [float(value) for _, value in pairs]
    except ValueError:
        return False
    growing = all(one < other for one, other in itertools.pairwise(positions))
    return growing and all(0 <= position < MOST for position in positions)


# ---- the format -----------------------------------------------------------------------------------


def _looks(head: Head) -> bool:
    return LINE.match(head.first_line) is not None


def _sides(files: list[Path]) -> list[Path]:
    """Return the tables that stand beside LibSVM files."""
    stems = {_stem(file) for file in files if _is_ours(file)}
    return [file for file in files if not _is_ours(file) and _stem(file) in stems]


def _is_ours(file: Path) -> bool:
    return Path(plain_name(file)).suffix.lower() in SUFFIXES


def _stem(file: Path) -> Path:
    return file.with_name(Path(plain_name(file)).stem)


FORMAT = Format(read_table, _looks, SUFFIXES, counted="line", sides=_sides, beside=beside)
