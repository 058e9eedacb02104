"""Which rows of a raw log are broken: outputs, losses, times and contexts."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poem.arrays import AnyArray, BoolArray, FloatArray
from poem.data import LARGEST_LOSS, LEAST_SPREAD, NO_WORDS
from poem.data.features import Encoding, Features, Numeric, Vector, in_pairs
from poem.errors import ReadError
from poem.files import Column, coded, decoded, flattened, floats, is_list, is_number, is_text, lengths, strings
from poem.health.finding import Finding, Topic, Verdict, listed, percent
from poem.readers import (
    AS_NUMBERS,
    AS_TIMES,
    TEXT_ADVICE,
    WORDS_ADVICE,
    RawLog,
    numbers_as_text,
    times_of,
    words_among_numbers,
)
from poem.structures import Labels
from poem.text import counted

FIX = "Drop such rows or fix the logging."


@dataclass
class Sound:
    """The usable rows found so far; ``bad`` rows are not usable.

    ``bad_context`` marks rows with broken features (the columns ``context``), ``findings`` lists what is wrong, and
    ``changed`` holds string columns that turned out to hold numbers.
    """

    raw: RawLog
    bad: BoolArray
    bad_context: BoolArray
    context: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    changed: dict[str, FloatArray] = field(default_factory=dict)

    @staticmethod
    def start(raw: RawLog) -> "Sound":
        """Begin with all rows."""
        n = raw.table.num_rows
        return Sound(raw, np.zeros(n, dtype=bool), np.zeros(n, dtype=bool))

    def note(self, topic: Topic, name: str, bad: BoolArray, what: str, advice: str = FIX, usable: bool = False) -> None:
        """Leave rows out, unless they are usable, and report their number, the first of them, and what to do.

        ``what`` begins with a verb in the plural. A single such row makes the log unfit as it is: reading refuses it.
        """
        if not bad.any():
            return
        self.bad |= bad & (not usable)
        count, first = int(bad.sum()), int(np.flatnonzero(bad)[0])
        share = "" if count < 2 else f", {percent(count / len(bad))}"
        verb, rest = what.split(" ", 1)
        verb = verb if count > 1 else {"have": "has"}.get(verb, f"{verb}s")
        where = f"{'' if count == 1 else 'the first: '}{self.place(first)}{share}"
        text = f"{counted(count, 'row')} {verb} {rest} ({where})"
        self.findings.append(Finding(topic, name, float(count), "unfit", text, advice))

    def say(self, topic: Topic, name: str, verdict: Verdict, text: str, advice: str) -> None:
        """Add a finding about a whole column."""
        self.findings.append(Finding(topic, name, None, verdict, text, advice))

    def place(self, row: int) -> str:
        """Name a row."""
        return self.raw.origin.place(row)

    def column(self, name: str) -> Column:
        """Return a column of the table."""
        return self.raw.table.column(name)

    def numbers(self, name: str) -> FloatArray:
        """Return a column as numbers, NaN where there is none; strings are parsed where possible."""
        column = decoded(self.column(name))
        if is_number(column.type):
            return floats(column)
        if is_list(column.type) or not is_text(column.type):
            return np.full(len(column), np.nan)
        codes, distinct = coded(strings(column))
        values = np.array([_parsed(value) for value in distinct.to_pylist()] + [np.nan])[codes]
        self.changed[name] = values
        return values

    def wanted_numbers(self, topic: Topic, name: str) -> FloatArray:
        """Return the same of a column that must hold numbers; reading refuses text, even if all of it is numbers."""
        values = self.numbers(name)
        column = self.column(name)
        if name in self.changed and np.all(np.isfinite(values) | _empty(column)):
            text = f"column {name!r} holds its numbers as text, which poem does not turn into numbers"
            self.say(topic, "numbers as text", "unfit", text, AS_NUMBERS)
        return values

    def assign(self, **roles: Any) -> None:
        """Change the roles of columns; None marks a column that cannot be used."""
        self.raw = replace(self.raw, roles=replace(self.raw.roles, **roles))


def _parsed(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        return np.nan


# ---- outputs and losses ---------------------------------------------------------------------------


def check_outputs(sound: Sound, labels: Labels | None) -> None:
    """Find rows whose output is empty or unknown."""
    names = sound.raw.roles.output
    if len(names) > 1:
        odd = np.zeros(len(sound.bad), dtype=bool)
        for name in names:
            values = sound.wanted_numbers("outputs", name)
            odd |= (values != 0.0) & (values != 1.0)
        sound.note("outputs", "odd outputs", odd, "have something else than 0 or 1 in a column of output")
        return
    column = sound.column(names[0])
    flat = flattened(column) if is_list(column.type) else column
    row = np.repeat(np.arange(len(column)), lengths(column)) if is_list(column.type) else np.arange(len(column))
    if not (is_text(flat.type) or is_number(flat.type)):
        return  # what such a column holds is said when the log is made
    codes, distinct = coded(flat)
    values = distinct.to_pylist()
    empty = np.array([value is None or value != value for value in values] + [True])
    _note_entries(sound, "empty outputs", row[empty[codes]], "have an empty output")
    if labels is not None:
        known = {*map(str, labels), *(str(float(label)) for label in labels if isinstance(label, int))}
        unknown = np.array([str(value) not in known for value in values] + [False]) & ~empty
        what = f"have an output that is none of the {len(labels)} known ones"
        _note_entries(sound, "unknown outputs", row[unknown[codes]], what, "Drop such rows, or name all outputs.")


def _note_entries(sound: Sound, name: str, rows: AnyArray, what: str, advice: str = FIX) -> None:
    bad = np.zeros(len(sound.bad), dtype=bool)
    bad[rows] = True
    sound.note("outputs", name, bad, what, advice)


def check_losses(sound: Sound) -> None:
    """Find rows without a loss or reward."""
    name = sound.raw.roles.loss if sound.raw.roles.loss is not None else sound.raw.roles.reward
    assert name is not None
    word, values = "loss" if sound.raw.roles.loss is not None else "reward", sound.wanted_numbers("loss", name)
    missing = ~np.isfinite(values)
    is_word = missing & ~_empty(sound.column(name)) if name in sound.changed else np.zeros_like(missing)
    what, advice = f"have no {word}: empty, NaN, infinite or no number", FIX
    if is_word.any():
        first = decoded(sound.column(name))[int(np.flatnonzero(is_word)[0])].as_py()
        what, advice = f"{what}, such as {first[:40]!r}", f"{NO_WORDS} Drop rows without a {word}."
    sound.note("loss", f"missing {word}", missing, what, advice)
    with np.errstate(invalid="ignore"):
        large = np.isfinite(values) & (np.abs(values) > LARGEST_LOSS)
    sound.note("loss", f"huge {word}", large, f"have a {word} beyond {LARGEST_LOSS:g}, too large to compute with")
    usual = np.isfinite(values) & ~large
    if usual.any() and 0.0 < np.ptp(values[usual]) < LEAST_SPREAD:
        what = f"have a {word} that differs from the others by less than {LEAST_SPREAD:g}, too little to compute with"
        sound.note("loss", f"tiny {word}", usual, what, f"Multiply every {word} by the same number.")


# ---- who, when, and contexts ----------------------------------------------------------------------


def check_who_and_when(sound: Sound) -> None:
    """Find rows without a time or a logger, and columns that cannot be used at all."""
    for role in ("time", "logger", "group"):
        name = getattr(sound.raw.roles, role)
        if name is None:
            continue
        topic: Topic = "time" if role == "time" else "groups"
        empty = _empty(sound.column(name))
        if empty.all() or not _is_usable(sound.raw, role, empty):
            text = f"column {name!r}, the {role}, is empty or cannot be read ({sound.column(name).type})"
            # Rows without a group are groups of their own; anything else is refused when the log is read.
            verdict: Verdict = "with care" if role == "group" and empty.all() else "unfit"
            advice = AS_TIMES if role == "time" else f"A {role} is a string or a number."
            sound.say(topic, f"no {role}", verdict, text, f"{advice} Or leave the column out (--ignore).")
            sound.assign(**{role: None})
        elif role != "group":  # rows without a group are groups of their own
            sound.note(topic, f"missing {role}", empty, f"have no {role}")


def _empty(column: Column) -> BoolArray:
    empty = np.array(column.is_null().to_numpy(), dtype=bool)
    return empty | ~np.isfinite(floats(column)) if is_number(column.type) else empty


def _is_usable(raw: RawLog, role: str, empty: BoolArray) -> bool:
    """Try the column the way reading the log will use it."""
    import pyarrow as pa

    column = raw.table.column(getattr(raw.roles, role))
    if role != "time" or is_number(column.type):
        return not is_list(column.type)
    there = raw.table.select([raw.roles.time]).filter(pa.array(~empty))
    try:
        times_of(replace(raw, table=there))
    except ReadError:
        return False
    return True


def check_contexts(sound: Sound, recipe: Features | None) -> None:
    """Find rows whose features are infinite, or missing where they must not be: see :func:`_whole`."""
    wanted = sound.raw.roles.context if recipe is None else recipe.columns
    known = set(sound.raw.table.column_names)
    sound.context = tuple(name for name in wanted if name in known)
    whole = _whole(sound, recipe)
    bad = np.zeros(len(sound.bad), dtype=bool)
    worst, count = "", 0
    for name in sound.context:
        here = _broken(sound.column(name), name in whole)
        bad |= here
        if int(here.sum()) > count:
            worst, count = name, int(here.sum())
    bad = _wherever_seen(sound, bad)
    sound.bad_context = bad
    what = f"have a number in the context that is infinite, or missing where none may be, most often {worst!r}"
    sound.note("contexts", "broken contexts", bad, what, "Fix such rows, or leave the column out (--ignore).")


def check_categories(sound: Sound, encoding: Encoding | None) -> None:
    """Find columns of features whose numbers are text: each number is a category, which nobody may have meant."""
    names = numbers_as_text(sound.raw, encoding)
    if names:
        hold = "holds" if len(names) == 1 else "hold"
        text = f"{counted(len(names), 'column')} {hold} numbers as text, which become categories: {listed(names)}"
        sound.say("features", "numbers as categories", "with care", text, TEXT_ADVICE)
    words = words_among_numbers(sound.raw, encoding)
    if words is not None:
        sound.say("features", "words among numbers", "with care", words, WORDS_ADVICE)


def _whole(sound: Sound, recipe: Features | None) -> set[str]:
    """Return the columns of which nothing may be missing: those of sparse rows, and those that recipes cannot fill."""
    pairs = in_pairs(sound.raw.table.select(list(sound.context)))
    if recipe is None:
        return pairs
    return pairs | {kind.column for kind in recipe.kinds if isinstance(kind, Numeric | Vector) and kind.fill is None}


def _broken(column: Column, whole: bool) -> BoolArray:
    """Return which rows hold a number that is infinite, or missing in a column that must be whole."""
    bad = np.zeros(len(column), dtype=bool)
    if is_number(column.type):
        bad[_odd_entries(column, whole)] = True
    elif is_list(column.type) and is_number(column.type.value_type):
        odd = _odd_entries(flattened(column), whole)
        bad[np.searchsorted(np.cumsum(lengths(column)), odd, side="right")] = True
    return bad


def _odd_entries(flat: Column, whole: bool) -> AnyArray:
    """Return which numbers cannot be used; without an array of flags in the common case."""
    if not flat.null_count:
        with np.errstate(over="ignore", invalid="ignore"):
            if not _is_floating(flat) or all(np.isfinite(chunk.to_numpy().sum()) for chunk in flat.chunks):
                return np.zeros(0, dtype=np.int64)
    values = floats(flat)
    return np.flatnonzero(~np.isfinite(values) if whole else np.isinf(values))


def _is_floating(column: Column) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_floating(column.type))


def _wherever_seen(sound: Sound, bad: BoolArray) -> BoolArray:
    """Return all rows of contexts whose features are broken in their first row."""
    name = sound.raw.roles.context_id
    if name is None or not bad.any():
        return bad
    _, first, context = np.unique(sound.numbers(name), return_index=True, return_inverse=True)
    return np.asarray(bad[first][context])
