"""Some units of a packed log, in memory: the same ones in the same order, however the log is cut into shards."""

from dataclasses import dataclass, replace

import numpy as np

from poem.arrays import IntArray
from poem.data import BanditLog, with_seen_contexts
from poem.errors import InputError
from poem.packed.hashing import HashArray, turned
from poem.packed.keys import Keys, in_order
from poem.packed.log import PackedLog
from poem.packed.rows import has_catalogue
from poem.packed.writing import merged

TURNS = 1000  # ways to deal a few units, of which one leaves no fold empty


@dataclass(frozen=True)
class Sample:
    """The rows of some units as they were packed, and their keys; ``whole`` tells whether these are all units."""

    log: BanditLog
    keys: Keys
    whole: bool

    @property
    def unit(self) -> HashArray:
        """The hash of each row's unit."""
        return self.keys.unit


def sample_units(packed: PackedLog, most_units: int, most_bytes: float) -> Sample:
    """Return the rows of a random sample of units, at most about so many of them and so much memory."""
    share = min(1.0, most_units / packed.n_units, most_bytes / max(packed.nbytes, 1))
    return replace(all_units(part_within(packed, 0.0, share)), whole=share >= 1.0)


def all_units(packed: PackedLog) -> Sample:
    """Return all rows of a log, which must fit into memory."""
    logs, keys = zip(*map(packed.read_with_keys, packed.shards), strict=True)
    some = BanditLog.concat(logs), Keys.concat(keys)
    if packed.kind.group is not None:  # equal contexts are in several shards
        some = merged(with_seen_contexts(some[0]), some[1], catalogue=has_catalogue(packed.kind))
    return Sample(*in_order(*some), True)


def part_within(packed: PackedLog, first: float, last: float) -> PackedLog:
    """Return a part of a log whose size comes from the memory that it may take."""
    if (first, last) == (0.0, 1.0):
        return packed
    try:
        return packed.part(first, last)
    except InputError as error:
        raise InputError(
            f"the log may take {packed.memory:,} bytes of memory, which is too little for its {packed.n_units:,} "
            "independent units. Allow more (--memory, memory=)."
        ) from error


def unit_folds(hashes: HashArray, folds: int, seed: int) -> IntArray:
    """Deal units into folds by their hashes; return the fold of each row."""
    return (turned(hashes, seed) % np.uint64(folds)).astype(np.int64)


def full_folds(hashes: HashArray, folds: int, seed: int) -> int:
    """Return the first seed, from ``seed`` on, by which no fold of these units is empty."""
    units = len(np.unique(hashes))
    if not isinstance(folds, int) or not 2 <= folds <= units:
        raise InputError(
            f"folds must be from 2 to the number of independent units, {units} (users, contexts or rows); found "
            f"{folds}. Collect more of them, or pass fewer folds."
        )
    for turn in range(seed, seed + TURNS):
        if len(np.unique(unit_folds(hashes, folds, turn))) == folds:
            return turn
    raise InputError(f"{units} independent units are too few for {folds} folds. Pass fewer folds.")
