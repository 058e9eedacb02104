"""What was available in a log, as columns of its native file."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray
from poem.compute import Matrix
from poem.data import BanditLog
from poem.data.features import Features, Numeric, Sparse
from poem.errors import InputError
from poem.files import Column
from poem.readers.raw import RawActions


def native_candidates(log: BanditLog, first: AnyArray | None) -> tuple[Column, RawActions]:
    """Return the lists of candidates, in the first row of each context only, and what is known of actions.

    A candidate of a log of classes is its label. Others are structs of the label and their features, or, where several
    candidates share a row of features, its number.
    """
    import pyarrow as pa

    available = log.available
    assert available is not None
    here = available if first is None else available.of(log.context[first])
    ids = labels_column(log.labels).take(pa.array(here.action))
    if available.features is None:
        return row_lists(here.starts, ids, first), RawActions()
    actions = RawActions(features=_encoding(available.features), recipe=_recipe(log))
    if available.row is None:
        own = available.features if first is None else available.features[here.row]
        structs = pa.StructArray.from_arrays([ids, *_entries(own)], ["id", "index", "value"])
        return row_lists(here.starts, structs, first), actions
    structs = pa.StructArray.from_arrays([ids, pa.array(here.row)], ["id", "row"])
    shared = pa.table(_entries(available.features), names=["index", "value"])
    return row_lists(here.starts, structs, first), RawActions(
        rows=shared, features=actions.features, recipe=actions.recipe
    )


def _encoding(features: Matrix) -> Features:
    return Features((Sparse("index", "value", int(features.shape[1])),))


def _entries(features: Matrix) -> list[Column]:
    """Return the positions and the values of each row's features."""
    return [row_lists(features.indptr, values, None) for values in (features.indices, features.data)]


def _recipe(log: BanditLog) -> Features | None:
    """Return how features of actions were made; of those that are known by name, as numbers."""
    if log.action_features is not None or log.action_names is None:
        return log.action_features
    n_ids = len(log.structure.known_labels(log.labels))
    return Features(tuple(Numeric(name) for name in log.action_names[: len(log.action_names) - n_ids]))


def row_lists(starts: AnyArray, values: Any, first: AnyArray | None) -> Column:
    """Return one list for each row; rows that are not the first of their context have none."""
    import pyarrow as pa

    mask = None
    if first is not None:
        begin = np.zeros(len(first) + 1, dtype=np.int64)
        np.cumsum(first, out=begin[1:])
        starts, mask = starts[begin], pa.array(~first)
    wide = len(values) >= 2**31
    kind, number = (pa.LargeListArray, np.int64) if wide else (pa.ListArray, np.int32)
    flat = values if isinstance(values, pa.Array) else pa.array(values)
    return kind.from_arrays(pa.array(starts.astype(number)), flat, mask=mask)


def labels_column(labels: Any) -> Any:
    """Return labels as an Arrow array; where they are of several types, or of more than 64 bits, as strings."""
    import pyarrow as pa

    kinds = {type(label) for label in labels}
    texts = [str(label) for label in labels]
    if len(set(texts)) < len(texts):
        raise InputError("labels that differ only in their types, such as 1 and '1', cannot be written. Rename them.")
    try:
        return pa.array(labels if len(kinds) == 1 and kinds <= {int, float, str} else texts)
    except OverflowError:
        return pa.array(texts)
    except UnicodeEncodeError as error:
        raise InputError(f"a label cannot be written as UTF-8 ({error}). Rename it.") from error
