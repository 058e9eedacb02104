"""The ways in which a raw column becomes features; each is plain data that a policy file can hold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.compute import Matrix
from poem.data.features.base import Kind, Sized
from poem.data.features.blocks import Block, Lookup
from poem.data.features.gaps import as_lists
from poem.data.features.numbers import Imputed, Missing, Numeric, Vector
from poem.data.features.values import positions_of, sparse_rows, starts_of, values_beside
from poem.errors import LogError
from poem.files import Column, Place, Table, coded, coded_strings, column_of, flattened, is_list, lengths, strings


@dataclass(frozen=True)
class OneHot(Kind):
    """One feature for each category that was seen; others, and what is missing, have none."""

    kind = "one-hot"
    categories: tuple[str, ...] = ()

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str, "categories": str}

    @property
    def width(self) -> int:
        return len(self.categories)

    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column}={category}" for category in self.categories)

    def is_text(self) -> bool:
        return not all(map(_is_plain_number, self.categories))

    def encode(self, table: Table, place: Place) -> Block:
        import pyarrow as pa
        import pyarrow.compute as pc

        codes, distinct = coded_strings(column_of(table, self.column))
        known = pc.index_in(distinct, value_set=pa.array(self.categories, pa.large_string()))
        number = np.append(np.asarray(known.fill_null(-1)), -1)  # the last one is what is missing
        return Lookup(sparse_rows(number, np.ones(len(number)), np.arange(len(number) + 1), self.width), codes)


@dataclass(frozen=True)
class Hashed(Sized):
    """Categories hashed into a fixed number of features."""

    kind = "hashed"
    _least = 1

    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column}#{i}" for i in range(self.size))

    def encode(self, table: Table, place: Place) -> Block:
        from sklearn.feature_extraction import FeatureHasher

        hasher = FeatureHasher(self.size, input_type="string")
        return of_distinct(
            column_of(table, self.column), self.width, lambda values: hasher.transform([[value] for value in values])
        )


@dataclass(frozen=True)
class Text(Hashed):
    """Words hashed into a fixed number of features, with unit norm."""

    kind = "text"

    def is_text(self) -> bool:
        return True

    def encode(self, table: Table, place: Place) -> Block:
        from sklearn.feature_extraction.text import HashingVectorizer

        hasher = HashingVectorizer(n_features=self.size)
        return of_distinct(column_of(table, self.column), self.width, hasher.transform)


@dataclass(frozen=True)
class Sparse(Kind):
    """Two lists per row: positions (``column``) and the values at them; positions that were not seen are left out."""

    kind = "sparse"
    value: str = ""
    size: int = 0

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str, "value": str, "size": int}

    @property
    def columns(self) -> tuple[str, ...]:
        return self.column, self.value

    @property
    def width(self) -> int:
        return self.size

    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column.rpartition('.')[0] or self.column}[{i}]" for i in range(self.size))

    def encode(self, table: Table, place: Place) -> Matrix:
        positions, starts = positions_of(column_of(table, self.column), self.column, place)
        values = values_beside(table, self.column, self.value, starts, place)
        return sparse_rows(positions, values, starts, self.size)


@dataclass(frozen=True)
class Bag(Kind):
    """A list of names per row, and perhaps one of values beside it; names that were not seen are left out."""

    kind = "bag"
    value: str = ""
    vocabulary: tuple[str, ...] = ()

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str, "value": str, "vocabulary": str}

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column, self.value) if self.value else (self.column,)

    @property
    def width(self) -> int:
        return len(self.vocabulary)

    def names(self) -> tuple[str, ...]:
        return self.vocabulary if self.value else tuple(f"{self.column}={name}" for name in self.vocabulary)

    def encode(self, table: Table, place: Place) -> Matrix:
        import pyarrow as pa
        import pyarrow.compute as pc

        column = as_lists(column_of(table, self.column), pa.string())
        if not is_list(column.type):
            raise LogError(f"column {self.column!r} should hold lists of strings and holds {column.type}.")
        starts = starts_of(lengths(column))
        codes, distinct = coded(flattened(column))
        known = pc.index_in(strings(distinct), value_set=pa.array(self.vocabulary, pa.large_string()))
        number = np.append(np.asarray(known.fill_null(-1)), -1)  # the last one is what is missing
        values = values_beside(table, self.column, self.value, starts, place) if self.value else np.ones(len(codes))
        return sparse_rows(number[codes], values, starts, self.width)


def of_distinct(column: Column, width: int, encode: Any) -> Lookup:
    """Encode each distinct value once, and give every row its value's features; what is missing has none."""
    codes, distinct = coded_strings(column)
    blocks = [encode(distinct.to_pylist())] if len(distinct) else []
    rows: Matrix = sp.vstack([*blocks, sp.csr_array((1, width))], format="csr", dtype=np.float64)
    return Lookup(rows, codes)  # −1 is the last row, the blank one


KINDS: dict[str, type[Kind]] = {
    one.kind: one for one in (Numeric, Imputed, Missing, Vector, OneHot, Hashed, Text, Sparse, Bag)
}


def _is_plain_number(text: str) -> bool:
    """Tell whether a category may have been a number: 7 and 2.5 may, 007 and A may not."""
    try:
        return str(float(text)) in (text, f"{text}.0")
    except ValueError:
        return text in ("true", "false")
