"""Compiled loops over the columns that the candidates of each context touch."""

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute.kernels import inlined, kernel
from poem.compute.offered import Rows

SparseSlopes = tuple[IntArray, IntArray, AnyArray, FloatArray]  # by context: where, how many, columns, values


@inlined
def touched_columns(
    c: int,
    first: int,
    last: int,
    row: AnyArray,
    z: Rows,
    k: int,
    stamp: AnyArray,
    place: AnyArray,
    touched: AnyArray,
) -> int:
    """List the columns that candidates ``first`` to ``last`` touch, and where each is in the list."""
    pointers, columns, _, width = z
    count = 0
    if k > width:
        stamp[width], place[width], touched[0] = c, 0, width
        count = 1
    for a in range(first, last):
        for t in range(pointers[row[a]], pointers[row[a] + 1]):
            j = columns[t]
            if stamp[j] != c:
                stamp[j], place[j], touched[count] = c, count, j
                count += 1
    return count


@kernel
def count_touched(contexts: IntArray, starts: IntArray, row: AnyArray, z: Rows, k: int) -> int:
    """Return how many columns the candidates of some contexts touch, in all."""
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32)
    total = 0
    for i in range(contexts.shape[0]):
        c = contexts[i]
        total += touched_columns(i, starts[c], starts[c + 1], row, z, k, stamp, place, touched)
    return total


@kernel
def score_sparse(
    x: tuple[IntArray, IntArray, AnyArray, FloatArray],
    intercept: bool,
    contexts: IntArray,
    starts: IntArray,
    row: AnyArray,
    z: Rows,
    w: FloatArray,
    k: int,
    out: FloatArray,
) -> None:
    """Fill the scores of all candidates of some contexts, with weights (d, k) or (d + 1, k)."""
    begins, ends, x_columns, x_values = x
    pointers, columns, values, width = z
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched, s = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32), np.empty(k)
    start = starts[0]
    for i in range(contexts.shape[0]):
        c = contexts[i]
        count = touched_columns(i, starts[i], starts[i + 1], row, z, k, stamp, place, touched)
        for u in range(count):
            s[u] = w[w.shape[0] - 1, touched[u]] if intercept else 0.0
        for t in range(begins[c], ends[c]):
            own, v = w[x_columns[t]], x_values[t]
            for u in range(count):
                s[u] += v * own[touched[u]]
        constant = s[0] if k > width else 0.0
        for a in range(starts[i], starts[i + 1]):
            total = constant
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                total += s[place[columns[t]]] * values[t]
            out[a - start] = total


@kernel
def touch_rows(
    slopes: FloatArray,
    starts: IntArray,
    row: AnyArray,
    z: Rows,
    k: int,
    where: IntArray,
    counts: IntArray,
    out_columns: AnyArray,
    out_values: FloatArray,
) -> None:
    """Fill Σ slope·z of each context as a sparse row; there is room for all of its candidates' non-zeros."""
    pointers, columns, values, width = z
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32)
    start = starts[0]
    for i in range(counts.shape[0]):
        count = touched_columns(i, starts[i], starts[i + 1], row, z, k, stamp, place, touched)
        counts[i] = count
        at = where[i]
        for u in range(count):
            out_columns[at + u] = touched[u]
            out_values[at + u] = 0.0
        for a in range(starts[i], starts[i + 1]):
            slope = slopes[a - start]
            if k > width:
                out_values[at] += slope
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                out_values[at + place[columns[t]]] += slope * values[t]


@kernel
def add_sparse(
    x: tuple[IntArray, AnyArray, FloatArray],
    features: IntArray,
    touched: SparseSlopes,
    grad: FloatArray,
) -> None:
    """Add Xᵀ·slopes to some features of the gradient; ``x`` is Xᵀ of these as sparse rows."""
    pointers, contexts, x_values = x
    where, counts, columns, values = touched
    for f in range(features.shape[0]):
        own = grad[features[f]]
        for t in range(pointers[f], pointers[f + 1]):
            c, v = contexts[t], x_values[t]
            for u in range(where[c], where[c] + counts[c]):
                own[columns[u]] += v * values[u]


