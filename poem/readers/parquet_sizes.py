"""What a Parquet file needs when it is decoded: a value that is repeated takes a few bits in the file, and then all."""

from typing import Any

from poem.files import is_list

# Bytes of a decoded value, at least; narrow integers are stored as INT32.
WIDTHS = {"BOOLEAN": 0, "INT32": 1, "FLOAT": 4, "BYTE_ARRAY": 4, "INT64": 8, "INT96": 8, "DOUBLE": 8}
TEXT = "BYTE_ARRAY"
PREFIXED = "DELTA_BYTE_ARRAY"  # values share beginnings with the ones before them


def claimed_size(metadata: Any) -> int:
    """Return how many bytes a file needs at least, if what it says of itself is true."""
    return sum(
        max(chunk.total_uncompressed_size, chunk.num_values * WIDTHS.get(chunk.physical_type, 0))
        for group in _groups(metadata)
        for chunk in group
    )


def safe_rows(file: Any, metadata: Any, step: int, most: int) -> int:
    """Return how many rows may be decoded at a time if they must not need more than ``step`` bytes.

    ``file`` gives strings as dictionaries, which tell the values that all rows may repeat.
    """
    largest = 1.0
    for number, group in enumerate(_groups(metadata)):
        rows = metadata.row_group(number).num_rows
        if not rows:
            continue
        width = sum(WIDTHS.get(chunk.physical_type, 0) * chunk.num_values / rows for chunk in group)
        width += sum(chunk.total_uncompressed_size for chunk in group if PREFIXED in chunk.encodings)
        texts = {chunk.path_in_schema: chunk.num_values / rows for chunk in group if chunk.physical_type == TEXT}
        width += max(texts.values(), default=0.0) * _longest_texts(file, number, rows, list(texts))
        largest = max(largest, width)
    return int(min(max(step / largest, 1), most))


def _longest_texts(file: Any, group: int, rows: int, paths: list[str]) -> int:
    """Return the length of the longest values of all these columns together.

    The first value of a column brings the dictionary of all its values; rows before that one are missing or empty.
    """
    total, taken = 0, 1
    while paths:
        first = next(file.iter_batches(batch_size=taken, row_groups=[group], columns=paths))
        lengths = dict(zip(first.schema.names, map(_longest, first.columns), strict=True))
        unseen = {name for name, parts in lengths.items() if None in parts and taken < rows}
        total += sum(part or 0 for name, parts in lengths.items() if name not in unseen for part in parts)
        paths = [path for path in paths if path in unseen or path.split(".")[0] in unseen]
        taken *= 32
    return total


def _groups(metadata: Any) -> Any:
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        yield [group.column(at) for at in range(metadata.num_columns)]


def _longest(column: Any) -> list[int | None]:
    """Return the length of the longest value in each dictionary of a column; None for one that is empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_dictionary(kind):
        return [pc.max(pc.binary_length(column.dictionary)).as_py()]
    if pa.types.is_struct(kind):
        return [part for at in range(kind.num_fields) for part in _longest(column.field(at))]
    return _longest(column.values) if is_list(kind) or pa.types.is_map(kind) else []
