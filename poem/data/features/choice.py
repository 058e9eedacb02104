"""Which kind of feature each raw column becomes: chosen by summaries of the columns, which may come block by block."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from poem.data.features.base import Kind
from poem.data.features.encoding import Encoding
from poem.data.features.gaps import count_missing, is_empty
from poem.data.features.kinds import Hashed, OneHot, Text
from poem.data.features.numbers import Missing, Numeric, Vector
from poem.data.features.summaries import Names, Nothing, Numbers, Positions, Strings, Summary, Vectors
from poem.errors import LogError
from poem.files import Place, Table, column_of, is_category, is_list, is_number, is_text

WITH_GAPS = (Numeric, Vector, OneHot, Hashed, Text)  # of which a value may be missing; a missing list is an empty bag
PAIRS = ((".index", ".value"), (".name", ".value"), ("_index", "_value"), ("_indices", "_values"))


@dataclass(frozen=True)
class TableSummary:
    """What some rows of a table say of its columns, or pairs of columns: enough to choose kinds of features."""

    columns: tuple[Summary, ...]

    @staticmethod
    def of(table: Table, encoding: Encoding, place: Place, pairs: Mapping[str, str] | None = None) -> "TableSummary":
        """Return the summary of a table; ``pairs`` are its :func:`value_columns`, if these are not in it."""
        asked = encoding.by_column()
        for name in asked:
            column_of(table, name, "the context")
        values = value_columns(table) if pairs is None else pairs
        others = set(values.values())
        return TableSummary(
            tuple(
                _summary(table, name, values.get(name), asked.get(name), encoding, place)
                for name in table.column_names
                if name not in others
            )
        )

    def merged(self, later: "TableSummary") -> "TableSummary":
        """Return the summary of these rows and of those that follow them, with the same columns in any order."""
        of_later = {one.name: one for one in later.columns}
        return TableSummary(tuple(one.merged(of_later[one.name]) for one in self.columns))

    def kinds(self) -> Iterator[Kind]:
        """Yield the kind of each column, and one that says where it is missing; none if it always is."""
        for summary in self.columns:
            kind = summary.kind()
            if kind is None:
                continue
            yield kind
            if summary.missing and isinstance(kind, WITH_GAPS):
                yield Missing(summary.name)


def _summary(
    table: Table, name: str, value: str | None, asked: str | None, encoding: Encoding, place: Place
) -> Summary:
    column = table.column(name)
    missing, kind = count_missing(column), column.type
    if is_empty(column, missing):
        return Nothing(name, len(column), missing)
    if asked is not None:
        return Strings.of(column, name, missing, asked, encoding.hash_size)
    if is_list(kind):
        if value is not None and is_number(kind.value_type):
            return Positions.of(column, name, missing, value, place)
        if is_number(kind.value_type):
            return Vectors.of(column, name, missing)
        if is_text(kind.value_type):
            return Names.of(column, name, missing, value)
        raise LogError(
            f"column {name!r} holds {kind}; lists can hold numbers or strings. If it lists what could be chosen, name "
            f"it as the candidates (--candidates, candidates=); if not, flatten or drop it."
        )
    if is_number(kind):
        return Numbers.of(column, name, missing, encoding.scale, place)
    if is_text(kind) or is_category(kind):
        return Strings.of(column, name, missing, None, encoding.hash_size)
    raise LogError(
        f"column {name!r} holds {kind}, which cannot be a feature. Leave it out (--ignore, ignore=), turn it into "
        "numbers or strings, or, if it says when a decision was made, name it as the time."
    )


def value_columns(table: Table) -> dict[str, str]:
    """Return the columns of positions or names, and the columns of values beside them."""
    names = set(table.column_names)
    found = {}
    for name in table.column_names:
        for first, second in PAIRS:
            partner = name.removesuffix(first) + second
            if name.endswith(first) and partner in names and _are_lists(table, name, partner):
                found[name] = partner
    if {"index", "value"} <= names and _are_lists(table, "index", "value"):
        found["index"] = "value"
    return found


def in_pairs(table: Table) -> set[str]:
    """Return the columns of which two make sparse rows: no entry of theirs may be missing."""
    return {name for pair in value_columns(table).items() for name in pair}


def _are_lists(table: Table, *names: str) -> bool:
    return all(is_list(table.schema.field(name).type) for name in names)
