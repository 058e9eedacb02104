"""Logs on disk for tests."""

import numpy as np

from poem.compute import Threads
from poem.packed import PackWriter, context_numbers, has_catalogue, open_log, pack_folder
from poem.progress import Progress


def packed(log, path, shards=1, parts=1):
    """Pack a log into so many shards, as if it came in some parts."""
    with pack_folder(path), Progress("pack", 1, False) as line:
        writer, number = PackWriter(path, shards, Threads(1), catalogue=has_catalogue(log)), context_numbers(log)
        for rows in np.array_split(np.arange(len(log)), parts):
            writer.add(log.take(rows), None if number is None else number[rows])
        writer.finish(line)
    return open_log(path)
