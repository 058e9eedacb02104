"""Any log → Parquet, checked."""

import os
from dataclasses import replace

from poem.data import BanditLog
from poem.readers.checked import log_of
from poem.readers.notes import noted_structure
from poem.readers.raw import RawLog
from poem.readers.read import write_log


def convert_log(raw: RawLog, path: str | os.PathLike[str], *, missing: bool = False) -> BanditLog:
    """Check a log and write its own columns as Parquet, with a note of which column is what.

    Parameters
    ----------
    raw : RawLog
    path : path
    missing : bool
        The propensities were not logged; the file says so.

    Returns
    -------
    BanditLog
        The log that was written.
    """
    log = log_of(raw, missing=missing)
    about = replace(raw.about, missing=missing or raw.about.missing)
    # Candidates with features are known by their column: their sizes are found again.
    structure = None if log.structure.described and not about.encoded else noted_structure(log)
    write_log(replace(raw, about=about, structure=structure), path)
    return log
