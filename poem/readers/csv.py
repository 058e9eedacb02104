"""CSV and its relatives, read by pyarrow; the delimiter is found in the first line."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from poem.errors import InputError, ReadError
from poem.files import (
    Column,
    Piece,
    Source,
    Table,
    Watched,
    changed_columns,
    compression_of,
    content_of,
    for_arrow,
    guarded_names,
    is_text,
    is_utf8,
    unguarded,
)
from poem.readers.csv_records import by_records
from poem.readers.format import MARK, Format, Head

DELIMITERS = (",", "\t", ";", "|")
HEAD = 1 << 20  # bytes in which the first line must end
BLOCK, LARGEST_LINE = 1 << 20, 1 << 28
LINES_AT_ONCE = 64  # in a block, at least: each block makes an array of each column, which has a price of its own
ODD = re.compile(r"[^\w .()-]")  # what a delimiter may be, and no name has
WIDE = (b"\xff\xfe", b"\xfe\xff")  # what UTF-16 begins with


def read_table(
    path: Source,
    delimiter: str | None = None,
    texts: Sequence[str] = (),
    types: Mapping[str, Any] | None = None,
) -> Table:
    """Read a file with one line of column names; those named in ``texts`` are strings whatever they look like.

    ``types`` are the types of columns, if they are known already, with those of numbers that begin with 0.
    """
    import pyarrow as pa

    if types is None:
        used, padded = known_of(path, delimiter)
        types = dict.fromkeys((*texts, *padded), pa.string())
    else:
        used = delimiter or find_delimiter(path)
    block = max(BLOCK, LINES_AT_ONCE * len(first_line(path)))
    while True:
        try:
            table = _parsed(path, used, block, types)
            break
        except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
            if "straddling" in str(error) and block < LARGEST_LINE:
                block *= 16  # a line is longer than a block
                continue
            raise _as_read_error(path, used, block, error) from error
    _check_text(path, table)
    _check_delimiter(path, table, used)
    _check_last_quote(path, table)
    return unguarded(_without_blanks(table))


def known_of(path: Source, delimiter: str | None) -> tuple[str, list[str]]:
    """Return the delimiter, and the columns in which numbers begin with 0."""
    if delimiter is not None and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n'):
        raise InputError(f"the delimiter must be one ASCII character, such as ';'; found {delimiter!r}.")
    used = delimiter or find_delimiter(path)
    return used, _zero_padded(path, used)


def _parsed(
    path: Source, delimiter: str, block: int, types: Mapping[str, Any] | None = None, threads: bool = True
) -> Table:
    import pyarrow as pa
    from pyarrow import csv

    types = types or {}
    written = {**types, **dict(zip(guarded_names(list(types)), types.values(), strict=True))}
    may_quote = not isinstance(path, Piece) or b'"' in path.content
    with for_arrow(path) as source, pa.input_stream(source, compression=compression_of(path)) as stream:
        table = csv.read_csv(
            Watched(stream, path.name),
            read_options=csv.ReadOptions(block_size=block, use_threads=threads),
            parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=may_quote),
            convert_options=csv.ConvertOptions(column_types=written),
        )
    assert table.column_names is not None  # decodes them, which fails here if they are not UTF-8
    return table


def _zero_padded(path: Source, delimiter: str) -> list[str]:
    """Return the columns in which numbers begin with 0, such as 01234: they are names, not numbers."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    head = content_of(path, HEAD)
    rows = head[: head.rfind(b"\n") + 1] if len(head) >= HEAD else head
    try:
        names = csv.read_csv(pa.BufferReader(rows), parse_options=csv.ParseOptions(delimiter=delimiter)).column_names
        as_text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()))
        table = csv.read_csv(
            pa.BufferReader(rows), parse_options=csv.ParseOptions(delimiter=delimiter), convert_options=as_text
        )
        return [name for name in names if pc.any(pc.match_substring_regex(table.column(name), r"^0[0-9]+$")).as_py()]
    except (pa.ArrowException, KeyError, UnicodeDecodeError, ValueError):  # what is wrong is said when all is read
        return []


def _without_blanks(table: Table) -> Table:
    """Return the table with empty strings as missing values: CSV has no other way to say so."""
    import pyarrow as pa
    import pyarrow.compute as pc

    def without(column: Column) -> Column:
        blank = pc.equal(column, "") if is_text(column.type) else None
        is_gapped = blank is not None and pc.any(blank).as_py()
        return pc.if_else(blank, pa.scalar(None, column.type), column) if is_gapped else column

    return changed_columns(table, without)


