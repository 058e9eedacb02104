"""Parts of a log: its independent units, or its contexts, dealt into folds of about equal size, or drawn at random."""

import numpy as np

from poem.arrays import IntArray
from poem.data.log import BanditLog
from poem.errors import InputError


def folds_of(log: BanditLog, folds: int, seed: int) -> IntArray:
    """Deal the log's independent units into folds; return the fold of each row."""
    units = log.units()
    count = int(units.max()) + 1
    if not isinstance(folds, int) or not 2 <= folds <= count:
        raise InputError(
            f"folds must be from 2 to the number of independent units, {count} (users, contexts or rows); found "
            f"{folds}. Collect more of them, or pass fewer folds."
        )
    order = np.random.default_rng([seed, 4]).permutation(count)
    return np.asarray((order % folds)[units])


def folds_by_context(log: BanditLog, folds: int, seed: int) -> IntArray:
    """Deal the contexts that occur into folds of about equal size; return the fold of each context of the log."""
    fold = np.zeros(log.n_contexts, dtype=np.int64)
    seen = np.unique(log.context)
    fold[seen] = np.random.default_rng([seed, 5]).permutation(len(seen)) % folds
    return fold


def sample_of(log: BanditLog, most: int, seed: int) -> BanditLog:
    """Return the rows of at most so many units, drawn at random, with the contexts that they saw and no others."""
    units = log.units()
    count = int(units.max()) + 1
    if count <= most:
        return log
    chosen = np.zeros(count, dtype=bool)
    chosen[np.random.default_rng([seed, 6]).permutation(count)[:most]] = True
    return with_seen_contexts(log.take(chosen[units]))


def with_seen_contexts(log: BanditLog) -> BanditLog:
    """Return the same log without the contexts that none of its rows saw."""
    seen = np.bincount(log.context, minlength=log.n_contexts) > 0
    return log if seen.all() else log.on_contexts(np.flatnonzero(seen), (np.cumsum(seen) - 1)[log.context])
