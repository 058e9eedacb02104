"""The file of one row that says what kind of log a packed folder holds."""

import hashlib
import io

from poem.data import BanditLog
from poem.errors import PackedError
from poem.files import Folder
from poem.packed.manifest import KIND
from poem.readers import read_log


def read_kind(folder: Folder, sha256: str) -> BanditLog:
    """Return the one row, if its file still has its checksum."""
    import pyarrow.parquet as pq

    try:
        content = folder.read(KIND)
    except OSError as error:
        raise PackedError(f"{folder}: {KIND} is missing. Restore it, or pack the log again.") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise PackedError(f"{folder}: {KIND} was changed after it was packed. Restore it, or pack the log again.")
    return read_log(pq.read_table(io.BytesIO(content)))
