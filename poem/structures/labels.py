"""What a user calls y, turned into codes: (n, q) of 0/1 for label sets, (n,) of class numbers."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray
from poem.compute import is_sparse
from poem.errors import LogError

Labels = tuple[Any, ...]


def encode(y: Any, labels: Labels | None = None) -> tuple[AnyArray, Labels]:
    """Return ``(codes, labels)``; a new label is an error when ``labels`` are given.

    A matrix holds one 0/1 column for each label; a vector holds one class for each row.
    """
    labels = None if labels is None else tuple(map(_plain, labels))
    names = y.column_names if hasattr(y, "column_names") else getattr(y, "columns", None)
    values = y.toarray() if is_sparse(y) else np.asarray(y)
    if names is not None:
        names = tuple(map(_plain, names))
        if labels is None:
            labels = names
        elif set(labels) == set(names):
            values = values[:, [names.index(label) for label in labels]]
        elif any(isinstance(name, str) for name in names):
            unknown = [name for name in names if name not in labels]
            raise LogError(f"y has columns {unknown[:8]} that are no known labels; known are {list(labels)[:8]}.")
    if values.ndim == 2:
        return _label_sets(values, labels)
    if values.ndim == 1:
        return _classes(values, labels)
    raise LogError(
        f"y must be a vector of classes or a matrix of 0/1 labels; found {values.ndim} dimensions. "
        "Pass (n,) for one class a row or (n, q) for q yes/no labels."
    )


def _plain(label: Any) -> Any:
    """Turn numpy's scalars into Python's, which can be saved."""
    return label.item() if isinstance(label, np.generic) else label


def decode(codes: AnyArray, labels: Labels) -> AnyArray:
    """Turn codes back into what the user logged (label sets stay 0/1 matrices)."""
    return codes if codes.ndim == 2 else np.asarray(labels)[codes]


def _label_sets(values: AnyArray, labels: Labels | None) -> tuple[AnyArray, Labels]:
    if values.shape[1] == 0:
        raise LogError("y must have at least one label column; found none.")
    labels = tuple(range(values.shape[1])) if labels is None else labels
    if len(labels) != values.shape[1]:
        raise LogError(
            f"y has {values.shape[1]} label columns, but {len(labels)} labels are known. "
            "Pass one column for each label."
        )
    _check_labels(labels)
    try:
        zero_or_one = (values == 0) | (values == 1)
    except TypeError:
        zero_or_one = np.zeros(values.shape, dtype=bool)
    if not np.all(zero_or_one):
        row, column = np.argwhere(~zero_or_one)[0]
        raise LogError(
            f"a matrix y must hold 0 and 1 only; row {row}, column {column} is {values[row, column]!r}. "
            "For one class a row pass y as a vector."
        )
    return np.ascontiguousarray(values, dtype=np.uint8), labels


def _check_labels(labels: Labels) -> None:
    odd = [label for label in labels if not isinstance(label, str | int | float)]
    if odd:
        raise LogError(
            f"labels must be strings or numbers, which a policy file can hold; found {odd[0]!r}. Convert them."
        )
    if len(set(labels)) != len(labels):
        raise LogError(f"labels must be distinct; found {len(labels)} of which {len(set(labels))} differ.")


def _classes(values: AnyArray, labels: Labels | None) -> tuple[AnyArray, Labels]:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        row = int(np.flatnonzero(~np.isfinite(values))[0])
        raise LogError(f"y must not be NaN or infinite; row {row} is {values[row]}. Drop such rows.")
    if values.dtype.kind not in "biufUO":
        raise LogError(f"y must hold numbers or strings; found {values.dtype}. Convert it to strings.")
    missing = (
        [row for row, value in enumerate(values) if value is None or value != value] if values.dtype == object else []
    )
    if missing:
        raise LogError(f"y is missing in row {missing[0]} ({len(missing)} such rows). Drop such rows.")
    if labels is None:
        known, codes = _distinct(values)
        _check_labels(tuple(known.tolist()))
        return codes.astype(np.int32), tuple(known.tolist())
    _check_labels(labels)
    return _known_classes(values, labels), labels


def _distinct(values: AnyArray) -> tuple[AnyArray, AnyArray]:
    try:
        known, codes = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise LogError(f"y mixes types that cannot be ordered ({error}). Convert it to strings.") from error
    return known, codes


def _known_classes(values: AnyArray, labels: Labels) -> AnyArray:
    present, inverse = _distinct(values)
    number_of = {label: code for code, label in enumerate(labels)}
    unseen = [value for value in present.tolist() if value not in number_of]
    if unseen:
        row = int(np.flatnonzero(values == unseen[0])[0])
        raise LogError(
            f"y holds a class that is not known; row {row} is {unseen[0]!r}, known are {list(labels)[:8]}. "
            "Drop such rows or name all classes with labels=."
        )
    codes = np.array([number_of[value] for value in present.tolist()], dtype=np.int32)
    return codes[inverse]
