"""What rows of a packed log are known by, beside what they hold."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from poem.arrays import IntArray
from poem.data import BanditLog
from poem.files import Table
from poem.packed.hashing import HashArray


@dataclass(frozen=True)
class Keys:
    """The hash of each row's unit, and the row's place in what was packed."""

    unit: HashArray
    place: IntArray

    def take(self, rows: Any) -> "Keys":
        """Return those of some rows (positions or a mask)."""
        return Keys(self.unit[rows], self.place[rows])

    def columns(self) -> dict[str, Any]:
        """Return the columns of a shard that hold them."""
        return {"unit": self.unit, "place": self.place}

    @staticmethod
    def of(table: Table) -> "Keys":
        """Return those of the rows of a shard."""
        return Keys(table.column("unit").to_numpy(), table.column("place").to_numpy())

    @staticmethod
    def concat(parts: Sequence["Keys"]) -> "Keys":
        """Join those of several logs."""
        return Keys(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("unit", "place")))


def in_order(log: BanditLog, keys: Keys) -> tuple[BanditLog, Keys]:
    """Return a log with its rows as they were packed, and contexts in the order of the first rows that saw them."""
    order = np.argsort(keys.place)
    rows, keys = log.take(order), keys.take(order)
    contexts, first, number = np.unique(rows.context, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rows.on_contexts(contexts[np.argsort(first)], rank[number]), keys
