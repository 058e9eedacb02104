"""Which column of a table is what: as a user asks for it, and as it was found."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fnmatch import fnmatchcase
from typing import Any, Literal

from poem.errors import InputError, ReadError
from poem.files import Table, did_you_mean, shown

Unit = Literal["probability", "percent", "log"]
UNITS: tuple[Unit, ...] = ("probability", "percent", "log")

OUTCOMES = ("output", "loss", "reward", "propensity")  # what nobody can know when deciding, whatever its role
INDEXES = ("", "Unnamed: 0", "__index_level_0__")  # where a row came from, not a feature
NO_ROLE = ("context", "ignore", "propensity_unit", "action_id")  # fields of Columns that name no single role


@dataclass(frozen=True)
class Columns:
    """Which column of a log is what, as far as its names do not say so already.

    Attributes
    ----------
    output : name or names, optional
        What was decided: a column of strings or numbers, a column of lists for label sets, or several columns of
        0/1. ``"output"`` by default.
    loss, reward : name, optional
        What it cost, or what it earned; name one of them. ``"loss"`` or ``"reward"`` by default.
    propensity : name, optional
        The probability with which it was decided. ``"propensity"`` by default; ``"missing"`` says that it was not
        logged.
    propensity_unit : "probability", "percent" or "log", optional
    group, time, logger : name, optional
        Who or what makes rows dependent; when; which of several policies decided. Columns of these names by default.
    candidates, distribution : name, optional
        Lists of what could have been chosen, and with which probability. Candidates are ids, or structs of an id and
        columns that describe the candidate. The output must be one of them: its id, or, if candidates have no ids, its
        position, counted from 1. Distributions replace a propensity that is not there, and :func:`poem.inspect`
        compares both.
    action_id : name, optional
        The field of candidates, and the column of a catalogue, that holds ids. ``"id"`` by default.
    context : names or patterns, optional
        The columns of features, such as ``"user_*"``; by default all columns that are nothing else, and are not called
        ``output``, ``loss``, ``reward`` or ``propensity``.
    ignore : names or patterns
        Columns to leave out; those of candidates are called ``"candidates.price"``.
    """

    output: str | Sequence[str] | None = None
    loss: str | None = None
    reward: str | None = None
    propensity: str | None = None
    propensity_unit: Unit | None = None
    group: str | None = None
    time: str | None = None
    logger: str | None = None
    candidates: str | None = None
    distribution: str | None = None
    action_id: str | None = None
    context: str | Sequence[str] | None = None
    ignore: str | Sequence[str] = ()

    def with_named(self, **named: Any) -> "Columns":
        """Return these columns and those that are named beside them; a role has one name only."""
        given = {role: name for role, name in named.items() if name is not None}
        for role, name in given.items():
            if getattr(self, role) is not None:
                raise InputError(
                    f"the column of the {role} is named twice: {role}={name!r} and Columns({role}="
                    f"{getattr(self, role)!r}). Name it once."
                )
        return replace(self, **given)

    def by_role(self) -> dict[str, Any]:
        """Return the names that were given, by role."""
        return {role: name for role, name in vars(self).items() if role not in NO_ROLE and name is not None}

    def ignored(self) -> tuple[str, ...]:
        """Return what to leave out, as several names or patterns."""
        return _several(self.ignore)


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


def assign(table: Table, origin: str, defaults: Roles, columns: Columns) -> Roles:
    """Say which column is what: by what was asked for, else by what the format says, else by the common names."""
    names = table.column_names
    check_names(names, origin)
    asked = columns.by_role()
    for role, value in asked.items():
        for name in _several(value) if role == "output" else (value,):
            _need(name, names, origin, role)
    if "loss" in asked and "reward" in asked:
        raise InputError("name one column only: loss= (lower is better) or reward= (higher is better); found both.")
    unit = columns.propensity_unit
    if unit is not None and unit not in UNITS:
        raise InputError(f"the unit of propensities must be one of {', '.join(UNITS)}; found {unit!r}.")
    ignore = columns.ignored()
    free = [name for name in names if not any(_matches(name, pattern) for pattern in ignore)]
    roles = _with_defaults(asked, unit, defaults, free)
    _check_one_role_each(roles, asked)
    return replace(roles, context=_context(names, roles, columns.context, ignore, origin))


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


def _with_defaults(asked: Mapping[str, Any], unit: Unit | None, defaults: Roles, names: Sequence[str]) -> Roles:
    found: dict[str, Any] = {"unit": unit or ("probability" if "propensity" in asked else defaults.unit)}
    for role in (field.name for field in fields(Roles) if field.name not in ("context", "unit")):
        default = getattr(defaults, role)
        if role in asked:
            found[role] = _several(asked[role]) if role == "output" else asked[role]
        elif role in ("loss", "reward") and ("loss" in asked or "reward" in asked):
            found[role] = None  # one of them was named: the other one is no outcome
        elif default and set(_several(default)) <= set(names):
            found[role] = default
        elif role in names and role != "context_id":
            found[role] = (role,) if role == "output" else role
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
