"""Gradients of batches: zero outside some rows of the wide weights."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute.kernels import inlined, kernel

Terms = tuple[IntArray, IntArray, AnyArray, FloatArray]  # rows, ends, which, factors of a SummedGradient


@dataclass(frozen=True)
class RowGradient:
    """A gradient that is zero outside some rows, and some columns, of the wide weights."""

    rows: IntArray
    values: FloatArray


@dataclass(frozen=True)
class SummedGradient:
    """The same as sums that are not taken yet: those of all rows take more memory than a cache has.

    Row i is the sum of ``factors[t] * slopes[which[t]]`` from the end of row i − 1 to ``ends[i]``.
    """

    rows: IntArray
    ends: IntArray
    which: AnyArray
    factors: FloatArray
    slopes: FloatArray

    @property
    def values(self) -> FloatArray:
        """All rows, (r, k)."""
        values = np.zeros((len(self.rows), self.slopes.shape[1]), dtype=self.slopes.dtype)
        _fill_sums(self.ends, self.which, self.factors, self.slopes, values)
        return values


@inlined
def add_terms(
    first: int, last: int, which: AnyArray, factors: FloatArray, slopes: FloatArray, total: FloatArray
) -> None:
    """Add the terms of one row to a local buffer, one after the other, four of them at a time."""
    kind = slopes.dtype.type
    t = first
    while t + 3 < last:
        a, b, c, d = slopes[which[t]], slopes[which[t + 1]], slopes[which[t + 2]], slopes[which[t + 3]]
        va, vb = kind(factors[t]), kind(factors[t + 1])
        vc, vd = kind(factors[t + 2]), kind(factors[t + 3])
        for j in range(total.shape[0]):
            total[j] = (((total[j] + va * a[j]) + vb * b[j]) + vc * c[j]) + vd * d[j]
        t += 4
    while t < last:
        a, va = slopes[which[t]], kind(factors[t])
        for j in range(total.shape[0]):
            total[j] += va * a[j]
        t += 1


@kernel
def _fill_sums(ends: IntArray, which: AnyArray, factors: FloatArray, slopes: FloatArray, out: FloatArray) -> None:
    first = 0
    for i in range(ends.shape[0]):
        add_terms(first, ends[i], which, factors, slopes, out[i])
        first = ends[i]
