"""Vowpal Wabbit's text with one decision per line, as a table."""

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.readers.vw_available import available_actions
from poem.readers.vw_columns import counted, lists, named, rendered_names, settle_late_numbers, without_zeros
from poem.readers.vw_features import COSTS, PROBABILITIES, VALUES
from poem.readers.vw_problems import FINE, failed
from poem.readers.vw_scan import scan


class _Lines(NamedTuple):
    """What one pass over the bytes found."""

    actions: IntArray
    costs: FloatArray
    probabilities: FloatArray
    stops: IntArray
    """Where the features of each row end."""
    codes: AnyArray
    """Which name each feature has."""
    values: FloatArray
    keys: IntArray
    """Of each name: start and stop of its namespace, and its own (−1 − k and 0 for the k-th without a name)."""
    late: IntArray
    """Numbers that the kernel leaves to others: start, stop, which array, which place."""


def read_lines(content: bytes, name: str) -> pa.Table:
    """Read a file that has one decision per line."""
    data = frozen(np.frombuffer(content, dtype=np.uint8))
    problem, start, stop, *found = scan(data, *counted(data, name))
    if problem != FINE:
        raise failed(problem, start, stop, content, name)
    lines = _Lines(*found)
    arrays = {COSTS: lines.costs, PROBABILITIES: lines.probabilities, VALUES: lines.values}
    settle_late_numbers(lines.late, arrays, content, name)
    values, codes, stops = without_zeros(lines.values, lines.codes, lines.stops)
    columns = {
        "action": pa.array(lines.actions),
        "cost": pa.array(lines.costs),
        "probability": pa.array(lines.probabilities),
        "features.name": lists(stops, named(codes, rendered_names(lines.keys, content, name))),
        "features.value": lists(stops, pa.array(values)),
    }
    available = available_actions(data, len(lines.actions))
    return pa.table(columns if available is None else columns | {"candidates": available})
