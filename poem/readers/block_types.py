"""Types of columns that were read block by block: what they are in the whole file."""

from collections.abc import Iterable
from typing import Any

from poem.errors import ReadError
from poem.files import is_number


class SeenTypes:
    """The types that the columns of a file have in its blocks."""

    def __init__(self, name: str) -> None:
        self.name, self.blocks = name, 0
        self._types: dict[str, dict[Any, int]] = {}  # with the line before the first block that has it
        self._counts: dict[str, int] = {}

    def add(self, schema: Any, lines: int) -> None:
        """Add the columns of one block, before which some lines stand."""
        self.blocks += 1
        for field in schema:
            self._types.setdefault(field.name, {}).setdefault(field.type, lines)
            self._counts[field.name] = self._counts.get(field.name, 0) + 1

    def agree(self) -> bool:
        """Tell whether all blocks have the same columns, and what differs in type is numbers only."""
        return all(map(_alike, self._types.values())) and set(self._counts.values()) <= {self.blocks}

    def common(self, loose: bool) -> dict[str, Any]:
        """Return a type for each column that all blocks can be read with; those without any value are left out.

        ``loose`` says that any value can be read as text, as in CSV.
        """
        found = {name: self._of(name, types, loose) for name, types in self._types.items()}
        everywhere = {name for name, count in self._counts.items() if count == self.blocks}
        return {name: kind for name, kind in found.items() if not (_is_null(kind) and name in everywhere)}

    def mixed(self) -> set[str]:
        """Return the columns whose types differ in more than numbers."""
        return {name for name, types in self._types.items() if not _alike(types)}

    def _of(self, name: str, lines: dict[Any, int], loose: bool) -> Any:
        import pyarrow as pa

        types = [kind for kind in lines if not _is_null(kind)] or list(lines)
        moments = {pa.types.is_timestamp(kind) for kind in types}
        if len(types) == 1 or all(kind == types[0] for kind in types):
            return types[0]
        if any(map(pa.types.is_string, types)) and (loose or moments == {True, False}):
            return pa.string()  # what looked like moments in one block is text in another
        try:
            return _unified(types)
        except pa.ArrowException as error:
            if loose:
                return _loosened(types)
            raise ReadError(
                f"{self.name}, column {name!r} holds {types[0]} at first, and {types[1]} somewhere below line "
                f"{lines[types[1]]:,}. A field must have one type in all lines; fix or drop such lines."
            ) from error


def _is_null(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_null(kind))


def _alike(types: Iterable[Any]) -> bool:
    import pyarrow as pa

    types = list(types)
    return len(types) == 1 or all(is_number(kind) and not pa.types.is_boolean(kind) for kind in types)


def _unified(types: list[Any]) -> Any:
    import pyarrow as pa

    schemas = [pa.schema([("x", kind)]) for kind in types]
    return pa.unify_schemas(schemas, promote_options="permissive").field("x").type


def _loosened(types: list[Any]) -> Any:
    """Return what CSV takes values of several types for: truth values, moments, or else text.

    0 and true are both truth values, and dates are moments.
    """
    import pyarrow as pa

    moments = [kind for kind in types if pa.types.is_timestamp(kind)]
    if moments and all(kind in moments or pa.types.is_date(kind) for kind in types):
        return _unified(moments)
    is_truth = {pa.types.is_boolean(kind) or pa.types.is_integer(kind) for kind in types} == {True}
    return pa.bool_() if is_truth else pa.string()


def text_type() -> Any:
    """Return the type of columns that hold texts in some blocks, and numbers in others."""
    import pyarrow as pa

    return pa.string()
