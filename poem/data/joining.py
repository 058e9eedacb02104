"""Contexts of several logs as one matrix, each stored once if wanted."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from poem.arrays import IntArray, frozen
from poem.compute import Matrix, is_sparse
from poem.data.description import few_of
from poem.errors import InputError
from poem.structures import Available

if TYPE_CHECKING:
    from poem.data.log import BanditLog

ALIKE = ("group", "logger", "time", "available")  # columns that all logs have, or none


def check_same_kind(first: "BanditLog", other: "BanditLog") -> None:
    """Raise unless two logs can be joined."""
    alike = {
        "labels": (few_of(first.labels), few_of(other.labels), first.labels == other.labels),
        "outputs": (first.structure.describe(), other.structure.describe(), first.structure == other.structure),
        "features": (first.n_features, other.n_features, first.n_features == other.n_features),
    }
    named = {"feature_names": "feature names", "features": "recipe of features"}
    named |= {"action_names": "features of actions", "action_features": "recipe of actions"}
    for name, what in named.items():
        one, two = getattr(first, name), getattr(other, name)
        alike[what] = (one, two, one == two)
    for name in ALIKE:
        has, also = getattr(first, name) is not None, getattr(other, name) is not None
        alike[f"{name}s"] = (has, also, has == also)
    for name in ("propensities", "outcome"):
        one, two = getattr(first, name), getattr(other, name)
        alike[name] = (one, two, one == two)
    for what, (one, two, same) in alike.items():
        if not same:
            raise InputError(f"logs can be joined only if they have the same {what}; found {one} and {two}.")


def joined_contexts(logs: "Sequence[BanditLog]") -> tuple[Matrix, IntArray, Available | None]:
    """Return ``(X, context, available)`` of all rows."""
    first = logs[0]
    if all(log.X is first.X and log.available is first.available for log in logs):
        return first.X, frozen(np.concatenate([log.context for log in logs])), first.available
    offsets = np.cumsum([0, *(log.n_contexts for log in logs[:-1])])
    context = np.concatenate([log.context + offset for log, offset in zip(logs, offsets, strict=True)])
    matrices = [log.X for log in logs]
    sparse = any(is_sparse(matrix) for matrix in matrices)
    X = sp.csr_array(sp.vstack(matrices, format="csr")) if sparse else np.vstack(matrices)
    offers = [log.available for log in logs if log.available is not None]
    return frozen_matrix(X), frozen(context), Available.concat(offers) if offers else None


def frozen_matrix(matrix: Matrix) -> Matrix:
    """Return a read-only view of a matrix."""
    if not is_sparse(matrix):
        return frozen(matrix)
    view = sp.csr_array(matrix.shape, dtype=np.float64)
    view.data, view.indices, view.indptr = frozen(matrix.data), frozen(matrix.indices), frozen(matrix.indptr)
    return view


def distinct_contexts(log: "BanditLog") -> tuple[list[int], IntArray]:
    """Return the first context of each distinct one, and which distinct one each context is."""
    kept: dict[bytes, int] = {}
    number = np.empty(log.n_contexts, dtype=np.int64)
    first_rows: list[int] = []
    keys = _row_keys(log.X) if log.available is None else map(bytes.__add__, _row_keys(log.X), log.available.keys())
    for row, key in enumerate(keys):
        position = kept.setdefault(key, len(first_rows))
        if position == len(first_rows):
            first_rows.append(row)
        number[row] = position
    return first_rows, number


def _row_keys(X: Matrix) -> Iterator[bytes]:
    if not is_sparse(X):
        for row in X:
            yield (row + 0.0).tobytes()  # -0.0 and 0.0 are one context
        return
    X = X.copy()
    X.eliminate_zeros()
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        yield X.indices[start:stop].tobytes() + X.data[start:stop].tobytes()
