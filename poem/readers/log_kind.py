"""What all blocks of a log have in common, once a first pass has found it out."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from poem.arrays import IntArray
from poem.data import BanditLog
from poem.data.features import Features
from poem.files import Table, changed_columns, is_number, plain_table
from poem.readers.lines import is_by_line
from poem.readers.raw import Origin, RawLog
from poem.structures import Labels, Structure


@dataclass(frozen=True)
class Part:
    """A part file: how many rows it has, and what types its columns must be read with.

    ``least`` is the smallest number of a context in each of its blocks, if contexts are numbered. ``described`` says
    that its actions are known by their features, because not all lines have the same ones.
    """

    file: Path
    rows: int
    types: dict[str, Any]
    least: tuple[int, ...] = ()
    described: bool = False


@dataclass(frozen=True)
class LogBlock:
    """Some rows of a log; if its contexts are numbered, the number of each row's context, and which file counted."""

    log: BanditLog
    number: IntArray | None = None
    file: int = 0


@dataclass(frozen=True)
class LogKind:
    """What makes every block of a log a BanditLog of the same kind.

    Attributes
    ----------
    common : RawLog
        An empty table with the columns of all blocks, what each of them is, labels, structure and recipe.
    parts : tuple of Part
    missing : bool
        The propensities were not logged.
    structure : Structure
        What an output is.
    """

    common: RawLog
    parts: tuple[Part, ...]
    missing: bool
    structure: Structure

    @property
    def labels(self) -> Labels:
        """All possible outputs."""
        assert self.common.labels is not None
        return self.common.labels

    @property
    def features(self) -> Features | None:
        """How raw columns become X; None if X came without a recipe."""
        about = self.common.about
        return about.recipe if about.encoded else self.common.features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features."""
        about, recipe = self.common.about, self.common.features
        return about.feature_names if about.encoded or recipe is None else recipe.names()

    @property
    def n_features(self) -> int:
        """The number of columns of X."""
        return 0 if self.common.features is None else self.common.features.width

    @property
    def action_features(self) -> Features | None:
        """How the columns of actions become features, if actions have any."""
        actions = self.common.actions
        return actions.recipe if self.common.about.encoded else actions.features

    @property
    def rows(self) -> int:
        """The number of rows of the whole log."""
        return sum(part.rows for part in self.parts)

    @property
    def outcome(self) -> str:
        """What was logged: "loss" or "reward"."""
        return "loss" if self.common.roles.loss is not None else "reward"

    @property
    def propensities(self) -> str:
        """Where propensities come from: "logged", "estimated" or "missing"."""
        if self.missing or self.common.says_missing():
            return "missing"
        return "estimated" if self.common.about.estimated else "logged"

    def has(self, role: str) -> bool:
        """Tell whether rows have a ``"group"``, a ``"logger"`` or a ``"time"``."""
        return getattr(self.common.roles, role) is not None

    def raw(self, table: Table, file: Path, number: int) -> RawLog:
        """Return a block as a raw log of this kind."""
        assert self.common.whole is not None
        origin = Origin(file.name, ((file.name, table.num_rows),), "line" if is_by_line(table) else "row")
        whole = replace(self.common.whole, block=number)
        return replace(
            self.common, table=_cast(plain_table(table), self.common.table.schema), origin=origin, whole=whole
        )


def _cast(table: Table, schema: Any) -> Table:
    """Return a table whose numbers have the types of the whole log: a block may hold integers where another has not."""
    import pyarrow as pa

    kinds = {field.name: field.type for field in schema}
    names = iter(table.column_names)

    def cast(column: Any) -> Any:
        kind = kinds.get(next(names), column.type)
        widens = pa.types.is_null(column.type) or (is_number(column.type) and pa.types.is_floating(kind))
        return column.cast(kind, safe=False) if widens and kind != column.type else column

    return changed_columns(table, cast)
