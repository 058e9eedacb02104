"""Features: how the raw columns of a log become the matrix X, as data."""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.compute import Matrix, is_sparse
from poem.data.features.kinds import (
    KINDS,
    Bag,
    Hashed,
    Kind,
    Numeric,
    OneHot,
    Sparse,
    Text,
    Vector,
    checked_numbers,
    positions_of,
)
from poem.errors import InputError, LogError
from poem.files import (
    Column,
    Place,
    Table,
    as_table,
    coded,
    column_of,
    did_you_mean,
    flattened,
    is_category,
    is_list,
    is_number,
    is_text,
    lengths,
    plain_table,
    row_place,
    shown,
    strings,
)

MANY_CATEGORIES = 1000  # above which a column of strings is hashed
HASH_SIZE = 4096
FULL = 0.9  # share of non-zeros above which a block of numbers is dense
MOST_FEATURES = 2**31 - 1  # what a matrix can number in 32 bits
MOST_NAMES = 2**20  # above which features have numbers only: a hashed space of 2³⁰ would be all names
WORDS = 3.0  # in the mean of a column, above which its strings are text
PAIRS = ((".index", ".value"), (".name", ".value"), ("_index", "_value"), ("_indices", "_values"))


@dataclass(frozen=True)
class Features:
    """A recipe: raw columns → X. It is saved with a policy, which then takes raw columns."""

    kinds: tuple[Kind, ...]

    @staticmethod
    def learn(
        frame: Any,
        *,
        scale: bool = False,
        one_hot: Collection[str] = (),
        hashed: Collection[str] = (),
        text: Collection[str] = (),
        hash_size: int = HASH_SIZE,
        place: Place = row_place,
    ) -> "Features":
        """Choose how each column of a data frame becomes features.

        Numbers are taken as they are, or scaled on request; strings are one-hot, or hashed if there are more than a
        thousand different ones, or hashed by words if they are text; lists of numbers are vectors, lists of
        strings are bags; pairs of list columns such as ``x.index`` and ``x.value`` are sparse rows. The arguments name
        columns for which it should be otherwise.
        """
        table = plain_table(as_table(frame, "the context"))
        if not isinstance(hash_size, int) or not 1 <= hash_size <= MOST_FEATURES:
            raise InputError(f"hash_size must be a whole number from 1 to {MOST_FEATURES}; found {hash_size!r}.")
        asked = {
            name: kind
            for kind, names in (("one-hot", one_hot), ("hashed", hashed), ("text", text))
            for name in ((names,) if isinstance(names, str) else names)
        }
        for name in asked:
            column_of(table, name, "the context")
        values = _value_columns(table)
        kinds = [
            _choose(table, name, values.get(name), asked.get(name), scale, hash_size, place)
            for name in table.column_names
            if name not in values.values()
        ]
        # Numbers first, so that they are one dense block.
        found = Features(tuple(sorted(kinds, key=lambda kind: not isinstance(kind, Numeric | Vector))))
        if found.width > MOST_FEATURES:
            raise LogError(f"the columns make {found.width:,} features; 2³¹ − 1 is the most. Hash them into fewer.")
        return found

    @property
    def columns(self) -> tuple[str, ...]:
        """The raw columns that are needed, each once."""
        return tuple(dict.fromkeys(column for kind in self.kinds for column in kind.columns))

    @property
    def width(self) -> int:
        """The number of features."""
        return sum(kind.width for kind in self.kinds)

    def names(self) -> tuple[str, ...] | None:
        """The names of the features; None where they are numbers only, or too many."""
        if (len(self.kinds) == 1 and isinstance(self.kinds[0], Sparse)) or self.width > MOST_NAMES:
            return None
        return tuple(name for kind in self.kinds for name in kind.names())

    def transform(self, frame: Any, place: Place = row_place) -> Matrix:
        """Return the features of each row: dense if all columns are numbers, CSR otherwise."""
        table = plain_table(as_table(frame, "the context"))
        missing = [name for name in self.columns if name not in table.column_names]
        if missing:
            raise LogError(
                f"the column {missing[0]!r} is missing{f' (and {len(missing) - 1} more)' if missing[1:] else ''}."
                f"{did_you_mean(missing[0], table.column_names)} There are {shown(table.column_names)}. "
                "Pass the raw columns that the policy was trained on."
            )
        if not self.kinds:
            return np.zeros((table.num_rows, 0))
        blocks = _joined_neighbours([kind.encode(table, place) for kind in self.kinds])
        if len(blocks) == 1:
            return blocks[0]
        return sp.csr_array(sp.hstack([_as_csr(block) for block in blocks], format="csr"))

    def texts(self) -> tuple[str, ...]:
        """Return the columns that held text: a file without types must not take their values for numbers."""
        return tuple(kind.column for kind in self.kinds if kind.is_text())

    def to_data(self) -> list[dict[str, Any]]:
        """Return it as data for JSON."""
        return [kind.to_dict() for kind in self.kinds]

    @staticmethod
    def from_data(content: Any) -> "Features":
        """Make it again; raise ValueError, TypeError or KeyError for data that to_data() never gives."""
        made = Features(tuple(KINDS[one["kind"]].from_dict(one) for one in content))
        if made.width > MOST_FEATURES:
            raise ValueError(f"a recipe of {made.width} features")
        return made

    def __str__(self) -> str:
        return "; ".join(map(str, self.kinds)) or "none"


