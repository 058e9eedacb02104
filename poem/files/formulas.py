"""Cells of CSV files that a spreadsheet would run: an apostrophe before them makes them text.

Text is a formula if it begins with one of a few characters, and more follows. Numbers are none, such as the label "-1".
Cells that begin with apostrophes before such a character get one more, so that nothing is lost: what is written with
:func:`guarded` and read with :func:`unguarded` is the same.
"""

import re
from collections.abc import Sequence

from poem.files.arrow import Column, Table, decoded, is_text

GUARD = "'"
BEGINNING = r"[=+\-@\t\r\n＝＋－＠]"  # with the wide forms that spreadsheets in East Asia know
FORMULA = rf"(?s)^'*{BEGINNING}."
NUMBER = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"


def guarded(table: Table) -> Table:
    """Return a table in which no name of a column and no text is a formula."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        column = _searchable(decoded(table.column(at)))
        if not is_text(column.type) and not pa.types.is_large_binary(column.type):
            continue
        formula = _is_formula(column)
        if pc.any(formula).as_py():
            guard, nothing = pa.scalar(GUARD.encode(), column.type), pa.scalar(b"", column.type)
            column = pc.if_else(formula, pc.binary_join_element_wise(guard, column, nothing), column)
        table = table.set_column(at, field.name, column)
    return table.rename_columns(guarded_names(table.column_names))


def guarded_names(names: Sequence[str]) -> list[str]:
    """Return names of columns as they stand in a file."""
    return [GUARD + name if _is_formula_name(name) else name for name in names]


def unguarded(table: Table) -> Table:
    """Return a table without the apostrophes that :func:`guarded` adds."""
    import pyarrow.compute as pc

    for at, field in enumerate(table.schema):
        if is_text(field.type) and pc.any(pc.starts_with(table.column(at), GUARD)).as_py():
            table = table.set_column(at, field.name, _without_guard(table.column(at)))
    marked = [name.startswith(GUARD) and _is_formula_name(name[1:]) for name in table.column_names]
    return table.rename_columns([name[mark:] for name, mark in zip(table.column_names, marked, strict=True)])


def _searchable(column: Column) -> Column:
    """Return strings and bytes of rarer types as those that Arrow can search."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    return column.cast(pa.binary()).cast(pa.large_binary()) if pa.types.is_fixed_size_binary(kind) else column


def _without_guard(column: Column) -> Column:
    import pyarrow.compute as pc

    rest = pc.utf8_slice_codeunits(column, 1)
    return pc.if_else(pc.and_(pc.starts_with(column, GUARD), _is_formula(rest)), rest, column)


def _is_formula(column: Column) -> Column:
    import pyarrow.compute as pc

    found = pc.match_substring_regex(column, FORMULA)
    return pc.and_(found, pc.invert(pc.match_substring_regex(column, f"^{NUMBER}$")))


def _is_formula_name(name: str) -> bool:
    return bool(re.match(FORMULA, name)) and not re.fullmatch(NUMBER, name)
