"""Arrow's columns as numpy arrays; pyarrow is imported only when a table is at hand."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from poem.arrays import AnyArray, IntArray
from poem.errors import LogError, ReadError
from poem.files.names import did_you_mean, shown

Table = Any  # pyarrow.Table: pyarrow has no type stubs
Column = Any  # pyarrow.ChunkedArray
Place = Callable[[int], str]  # where row i comes from, in words

EXACT = 2.0**53  # below which whole numbers in float64 are themselves
MOST_ODD = 100_000  # rows in which a string that is not a number is looked for


def row_place(row: int) -> str:
    """Name a row of a table that came from no file."""
    return f"row {row}"


def as_table(frame: Any, name: str = "X") -> Table:
    """Return a data frame of any Arrow-speaking library as an Arrow table."""
    import pyarrow as pa

    if isinstance(frame, pa.Table):  # through Arrow's C interface, names would end at their first NUL
        return frame
    try:
        # An index is where a row came from, not a feature.
        return pa.Table.from_pandas(frame, preserve_index=False) if hasattr(frame, "iloc") else pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        what = "a numeric matrix or an Arrow data frame" if name == "X" else "an Arrow data frame"
        raise LogError(
            f"{name} must be {what}; found {type(frame).__name__} ({_first_line(error)}). Give each column one type "
            "and a name of its own."
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def changed_columns(table: Table, change: Callable[[Column], Column]) -> Table:
    """Return a table whose columns are changed, all at once: one by one takes time with the square of their number."""
    import pyarrow as pa

    before = table.columns
    after = [change(column) for column in before]
    if all(map(operator.is_, before, after)):
        return table
    fields = [
        field if new is old else pa.field(field.name, new.type)
        for field, old, new in zip(table.schema, before, after, strict=True)
    ]
    return pa.Table.from_arrays(after, schema=pa.schema(fields, table.schema.metadata))


def check_text(table: Table, name: str) -> None:
    """Raise for text that is not UTF-8: Arrow does not look at what it reads from Parquet and JSON."""
    import pyarrow as pa

    try:
        table.schema.to_string(show_field_metadata=False, show_schema_metadata=False)  # decodes all names
        names = table.column_names
    except UnicodeDecodeError as error:
        raise ReadError(f"{name} has a column whose name is not UTF-8 ({error}). Rename it.") from error
    for at, column_name in enumerate(names):
        try:
            table.column(at).validate(full=True)
        except pa.ArrowException as error:
            raise ReadError(
                f"{name}{_bad_text(table.column(at))}, column {column_name!r} is not UTF-8, or damaged "
                f"({_first_line(error)}). Save the file as UTF-8, or write it again."
            ) from error


def _bad_text(column: Column) -> str:
    import pyarrow as pa

    if not is_text(column.type) or pa.types.is_dictionary(column.type):
        return ""
    row = next((i for i, value in enumerate(column.cast(pa.large_binary()).to_pylist()) if not is_utf8(value)), None)
    return "" if row is None else f", row {row}"


def is_utf8(value: bytes | None) -> bool:
    """Tell whether bytes are text; so are those that are missing."""
    try:
        (value or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def is_number(kind: Any) -> bool:
    """Tell whether a type holds numbers or booleans, or nothing at all: a column that is empty in all rows."""
    import pyarrow as pa

    test = pa.types
    return bool(
        test.is_integer(kind)
        or test.is_floating(kind)
        or test.is_boolean(kind)
        or test.is_decimal(kind)
        or test.is_null(kind)
    )


def is_category(kind: Any) -> bool:
    """Tell whether a type holds one of a few values, by their numbers: what data frames call categorical."""
    import pyarrow as pa

    return bool(pa.types.is_dictionary(kind)) and (is_number(kind.value_type) or is_text(kind.value_type))


def is_list(kind: Any) -> bool:
    """Tell whether a type holds one list per row."""
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_text(kind: Any) -> bool:
    """Tell whether a type holds strings, as they are or as a dictionary."""
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def decoded(column: Column) -> Column:
    """Return categories as what they stand for."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    column = _without_views(column)
    return column.cast(column.type.value_type)


def _without_views(column: Column) -> Column:
    """Return categories whose strings are not views: Arrow can do little with dictionaries of those yet."""
    import pyarrow as pa

    if not pa.types.is_string_view(column.type.value_type):
        return column
    kind = pa.dictionary(column.type.index_type, pa.large_string())
    chunks = [
        pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.large_string()))
        for chunk in column.chunks
    ]
    return pa.chunked_array(chunks, kind)


def floats(column: Column) -> AnyArray:
    """Return numbers as float64; what is missing is NaN."""
    import pyarrow as pa

    return np.asarray(decoded(column).cast(pa.float64(), safe=False).to_numpy(), dtype=np.float64)


def strings(column: Column) -> Column:
    """Return scalars of any kind as strings; whole numbers in floats lose their '.0', NaN is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = _without_nan(decoded(column))
    if pa.types.is_floating(column.type):
        whole = pc.and_(pc.equal(column, pc.floor(column)), pc.less(pc.abs(column), EXACT))
        if pc.all(whole).as_py() is True:
            column = column.cast(pa.int64(), safe=False)
    return column.cast(pa.large_string())


def _without_nan(column: Column) -> Column:
    """Return numbers whose NaN are missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_floating(column.type):
        return column
    if pa.types.is_float16(column.type):  # of which few functions know
        column = column.cast(pa.float32())
    nan = pc.is_nan(column)
    return pc.if_else(nan, pa.scalar(None, column.type), column) if pc.any(nan).as_py() else column