def find_delimiter(path: Source) -> str:
    """Return the delimiter that the first line has most of."""
    outside = "".join(first_line(path).split('"')[::2])  # not what stands in quotes
    return max(DELIMITERS, key=outside.count)


def column_names(line: str) -> list[str]:
    """Return the names in a first line, as far as they can be told without knowing the delimiter."""
    return [name.strip().strip('"') for name in re.split(r"[,\t;|]", line)]


def first_line(path: Source) -> str:
    """Return the first line, or say that there is none."""
    head = content_of(path, HEAD)
    if head.startswith(WIDE):
        raise ReadError(f"{path.name} is UTF-16. Save it as UTF-8.")
    lines = head.removeprefix(MARK).lstrip(b"\r\n").splitlines()
    if not lines or not head.strip():
        raise ReadError(f"{path.name} is empty. Pass a file with at least one decision.")
    return lines[0].decode(errors="replace")


# ---- what can be wrong ----------------------------------------------------------------------------


def _as_read_error(path: Source, delimiter: str, block: int, error: Exception) -> ReadError:
    text = _with_row(path, delimiter, block, str(error).splitlines()[0] if str(error) else type(error).__name__)
    if "Expected" in text and "columns" in text:
        return _ragged(path, delimiter, text)
    if "UTF" in text.upper():
        return ReadError(f"{path.name}: a column name is not UTF-8 ({text}). Save the file as UTF-8.")
    return ReadError(
        f"{path.name} cannot be read as CSV: {text[:200]}. Check that it is a whole CSV file with one line of column "
        "names."
    )


def _with_row(path: Source, delimiter: str, block: int, text: str) -> str:
    """Return an error text with the number of the row, which Arrow knows only if it reads with one thread."""
    import pyarrow as pa

    if "Expected" not in text:
        return text
    try:
        _parsed(path, delimiter, block, threads=False)
    except (pa.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        return str(error).splitlines()[0]
    return text


def _ragged(path: Source, delimiter: str, text: str) -> ReadError:
    found = re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)(?:: (.*))?", text)
    if found is None:
        return ReadError(f"{path.name} cannot be read as CSV: {text[:200]}. Fix the line.")
    number, wanted, got, line = found.groups()
    row = "" if number is None else f", row {int(number) - 2}"  # Arrow counts from 1, and the line of names
    return ReadError(
        f"{path.name}{row} has {got} columns where the first line has {wanted}: {(line or '')[:60]!r}. The delimiter "
        f"was taken to be {delimiter!r}; pass another one (--delimiter, delimiter=), or fix the line (is it cut off?)."
    )


def _check_text(path: Source, table: Table) -> None:
    """Raise for columns that are not UTF-8: Arrow keeps them as bytes."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if pa.types.is_binary(field.type) or pa.types.is_large_binary(field.type):
            values: list[Any] = table.column(at).to_pylist()
            row = next(i for i, value in enumerate(values) if not is_utf8(value))
            raise ReadError(
                f"{path.name}, row {row}, column {field.name!r} is not UTF-8: {values[row][:40]!r}. Save the file as "
                "UTF-8."
            )


def _check_delimiter(path: Source, table: Table, used: str) -> None:
    name = table.column_names[0]
    if table.num_columns == 1 and ODD.search(name):  # a name alone may be all that there is
        raise ReadError(
            f"{path.name} has one column only, {name[:60]!r}, when cut at {used!r}. Pass the right delimiter "
            "(--delimiter, delimiter=)."
        )


def _check_last_quote(path: Source, table: Table) -> None:
    """Raise if the last value goes on to the end of the file because its quote was never closed."""
    if not table.num_rows or not is_text(table.schema.field(table.num_columns - 1).type):
        return
    last = table.column(table.num_columns - 1)[table.num_rows - 1].as_py()
    if last is not None and "\n" in last and not content_of(path).rstrip(b"\r\n").endswith(b'"'):
        raise ReadError(
            f"{path.name}, row {table.num_rows - 1}, column {table.column_names[-1]!r} begins with a quote that is "
            f"never closed: {last[:40]!r}. Close or remove it; all lines after it were taken for one value."
        )


def _looks(head: Head) -> bool:
    """Take any text for CSV that is nothing more special."""
    return True


FORMAT = Format(
    read_table, _looks, (".csv", ".tsv"), takes=("delimiter", "texts", "types"), cut=by_records(read_table, known_of)
)
