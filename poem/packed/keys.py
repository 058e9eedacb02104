"""What rows of a packed log are known by, beside what they hold."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from poem.arrays import AnyArray, IntArray
from poem.data import BanditLog
from poem.files import Table
from poem.packed.hashing import HashArray, number_hashes, value_hashes


@dataclass(frozen=True)
class Keys:
    """The hash of each row's unit, and the row's place in what was packed.

    If contexts are numbered, ``number`` is that of each row's context, and ``file`` says which file counted: contexts
    of different files are different ones.
    """

    unit: HashArray
    place: IntArray
    number: IntArray | None = None
    file: AnyArray | None = None

    @staticmethod
    def of_log(log: BanditLog, first: int, number: IntArray | None, file: int) -> "Keys":
        """Return those of a log whose first row has the place ``first``.

        A unit is a group, else a numbered context, else a row.
        """
        place = np.arange(first, first + len(log))
        if number is None:
            return Keys(value_hashes(place if log.group is None else log.group), place)
        files = np.full(len(log), file, dtype=np.int32)
        return Keys(
            number_hashes(number, files) if log.group is None else value_hashes(log.group), place, number, files
        )

    @staticmethod
    def of_table(table: Table) -> "Keys":
        """Return those of the rows of a shard."""
        there = set(table.column_names)
        return Keys(**{name: table.column(name).to_numpy() for name in NAMES if name in there})

    @staticmethod
    def concat(parts: Sequence["Keys"]) -> "Keys":
        """Join those of several logs."""
        return Keys(**{name: np.concatenate([getattr(one, name) for one in parts]) for name in parts[0].columns()})

    def columns(self) -> dict[str, Any]:
        """Return the columns of a shard that hold them."""
        return {name: getattr(self, name) for name in NAMES if getattr(self, name) is not None}

    def take(self, rows: Any) -> "Keys":
        """Return those of some rows (positions or a mask)."""
        return Keys(**{name: values[rows] for name, values in self.columns().items()})

    def of_contexts(self, log: BanditLog) -> HashArray | None:
        """Return the hash of each context's number; None if contexts are not numbered."""
        if self.number is None or self.file is None:
            return None
        out = np.zeros(log.n_contexts, dtype=np.uint64)
        out[log.context] = number_hashes(self.number, self.file)
        return out


NAMES = tuple(field.name for field in fields(Keys))


def context_numbers(log: BanditLog) -> IntArray | None:
    """Return the numbers of the contexts of a log in memory; None if each row has a context of its own."""
    return None if np.array_equal(log.context, np.arange(len(log))) else log.context


def in_order(log: BanditLog, keys: Keys) -> tuple[BanditLog, Keys]:
    """Return a log with its rows as they were packed, and contexts by their numbers, or as rows saw them first."""
    order = np.argsort(keys.place)
    rows, keys = log.take(order), keys.take(order)
    kept, context = _first_seen(rows.context) if keys.number is None else _by_number(rows.context, keys)
    return rows.on_contexts(kept, context), keys


def _first_seen(context: IntArray) -> tuple[IntArray, IntArray]:
    """Return contexts in the order in which rows saw them first, and which of them each row saw."""
    contexts, first, number = np.unique(context, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return contexts[order], rank[number]


def _by_number(context: IntArray, keys: Keys) -> tuple[IntArray, IntArray]:
    """Return contexts in the order of their files and numbers, each once, and which of them each row saw."""
    assert keys.number is not None
    assert keys.file is not None
    order = np.lexsort((keys.number, keys.file))
    number, file = keys.number[order], keys.file[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (number[1:] != number[:-1]) | (file[1:] != file[:-1])
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.cumsum(new) - 1
    return context[order[new]], rank
