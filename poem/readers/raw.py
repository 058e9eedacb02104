"""A log as it was read: one Arrow table, what each of its columns is, and where its rows come from."""

from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from poem.arrays import AnyArray
from poem.data.features import Features
from poem.errors import LogError, ReadError
from poem.files import Table, did_you_mean, shown
from poem.readers.columns import Roles
from poem.structures import Labels

# What other tools call these columns: never taken silently, only suggested.
ELSEWHERE = {
    "output": ("action", "y", "item_id", "item", "arm", "decision", "label", "labels", "chosen"),
    "loss": ("cost", "delta"),
    "reward": ("click", "clicks", "r", "conversion", "rating"),
    "propensity": ("p", "prob", "probability", "pscore", "propensity_score", "action_prob", "log_prob", "propensities"),
}


@dataclass(frozen=True)
class Origin:
    """Where the rows of a table come from: files, and how many rows each of them gave."""

    name: str
    parts: tuple[tuple[str, int], ...] = ()
    counted: Literal["row", "line"] = "row"

    def place(self, row: int) -> str:
        """Name a row of the table by its file and its number there; rows count from 0, lines from 1."""
        ends = list(accumulate(size for _, size in self.parts))
        part = int(np.searchsorted(ends, row, side="right"))
        name, begin = self.name, 0
        if part < len(self.parts):
            name, begin = self.parts[part][0], ends[part] - self.parts[part][1]
        return f"{name}, {self.counted} {row - begin + (self.counted == 'line')}"

    def part_of_each_row(self) -> AnyArray:
        """Return which file each row comes from."""
        sizes = [size for _, size in self.parts]
        return np.repeat(np.arange(len(sizes)), sizes)


@dataclass(frozen=True)
class About:
    """What poem wrote into a file of its own beside the table.

    ``encoded`` says that the context holds features, not raw columns; ``recipe`` is then how they were made.
    ``estimated`` and ``missing`` are about propensities.
    """

    encoded: bool = False
    estimated: bool = False
    missing: bool = False
    feature_names: tuple[str, ...] | None = None
    recipe: Features | None = None


@dataclass(frozen=True)
class RawActions:
    """What is known of actions besides a log's own columns.

    Attributes
    ----------
    id : str
        The field of candidates, and the column of the catalogue, that holds an action's id.
    identity : bool
        Each action has a feature of its own besides those that describe it.
    catalogue : pyarrow.Table, optional
        Raw columns of actions that are the same in all rows, one row per action.
    origin : Origin
        Where the catalogue comes from.
    rows : pyarrow.Table, optional
        Rows of encoded features that candidates share by their numbers.
    features : Features, optional
        How the columns of actions become features, where the file says so.
    recipe : Features, optional
        How features that are already encoded were made.
    """

    id: str = "id"
    identity: bool = False
    catalogue: Table | None = None
    origin: Origin = Origin("the catalogue")
    rows: Table | None = None
    features: Features | None = None
    recipe: Features | None = None


@dataclass(frozen=True)
class Whole:
    """What is known of a log of which a table holds one block.

    ``block`` is the number of the block. ``vectors`` says that lists of outputs hold 0 or 1 for each label, and are not
    sets. ``everything`` says that all rows have all classes as candidates.
    """

    block: int = 0
    vectors: bool = False
    everything: bool = False


@dataclass(frozen=True)
class RawLog:
    """A log before anything of it is checked; :func:`poem.readers.checked.log_of` turns it into a BanditLog.

    Attributes
    ----------
    table : pyarrow.Table
    roles : Roles
    origin : Origin
    labels : tuple, optional
        All possible outputs, where the file says so.
    features : Features, optional
        How its context becomes X, where the file says so.
    about : About
    structure : dict, Structure or name, optional
        What an output is, where the file or the user says so.
    actions : RawActions
        What is known of actions besides the columns.
    whole : Whole, optional
        What is known of the whole log, if these are some of its rows.
    categories : tuple of str
        Columns whose numbers are text because the format says that they are categories.
    """

    table: Table
    roles: Roles
    origin: Origin
    labels: Labels | None = None
    features: Features | None = None
    about: About = About()
    structure: Any = None
    actions: RawActions = RawActions()
    whole: Whole | None = None
    categories: tuple[str, ...] = ()

    @property
    def has_candidates(self) -> bool:
        """Whether the log says what could have been chosen."""
        return self.roles.candidates is not None or self.actions.catalogue is not None

    def says_missing(self) -> bool:
        """Tell whether the file itself says that propensities were not logged, and nobody named them since."""
        return self.about.missing and self.roles.propensity is None and self.roles.distribution is None


def check_roles(raw: RawLog, missing: bool = False) -> None:
    """Raise if the table lacks what a log must have: an output, a loss or reward, and, unless missing, propensities."""
    missing = missing or raw.says_missing()
    roles, names, origin = raw.roles, raw.table.column_names, raw.origin.name
    lacking = [
        (not roles.output, "output", "the output that was chosen"),
        (roles.loss is None and roles.reward is None, "loss", "what it cost (or --reward: what it earned)"),
        (roles.loss is not None and roles.reward is not None, "loss", "what it cost, as there is a reward as well"),
    ]
    for lacks, role, meaning in lacking:
        if lacks:
            others = ELSEWHERE[role] + (ELSEWHERE["reward"] if role == "loss" else ())
            raise ReadError(
                f"{origin} has no column that is known to be the {role}.{did_you_mean(role, _free(raw), others)} "
                f"Name the one that holds {meaning} with --{role} ({role}=). It has {shown(names)}."
            )
    if not missing and roles.propensity is None and roles.distribution is None:
        raise ReadError(
            f"{origin} has no column that is known to be the propensity, the probability with which the logged output "
            f"was chosen.{did_you_mean('propensity', _free(raw), ELSEWHERE['propensity'])} Name it with --propensity "
            "(propensity=). If it was not logged, it is never guessed silently: see --propensity estimate "
            "(propensity='missing', then poem.estimate_propensities)."
        )


def named_error(raw: RawLog, error: LogError) -> ReadError:
    """Return an error that names the file, if it does not yet."""
    text, files = str(error), (raw.origin.name, *(name for name, _ in raw.origin.parts))
    return ReadError(text if text.startswith(files) else f"{raw.origin.name}: {text}")


def _free(raw: RawLog) -> list[str]:
    taken = set(raw.roles.taken())
    return [name for name in raw.table.column_names if name not in taken]
