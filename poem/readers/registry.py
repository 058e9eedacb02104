"""The file formats that poem knows, by the names of their modules; nothing is imported before it is asked for.

A new format is one module with a ``FORMAT`` (see :class:`poem.readers.format.Format`) and one line here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from poem.readers.format import Format

# From the most general to the most special: content is compared with them from the end.
FORMATS = (
    "csv",
    "jsonl",
    "svmlight",
    "vw",
    "dsjson",
    "obd",
    "parquet",
)
NATIVE = "parquet"  # what logs are written as


def format_named(name: str) -> "Format":
    """Return what a format's module declares."""
    return cast("Format", import_module(f"poem.readers.{name}").FORMAT)


def all_formats() -> "dict[str, Format]":
    """Return all formats by name."""
    return {name: format_named(name) for name in FORMATS}
