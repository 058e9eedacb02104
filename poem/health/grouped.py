"""Rows of one group are not independent: how far chance reaches is then told by groups, not by rows.

A decision that is kept for a user shows in all of that user's rows. Sums over many such rows go astray much farther
than sums over as many rows that were drawn one by one; what groups add up to shows how far.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray
from poem.health.facts import mixed, numbered

SMALLEST = 1e-300  # a probability that still has a normal quantile


def one_of_each(number: IntArray) -> IntArray:
    """Return one row of each number, in order: rows of different groups that are independent.

    Rows are taken at random: the first ones of a log that is sorted by output would depend on what was chosen.
    """
    order = np.random.default_rng(0).permutation(len(number))
    return np.sort(order[np.unique(number[order], return_index=True)[1]])


def as_normal(t: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return normal deviates as unlikely as deviates in standard errors that were estimated from groups.

    Few groups, or a few large ones among many, give a poor standard error: so many degrees of freedom as there are
    groups of equal size that would give as good a one (Satterthwaite).
    """
    squares = sizes * sizes
    freedom = float(squares.sum()) ** 2 / max(float(squares @ squares), SMALLEST) - 1.0
    if freedom < 1.0 - 1e-9:
        return np.zeros(len(t))
    tail = np.maximum(special.stdtr(freedom, -np.abs(t)), SMALLEST)
    return np.asarray(-np.sign(t) * special.ndtri(tail))


@dataclass(frozen=True)
class Pairs:
    """The rows of a log by group, and by group and output: ``pair`` is that of each row."""

    group: IntArray
    pair: IntArray
    group_of: IntArray
    code_of: IntArray

    @staticmethod
    def of(group: IntArray, code: IntArray) -> "Pairs":
        """Number the pairs that occur."""
        pair = numbered(mixed([group, code]))
        group_of, code_of = np.zeros((2, int(pair.max()) + 1), dtype=np.int64)
        group_of[pair], code_of[pair] = group, code
        return Pairs(group, pair, group_of, code_of)

    def sizes(self, inside: FloatArray) -> FloatArray:
        """Return how many rows each group has inside a part of the log."""
        return np.bincount(self.group, inside).astype(np.float64)

    def variance(self, values: FloatArray, inside: FloatArray, mean: FloatArray, due: FloatArray) -> FloatArray:
        """Return the variance of the mean of the values of each output over a part of the rows; see inverse_means.

        It is Σ(T − m·N)²/n², where T is what a group of N rows adds up to; or, were the mean m as it should be, what
        ΣT² is when it grows with it. Outputs that a group has no row of count by N alone.
        """
        added, sizes, k = np.bincount(self.pair, values), self.sizes(inside), len(due)
        second = np.bincount(self.code_of, added * added, minlength=k)
        cross = np.bincount(self.code_of, added * sizes[self.group_of], minlength=k)
        squares = float(sizes @ sizes)
        seen = second - 2.0 * mean * cross + mean * mean * squares
        should = second * np.divide(due, mean, out=np.zeros(k), where=mean > 0.0) - due * due * squares
        return np.asarray(np.maximum(seen, should) / sizes.sum() ** 2)
