"""The Open Bandit Dataset: a CSV file of recommendations, and one of items beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from poem.errors import ReadError
from poem.files import Source, Table, coded, column_of
from poem.readers import csv
from poem.readers.columns import Roles
from poem.readers.csv_records import by_records
from poem.readers.format import Format, Head

HEADER = ("item_id", "position", "click", "propensity_score")
ITEMS = "item_context.csv"


def is_layout(columns: Any) -> bool:
    """Tell whether these are the columns of the data set."""
    return set(HEADER) <= set(columns)


def read_table(
    path: Source, delimiter: str | None = None, texts: Sequence[str] = (), types: Mapping[str, Any] | None = None
) -> Table:
    """Read one log; the position is a category, not a number."""
    import pyarrow as pa

    table = csv.read_table(path, delimiter, texts, types)
    if not is_layout(table.column_names):
        raise ReadError(f"{path.name} is not of the Open Bandit Dataset: it lacks one of {', '.join(HEADER)}.")
    at = table.column_names.index("position")
    return table.set_column(at, "position", table.column(at).cast(pa.string()))


def items_beside(path: Path) -> tuple[Any, ...] | None:
    """Return all items, if the file of items is there."""
    items = path.with_name(ITEMS)
    if not items.is_file():
        return None
    table = csv.read_table(items)
    if "item_id" not in table.column_names:
        return None
    _, distinct = coded(column_of(table, "item_id", items.name))
    return tuple(sorted(distinct.to_pylist()))


def _looks(head: Head) -> bool:
    return is_layout(csv.column_names(head.first_line))


def _sides(files: list[Path]) -> list[Path]:
    return [file for file in files if file.name == ITEMS]


FORMAT = Format(
    read_table,
    _looks,
    refines="csv",
    takes=csv.FORMAT.takes,
    roles=Roles(output=("item_id",), reward="click", propensity="propensity_score", time="timestamp"),
    ignored=("user-item_affinity_*",),  # of the items, not of the user
    categories=("position",),
    sides=_sides,
    labels=items_beside,
    cut=by_records(read_table, csv.known_of),
)
