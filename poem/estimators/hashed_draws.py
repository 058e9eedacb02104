"""Poisson weights of units from their hashes: a unit has the same ones in any part of a log, in any order."""

import numpy as np

from poem.arrays import AnyArray, FloatArray, frozen
from poem.compute import GOLDEN, kernel, mixed
from poem.estimators.intervals import BLOCK, poisson_table


def add_hashed(columns: FloatArray, hashes: AnyArray, seed: int, out: FloatArray) -> None:
    """Add Poisson-weighted sums of columns, (m, units), to replicates, (replicates, m)."""
    start = np.random.SeedSequence([seed, 8]).generate_state(1, np.uint64)[0]
    table, hashes = frozen(poisson_table()), frozen(hashes)
    for first in range(0, len(hashes), BLOCK):
        _add_hashed(frozen(columns[:, first : first + BLOCK]), frozen(hashes[first : first + BLOCK]), table, start, out)


@kernel
def _add_hashed(columns: FloatArray, hashes: AnyArray, table: AnyArray, start: np.uint64, out: FloatArray) -> None:
    """Add the weighted sums of a block; four weights from each random number, which is that of splitmix64."""
    m, n = columns.shape
    states = np.empty(n, dtype=np.uint64)
    for i in range(n):
        states[i] = mixed(hashes[i] ^ start)
    weights = np.empty((4, n))
    for first in range(0, out.shape[0], 4):
        for i in range(n):
            states[i] += np.uint64(GOLDEN)
            bits = mixed(states[i])
            for offset in range(4):
                weights[offset, i] = table[(bits >> np.uint64(16 * offset)) & np.uint64(0xFFFF)]
        for offset in range(min(4, out.shape[0] - first)):
            for j in range(m):
                total = 0.0
                for i in range(n):
                    total += weights[offset, i] * columns[j, i]
                out[first + offset, j] += total
