"""Numbers of 64 bits for units and contexts: the same in any shard or process.

Which shard, fold or sample a unit belongs to depends on its number alone.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from poem.arrays import AnyArray, IntArray, frozen
from poem.compute import GOLDEN, Matrix, exact_kernel, is_sparse, mixed
from poem.data import BanditLog

HashArray = NDArray[np.uint64]


def number_hashes(number: IntArray, file: AnyArray) -> HashArray:
    """Return the hash of each context's number, and of the file that counted it."""
    return _mixed(value_hashes(number) + file.astype(np.uint64))


def context_hashes(log: BanditLog) -> HashArray:
    """Return the hash of what each context holds: its features that are not 0, and what was available there."""
    found = _row_hashes(log.X)
    offers = log.available
    if offers is None:
        return found
    each = _mixed(offers.action.astype(np.uint64))
    if offers.features is not None:
        own = _row_hashes(offers.features)
        each = _mixed(each ^ (own if offers.row is None else own[offers.row]))
    out = np.empty(len(found), dtype=np.uint64)
    _fold(frozen(offers.starts), frozen(each), frozen(found), out)
    return out


def context_folds(log: BanditLog, folds: int) -> IntArray:
    """Deal the contexts of a log into folds; return the fold of each."""
    return (_mixed(context_hashes(log)) % np.uint64(folds)).astype(np.int64)


def turned(hashes: HashArray, seed: int) -> HashArray:
    """Return other numbers for the same units, which a seed decides: where one begins says nothing of the other."""
    start = np.random.SeedSequence([seed, 9]).generate_state(1, np.uint64)[0]
    return _mixed(hashes ^ start)


def value_hashes(values: AnyArray) -> HashArray:
    """Return the number of each value; equal strings or numbers have equal ones."""
    kind = values.dtype.kind
    if kind in "iub":
        return _mixed(values.astype(np.int64).view(np.uint64))
    if kind == "f":
        return _mixed((values.astype(np.float64) + 0.0).view(np.uint64))
    starts, content = _as_bytes(values)
    out = np.empty(len(values), dtype=np.uint64)
    _hash_bytes(frozen(starts), frozen(content), out)
    return out


def _as_bytes(values: AnyArray) -> tuple[IntArray, AnyArray]:
    """Return texts as UTF-8: where each begins, and all bytes."""
    import pyarrow as pa

    texts = pa.array([str(value) for value in values.tolist()], pa.large_string())
    _, offsets, content = texts.buffers()
    starts = np.frombuffer(offsets, dtype=np.int64, count=len(values) + 1)
    return starts, np.frombuffer(content, dtype=np.uint8) if content is not None else np.empty(0, dtype=np.uint8)


def _mixed(numbers: HashArray) -> HashArray:
    out = np.empty(len(numbers), dtype=np.uint64)
    _mix_all(frozen(numbers), out)
    return out


def _row_hashes(X: Matrix) -> HashArray:
    out = np.empty(X.shape[0], dtype=np.uint64)
    if is_sparse(X):
        pointers, columns = frozen(X.indptr, np.int64), frozen(X.indices, np.int32)
        _hash_sparse(pointers, columns, _bits(X.data), out)
    else:
        _hash_dense(_bits(X), out)
    return out


def _bits(values: Any) -> HashArray:
    return frozen(np.ascontiguousarray(values, dtype=np.float64).view(np.uint64))


# ---- kernels: one number after the other is mixed in ----------------------------------------------


@exact_kernel
def _mix_all(numbers: HashArray, out: HashArray) -> None:
    for i in range(out.shape[0]):
        out[i] = mixed(numbers[i] + np.uint64(GOLDEN))


@exact_kernel
def _hash_sparse(pointers: IntArray, columns: AnyArray, bits: HashArray, out: HashArray) -> None:
    for r in range(out.shape[0]):
        found = np.uint64(GOLDEN)
        for t in range(pointers[r], pointers[r + 1]):
            if bits[t] << np.uint64(1):  # neither 0.0 nor -0.0
                found = mixed(found ^ bits[t]) + np.uint64(columns[t])
        out[r] = mixed(found)


@exact_kernel
def _hash_dense(bits: HashArray, out: HashArray) -> None:
    for r in range(out.shape[0]):
        found = np.uint64(GOLDEN)
        for j in range(bits.shape[1]):
            if bits[r, j] << np.uint64(1):
                found = mixed(found ^ bits[r, j]) + np.uint64(j)
        out[r] = mixed(found)


@exact_kernel
def _fold(starts: IntArray, each: HashArray, begin: HashArray, out: HashArray) -> None:
    for c in range(out.shape[0]):
        found = begin[c]
        for t in range(starts[c], starts[c + 1]):
            found = mixed(found ^ each[t])
        out[c] = mixed(found)


@exact_kernel
def _hash_bytes(starts: IntArray, content: AnyArray, out: HashArray) -> None:
    for i in range(out.shape[0]):
        found = np.uint64(GOLDEN) + np.uint64(starts[i + 1] - starts[i])
        for t in range(starts[i], starts[i + 1]):
            found = (found ^ np.uint64(content[t])) * np.uint64(0x100000001B3)
        out[i] = mixed(found)
