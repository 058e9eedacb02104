"""What one pass over some rows of a column says of it; summaries of neighbouring rows merge into one of all rows."""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from poem.arrays import FloatArray
from poem.data.features.base import Kind
from poem.data.features.gaps import missing_in
from poem.data.features.kinds import Bag, Hashed, OneHot, Sparse, Text
from poem.data.features.numbers import Imputed, Numeric, Vector
from poem.data.features.values import lower_median, median, positions_of, usual, without_gaps
from poem.errors import LogError
from poem.files import (
    Column,
    Place,
    coded,
    coded_strings,
    flattened,
    floats,
    is_category,
    is_number,
    is_text,
    lengths,
)

MANY_CATEGORIES = 1000  # above which a column of strings is hashed
WORDS = 3.0  # words on average, above which the strings of a column are text
MOST_NUMBERS = 8192  # of a column, that a sample keeps
LARGEST_SCALED = 1e140  # beyond it squares may overflow, in some blocks or in all rows together


@dataclass(frozen=True)
class Summary:
    """Some rows of a column: how many there are, and how many of them have no value."""

    name: str
    rows: int
    missing: int

    def kind(self) -> Kind | None:
        """Return the kind of feature that the column becomes; None if no row has a value."""
        raise NotImplementedError

    def merged(self, later: "Summary") -> "Summary":
        """Return the summary of these rows and of those that follow them."""
        if not self.rows:
            return later
        if isinstance(later, Nothing) or not later.rows:
            return self._counting(later)
        if type(later) is not type(self):
            raise LogError(
                f"column {self.name!r} holds values of one kind in some rows and of another kind in others. Write all "
                "of them alike, or leave the column out (--ignore, ignore=)."
            )
        return self._joined(later)._counting(later)

    def _counting(self, other: "Summary") -> Self:
        return replace(self, rows=self.rows + other.rows, missing=self.missing + other.missing)

    def _joined(self, later: Any) -> Self:
        return self


@dataclass(frozen=True)
class Nothing(Summary):
    """Rows without any value."""

    def kind(self) -> None:
        return None

    def merged(self, later: Summary) -> Summary:
        return later._counting(self)


