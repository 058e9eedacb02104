"""Logs on disk for tests."""

from poem.compute import Threads
from poem.packed import PackWriter, open_log, pack_folder, rows_apart
from poem.progress import Progress


def packed(log, path, shards=1, parts=1):
    """Pack a log into so many shards, in so many parts."""
    with pack_folder(path), Progress("pack", 1, False) as line:
        writer = PackWriter(path, shards, Threads(1), apart=rows_apart(log))
        for part in log.shards(parts) if parts > 1 else [log]:
            writer.add(part)
        writer.finish(line)
    return open_log(path)
