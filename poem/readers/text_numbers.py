"""Columns of features that hold numbers as text, or words among them: they become categories, perhaps by mistake."""

import re
from collections.abc import Iterator, Sequence

from poem.data.features import Encoding
from poem.files import Column, coded_strings, is_category, is_text, shown
from poem.readers.gaps import feature_tables
from poem.readers.raw import RawLog

NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")  # 007 is a code
SOME = 100  # rows that tell whether a whole column is worth a look
FEWEST = 3  # different values: of two, a category says as much as a number
MANY = 10  # different numbers beside which words stand out
FEW = 0.1  # share of the different values, at the most, that are words
CODE = re.compile(r"[0-9]+")  # with a zero in front, or it would be a number
MOST_NAMED = 4  # columns, and words of each
LONGEST = 40  # characters of a word
TEXT_ADVICE = (
    "If they are quantities, store them as numbers, such as with .astype(float) in pandas; if they are codes, name "
    "them as categories (--one-hot, one_hot=)."
)

WORDS_ADVICE = (
    "Leave such cells empty, or write numbers in them; if they are codes, name the column as categories (--one-hot, "
    "one_hot=)."
)


def numbers_as_text(raw: RawLog, encoding: Encoding | None) -> list[str]:
    """Return the columns of contexts and actions whose numbers are text, unless the encoding says what they are."""
    return [name for name, column in _columns_of_text(raw, encoding) if _holds_numbers(column)]


def words_among_numbers(raw: RawLog, encoding: Encoding | None) -> str | None:
    """Say which columns hold a few words among their numbers, and which words; None if none does."""
    found = [(name, words) for name, column in _columns_of_text(raw, encoding) if (words := _words(column))]
    if not found:
        return None
    named = _few([f"{name!r} ({_few([repr(word[:LONGEST]) for word in words])})" for name, words in found])
    columns = "a column" if len(found) == 1 else f"{len(found):,} columns"
    return f"words turn {columns} of numbers into categories: {named}"


def notes_on_text(raw: RawLog, encoding: Encoding | None) -> list[str]:
    """Say which columns of numbers become categories, and what to do about it."""
    names, words = numbers_as_text(raw, encoding), words_among_numbers(raw, encoding)
    notes = [f"numbers that are stored as text become categories: {shown(names)}. {TEXT_ADVICE}"] if names else []
    return notes if words is None else [*notes, f"{words}. {WORDS_ADVICE}"]


def _columns_of_text(raw: RawLog, encoding: Encoding | None) -> Iterator[tuple[str, Column]]:
    """Yield the columns of text that nobody calls categories: neither the file, nor a data frame, nor the encoding."""
    if raw.features is not None:
        return  # the file says what its columns become
    asked = {*raw.categories, *(() if encoding is None else encoding.by_column())}
    for begin, table in feature_tables(raw):
        for name in table.column_names:
            column = table.column(name)
            if name not in asked and is_text(column.type) and not is_category(column.type):
                yield f"{begin}{name}", column


def _holds_numbers(column: Column) -> bool:
    """Tell whether a column of text holds numbers alone."""
    if _no_numbers(_distinct(column.slice(0, SOME))):
        return False
    values = _distinct(column)
    return len(values) >= FEWEST and not _no_numbers(values)


def _words(column: Column) -> list[str]:
    """Return the few words of a column of text that else holds numbers."""
    some = _distinct(column.slice(0, SOME))
    if 2 * len(_no_numbers(some)) > len(some):
        return []
    values = _distinct(column)
    words = _no_numbers(values)
    stand_out = len(values) - len(words) >= MANY and len(words) <= FEW * len(values)
    return words if stand_out and not any(CODE.fullmatch(word.strip()) for word in words) else []


def _distinct(column: Column) -> list[str]:
    values: list[str] = coded_strings(column)[1].to_pylist()
    return values


def _no_numbers(values: Sequence[str]) -> list[str]:
    return [value for value in values if not NUMBER.fullmatch(value.strip())]


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
