"""A log as it was read: one Arrow table, what each of its columns is, and where its rows come from."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from itertools import accumulate
from typing import Any, Literal

import numpy as np

from poem.arrays import AnyArray
from poem.data.features import Features
from poem.errors import InputError, ReadError
from poem.files import Table, did_you_mean, shown
from poem.structures import Labels

Unit = Literal["probability", "percent", "log"]
UNITS: tuple[Unit, ...] = ("probability", "percent", "log")

# What other tools call these columns: never taken silently, only suggested.
ELSEWHERE = {
    "output": ("action", "y", "item_id", "item", "arm", "decision", "label", "labels", "chosen"),
    "loss": ("cost", "delta"),
    "reward": ("click", "clicks", "r", "conversion", "rating"),
    "propensity": ("p", "prob", "probability", "pscore", "propensity_score", "action_prob", "log_prob", "propensities"),
}
OUTCOMES = ("output", "loss", "reward", "propensity")  # what nobody can know when deciding, whatever its role
INDEXES = ("", "Unnamed: 0", "__index_level_0__")  # where a row came from, not a feature


@dataclass(frozen=True)
class Roles:
    """Which column is what. ``output`` is one column, or several of 0/1; ``context`` are all columns of features."""

    context: tuple[str, ...] = ()
    output: tuple[str, ...] = ()
    loss: str | None = None
    reward: str | None = None
    propensity: str | None = None
    unit: Unit = "probability"
    group: str | None = None
    time: str | None = None
    logger: str | None = None
    candidates: str | None = None
    distribution: str | None = None
    context_id: str | None = None

    def taken(self) -> set[str]:
        """The columns that are something else than context."""
        single = (field.name for field in fields(self) if field.name not in ("context", "output", "unit"))
        return {name for name in map(self.__getattribute__, single) if name is not None} | set(self.output)


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
    structure : dict, optional
        What an output is, where the file says so.
    """

    table: Table
    roles: Roles
    origin: Origin
    labels: Labels | None = None
    features: Features | None = None
    about: About = About()
    structure: Any = None

    def says_missing(self) -> bool:
        """Tell whether the file itself says that propensities were not logged, and nobody named them since."""
        return self.about.missing and self.roles.propensity is None and self.roles.distribution is None


def assign(table: Table, origin: str, defaults: Roles, given: Mapping[str, Any], ignore: Sequence[str] = ()) -> Roles:
    """Say which column is what: by what was given, else by what the format says, else by the common names.

    ``given`` holds column names (or None) by role; ``context`` and ``output`` may be several names, and ``context``
    and ``ignore`` may have patterns such as ``user_*``.
    """
    names = table.column_names
    check_names(names, origin)
    asked = {role: value for role, value in given.items() if value is not None and role != "context"}
    for role, value in asked.items():
        if role == "unit":
            continue
        for name in _several(value):
            _need(name, names, origin, role)
    if "loss" in asked and "reward" in asked:
        raise InputError("name one column only: loss= (lower is better) or reward= (higher is better); found both.")
    if asked.get("unit", "probability") not in UNITS:
        raise InputError(f"the unit of propensities must be one of {', '.join(UNITS)}; found {asked['unit']!r}.")
    roles = _with_defaults(asked, defaults, [n for n in names if not any(_matches(n, pattern) for pattern in ignore)])
    _check_one_role_each(roles, asked)
    return replace(roles, context=_context(names, roles, given.get("context"), ignore, origin))


def _check_one_role_each(roles: Roles, asked: Mapping[str, Any]) -> None:
    """Raise if a column that was named is something else as well."""
    by_column: dict[str, str] = {}
    for role, value in vars(roles).items():
        for name in () if role in ("context", "unit") or value is None else _several(value):
            other = by_column.setdefault(name, role)
            if other != role and {role, other} & set(asked):
                raise InputError(f"the column {name!r} cannot be both {other} and {role}. Name another column.")


def check_names(names: Sequence[str], origin: str) -> None:
    """Raise if two columns have one name."""
    doubled = sorted(name for name, count in Counter(names).items() if count > 1)
    if doubled:
        raise ReadError(f"{origin} has the column {doubled[0]!r} twice. Columns need different names; rename one.")


def _several(value: Any) -> tuple[Any, ...]:
    """Return one name, or several of them, as several."""
    return tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)


def _need(name: Any, names: Sequence[str], origin: str, role: str) -> None:
    if name not in names:
        raise ReadError(
            f"{origin} has no column {name!r} for {role}.{did_you_mean(str(name), names)} It has {shown(names)}."
        )


def _with_defaults(asked: Mapping[str, Any], defaults: Roles, names: Sequence[str]) -> Roles:
    if "output" in asked:
        asked = {**asked, "output": _several(asked["output"])}
    found: dict[str, Any] = {}
    for role in (field.name for field in fields(Roles) if field.name != "context"):
        default = getattr(defaults, role)
        common = (role,) if role == "output" else role
        if role in asked:
            found[role] = asked[role] if isinstance(asked[role], str) else tuple(asked[role])
        elif role == "unit":
            found[role] = "probability" if "propensity" in asked else default
        elif role in ("loss", "reward") and ("loss" in asked or "reward" in asked):
            found[role] = None  # one of them was named: the other one is no outcome
        elif default and set(default if isinstance(default, tuple) else (default,)) <= set(names):
            found[role] = default
        elif role in names and role not in ("context_id",):
            found[role] = common
    return Roles(**found)


def _context(names: Sequence[str], roles: Roles, wanted: Any, ignore: Sequence[str], origin: str) -> tuple[str, ...]:
    free = [name for name in names if name not in {*roles.taken(), *INDEXES, *OUTCOMES}]
    for pattern in ignore:
        if not any(_matches(name, pattern) for name in names):
            _need(pattern, names, origin, "ignore")
    free = [name for name in free if not any(_matches(name, pattern) for pattern in ignore)]
    if wanted is None:
        return tuple(free)
    chosen: list[str] = []
    for pattern in _several(wanted):
        matching = [name for name in names if _matches(name, pattern)]
        if not matching:
            _need(pattern, names, origin, "context")
        chosen += [name for name in matching if name not in chosen]
    used = [name for name in chosen if name in roles.taken()]
    if used:
        raise InputError(f"the column {used[0]!r} cannot be both context and something else; leave it out of context.")
    return tuple(chosen)


def _matches(name: str, pattern: Any) -> bool:
    return name == pattern or fnmatchcase(name, str(pattern))  # "x[0]" is itself, although it is a pattern for "x0"


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


def _free(raw: RawLog) -> list[str]:
    return [name for name in raw.table.column_names if name not in raw.roles.taken()]
