"""Parquet files in blocks of rows, with the columns that are needed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from poem.files import Table, Watched, plain_table, room
from poem.readers.blocks import Block, Cutting
from poem.readers.parquet import BATCH, HOW, opened
from poem.readers.parquet_sizes import claimed_size, safe_rows


def blocks(path: Path, cutting: Cutting) -> Iterator[Block]:
    """Yield the blocks of a file; they are cut at the same rows whatever columns are needed."""
    with opened(path) as source:
        for table in _tables(Watched(source, path.name), path.name, cutting):
            yield Block(path, lambda table=table: table)  # type: ignore[misc]


def _tables(source: Watched, name: str, cutting: Cutting) -> Iterator[Table]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, **HOW) as file:
        metadata, schema = file.metadata, file.schema_arrow
        plain = plain_table(schema.empty_table()).schema
        columns = None if cutting.columns is None else _own_names(schema, cutting.columns(plain))
        wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns], schema.metadata)
        leaves = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
        coded = pq.ParquetFile(source, **HOW, metadata=metadata, read_dictionary=leaves)
        rows = max(int(cutting.size / max(claimed_size(metadata) / max(metadata.num_rows, 1), 1)), 1)
        rows = safe_rows(coded, metadata, min(2 * cutting.size, room().limit // 4), rows)
        held: list[Any] = []
        for batch in _batches(file, min(rows, BATCH), columns):
            held.append(batch)
            while sum(map(len, held)) >= rows:
                table = pa.Table.from_batches(held, wanted)
                yield table.slice(0, rows)
                held = table.slice(rows).to_batches()
        if held or not metadata.num_rows:
            yield pa.Table.from_batches(held, wanted)


def _batches(file: Any, size: int, columns: list[str] | None) -> Iterator[Any]:
    """Yield batches that never go over two row groups, which categories in lists do not allow."""
    for group in range(file.num_row_groups):
        yield from file.iter_batches(batch_size=size, row_groups=[group], columns=columns)


def _own_names(schema: Any, columns: Sequence[str]) -> list[str]:
    """Return the columns of the file that hold some columns of the plain table, such as user for user.age."""
    import pyarrow as pa

    wanted = set(columns)
    return [field.name for field in schema if wanted & set(plain_table(pa.schema([field]).empty_table()).column_names)]
