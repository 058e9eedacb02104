"""Products of sparse rows with wide weights, in compiled loops over whole vector registers."""

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute.kernels import inlined, kernel
from poem.compute.packed import LANES


@inlined
def row_times(first: int, last: int, indices: AnyArray, data: FloatArray, dense: FloatArray, total: FloatArray) -> None:
    """Add one sparse row times a dense matrix to a local buffer, four non-zeros at a time."""
    kind = dense.dtype.type
    t = first
    while t + 3 < last:
        a, b, c, d = dense[indices[t]], dense[indices[t + 1]], dense[indices[t + 2]], dense[indices[t + 3]]
        va, vb = kind(data[t]), kind(data[t + 1])
        vc, vd = kind(data[t + 2]), kind(data[t + 3])
        for j in range(total.shape[0]):
            total[j] += (va * a[j] + vb * b[j]) + (vc * c[j] + vd * d[j])
        t += 4
    while t < last:
        a, va = dense[indices[t]], kind(data[t])
        for j in range(total.shape[0]):
            total[j] += va * a[j]
        t += 1


@kernel
def rows_times(
    begins: IntArray,
    ends: IntArray,
    indices: AnyArray,
    data: FloatArray,
    dense: FloatArray,
    offset: FloatArray,
    out: FloatArray,
) -> None:
    """Fill the products of sparse rows with the weights, and add an offset."""
    total = np.empty(-(-out.shape[1] // LANES) * LANES, dtype=dense.dtype)
    for r in range(out.shape[0]):
        total[:] = offset[: total.shape[0]]
        row_times(begins[r], ends[r], indices, data, dense, total)
        out[r, :] = total[: out.shape[1]]


@kernel
def some_rows_times(
    begins: IntArray,
    ends: IntArray,
    indices: AnyArray,
    data: FloatArray,
    rows: IntArray,
    dense: FloatArray,
    offset: FloatArray,
    out: FloatArray,
) -> None:
    """Fill the products of some of the rows."""
    total = np.empty(-(-out.shape[1] // LANES) * LANES, dtype=dense.dtype)
    for i in range(out.shape[0]):
        total[:] = offset[: total.shape[0]]
        row_times(begins[rows[i]], ends[rows[i]], indices, data, dense, total)
        out[i, :] = total[: out.shape[1]]


@kernel
def add_rows_times(
    begins: IntArray,
    ends: IntArray,
    indices: AnyArray,
    data: FloatArray,
    dense: FloatArray,
    target: IntArray,
    out: FloatArray,
) -> None:
    """Add the products of rows to other rows."""
    total = np.empty(-(-out.shape[1] // LANES) * LANES, dtype=dense.dtype)
    for r in range(target.shape[0]):
        total[:] = 0.0
        row_times(begins[r], ends[r], indices, data, dense, total)
        for j in range(out.shape[1]):
            out[target[r], j] += total[j]


@kernel
def scatter_rows(
    begins: IntArray, ends: IntArray, indices: AnyArray, data: FloatArray, slopes: FloatArray, out: FloatArray
) -> None:
    """Add the transposed product of sparse rows with slopes, row by row: no transpose is needed."""
    width = slopes.shape[1]
    for r in range(begins.shape[0]):
        slope = slopes[r]
        for t in range(begins[r], ends[r]):
            target, value = out[indices[t]], data[t]
            for j in range(width):
                target[j] += value * slope[j]


@kernel
def copy_rows(
    begins: IntArray,
    ends: IntArray,
    indices: AnyArray,
    data: FloatArray,
    rows: IntArray,
    pointers: IntArray,
    out_indices: AnyArray,
    out_data: FloatArray,
) -> None:
    """Copy some rows, one after the other."""
    for i in range(rows.shape[0]):
        shift = begins[rows[i]] - pointers[i]
        for t in range(pointers[i], pointers[i + 1]):
            out_indices[t] = indices[t + shift]
            out_data[t] = data[t + shift]


@kernel
def sort_by_feature(
    pointers: IntArray,
    indices: AnyArray,
    data: FloatArray,
    size: int,
    constant: int,
    slot: IntArray,
    cuts: IntArray,
    features: IntArray,
    ends: IntArray,
    which: AnyArray,
    factors: FloatArray,
) -> None:
    """Sort the non-zeros of each batch of rows by feature.

    ``cuts[b]`` is where the features of batch b begin, and its non-zeros. The non-zeros of a feature come in the order
    of their rows and end before its ``ends``, counted from the batch's first. The feature ``constant`` is 1 in all
    rows, unless it is -1. ``slot`` is -1 everywhere before and after.
    """
    for b in range(cuts.shape[0] - 1):
        first, last = b * size, min((b + 1) * size, pointers.shape[0] - 1)
        own, base = cuts[b, 0], cuts[b, 1]
        found = 0
        for t in range(pointers[first], pointers[last]):
            s = slot[indices[t]]
            if s < 0:
                s = found
                slot[indices[t]], features[own + s], ends[own + s] = s, indices[t], 0
                found += 1
            ends[own + s] += 1
        total = 0
        for s in range(own, own + found):
            count = ends[s]
            ends[s] = total
            total += count
        for i in range(first, last):
            for t in range(pointers[i], pointers[i + 1]):
                s = own + slot[indices[t]]
                which[base + ends[s]], factors[base + ends[s]] = i - first, data[t]
                ends[s] += 1
        for s in range(own, own + found):
            slot[features[s]] = -1
        if constant >= 0:
            for i in range(last - first):
                which[base + total + i], factors[base + total + i] = i, 1.0
            total += last - first
            features[own + found], ends[own + found] = constant, total
            found += 1
        cuts[b + 1, 0], cuts[b + 1, 1] = own + found, base + total
