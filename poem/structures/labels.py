"""Labels, which name the score columns of every structure."""

from typing import Any, NamedTuple

import numpy as np

from poem.arrays import AnyArray
from poem.compute import is_sparse
from poem.errors import LogError

Labels = tuple[Any, ...]


class Coded(NamedTuple):
    """Outputs that are codes already, with their labels."""

    codes: AnyArray
    labels: Labels


def plain_labels(labels: Any) -> Labels:
    """Turn numpy's scalars into Python's, which can be saved."""
    return tuple(label.item() if isinstance(label, np.generic) else label for label in labels)


def as_array(labels: Labels) -> AnyArray:
    """Return labels as an array that holds each one as it is: numpy turns mixed types into strings or floats."""
    found = np.asarray(labels)
    if found.shape == (len(labels),) and found.tolist() == list(labels):
        return found
    exact = np.empty(len(labels), dtype=object)
    exact[:] = labels
    return exact


def values_of(y: Any, labels: Labels | None) -> tuple[AnyArray, Labels | None]:
    """Return a user's outputs as an array, and the labels; columns of a data frame are put in the labels' order."""
    labels = None if labels is None else plain_labels(labels)
    names = y.column_names if hasattr(y, "column_names") else getattr(y, "columns", None)
    values = y.toarray() if is_sparse(y) else np.asarray(y)
    if names is None:
        return values, labels
    names = plain_labels(names)
    if labels is None:
        return values, names
    if set(labels) == set(names):
        return values[:, [names.index(label) for label in labels]], labels
    if any(isinstance(name, str) for name in names):
        unknown = [name for name in names if name not in labels]
        raise LogError(f"y has columns {unknown[:8]} that are no known labels; known are {list(labels)[:8]}.")
    return values, labels


def check_labels(labels: Labels) -> None:
    """Raise LogError for labels that cannot be saved or told apart."""
    odd = [label for label in labels if not isinstance(label, str | int | float)]
    if odd:
        raise LogError(
            f"labels must be strings or numbers, which a policy file can hold; found {odd[0]!r}. Convert them."
        )
    if len(set(labels)) != len(labels):
        raise LogError(f"labels must be distinct; found {len(labels)} of which {len(set(labels))} differ.")
