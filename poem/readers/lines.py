"""The lines of a file: how much memory they need, and how many they are, which tells whether each is one row."""

from poem.files import Table, room

KEY = b"poem.lines"


def check_parsed(content: bytes, name: str, separator: bytes = b":", per_feature: int = 24, per_line: int = 80) -> None:
    """Raise if text needs too much memory when it is parsed.

    What a feature and a line need, in bytes, is somewhat less than was measured; the defaults are those of LibSVM.
    """
    features, lines = content.count(separator), content.count(b"\n")
    room().check(name, len(content) + per_feature * features + per_line * lines)


def with_lines(table: Table, content: bytes) -> Table:
    """Return a table that remembers how many lines it was read from."""
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    return table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: str(lines).encode()})


def is_by_line(table: Table) -> bool:
    """Tell whether each line gave one row: none was blank, or skipped."""
    return bool((table.schema.metadata or {}).get(KEY) == str(table.num_rows).encode())
