"""Rows of one group are not independent: one row of each is."""

import numpy as np

from poem.arrays import IntArray


def one_of_each(number: IntArray) -> IntArray:
    """Return one row of each number, in order: independent rows of different groups.

    Rows are drawn at random: the first rows of a log that is sorted by output would depend on the decisions.
    """
    order = np.random.default_rng(0).permutation(len(number))
    return np.sort(order[np.unique(number[order], return_index=True)[1]])
