"""The mean of 1[y = a]/p: at most 1 for right propensities, whatever the logging policy is.

Rows of one group are not independent: groups, not rows, determine the size of random errors. A decision that is kept
for a user shows in all of that user's rows. Sums over such rows vary much more than sums over as many independent rows;
the sums per group show how much.
"""

from dataclasses import dataclass

import numpy as np
from scipy import special

from poem.arrays import BoolArray, FloatArray, IntArray

SMALLEST = 1e-300  # a probability that still has a normal quantile


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
        pair = np.unique(group * (int(code.max()) + 1) + code, return_inverse=True)[1].astype(np.int64)
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


@dataclass(frozen=True)
class Means:
    """For some outputs: the mean of 1[y = a]/p, its expected value, and the difference in standard errors."""

    outputs: IntArray
    mean: FloatArray
    due: FloatArray
    z: FloatArray


def inverse_means(
    inverse: FloatArray, code: IntArray, due: FloatArray, part: BoolArray | None = None, pairs: Pairs | None = None
) -> Means:
    """Return the mean of 1[y = a]/p over some rows for each output that occurs, and its distance from ``due``.

    The variance of a mean is the larger of the observed variance and the expected one, E[1/p] − 1, so neither heavy
    rows nor missing rows raise a false alarm by chance. If ``pairs`` say which rows belong together, it is at least the
    variance of their sums.
    """
    chosen = inverse if part is None else np.where(part, inverse, 0.0)
    n = len(inverse) if part is None else int(part.sum())
    first = np.bincount(code, chosen, minlength=len(due))
    second = np.bincount(code, chosen * chosen, minlength=len(due))
    there = np.flatnonzero(first > 0.0)
    means, dues = first / n, due
    first, second, due = first[there], second[there], due[there]
    mean = means[there]
    seen = second / n - 2.0 * mean + due - (mean - due) ** 2
    should = due * (second / first - 1.0)
    variance = np.maximum(np.maximum(seen, should), 1e-12) / n
    if pairs is None:
        return Means(there, mean, due, (mean - due) / np.sqrt(variance))
    inside = np.ones(len(inverse)) if part is None else part.astype(np.float64)
    variance = np.maximum(variance, pairs.variance(chosen, inside, means, dues)[there])
    return Means(there, mean, due, as_normal((mean - due) / np.sqrt(variance), pairs.sizes(inside)))
