"""The ways in which a raw column becomes features; each is plain data that a policy file can hold."""

import math
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp

from poem.arrays import FloatArray
from poem.compute import Matrix
from poem.data.features.blocks import Block, Lookup, side_by_side
from poem.data.features.values import (
    check_finite,
    check_numeric_lists,
    checked_list_numbers,
    floats_of,
    positions_of,
    sparse_rows,
    starts_of,
    values_beside,
)
from poem.errors import LogError
from poem.files import Column, Place, Table, coded, coded_strings, column_of, flattened, is_list, lengths, strings


@dataclass(frozen=True)
class Kind:
    """One raw column, or a pair of them, and the features that it becomes."""

    kind: ClassVar[str]
    _least: ClassVar[int] = 0  # features
    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The raw columns that are needed."""
        return (self.column,)

    @property
    def width(self) -> int:
        """The number of features."""
        raise NotImplementedError

    def names(self) -> tuple[str, ...]:
        """The names of the features."""
        raise NotImplementedError

    def encode(self, table: Table, place: Place) -> Block:
        """Return the features of each row, (n, width)."""
        raise NotImplementedError

    def is_text(self) -> bool:
        """Tell whether the column certainly held text, not numbers."""
        return False

    def to_dict(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {"kind": self.kind, **asdict(self)}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Make it again from data; raise TypeError or ValueError for data that to_dict() never gives."""
        values: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in content.items()}
        made = cls(**{name: value for name, value in values.items() if name != "kind"})
        made._check()
        return made

    def _check(self) -> None:
        for name, kind in self._types().items():
            value = getattr(self, name)
            several = isinstance(getattr(type(self), name, None), tuple)  # so is the default
            parts = value if isinstance(value, tuple) else (value,)
            if several != isinstance(value, tuple) or not all(_is_plain(part, kind) for part in parts):
                raise ValueError(f"{self.kind} of column {self.column!r} has {name}={value!r:.80}")
            if len(set(parts)) < len(parts):
                raise ValueError(f"{self.kind} of column {self.column!r} names one of its {name} twice")
        if not self._least <= self.width < 2**31:
            raise ValueError(f"{self.kind} of column {self.column!r} has {self.width} features")

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str}

    def __str__(self) -> str:
        return f"{self.column}: {self.kind} ({self.width:,})"


def _is_plain(value: Any, kind: type) -> bool:
    if isinstance(value, str):
        value.encode()  # raises for half of a surrogate pair, which no Arrow string can hold
    return isinstance(value, kind) and not isinstance(value, bool)


@dataclass(frozen=True)
class Numeric(Kind):
    """A number as it is, or scaled to a mean of 0 and a standard deviation of 1."""

    kind = "numeric"
    mean: float = 0.0
    scale: float = 1.0

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str, "mean": float, "scale": float}

    def _check(self) -> None:
        super()._check()
        if not (math.isfinite(self.mean) and math.isfinite(self.scale) and self.scale > 0.0):
            raise ValueError(f"column {self.column!r} has mean={self.mean} and scale={self.scale}")

    @property
    def width(self) -> int:
        return 1

    def names(self) -> tuple[str, ...]:
        return (self.column,)

    def encode(self, table: Table, place: Place) -> FloatArray:
        return dense_numbers((self,), table, place)

    def is_plain(self) -> bool:
        """Tell whether numbers are taken as they are."""
        return (self.mean, self.scale) == (0.0, 1.0)

    def __str__(self) -> str:
        return f"{self.column}: numeric" + ("" if self.is_plain() else ", scaled")


@dataclass(frozen=True)
class Sized(Kind):
    """A column that becomes a fixed number of features."""

    size: int = 0

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str, "size": int}

    @property
    def width(self) -> int:
        return self.size


@dataclass(frozen=True)
class Vector(Sized):
    """A list of numbers of the same length in each row."""

    kind = "vector"

    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column}[{i}]" for i in range(self.size))

    def encode(self, table: Table, place: Place) -> FloatArray:
        column = column_of(table, self.column)
        check_numeric_lists(column, self.column)
        found = lengths(column)
        if np.any(found != self.size):
            row = int(np.flatnonzero(found != self.size)[0])
            raise LogError(
                f"{place(row)}, column {self.column!r} has a list of {found[row]} numbers where {self.size} are "
                "expected. Lists that stand for one vector must have one length; fix or drop such rows."
            )
        flat = checked_list_numbers(flattened(column), self.column, found, place)
        return flat.reshape(len(found), self.size)


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
        from sklearn.preprocessing import OneHotEncoder

        if not self.categories:  # of which the encoder would complain
            return sp.csr_array((table.num_rows, 0))
        known = np.array(self.categories, dtype=object)
        encoder = OneHotEncoder(categories=[known], handle_unknown="ignore")
        return of_distinct(
            column_of(table, self.column),
            self.width,
            lambda values: encoder.fit(known[:, None]).transform(np.array(values, dtype=object)[:, None]),
        )


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

        column = column_of(table, self.column)
        if not is_list(column.type):
            raise LogError(f"column {self.column!r} should hold lists of strings and holds {column.type}.")
        starts = starts_of(lengths(column))
        codes, distinct = coded(flattened(column))
        known = pc.index_in(strings(distinct), value_set=pa.array(self.vocabulary, pa.large_string()))
        number = np.append(np.asarray(known.fill_null(-1)), -1)  # the last one is what is missing
        values = values_beside(table, self.column, self.value, starts, place) if self.value else np.ones(len(codes))
        return sparse_rows(number[codes], values, starts, self.width)


def dense_numbers(kinds: tuple[Numeric, ...], table: Table, place: Place) -> FloatArray:
    """Return the numbers of several columns side by side, (n, columns), or say where one holds something else."""
    columns = [floats_of(column_of(table, kind.column), kind.column, place) for kind in kinds]
    numbers = side_by_side(columns, table.num_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        sound = np.isfinite(numbers.sum())  # one pass and no array of flags in the common case
    for at, kind in enumerate(kinds):
        if not sound:
            check_finite(numbers[:, at], kind.column, place)
        if not kind.is_plain():
            numbers[:, at] = (numbers[:, at] - kind.mean) / kind.scale
    return numbers


def of_distinct(column: Column, width: int, encode: Any) -> Lookup:
    """Encode each distinct value once, and give every row its value's features; what is missing has none."""
    codes, distinct = coded_strings(column)
    blocks = [encode(distinct.to_pylist())] if len(distinct) else []
    rows: Matrix = sp.vstack([*blocks, sp.csr_array((1, width))], format="csr", dtype=np.float64)
    return Lookup(rows, codes)  # −1 is the last row, the blank one


KINDS: dict[str, type[Kind]] = {one.kind: one for one in (Numeric, Vector, OneHot, Hashed, Text, Sparse, Bag)}


def _is_plain_number(text: str) -> bool:
    """Tell whether a category may have been a number: 7 and 2.5 may, 007 and A may not."""
    try:
        return str(float(text)) in (text, f"{text}.0")
    except ValueError:
        return text in ("true", "false")
