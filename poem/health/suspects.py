"""Columns of features that say which row it is, or when it was: a policy would learn them by heart."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from poem.arrays import FloatArray
from poem.compute import is_sparse
from poem.data.features import is_empty
from poem.evaluation import MIN_ROWS
from poem.files import Column, coded, floats, is_category, is_number, is_text
from poem.health.facts import Facts
from poem.health.finding import Finding, Verdict, listed
from poem.readers import RawLog
from poem.text import counted

ID_SAMPLE = 1000  # rows that tell whether a whole column is worth a look
DATES = (946_684_800.0, 2_208_988_800.0)  # the years from 2000 to 2039, in seconds since 1970
UNITS = (1.0, 1e3, 1e6, 1e9)  # of them per second
ID_ADVICE = "A policy would memorise them. Leave them out (--ignore), or name them as group or time."
TIME_ADVICE = (
    "Name the time (--time, time=), or leave such columns out (--ignore): as features, they have other values in later "
    "rows."
)


@dataclass
class Suspects:
    """The names of columns that never change, that differ in each row, and that look like times."""

    constant: list[str] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)

    def findings(self) -> Iterator[Finding]:
        """Report them."""
        if self.constant:
            text = f"{counted(len(self.constant), 'column')} never {_verb(self.constant, 'changes')}"
            yield _finding("constant features", self.constant, text)
        if self.ids:
            text = f"{counted(len(self.ids), 'column')} {_verb(self.ids, 'looks')} like an id, different in each row"
            yield _finding("ids", self.ids, text, ID_ADVICE)
        if self.times:
            text = f"{counted(len(self.times), 'column')} {_verb(self.times, 'looks')} like a time"
            yield _finding("times as features", self.times, text, TIME_ADVICE)


def suspects(facts: Facts, raw: RawLog | None) -> Iterator[Finding]:
    """Report columns that are constant, and those that look like ids or times."""
    known = raw is not None and not raw.about.encoded
    return (_in_table(raw) if raw is not None and known else _in_log(facts)).findings()


def notes_on_suspects(raw: RawLog) -> list[str]:
    """Say which columns look like ids or times, and what to do about it."""
    found = [] if raw.about.encoded else _in_table(raw).findings()
    return [f"{one.text}. {one.advice}" for one in found if one.advice]


def _finding(name: str, columns: list[str], text: str, advice: str = "") -> Finding:
    verdict: Verdict = "with care" if advice else "fit"
    return Finding("features", name, float(len(columns)), verdict, f"{text}: {listed(columns)}", advice)


def _verb(names: list[str], one: str) -> str:
    return one if len(names) == 1 else one[:-1]


def _in_table(raw: RawLog) -> Suspects:
    """Look at the columns of the context: ids are whole numbers or strings."""
    found = Suspects()
    n, untimed = raw.table.num_rows, raw.roles.time is None
    for name in raw.roles.context:
        column = raw.table.column(name)
        if not (is_number(column.type) or is_text(column.type) or is_category(column.type)) or is_empty(column):
            continue
        sample = column.slice(0, ID_SAMPLE)
        distinct = _distinct(sample)
        is_id = _all_differ(distinct, len(sample)) and _may_be_id(column) and _distinct(column) == n
        if distinct == 1 and _distinct(column) == 1:
            found.constant.append(name)
        elif untimed and is_number(column.type) and _is_time(floats(sample), is_id) and _is_time(floats(column), is_id):
            found.times.append(name)
        elif is_id:
            found.ids.append(name)
    return found


def _distinct(column: Column) -> int:
    """Return the number of different values; what is missing is one of them."""
    codes, values = coded(column)
    return len(values) + bool(np.any(codes < 0))


def _all_differ(distinct: int, n: int) -> bool:
    return distinct == n and n >= MIN_ROWS


def _may_be_id(column: Column) -> bool:
    import pyarrow as pa

    return is_text(column.type) or bool(pa.types.is_integer(column.type))


def _is_time(values: FloatArray, is_id: bool) -> bool:
    """Tell whether numbers are dates of this age, or rise from row to row as no id would."""
    if len(values) < MIN_ROWS or not np.isfinite(values).all():
        return False
    low, high = float(values.min()), float(values.max())
    if low < high and any(DATES[0] * unit <= low and high <= DATES[1] * unit for unit in UNITS):
        return True
    return not is_id and bool((np.diff(values) >= 0.0).all()) and 2 * len(np.unique(values)) >= len(values)


def _in_log(facts: Facts) -> Suspects:
    """Look at the columns of X; in a sparse X, hashed or numbered features may be unused."""
    found, X, names = Suspects(), facts.log.X, facts.log.feature_names
    if is_sparse(X):
        return found
    untimed, seen = facts.log.time is None, facts.log.context
    for column in range(X.shape[1]):
        values, name = X[:, column], str(column) if names is None else names[column]
        is_id = _is_id(values)
        if values.min() == values.max():
            found.constant.append(name)
        elif untimed and _is_time(values[seen], is_id):
            found.times.append(name)
        elif is_id:
            found.ids.append(name)
    return found


def _is_id(values: FloatArray) -> bool:
    for part in (values[:ID_SAMPLE], values):  # a sample settles it for nearly every column
        if np.any(part != np.floor(part)) or not _all_differ(len(np.unique(part)), len(part)):
            return False
    return True