@kernel
def score_dense(
    X: FloatArray,
    intercept: bool,
    contexts: IntArray,
    starts: IntArray,
    row: AnyArray,
    z: Rows,
    w: FloatArray,
    out: FloatArray,
) -> None:
    """Do the same for dense contexts, with the weights of each column side by side, (k, d) or (k, d + 1)."""
    pointers, columns, values, width = z
    k, d = w.shape[0], X.shape[1]
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched, s = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32), np.empty(k)
    start = starts[0]
    for i in range(contexts.shape[0]):
        x = X[contexts[i]]
        count = touched_columns(i, starts[i], starts[i + 1], row, z, k, stamp, place, touched)
        for u in range(count):
            own = w[touched[u]]
            total = 0.0
            for f in range(d):
                total += own[f] * x[f]
            s[u] = total + own[d] if intercept else total
        constant = s[0] if k > width else 0.0
        for a in range(starts[i], starts[i + 1]):
            score = constant
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                score += s[place[columns[t]]] * values[t]
            out[a - start] = score


@kernel
def add_dense(X: FloatArray, first: int, last: int, touched: SparseSlopes, by_column: FloatArray) -> None:
    """Add Xᵀ·slopes to columns ``first`` to ``last``, whose weights lie side by side."""
    where, counts, columns, values = touched
    for c in range(X.shape[0]):
        x = X[c]
        for u in range(where[c], where[c] + counts[c]):
            if first <= columns[u] < last:
                own, v = by_column[columns[u]], values[u]
                for f in range(x.shape[0]):
                    own[f] += v * x[f]


@kernel
def add_constant(touched: SparseSlopes, out: FloatArray) -> None:
    """Add the slopes of all contexts: the gradient of the intercept."""
    where, counts, columns, values = touched
    for c in range(counts.shape[0]):
        for u in range(where[c], where[c] + counts[c]):
            out[columns[u]] += values[u]


@kernel
def collect_batch(
    x: tuple[IntArray, IntArray, AnyArray, FloatArray],
    intercept: bool,
    contexts: IntArray,
    slopes: FloatArray,
    borders: IntArray,
    row: AnyArray,
    z: Rows,
    k: int,
    slot: AnyArray,
    rows: IntArray,
    out: FloatArray,
) -> int:
    """Collect the gradient of a batch by weight; ``slot`` is -1 everywhere before and after."""
    begins, ends, x_columns, x_values = x
    pointers, columns, values, _ = z
    kind = out.dtype.type
    stamp = np.full(k, -1, dtype=np.int64)
    place, touched, s = np.empty(k, dtype=np.int32), np.empty(k, dtype=np.int32), np.empty(k)
    found, constant = 0, slot.shape[0] // k - 1
    for i in range(contexts.shape[0]):
        c = contexts[i]
        count = touched_columns(i, borders[i], borders[i + 1], row, z, k, stamp, place, touched)
        s[:count] = 0.0
        for a in range(borders[i], borders[i + 1]):
            for t in range(pointers[row[a]], pointers[row[a] + 1]):
                s[place[columns[t]]] += slopes[a] * values[t]
        for t in range(begins[c], ends[c] + (1 if intercept else 0)):
            feature, v = (x_columns[t], x_values[t]) if t < ends[c] else (constant, 1.0)
            for u in range(count):
                weight = feature * k + touched[u]
                at = slot[weight]
                if at < 0:
                    slot[weight] = found
                    rows[found] = weight
                    out[found, 0] = kind(v * s[u])
                    found += 1
                else:
                    out[at, 0] += kind(v * s[u])
    for at in range(found):
        slot[rows[at]] = -1
    return found
