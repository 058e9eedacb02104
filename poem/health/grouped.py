"""Rows of one group are not independent: groups, not rows, determine the size of random errors.

A decision that is kept for a user shows in all of that user's rows. Sums over such rows vary much more than sums over
as many independent rows; the sums per group show how much.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray
from poem.health.facts import mixed, numbered

SMALLEST = 1e-300  # a probability that still has a normal quantile


def one_of_each(number: IntArray) -> IntArray:
    """Return one row of each number, in order: independent rows of different groups.

    Rows are drawn at random: the first rows of a log that is sorted by output would depend on the decisions.
    """
    order = np.random.default_rng(0).permutation(len(number))
    return np.sort(order[np.unique(number[order], return_index=True)[1]])


def as_normal(t: FloatArray, sizes: FloatArray) -> FloatArray:
    """Return normal deviates as unlikely as deviates in standard errors that were estimated from groups.

    Few groups, or a few large ones among many, give a poor standard error. The degrees of freedom are the number of
    equal groups that would give one as good (Satterthwaite).
    """
    squares = sizes * sizes
    freedom = float(squares.sum()) ** 2 / max(float(squares @ squares), SMALLEST) - 1.0
    if freedom < 1.0 - 1e-9:
        return np.zeros(len(t))
    tail = np.maximum(special.stdtr(freedom, -np.abs(t)), SMALLEST)
    return np.asarray(-np.sign(t) * special.ndtri(tail))


@dataclass(frozen=True)
class Pairs:
    """The rows of a log by group, and by pair of group and output: ``pair`` is the pair of each row."""

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
        """Return the number of rows of each group within a part of the log."""
        return np.bincount(self.group, inside).astype(np.float64)

    def variance(self, values: FloatArray, inside: FloatArray, mean: FloatArray, due: FloatArray) -> FloatArray:
        """Return the variance of the mean of the values of each output over a part of the rows; see inverse_means.

        It is the larger of Σ(T − m·N)²/n², where T is the sum over a group of N rows, and its value if the mean m were
        as expected, with ΣT² in proportion to the mean. An output without rows in a group enters by N alone.
        """
        added, sizes, k = np.bincount(self.pair, values), self.sizes(inside), len(due)
        second = np.bincount(self.code_of, added * added, minlength=k)
        cross = np.bincount(self.code_of, added * sizes[self.group_of], minlength=k)
        squares = float(sizes @ sizes)
        seen = second - 2.0 * mean * cross + mean * mean * squares
        should = second * np.divide(due, mean, out=np.zeros(k), where=mean > 0.0) - due * due * squares
        return np.asarray(np.maximum(seen, should) / sizes.sum() ** 2)
