"""Columns of features that hold numbers as text: they become categories, which nobody may have meant."""

import re
from collections.abc import Sequence

from poem.data.features import Encoding
from poem.files import Column, coded_strings, is_category, is_text, shown
from poem.readers.gaps import feature_tables
from poem.readers.raw import RawLog

NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")  # 007 is a code
SOME = 100  # rows that tell whether a whole column is worth a look
FEWEST = 3  # different values: of two, a category says as much as a number
TEXT_ADVICE = (
    "If they are quantities, store them as numbers, such as with .astype(float) in pandas; if they are codes, name "
    "them as categories (--one-hot, one_hot=)."
)


def numbers_as_text(raw: RawLog, encoding: Encoding | None) -> list[str]:
    """Return the columns of contexts and actions whose numbers are text, unless the encoding says what they are."""
    if raw.features is not None:
        return []  # the file says what its columns become
    asked = {*raw.categories, *(() if encoding is None else encoding.by_column())}
    return [
        f"{begin}{name}"
        for begin, table in feature_tables(raw)
        for name in table.column_names
        if name not in asked and _holds_numbers(table.column(name))
    ]


def note_on_text(raw: RawLog, encoding: Encoding | None) -> str | None:
    """Say which columns hold numbers as text and what to do about it; None if none does."""
    names = numbers_as_text(raw, encoding)
    return f"numbers that are stored as text become categories: {shown(names)}. {TEXT_ADVICE}" if names else None


def _holds_numbers(column: Column) -> bool:
    """Tell whether a column of text holds numbers alone; what a data frame calls categorical is meant so."""
    if not is_text(column.type) or is_category(column.type) or not _are_numbers(_distinct(column.slice(0, SOME))):
        return False
    values = _distinct(column)
    return len(values) >= FEWEST and _are_numbers(values)


def _distinct(column: Column) -> list[str]:
    values: list[str] = coded_strings(column)[1].to_pylist()
    return values


def _are_numbers(values: Sequence[str]) -> bool:
    return all(NUMBER.fullmatch(value.strip()) for value in values)
