"""Folds of a log: its independent units, or its contexts, dealt into parts of about equal size."""

import numpy as np

from poem.arrays import IntArray
from poem.data.log import BanditLog
from poem.errors import InputError


def folds_of(log: BanditLog, folds: int, seed: int) -> IntArray:
    """Deal the log's independent units into folds; return the fold of each row."""
    units = log.units()
    count = int(units.max()) + 1
    if not isinstance(folds, int) or not 2 <= folds <= count:
        raise InputError(f"folds must be from 2 to the number of independent units, {count}; found {folds}.")
    order = np.random.default_rng([seed, 4]).permutation(count)
    return np.asarray((order % folds)[units])


def folds_by_context(log: BanditLog, folds: int, seed: int) -> IntArray:
    """Deal the contexts that occur into folds of about equal size; return the fold of each context of the log."""
    fold = np.zeros(log.n_contexts, dtype=np.int64)
    seen = np.unique(log.context)
    fold[seen] = np.random.default_rng([seed, 5]).permutation(len(seen)) % folds
    return fold
