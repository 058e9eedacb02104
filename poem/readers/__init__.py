"""Files and data frames of any common kind → BanditLog."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from poem.readers.checked import choices_by_row, contexts_by_row, log_of
    from poem.readers.columns import INDEXES, Columns, Roles
    from poem.readers.convert import convert_log
    from poem.readers.detect import UNFINISHED, files_of, is_unfinished, suffix_format, written_suffixes
    from poem.readers.gaps import OF_ACTIONS, empty_columns, feature_tables, note_on_gaps
    from poem.readers.likeness import Likeness
    from poem.readers.lines import check_parsed
    from poem.readers.log_kind import LogBlock, LogKind
    from poem.readers.native_candidates import labels_column, row_lists
    from poem.readers.notes import roles_from
    from poem.readers.offered import Choices
    from poem.readers.outputs import coded_outputs
    from poem.readers.propensities import SUM_OFF, distributions, looks_like
    from poem.readers.raw import RawLog, check_roles
    from poem.readers.read import read_contexts, read_log, read_raw, write_log
    from poem.readers.registry import FORMATS, format_named
    from poem.readers.streaming import LogStream
    from poem.readers.text_numbers import TEXT_ADVICE, WORDS_ADVICE, notes_on_text, numbers_as_text, words_among_numbers
    from poem.readers.times import AS_TIMES, times_of
    from poem.readers.values import AS_NUMBERS

__all__ = [
    "AS_NUMBERS",
    "AS_TIMES",
    "FORMATS",
    "INDEXES",
    "OF_ACTIONS",
    "SUM_OFF",
    "TEXT_ADVICE",
    "UNFINISHED",
    "WORDS_ADVICE",
    "Choices",
    "Columns",
    "Likeness",
    "LogBlock",
    "LogKind",
    "LogStream",
    "RawLog",
    "Roles",
    "check_parsed",
    "check_roles",
    "choices_by_row",
    "coded_outputs",
    "contexts_by_row",
    "convert_log",
    "distributions",
    "empty_columns",
    "feature_tables",
    "files_of",
    "format_named",
    "is_unfinished",
    "labels_column",
    "log_of",
    "looks_like",
    "note_on_gaps",
    "notes_on_text",
    "numbers_as_text",
    "read_contexts",
    "read_log",
    "read_raw",
    "roles_from",
    "row_lists",
    "suffix_format",
    "times_of",
    "words_among_numbers",
    "write_log",
    "written_suffixes",
]

# Imported when first asked for: the command line needs the names of the formats, and nothing else before it runs.
_MODULES = {
    "checked": ("choices_by_row", "contexts_by_row", "log_of"),
    "convert": ("convert_log",),
    "columns": ("INDEXES", "Columns", "Roles"),
    "detect": ("UNFINISHED", "files_of", "is_unfinished", "suffix_format", "written_suffixes"),
    "gaps": ("OF_ACTIONS", "empty_columns", "feature_tables", "note_on_gaps"),
    "likeness": ("Likeness",),
    "lines": ("check_parsed",),
    "log_kind": ("LogBlock", "LogKind"),
    "native_candidates": ("labels_column", "row_lists"),
    "notes": ("roles_from",),
    "offered": ("Choices",),
    "outputs": ("coded_outputs",),
    "propensities": ("SUM_OFF", "distributions", "looks_like"),
    "raw": ("RawLog", "check_roles"),
    "read": ("read_contexts", "read_log", "read_raw", "write_log"),
    "registry": ("FORMATS", "format_named"),
    "streaming": ("LogStream",),
    "text_numbers": ("TEXT_ADVICE", "WORDS_ADVICE", "notes_on_text", "numbers_as_text", "words_among_numbers"),
    "times": ("AS_TIMES", "times_of"),
    "values": ("AS_NUMBERS",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'poem.readers' has no attribute {name!r}")
    value = getattr(import_module(f"poem.readers.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
