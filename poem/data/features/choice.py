"""Which kind of feature each raw column becomes."""

import numpy as np

from poem.data.features.encoding import Encoding
from poem.data.features.kinds import Bag, Hashed, Kind, Numeric, OneHot, Sparse, Text, Vector
from poem.data.features.values import checked_numbers, positions_of
from poem.errors import LogError
from poem.files import (
    Column,
    Place,
    Table,
    coded,
    coded_strings,
    column_of,
    flattened,
    is_category,
    is_list,
    is_number,
    is_text,
    lengths,
)

MANY_CATEGORIES = 1000  # above which a column of strings is hashed
WORDS = 3.0  # words on average, above which the strings of a column are text
PAIRS = ((".index", ".value"), (".name", ".value"), ("_index", "_value"), ("_indices", "_values"))


def chosen(table: Table, encoding: Encoding, place: Place) -> list[Kind]:
    """Return the kind of feature of each column, or pair of columns, of a table."""
    asked = encoding.by_column()
    for name in asked:
        column_of(table, name, "the context")
    values = _value_columns(table)
    return [
        _choose(table, name, values.get(name), asked.get(name), encoding, place)
        for name in table.column_names
        if name not in values.values()
    ]


def _value_columns(table: Table) -> dict[str, str]:
    """Return the columns of positions or names, and the columns of values beside them."""
    names = set(table.column_names)
    found = {}
    for name in table.column_names:
        for first, second in PAIRS:
            partner = name.removesuffix(first) + second
            if name.endswith(first) and partner in names and _are_lists(table, name, partner):
                found[name] = partner
    if {"index", "value"} <= names and _are_lists(table, "index", "value"):
        found["index"] = "value"
    return found


def _are_lists(table: Table, *names: str) -> bool:
    return all(is_list(table.schema.field(name).type) for name in names)


def _choose(table: Table, name: str, value: str | None, asked: str | None, encoding: Encoding, place: Place) -> Kind:
    column = table.column(name)
    if asked is not None:
        return {"one-hot": _one_hot, "hashed": _hashed, "text": _text}[asked](name, column, encoding.hash_size)
    if value is not None and is_number(column.type.value_type):
        positions, _ = positions_of(column, name, place)
        return Sparse(name, value, int(positions.max()) + 1 if len(positions) else 0)
    if is_list(column.type):
        return _of_lists(name, column, value, place)
    if is_number(column.type):
        return _numeric(name, column, encoding.scale, place)
    if is_text(column.type) or is_category(column.type):
        return _of_strings(name, column, encoding.hash_size)
    raise LogError(
        f"column {name!r} holds {column.type}, which cannot be a feature. Leave it out (ignore), turn it into "
        "numbers or strings, or, if it says when a decision was made, name it as the time."
    )


def _numeric(name: str, column: Column, scale: bool, place: Place) -> Numeric:
    if not scale:
        return Numeric(name)
    from sklearn.preprocessing import StandardScaler

    values = checked_numbers(column, name, place)
    if not len(values):
        raise LogError(f"column {name!r} has no rows; it cannot be scaled. Pass at least one context.")
    with np.errstate(over="ignore", invalid="ignore"):
        scaler = StandardScaler().fit(values[:, None])
    mean, deviation = float(scaler.mean_[0]), float(scaler.scale_[0])
    if not (np.isfinite(mean) and np.isfinite(deviation)):
        raise LogError(f"column {name!r} has numbers too large to be scaled. Fix them, or leave the column out.")
    return Numeric(name, mean, deviation)


def _of_lists(name: str, column: Column, value: str | None, place: Place) -> Kind:
    if is_number(column.type.value_type):
        counts = lengths(column)
        return Vector(name, int(counts[0]) if len(counts) else 0)
    if not is_text(column.type.value_type):
        raise LogError(
            f"column {name!r} holds {column.type}; lists can hold numbers or strings. If it lists what could be "
            f"chosen, name it as the candidates (--candidates {name}, candidates=); if not, flatten or drop it."
        )
    _, distinct = coded(flattened(column))
    # In the order of their names: the same for any order of rows and part files.
    return Bag(name, value or "", tuple(sorted(distinct.to_pylist())))


def _of_strings(name: str, column: Column, hash_size: int) -> Kind:
    _, distinct = coded_strings(column)
    values = distinct.slice(0, MANY_CATEGORIES + 1).to_pylist()
    words = float(np.mean([value.count(" ") + 1 for value in values])) if values else 0.0
    if words > WORDS and len(values) > 1:
        return _text(name, column, hash_size)
    return (_hashed if len(values) > MANY_CATEGORIES else _one_hot)(name, column, hash_size)


def _one_hot(name: str, column: Column, hash_size: int) -> OneHot:
    _, distinct = coded_strings(_scalars(name, column))
    return OneHot(name, tuple(sorted(distinct.to_pylist())))


def _hashed(name: str, column: Column, hash_size: int) -> Hashed:
    _scalars(name, column)
    return Hashed(name, hash_size)


def _text(name: str, column: Column, hash_size: int) -> Text:
    if not is_text(column.type):
        raise LogError(f"column {name!r} holds {column.type}, which is not text.")
    return Text(name, hash_size)


def _scalars(name: str, column: Column) -> Column:
    if not (is_text(column.type) or is_number(column.type) or is_category(column.type)):
        raise LogError(f"column {name!r} holds {column.type}; categories are strings or numbers.")
    return column
