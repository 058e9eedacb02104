"""What a user calls X, turned into a float64 matrix: dense and C-ordered, or canonical CSR."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.errors import LogError, MismatchError
from poem.files import as_table
from poem.text import counted

Matrix = Any  # FloatArray or scipy.sparse.csr_array: scipy's stubs have no common name for both


def is_sparse(X: Any) -> bool:
    """Tell whether X is one of scipy's sparse matrices or arrays."""
    return bool(sp.issparse(X))


def as_matrix(
    X: Any, feature_names: tuple[str, ...] | None = None, *, what: str = "X"
) -> tuple[Matrix, tuple[str, ...] | None]:
    """Return ``(matrix, feature names)``; names come from a data frame or from ``feature_names``.

    A data frame whose columns are known by name is put into the order of ``feature_names``. Messages call it ``what``.
    """
    if hasattr(X, "__arrow_c_stream__"):
        return _from_frame(X, feature_names, what)
    matrix = _canonical_csr(X, what) if is_sparse(X) else _dense(X, what)
    _check_finite(matrix, what)
    if feature_names is not None and len(feature_names) != matrix.shape[1]:
        raise MismatchError(
            f"{what} has {counted(matrix.shape[1], 'column')}, but {len(feature_names)} feature names are known. "
            f"Pass {what} with one column for each feature name."
        )
    return matrix, feature_names


def _from_frame(frame: Any, expected: tuple[str, ...] | None, what: str) -> tuple[FloatArray, tuple[str, ...]]:
    table = as_table(frame)
    names = tuple(table.column_names)
    if len(set(names)) != len(names):
        raise LogError(f"the columns of {what} must have different names; found {list(names)[:8]}. Rename them.")
    if expected is not None and names != expected:
        missing = [name for name in expected if name not in names]
        if missing:
            more = f" (and {len(missing) - 1} more)" if missing[1:] else ""
            raise MismatchError(
                f"{what} lacks the column {missing[0]!r}{more}; it has {list(names)[:8]}. "
                "Pass the columns that the policy was trained on."
            )
        table, names = table.select(list(expected)), expected
    matrix = np.empty((table.num_rows, table.num_columns))
    for position, name in enumerate(names):
        matrix[:, position] = _numeric_column(table.column(position), name, what)
    _check_finite(matrix, what)
    return matrix, names


def _numeric_column(column: Any, name: str, what: str) -> AnyArray:
    import pyarrow as pa

    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise LogError(
            f"{what} must be numeric; column {name!r} holds {kind}. Encode it first, "
            "for example with sklearn.preprocessing.OneHotEncoder."
        )
    return np.asarray(column.cast(pa.float64()).to_numpy(), dtype=np.float64)


def _dense(X: Any, what: str) -> FloatArray:
    if np.iscomplexobj(X):
        raise LogError(f"{what} must be numeric; found complex numbers. Pass their parts as columns of float64.")
    try:
        matrix = np.ascontiguousarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise LogError(
            f"{what} must be a numeric matrix or an Arrow data frame; found {type(X).__name__} ({error})."
        ) from error
    if np.ndim(X) != 2:
        raise LogError(f"{what} must have two dimensions (contexts × features); found {np.ndim(X)}. Reshape your data.")
    return matrix


def _canonical_csr(X: Any, what: str) -> Matrix:
    if X.ndim != 2:
        raise LogError(f"{what} must have two dimensions (contexts × features); found {X.ndim}. Reshape your data.")
    if X.dtype.kind not in "buif":
        raise LogError(f"{what} must be numeric; found a sparse matrix of {X.dtype}. Convert it to float64.")
    matrix = sp.csr_array(X, dtype=np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if max(matrix.nnz, *matrix.shape) <= np.iinfo(np.int32).max:  # half the memory of int64 positions
        matrix.indices, matrix.indptr = (
            matrix.indices.astype(np.int32, copy=False),
            matrix.indptr.astype(np.int32, copy=False),
        )
    return matrix


def _check_finite(matrix: Matrix, what: str) -> None:
    values = matrix.data if is_sparse(matrix) else matrix
    # A sum is not finite if any entry is not: one pass and no array of flags in the common case.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum()):
            return
    rows, columns = _bad_entries(matrix)
    if len(rows) == 0:
        return
    raise LogError(
        f"{what} must be finite; row {rows[0]}, column {columns[0]} is NaN or infinite "
        f"({counted(len(rows), 'such entry')}). Impute or drop them."
    )


def _bad_entries(matrix: Matrix) -> tuple[AnyArray, AnyArray]:
    if is_sparse(matrix):
        entries = matrix.tocoo()
        bad = ~np.isfinite(entries.data)
        return entries.coords[0][bad], entries.coords[1][bad]
    rows, columns = np.nonzero(~np.isfinite(matrix))
    return rows, columns


def compact(X: Matrix) -> tuple[IntArray, Matrix]:
    """Return the columns that occur, and the matrix of these: a sparse X may have far more than fit into memory."""
    n, d = X.shape
    if not is_sparse(X):
        return np.arange(d), X
    columns = np.unique(X.indices).astype(np.int64)
    places = np.searchsorted(columns, X.indices)
    return columns, sp.csr_array((X.data, places, X.indptr), shape=(n, len(columns)))


def row_mean_square(X: Matrix) -> float:
    """Return the mean squared norm of a row, with its constant."""
    squares = float((X.data**2).sum()) if is_sparse(X) else float(np.einsum("ij,ij->", X, X))
    rows: int = X.shape[0]
    return squares / rows + 1.0