def _joined_neighbours(blocks: list[Matrix]) -> list[Matrix]:
    """Return the blocks with dense ones that stand side by side joined."""
    runs = [list(run) for _, run in groupby(blocks, key=is_sparse)]
    return [block for run in runs for block in (run if is_sparse(run[0]) else [np.hstack(run)])]


def _as_csr(block: Matrix) -> Matrix:
    """Return a dense block as CSR; where it has few zeros they are kept, which saves looking for them."""
    if is_sparse(block) or np.count_nonzero(block[:MANY_CATEGORIES]) < FULL * block[:MANY_CATEGORIES].size:
        return sp.csr_array(block)
    n, width = block.shape
    kind = np.int32 if block.size < 2**31 else np.int64
    positions = np.tile(np.arange(width, dtype=kind), n)
    return sp.csr_array((block.ravel(), positions, np.arange(n + 1, dtype=kind) * kind(width)), shape=block.shape)


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


def _choose(
    table: Table, name: str, value: str | None, asked: str | None, scale: bool, hash_size: int, place: Place
) -> Kind:
    column = table.column(name)
    if asked is not None:
        return {"one-hot": _one_hot, "hashed": _hashed, "text": _text}[asked](name, column, hash_size)
    if value is not None and is_number(column.type.value_type):
        positions, _ = positions_of(column, name, place)
        return Sparse(name, value, int(positions.max()) + 1 if len(positions) else 0)
    if is_list(column.type):
        return _of_lists(name, column, value, place)
    if is_number(column.type):
        return _numeric(name, column, scale, place)
    if is_text(column.type) or is_category(column.type):
        return _of_strings(name, column, hash_size)
    raise LogError(
        f"column {name!r} holds {column.type}, which is no kind of feature. Leave it out (ignore), turn it into "
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
        raise LogError(f"column {name!r} has numbers too large to be scaled. Mend them, or leave the column out.")
    return Numeric(name, mean, deviation)


def _of_lists(name: str, column: Column, value: str | None, place: Place) -> Kind:
    if is_number(column.type.value_type):
        counts = lengths(column)
        return Vector(name, int(counts[0]) if len(counts) else 0)
    if not is_text(column.type.value_type):
        raise LogError(f"column {name!r} holds {column.type}; lists can hold numbers or strings. Flatten or drop it.")
    _, distinct = coded(flattened(column))
    # In the order of their names: the same for any order of rows and part files.
    return Bag(name, value or "", tuple(sorted(distinct.to_pylist())))


def _of_strings(name: str, column: Column, hash_size: int) -> Kind:
    _, distinct = coded(strings(column))
    values = distinct.slice(0, MANY_CATEGORIES + 1).to_pylist()
    words = float(np.mean([value.count(" ") + 1 for value in values])) if values else 0.0
    if words > WORDS and len(values) > 1:
        return _text(name, column, hash_size)
    return (_hashed if len(values) > MANY_CATEGORIES else _one_hot)(name, column, hash_size)


def _one_hot(name: str, column: Column, hash_size: int) -> OneHot:
    _, distinct = coded(strings(_scalars(name, column)))
    return OneHot(name, tuple(sorted(distinct.to_pylist())))


def _hashed(name: str, column: Column, hash_size: int) -> Hashed:
    _scalars(name, column)
    return Hashed(name, hash_size)


def _text(name: str, column: Column, hash_size: int) -> Text:
    if not is_text(column.type):
        raise LogError(f"column {name!r} holds {column.type}, which is no text.")
    return Text(name, hash_size)


def _scalars(name: str, column: Column) -> Column:
    if not (is_text(column.type) or is_number(column.type) or is_category(column.type)):
        raise LogError(f"column {name!r} holds {column.type}; categories are strings or numbers.")
    return column
