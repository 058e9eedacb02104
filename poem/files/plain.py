"""Tables without what few libraries know: flat columns of common types."""

from typing import Any

from poem.files.arrow import Column, Table, changed_columns, decoded, is_list


def plain_table(table: Table) -> Table:
    """Return a table without what few libraries know: structs become columns such as ``user.age``, rare types common.

    Columns of common types are shared, not copied.
    """
    import pyarrow as pa

    metadata = table.schema.metadata
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    table = changed_columns(table, _plain_column)
    # A table without columns would forget its rows.
    return table if table.schema.metadata == metadata else table.replace_schema_metadata(metadata)


def _plain_column(column: Column) -> Column:
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if isinstance(kind, pa.BaseExtensionType) and kind.extension_name.startswith("arrow."):  # such as arrow.uuid
        return _plain_column(pa.chunked_array([chunk.storage for chunk in column.chunks], kind.storage_type))
    if pa.types.is_run_end_encoded(kind):
        return _plain_column(pc.run_end_decode(column))
    if pa.types.is_dictionary(kind) and pa.types.is_decimal(kind.value_type):
        return _plain_column(decoded(column))
    held = kind.value_type if is_list(kind) else kind
    if pa.types.is_string_view(held):
        return column.cast(_holding(kind, pa.large_string()))
    if pa.types.is_decimal(held):
        try:
            return column.cast(_holding(kind, pa.int64()))
        except pa.ArrowException:  # it has fractions, or is too large
            return column.cast(_holding(kind, pa.float64()), safe=False)
    return column


def _holding(kind: Any, value: Any) -> Any:
    """Return a type of values as it is, or lists of them where ``kind`` is one of lists."""
    import pyarrow as pa

    if not is_list(kind):
        return value
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(value, kind.list_size)
    return (pa.large_list if pa.types.is_large_list(kind) else pa.list_)(value)
