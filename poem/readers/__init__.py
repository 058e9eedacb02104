"""Files and data frames of any common kind → BanditLog."""

from poem.readers.read import FORMATS, read_contexts, read_log, read_raw, write_log

__all__ = ["FORMATS", "read_contexts", "read_log", "read_raw", "write_log"]