def coded(column: Column) -> tuple[IntArray, Column]:
    """Return ``(codes, distinct values that are there)``; what is missing, or NaN, has the code −1."""
    import pyarrow as pa

    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if pa.types.is_null(column.type):
        return np.full(len(column), -1, dtype=np.int64), pa.array([], column.type)
    ready = pa.types.is_dictionary(column.type)
    encoded = _unified(_without_views(column) if ready else _without_nan(column).dictionary_encode())
    values = encoded.chunk(0).dictionary if encoded.num_chunks else pa.array([], encoded.type.value_type)
    codes = _indices(encoded.chunks)
    return _tidied(codes, values) if ready else (codes, values)


def coded_strings(column: Column) -> tuple[IntArray, Column]:
    """Return ``(codes, distinct strings)`` of scalars of any kind, as :func:`strings` writes them."""
    codes, distinct = coded(column)
    again = strings(distinct).dictionary_encode()
    if len(again.dictionary) == len(distinct):
        return codes, again.dictionary
    # Different values are written alike, such as 0 and −0; the last number is that of what is missing.
    return np.append(_indices([again]), -1)[codes], again.dictionary


def with_codes(table: Table) -> Table:
    """Return a table whose columns of strings are coded, so that it is done once however often they are needed."""
    import pyarrow as pa

    def coded_once(column: Column) -> Column:
        is_plain = is_text(column.type) and not pa.types.is_dictionary(column.type)
        return column.dictionary_encode() if is_plain else column

    return changed_columns(table, coded_once)


def _unified(encoded: Column) -> Column:
    """Return chunks that share one dictionary."""
    import pyarrow as pa

    try:
        return encoded.unify_dictionaries()
    except pa.ArrowException:  # a dictionary holds nulls, or codes of eight bits are too small for all of them
        return decoded(encoded).dictionary_encode()


def _indices(chunks: Sequence[Any]) -> IntArray:
    """Return the codes in chunks of one dictionary; what is missing has −1."""
    import pyarrow as pa

    if not chunks:
        return np.zeros(0, dtype=np.int64)
    codes = pa.chunked_array([chunk.indices for chunk in chunks]).cast(pa.int64())
    return np.array(codes.fill_null(-1).to_numpy())  # of its own: Arrow's memory cannot be written to


def _tidied(codes: IntArray, values: Any) -> tuple[IntArray, Any]:
    """Return codes of another library's dictionary, which may hold a value twice, none, or one that no row has."""
    import pyarrow as pa

    used = np.bincount(codes[codes >= 0], minlength=len(values)) > 0
    kept = _without_nan(values.filter(pa.array(used))).dictionary_encode()
    number = np.full(len(values) + 1, -1, dtype=np.int64)  # the last one is what is missing
    number[np.flatnonzero(used)] = _indices([kept])
    return number[codes], kept.dictionary


def lengths(column: Column) -> IntArray:
    """Return how many values the list of each row has; a missing list is empty."""
    import pyarrow.compute as pc

    return np.asarray(pc.list_value_length(column).fill_null(0).to_numpy(), dtype=np.int64)


def flattened(column: Column) -> Column:
    """Return the values of all lists, one after the other."""
    import pyarrow as pa

    return pa.chunked_array([chunk.flatten() for chunk in column.chunks], column.type.value_type)


def numbers_of(flat: Column, dtype: Any) -> AnyArray:
    """Return flat numbers as one array; only where several chunks are joined, or types differ, are they copied."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(dtype)
    if flat.num_chunks == 1:
        return np.asarray(flat.chunk(0).cast(kind, safe=False).to_numpy(zero_copy_only=False), dtype=dtype)
    joined, at = np.empty(len(flat), dtype=dtype), 0
    for chunk in flat.chunks:
        joined[at : at + len(chunk)] = chunk.cast(kind, safe=False).to_numpy(zero_copy_only=False)
        at += len(chunk)
    return joined


def first_odd(column: Column, place: Place) -> str:
    """Say where the first string of a column is that is not a number."""
    if not is_text(column.type):
        return ""
    for row, value in enumerate(strings(column.slice(0, MOST_ODD)).to_pylist()):
        try:
            float(value)
        except (TypeError, ValueError):
            if value is not None:
                return f" ({place(row)}: {value[:40]!r})"
    return ""


def column_of(table: Table, name: str, place: str = "the table") -> Column:
    """Return a column by name, or say what there is instead."""
    at = table.schema.get_all_field_indices(name)  # by a hash table: a list of all names takes longer than a column
    if not at:
        raise LogError(
            f"{place} has no column {name!r}.{did_you_mean(name, table.column_names)} "
            f"It has {shown(table.column_names)}."
        )
    if len(at) > 1:
        raise LogError(f"{place} has the column {name!r} twice. Columns need different names; rename one.")
    return table.column(at[0])
