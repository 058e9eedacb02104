"""Files and data frames of any common kind → BanditLog."""

from poem.readers.checked import SUM_OFF, coded_outputs, contexts_by_row, distributions, log_of, looks_like, times_of
from poem.readers.convert import convert_log
from poem.readers.detect import suffix_format
from poem.readers.parquet import labels_column, roles_from
from poem.readers.raw import INDEXES, RawLog, Roles, check_roles
from poem.readers.read import FORMATS, read_contexts, read_log, read_raw, write_log

__all__ = [
    "FORMATS",
    "INDEXES",
    "SUM_OFF",
    "RawLog",
    "Roles",
    "check_roles",
    "coded_outputs",
    "contexts_by_row",
    "convert_log",
    "distributions",
    "labels_column",
    "log_of",
    "looks_like",
    "read_contexts",
    "read_log",
    "read_raw",
    "roles_from",
    "suffix_format",
    "times_of",
    "write_log",
]
