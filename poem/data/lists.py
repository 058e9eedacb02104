"""Lists of what is available, in any of the forms that users have them in."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, IntArray
from poem.compute import is_sparse
from poem.errors import LogError
from poem.files import coded, flattened, is_list, lengths
from poem.structures import Available, Labels

FORMS = (
    "available must be a mask of contexts × labels, one list of actions per context, or the number of candidates of "
    "each context; found {found}."
)


def lists_of(
    available: Any, labels: Labels | None, contexts: int, remedy: str | None
) -> tuple[IntArray, AnyArray, Labels]:
    """Return ``(starts, codes, labels)`` of any of the forms.

    ``remedy`` is what to do about an action that is not among the labels; None adds it to them.
    """
    if isinstance(available, Available):
        return _of_available(available, labels, contexts)
    if is_sparse(available) or (isinstance(available, np.ndarray) and available.ndim == 2):
        return _of_mask(available, labels, contexts)
    if isinstance(available, Sequence) and available and all(isinstance(one, int | np.integer) for one in available):
        available = np.asarray(available)
    if isinstance(available, np.ndarray) and available.ndim == 1 and available.dtype.kind in "iu":
        return _of_counts(available, labels, contexts)
    return _of_lists(available, labels, contexts, remedy)


def _of_available(found: Available, labels: Labels | None, contexts: int) -> tuple[IntArray, AnyArray, Labels]:
    if labels is None or found.n_contexts != contexts:
        raise LogError(f"available has {found.n_contexts} of the {contexts} contexts. Pass its labels= with it.")
    return found.starts, found.action, labels


def _of_mask(mask: Any, labels: Labels | None, contexts: int) -> tuple[IntArray, AnyArray, Labels]:
    if labels is None:
        raise LogError("a mask of available actions has one column per label. Pass labels= in that order.")
    if mask.shape != (contexts, len(labels)):
        raise LogError(
            f"a mask of available actions must have one row for each of the {contexts} contexts and one column for "
            f"each of the {len(labels)} labels; found shape {mask.shape}."
        )
    values = mask.data if is_sparse(mask) else np.asarray(mask)
    if not np.isin(values, (0, 1)).all():
        raise LogError("a mask of available actions holds 0 and 1, or true and false; found other values.")
    found = sp.csr_array(mask != 0)
    found.sort_indices()
    return found.indptr.astype(np.int64), found.indices.astype(np.int32), labels


def _of_counts(counts: AnyArray, labels: Labels | None, contexts: int) -> tuple[IntArray, AnyArray, Labels]:
    if len(counts) != contexts:
        raise LogError(f"available must have one number for each of the {contexts} contexts; found {len(counts)}.")
    if contexts and counts.min() < 1:
        raise LogError(f"context {int(np.argmin(counts))} has no candidates. Each decision needs at least one.")
    most = int(counts.max()) if contexts else 0
    starts = np.append(0, np.cumsum(counts.astype(np.int64)))
    positions = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    known = tuple(range(most)) if labels is None or len(labels) < most else labels
    return starts, positions.astype(np.int32), known


def _of_lists(
    available: Any, labels: Labels | None, contexts: int, remedy: str | None
) -> tuple[IntArray, AnyArray, Labels]:
    column = _list_column(available)
    counts = lengths(column)
    if len(counts) != contexts:
        raise LogError(f"available must have one list for each of the {contexts} contexts; found {len(counts)}.")
    starts = np.append(0, np.cumsum(counts))
    codes, distinct = coded(flattened(column))
    if np.any(codes < 0):
        context = int(np.searchsorted(starts, np.flatnonzero(codes < 0)[0], side="right")) - 1
        raise LogError(f"an action in the list of context {context} is missing. Name each one, or leave it out.")
    number, known = _numbered(distinct.to_pylist(), labels, remedy, codes, starts)
    return starts, number[codes].astype(np.int32), known


def _list_column(available: Any) -> Any:
    import pyarrow as pa

    try:
        if isinstance(available, pa.Array | pa.ChunkedArray):
            column = available
        else:
            if any(isinstance(one, str) for one in available):
                raise TypeError("one text per context, not one list")
            column = pa.array([list(one) for one in available])
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise LogError(FORMS.format(found=f"{type(available).__name__} ({error})")) from error
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if not is_list(column.type):
        raise LogError(FORMS.format(found=f"{column.type}"))
    return column


def _numbered(
    values: Sequence[Any], labels: Labels | None, remedy: str | None, codes: IntArray, starts: IntArray
) -> tuple[IntArray, Labels]:
    """Return the position of each distinct action in the labels; new ones come last, if that is allowed."""
    try:
        known = tuple(sorted(values)) if labels is None else labels
        number_of = {label: code for code, label in enumerate(known)}
        new = sorted(value for value in values if value not in number_of)
    except TypeError as error:
        raise LogError(f"actions mix types that cannot be ordered ({error}). Convert them to strings.") from error
    if new and remedy is not None:
        place = int(np.flatnonzero(codes == values.index(new[0]))[0])
        context = int(np.searchsorted(starts, place, side="right")) - 1
        raise LogError(
            f"the list of context {context} has the action {new[0]!r}, which is not one of the {len(known)} known ones "
            f"({list(known)[:8]}). {remedy}"
        )
    number_of |= {value: len(known) + place for place, value in enumerate(new)}
    return np.array([number_of[value] for value in values], dtype=np.int64), (*known, *new)
