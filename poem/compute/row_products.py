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
def scatter(
    begins: IntArray,
    ends: IntArray,
    indices: AnyArray,
    data: FloatArray,
    rows: IntArray,
    slopes: FloatArray,
    slot: IntArray,
    features: IntArray,
    out: FloatArray,
) -> int:
    """Collect Xᵀ·slopes of some rows by feature; ``slot`` is -1 everywhere before and after."""
    kind = slopes.dtype.type
    found = 0
    for i in range(rows.shape[0]):
        for t in range(begins[rows[i]], ends[rows[i]]):
            s, v = slot[indices[t]], kind(data[t])
            if s < 0:
                slot[indices[t]] = found
                features[found] = indices[t]
                for j in range(slopes.shape[1]):
                    out[found, j] = v * slopes[i, j]
                found += 1
            else:
                for j in range(slopes.shape[1]):
                    out[s, j] += v * slopes[i, j]
    for s in range(found):
        slot[features[s]] = -1
    return found
