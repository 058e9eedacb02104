"""Arrow tables → files of any kind, for what poem writes besides logs and policies."""

from pathlib import Path
from typing import Any, BinaryIO

from poem.errors import InputError
from poem.files.arrow import is_list
from poem.files.formulas import guarded
from poem.files.whole import whole_file
from poem.text import as_json

TABLES = (".csv", ".jsonl", ".parquet")
BLOCK = 10_000  # rows that are turned into JSON at a time


def write_table(table: Any, path: Path) -> Path:
    """Write an Arrow table, by the suffix of the path: .csv, .jsonl or .parquet; whole or not at all."""
    kind = path.suffix.lower()
    if kind not in TABLES:
        raise InputError(f"a table is written to a file that ends in {', '.join(TABLES)}; found {str(path)!r}.")
    if kind == ".csv" and has_lists(table):
        raise InputError(f"{path} cannot hold lists (label sets or features); use .jsonl or .parquet.")
    write = {".csv": write_csv, ".jsonl": write_lines, ".parquet": _write_parquet}[kind]
    with whole_file(path) as temporary, temporary.open("wb") as file:
        write(table, file)
    return path


def _write_parquet(table: Any, file: BinaryIO) -> None:
    from pyarrow import parquet

    parquet.write_table(table, file)


def has_lists(table: Any) -> bool:
    """Tell whether a table has columns of lists, which CSV cannot hold."""
    return any(is_list(field.type) for field in table.schema)


def write_csv(table: Any, file: BinaryIO) -> None:
    """Write a table as CSV to an open file; no cell of it is a formula."""
    from pyarrow import ArrowException, csv

    try:
        csv.write_csv(guarded(table), file)
    except ArrowException as error:
        raise InputError(f"the table cannot be written as CSV: {error}. Write JSON lines or Parquet.") from error


def write_lines(table: Any, file: BinaryIO) -> None:
    """Write a table as JSON lines to an open file."""
    for batch in table.to_batches(max_chunksize=BLOCK):
        lines = (as_json(row, indent=None) + "\n" for row in batch.to_pylist())
        file.write("".join(lines).encode())