# ---- numbers --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """Every ``step``-th number of a column that is there and finite, by which its median is known.

    All numbers are kept while they are at most MOST_NUMBERS, and their median is exact. After that at least half as
    many are kept. The rank of their median is then within 1.6 % of the middle in 19 of 20 columns, 1.96·½/√4096,
    unless values repeat with the step.
    """

    values: FloatArray
    step: int = 1

    @staticmethod
    def of(column: Column, missing: int) -> "Sample":
        """Return the sample of a column."""
        import pyarrow as pa

        rows, step = np.flatnonzero(~missing_in(column)) if missing else np.arange(len(column)), 1
        while len(rows) > MOST_NUMBERS:
            rows, step = rows[::2], step * 2
        values = floats(column if len(rows) == len(column) else column.take(pa.array(rows)))
        return Sample(values[np.isfinite(values)], step)

    def joined(self, later: "Sample") -> "Sample":
        """Return the sample of these numbers and of later ones."""
        step = max(self.step, later.step)
        values = np.concatenate([one.values[:: step // one.step] for one in (self, later)])
        while len(values) > MOST_NUMBERS:
            values, step = values[::2], step * 2
        return Sample(values, step)


@dataclass(frozen=True)
class Moments:
    """How many numbers there are, their mean and their variance."""

    count: int
    mean: float
    variance: float

    @staticmethod
    def of(column: Column, name: str, place: Place) -> "Moments":
        """Return the moments of the numbers that are there."""
        from sklearn.preprocessing import StandardScaler

        values = without_gaps(floats(column), np.nan, name, place)
        if not len(values):
            return Moments(0, 0.0, 0.0)
        if np.nanmax(np.abs(values), initial=0.0) > LARGEST_SCALED:
            raise LogError(f"column {name!r} has numbers too large to be scaled. Fix them, or leave the column out.")
        scaler = StandardScaler().fit(values[:, None])
        count = int(np.max(scaler.n_samples_seen_))
        return Moments(count, float(scaler.mean_[0]), float(scaler.var_[0]))

    def joined(self, later: "Moments") -> "Moments":
        """Return the moments of these numbers and of later ones."""
        if not (self.count and later.count):
            return self if self.count else later
        count = self.count + later.count
        share, apart = later.count / count, later.mean - self.mean
        within = (1.0 - share) * self.variance + share * later.variance
        return Moments(count, self.mean + share * apart, within + share * (1.0 - share) * float(np.square(apart)))

    def deviation(self) -> float:
        """Return the standard deviation, or 1 if it may as well be rounding, as scikit-learn decides it."""
        eps = float(np.finfo(np.float64).eps)
        rounding = self.count * eps * self.variance + float(np.square(self.count * self.mean * eps))
        return 1.0 if self.variance <= rounding else float(np.sqrt(self.variance))


@dataclass(frozen=True)
class Numbers(Summary):
    """Numbers; ``middle`` is what stands in for a missing one, as long as no others have been added."""

    sample: Sample
    middle: float | None
    moments: Moments | None = None

    @staticmethod
    def of(column: Column, name: str, missing: int, scale: bool, place: Place) -> "Numbers":
        """Return the summary of a column; ``scale`` asks for moments."""
        middle = median(column, name, place) if missing else usual(column)
        moments = Moments.of(column, name, place) if scale else None
        return Numbers(name, len(column), missing, Sample.of(column, missing), middle, moments)

    def _joined(self, later: "Numbers") -> "Numbers":
        moments = self.moments and later.moments and self.moments.joined(later.moments)
        return replace(self, sample=self.sample.joined(later.sample), middle=None, moments=moments)

    def kind(self) -> Numeric:
        if self.moments is not None and not self.moments.count:
            raise LogError(f"column {self.name!r} has no rows; it cannot be scaled. Pass at least one context.")
        mean, scale = (0.0, 1.0) if self.moments is None else (self.moments.mean, self.moments.deviation())
        fill = self.middle
        if fill is None and len(self.sample.values):
            fill = lower_median(self.sample.values)
        return (Imputed if self.missing else Numeric)(self.name, mean, scale, fill)


# ---- strings --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Strings(Summary):
    """Categories or text: distinct values in the order in which they were found, as many as decide what they are.

    ``asked`` is what they are to become, if somebody said so.
    """

    hash_size: int
    asked: str | None
    distinct: tuple[str, ...] = ()

    @staticmethod
    def of(column: Column, name: str, missing: int, asked: str | None, hash_size: int) -> "Strings":
        """Return the summary of a column."""
        _check_strings(column, name, asked)
        found = Strings(name, len(column), missing, hash_size, asked)
        if asked in ("hashed", "text"):
            return found
        _, distinct = coded_strings(column)
        return replace(found, distinct=tuple(distinct.slice(0, found._most()).to_pylist()))

    def _most(self) -> int:
        return 2**31 if self.asked == "one-hot" else MANY_CATEGORIES + 1

    def _joined(self, later: "Strings") -> "Strings":
        every = dict.fromkeys((*self.distinct, *later.distinct))
        return replace(self, distinct=tuple(every)[: self._most()])

    def kind(self) -> Kind:
        values = self.distinct
        words = float(np.mean([value.count(" ") + 1 for value in values])) if values else 0.0
        if self.asked == "text" or (self.asked is None and words > WORDS and len(values) > 1):
            return Text(self.name, self.hash_size)
        if self.asked == "hashed" or (self.asked is None and len(values) > MANY_CATEGORIES):
            return Hashed(self.name, self.hash_size)
        return OneHot(self.name, tuple(sorted(values)))


def _check_strings(column: Column, name: str, asked: str | None) -> None:
    if asked == "text" and not is_text(column.type):
        raise LogError(f"column {name!r} holds {column.type}, which is not text.")
    if not (is_text(column.type) or is_number(column.type) or is_category(column.type)):
        raise LogError(f"column {name!r} holds {column.type}; categories are strings or numbers.")


# ---- lists ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Positions(Summary):
    """Lists of positions, with values in another column beside them."""

    value: str
    size: int

    @staticmethod
    def of(column: Column, name: str, missing: int, value: str, place: Place) -> "Positions":
        """Return the summary of a column."""
        positions, _ = positions_of(column, name, place)
        return Positions(name, len(column), missing, value, int(positions.max()) + 1 if len(positions) else 0)

    def _joined(self, later: "Positions") -> "Positions":
        return replace(self, size=max(self.size, later.size))

    def kind(self) -> Sparse:
        return Sparse(self.name, self.value, self.size)


@dataclass(frozen=True)
class Vectors(Summary):
    """Lists of numbers, all as long as the first one."""

    size: int

    @staticmethod
    def of(column: Column, name: str, missing: int) -> "Vectors":
        """Return the summary of a column."""
        counts = lengths(column)
        first = int(np.argmax(np.asarray(column.is_valid()))) if len(counts) else 0
        return Vectors(name, len(column), missing, int(counts[first]) if len(counts) else 0)

    def kind(self) -> Vector:
        return Vector(self.name, self.size, fill=0.0)


@dataclass(frozen=True)
class Names(Summary):
    """Lists of names, perhaps with values in another column beside them."""

    value: str
    vocabulary: frozenset[str]

    @staticmethod
    def of(column: Column, name: str, missing: int, value: str | None) -> "Names":
        """Return the summary of a column."""
        _, distinct = coded(flattened(column))
        return Names(name, len(column), missing, value or "", frozenset(distinct.to_pylist()))

    def _joined(self, later: "Names") -> "Names":
        return replace(self, vocabulary=self.vocabulary | later.vocabulary)

    def kind(self) -> Bag:
        # In the order of their names: the same for any order of rows and part files.
        return Bag(self.name, self.value, tuple(sorted(self.vocabulary)))
