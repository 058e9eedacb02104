"""Features: how the raw columns of a log become the matrix X, as data."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, cast

import numpy as np

from poem.compute import Matrix
from poem.data.features.base import Kind
from poem.data.features.blocks import Block, joined
from poem.data.features.choice import WITH_GAPS, TableSummary
from poem.data.features.encoding import MOST_FEATURES, Encoding
from poem.data.features.gaps import count_missing
from poem.data.features.kinds import KINDS, Sparse
from poem.data.features.numbers import Missing, Numeric, Vector, dense_numbers
from poem.errors import LogError
from poem.files import Place, Table, as_table, did_you_mean, plain_table, row_place, shown

MOST_NAMES = 2**20  # above which features have numbers only: a hashed space of 2³⁰ would be all names
BY_DEFAULT = Encoding()


@dataclass(frozen=True)
class Features:
    """A recipe: raw columns → X. It is saved with a policy, which then takes raw columns."""

    kinds: tuple[Kind, ...]

    @staticmethod
    def learn(frame: Any, encoding: Encoding = BY_DEFAULT, *, place: Place = row_place) -> "Features":
        """Choose how each column of a data frame becomes features.

        Numbers are taken as they are, or scaled on request; strings are one-hot, or hashed if there are more than a
        thousand different ones, or hashed by words if they are text; lists of numbers are vectors, lists of
        strings are bags; pairs of list columns such as ``x.index`` and ``x.value`` are sparse rows. The encoding names
        columns for which it should be otherwise.

        A column in which values are missing has one more feature, 1 where they are; the median stands in for a number
        that is missing. Columns without any value are left out.
        """
        return Features.by(TableSummary.of(plain_table(as_table(frame, "the context")), encoding, place))

    @staticmethod
    def by(summary: TableSummary) -> "Features":
        """Choose how each column becomes features by what is known of all of its rows; see :meth:`learn`."""
        kinds = list(summary.kinds())
        numbers = {kind.column for kind in kinds if isinstance(kind, Numeric | Vector)}
        # Numbers first, so that they are one dense block.
        found = Features(tuple(sorted(kinds, key=lambda kind: kind.column not in numbers)))
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
        known = set(table.column_names)
        missing = [name for name in self.columns if name not in known]
        if missing:
            raise LogError(
                f"the column {missing[0]!r} is missing{f' (and {len(missing) - 1} more)' if missing[1:] else ''}."
                f"{did_you_mean(missing[0], table.column_names)} There are {shown(table.column_names)}. "
                "Pass the raw columns that the policy was trained on."
            )
        if not self.kinds:
            return np.zeros((table.num_rows, 0))
        return joined(self._blocks(table, place))

    def _blocks(self, table: Table, place: Place) -> Iterator[Block]:
        """Yield the features block by block; numbers that stand side by side are one."""
        for is_numeric, run in groupby(self.kinds, key=lambda kind: isinstance(kind, Numeric | Missing)):
            kinds = tuple(run)
            if is_numeric:
                yield dense_numbers(cast("tuple[Numeric | Missing, ...]", kinds), table, place)
            else:
                yield from (kind.encode(table, place) for kind in kinds)

    def unexpected_gaps(self, frame: Any) -> dict[str, int]:
        """Return in how many rows values are missing, of the columns that have no feature which says so."""
        table = plain_table(as_table(frame, "the context"))
        told = {kind.column for kind in self.kinds if isinstance(kind, Missing)}
        names = [kind.column for kind in self.kinds if isinstance(kind, WITH_GAPS) and kind.column not in told]
        known = set(table.column_names)
        counts = {name: count_missing(table.column(name)) for name in names if name in known}
        return {name: count for name, count in counts.items() if count}

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
