"""Numbers as features: columns of them, lists of them, and whether one is missing."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from poem.arrays import FloatArray
from poem.data.features.base import Kind, Sized
from poem.data.features.blocks import side_by_side
from poem.data.features.gaps import as_lists, missing_in
from poem.data.features.values import check_numeric_lists, checked_list_numbers, floats_of, without_gaps
from poem.errors import LogError
from poem.files import Column, Place, Table, column_of, flattened, floats, lengths


@dataclass(frozen=True)
class Numeric(Kind):
    """A number as it is, or scaled to a mean of 0 and a standard deviation of 1.

    ``fill`` stands in for a number that is missing. None was when the recipe was learnt, so that features are the same
    whatever it is. Without it, a number that is missing is an error.
    """

    kind = "numeric"
    mean: float = 0.0
    scale: float = 1.0
    fill: float | None = field(default=None, compare=False)

    @classmethod
    def _types(cls) -> dict[str, Any]:
        return {"column": str, "mean": float, "scale": float}

    def _check(self) -> None:
        super()._check()
        if not (math.isfinite(self.mean) and math.isfinite(self.scale) and self.scale > 0.0):
            raise ValueError(f"column {self.column!r} has mean={self.mean} and scale={self.scale}")
        _check_fill(self, self.fill)

    @property
    def width(self) -> int:
        return 1

    def names(self) -> tuple[str, ...]:
        return (self.column,)

    def encode(self, table: Table, place: Place) -> FloatArray:
        return dense_numbers((self,), table, place)

    def doubles(self, table: Table, place: Place) -> Column:
        """Return the raw numbers; what is missing may be null or NaN."""
        return floats_of(column_of(table, self.column), self.column, place)

    def finish(self, values: FloatArray, sound: bool, place: Place) -> None:
        """Turn raw numbers into features where they stand; ``sound`` says that all are finite."""
        if not sound:
            values[:] = without_gaps(values, self.fill, self.column, place)
        if not self._is_plain():
            values[:] = (values - self.mean) / self.scale

    def _is_plain(self) -> bool:
        """Tell whether numbers are taken as they are."""
        return (self.mean, self.scale) == (0.0, 1.0)

    def to_dict(self) -> dict[str, Any]:
        return _without_none(super().to_dict())

    def __str__(self) -> str:
        return f"{self.column}: numeric" + ("" if self._is_plain() else ", scaled")


@dataclass(frozen=True)
class Imputed(Numeric):
    """A number of a column that has gaps: ``fill``, the median of those that were there, stands in for others."""

    kind = "imputed"
    fill: float | None = None  # here features depend on it

    def _check(self) -> None:
        super()._check()
        if self.fill is None:
            raise ValueError(f"column {self.column!r} has nothing to stand in for what is missing")

    def doubles(self, table: Table, place: Place) -> Column:
        values = floats(super().doubles(table, place))  # filled here, while they stand side by side in memory
        return _as_column(without_gaps(values, self.fill, self.column, place))

    def __str__(self) -> str:
        return f"{super().__str__()}, {self.fill:g} if missing"


@dataclass(frozen=True)
class Missing(Kind):
    """1 where a column has no value, and 0 elsewhere."""

    kind = "missing"

    @property
    def width(self) -> int:
        return 1

    def names(self) -> tuple[str, ...]:
        return (f"{self.column} is missing",)

    def encode(self, table: Table, place: Place) -> FloatArray:
        return dense_numbers((self,), table, place)

    def doubles(self, table: Table, place: Place) -> Column:
        """Return it as numbers."""
        return _as_column(missing_in(column_of(table, self.column)).astype(np.float64))

    def finish(self, values: FloatArray, sound: bool, place: Place) -> None:
        """Leave it as it is."""

    def __str__(self) -> str:
        return f"{self.column}: missing or not"


@dataclass(frozen=True)
class Vector(Sized):
    """A list of numbers of the same length in each row; ``fill`` stands in for a list or a number that is missing."""

    kind = "vector"
    fill: float | None = field(default=None, compare=False)  # 0 in a recipe that was learnt

    def _check(self) -> None:
        super()._check()
        _check_fill(self, self.fill)

    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.column}[{i}]" for i in range(self.size))

    def encode(self, table: Table, place: Place) -> FloatArray:
        import pyarrow as pa

        column = column_of(table, self.column)
        column = column if self.fill is None else as_lists(column, pa.float64())
        check_numeric_lists(column, self.column)
        found, there = lengths(column), np.ones(len(column), dtype=bool)
        if self.fill is not None and column.null_count:
            there = np.asarray(column.is_valid())
        odd = np.flatnonzero(there & (found != self.size))
        if len(odd):
            raise LogError(
                f"{place(int(odd[0]))}, column {self.column!r} has a list of {found[odd[0]]} numbers where {self.size} "
                "are expected. Lists that stand for one vector must have one length; fix or drop such rows."
            )
        flat = checked_list_numbers(flattened(column), self.column, found, place, self.fill)
        if there.all():
            return flat.reshape(len(found), self.size)
        rows = np.full((len(found), self.size), self.fill)
        rows[there] = flat.reshape(int(there.sum()), self.size)
        return rows

    def to_dict(self) -> dict[str, Any]:
        return _without_none(super().to_dict())


def dense_numbers(kinds: tuple[Numeric | Missing, ...], table: Table, place: Place) -> FloatArray:
    """Return the numbers of several columns side by side, (n, columns), or say where one holds something else."""
    numbers = side_by_side([kind.doubles(table, place) for kind in kinds], table.num_rows)
    with np.errstate(over="ignore", invalid="ignore"):
        sound = bool(np.isfinite(numbers.sum()))  # one pass and no array of flags in the common case
    for at, kind in enumerate(kinds):
        kind.finish(numbers[:, at], sound, place)
    return numbers


def _as_column(values: FloatArray) -> Column:
    import pyarrow as pa

    return pa.chunked_array([pa.array(values)])


def _check_fill(kind: Kind, fill: Any) -> None:
    if fill is not None and not (isinstance(fill, float) and math.isfinite(fill)):
        raise ValueError(f"{kind.kind} of column {kind.column!r} has fill={fill!r:.80}")


def _without_none(content: dict[str, Any]) -> dict[str, Any]:
    """Return data without what is not known, as earlier versions wrote it."""
    return {name: value for name, value in content.items() if value is not None}
