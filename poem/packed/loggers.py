"""Which of several loggers chose the rows of a packed log."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from poem.backends import Backend
from poem.packed.log import PackedLog
from poem.packed.manifest import ShardNote


@dataclass(frozen=True)
class Loggers:
    """The task of one shard: its loggers, and how many rows each one chose."""

    log: PackedLog

    def __call__(self, note: ShardNote) -> dict[Any, int]:
        """Count."""
        names, counts = np.unique(self.log.column(note, "logger"), return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))


def logger_counts(log: PackedLog, backend: Backend) -> dict[Any, int]:
    """Return how many rows each logger chose, by their names in order; nothing for a log without loggers."""
    if log.kind.logger is None:
        return {}
    total: Counter[Any] = Counter()
    for found in backend.each(Loggers(log), log.shards):
        total.update(found)
    return dict(sorted(total.items()))
