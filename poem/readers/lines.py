"""How many lines a file has: only where each of them is one row can a row be named by its line."""

from poem.files import Table

KEY = b"poem.lines"


def with_lines(table: Table, content: bytes) -> Table:
    """Return a table that remembers how many lines it was read from."""
    lines = content.count(b"\n") + (not content.endswith(b"\n"))
    return table.replace_schema_metadata({**(table.schema.metadata or {}), KEY: str(lines).encode()})


def is_by_line(table: Table) -> bool:
    """Tell whether each line gave one row: none was blank, or skipped."""
    return bool((table.schema.metadata or {}).get(KEY) == str(table.num_rows).encode())
