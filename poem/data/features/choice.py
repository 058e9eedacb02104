"""Which kind of feature each raw column becomes."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from poem.data.features.base import Kind
from poem.data.features.encoding import Encoding
from poem.data.features.gaps import count_missing, is_empty
from poem.data.features.kinds import Bag, Hashed, OneHot, Sparse, Text
from poem.data.features.numbers import Imputed, Missing, Numeric, Vector
from poem.data.features.values import median, positions_of, usual, without_gaps
from poem.errors import LogError
from poem.files import (
    Column,
    Place,
    Table,
    coded,
    coded_strings,
    column_of,
    flattened,
    floats,
    is_category,
    is_list,
    is_number,
    is_text,
    lengths,
)

MANY_CATEGORIES = 1000  # above which a column of strings is hashed
WORDS = 3.0  # words on average, above which the strings of a column are text
WITH_GAPS = (Numeric, Vector, OneHot, Hashed, Text)  # of which a value may be missing; a missing list is an empty bag
PAIRS = ((".index", ".value"), (".name", ".value"), ("_index", "_value"), ("_indices", "_values"))


def chosen(table: Table, encoding: Encoding, place: Place) -> list[Kind]:
    """Return the kind of feature of each column, or pair of columns, of a table."""
    asked = encoding.by_column()
    for name in asked:
        column_of(table, name, "the context")
    values = _value_columns(table)
    return [
        kind
        for name in table.column_names
        if name not in values.values()
        for kind in _kinds(table, name, values.get(name), asked.get(name), encoding, place)
    ]


def _kinds(
    table: Table, name: str, value: str | None, asked: str | None, encoding: Encoding, place: Place
) -> Iterator[Kind]:
    """Yield the kind of feature of a column, and a feature that says where it is missing; none if it always is."""
    column = table.column(name)
    missing = count_missing(column)
    if is_empty(column, missing):
        return
    kind = _choose(table, name, value, asked, encoding, place)
    if isinstance(kind, Numeric) and missing:
        kind = Imputed(name, kind.mean, kind.scale, median(column, name, place))
    elif isinstance(kind, Numeric):
        kind = replace(kind, fill=usual(column))
    yield kind
    if missing and isinstance(kind, WITH_GAPS):
        yield Missing(name)


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


def in_pairs(table: Table) -> set[str]:
    """Return the columns of which two make sparse rows: no entry of theirs may be missing."""
    return {name for pair in _value_columns(table).items() for name in pair}


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
        return _scaled(name, column, place) if encoding.scale else Numeric(name)
    if is_text(column.type) or is_category(column.type):
        return _of_strings(name, column, encoding.hash_size)
    raise LogError(
        f"column {name!r} holds {column.type}, which cannot be a feature. Leave it out (ignore), turn it into "
        "numbers or strings, or, if it says when a decision was made, name it as the time."
    )


def _scaled(name: str, column: Column, place: Place) -> Numeric:
    """Return a number that is scaled by the mean and standard deviation of those that are there."""
    from sklearn.preprocessing import StandardScaler

    values = without_gaps(floats(column), np.nan, name, place)
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
        first = int(np.argmax(np.asarray(column.is_valid()))) if len(counts) else 0
        return Vector(name, int(counts[first]) if len(counts) else 0, fill=0.0)
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
    return Hashed(name, hash_size) if len(values) > MANY_CATEGORIES else OneHot(name, tuple(sorted(values)))


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
