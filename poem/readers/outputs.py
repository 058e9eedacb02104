"""What was decided: a raw log's column of outputs as codes, or as label sets."""

from collections import Counter
from typing import Any

import numpy as np

from poem.arrays import AnyArray, IntArray
from poem.errors import LogError, ReadError
from poem.files import Column, coded, flattened, is_category, is_list, is_number, is_text, lengths
from poem.readers.raw import RawLog, named_error
from poem.readers.values import check_exact, numbers_in
from poem.structures import Coded, Labels, MultiLabel, Structure, Wanted, encoded, kind_of, structure_from_data

MOST_CELLS = 1 << 32  # rows × labels


def coded_outputs(raw: RawLog, structure: Wanted = None) -> tuple[Coded, Structure]:
    """Return the outputs and what they are: as wanted, else as the file says, else as they look."""
    wanted = raw.structure if structure is None else structure
    codes, labels = outputs_of(raw, raw.labels, _list_kind(wanted))
    doubled = [label for label, count in Counter(labels).items() if count > 1]
    if doubled:
        raise ReadError(
            f"{raw.origin.name}: different labels are needed; found {doubled[0]!r} twice. Name each output once."
        )
    try:
        given = structure_from_data(wanted, len(labels)) if isinstance(wanted, dict) else wanted
        return Coded(codes, labels), encoded(Coded(codes, labels), wanted=given)[2]
    except LogError as error:
        raise named_error(raw, error) from error


def _list_kind(wanted: Any) -> type[Structure]:
    """Return the kind of output that lists hold: sets, if nothing else is wanted."""
    if wanted is None:
        return MultiLabel
    return kind_of(None, wanted["name"] if isinstance(wanted, dict) else wanted)[0]


def outputs_of(raw: RawLog, labels: Labels | None, lists: type[Structure] = MultiLabel) -> tuple[AnyArray, Labels]:
    """Return ``(codes, labels)``: (n,) positions in the labels, or (n, q) of 0/1 for label sets."""
    names = raw.roles.output
    if len(names) > 1:
        return _columns_of_labels(raw, labels)
    column = raw.table.column(names[0])
    if is_list(column.type):
        return _lists_of_labels(raw, names[0], labels, lists)
    codes, values = distinct_values(raw, column, names[0])
    if np.any(codes < 0):
        row = int(np.flatnonzero(codes < 0)[0])
        raise ReadError(f"{raw.origin.place(row)}, column {names[0]!r}: the output is empty. Drop such rows.")
    number, known = _numbered(raw, values, labels, lambda code: int(np.flatnonzero(codes == code)[0]), names[0])
    return number[codes].astype(np.int32), known


def distinct_values(raw: RawLog, column: Column, name: str) -> tuple[IntArray, list[Any]]:
    """Return ``(codes, distinct values)`` of scalars; whole numbers that are stored as floats are whole numbers."""
    if not (is_text(column.type) or is_number(column.type) or is_category(column.type)):
        raise ReadError(
            f"{raw.origin.name}, column {name!r} holds {column.type}; an output is a string, a number, or a list "
            "of them."
        )
    codes, values = coded(column)
    plain = values.to_pylist()
    check_exact(raw, name, plain)
    if all(isinstance(value, float) and value.is_integer() for value in plain):
        plain = [int(value) for value in plain]
    return codes, plain


def _numbered(raw: RawLog, values: list[Any], labels: Labels | None, row_of: Any, name: str) -> tuple[IntArray, Labels]:
    """Return the position of each distinct value in the labels, which are the values themselves if not given."""
    known = tuple(sorted(values)) if labels is None else labels
    number_of = {label: code for code, label in enumerate(known)}
    by_text = {str(label): code for label, code in number_of.items()}  # a policy of "3" and a log of 3 mean the same
    number = np.array([number_of.get(value, by_text.get(str(value), -1)) for value in values], dtype=np.int64)
    if np.any(number < 0):
        unknown = int(np.flatnonzero(number < 0)[0])
        raise ReadError(
            f"{raw.origin.place(row_of(unknown))}, column {name!r} has the output {values[unknown]!r}, which is not "
            f"one of the {len(known)} that are known ({', '.join(map(str, known[:8]))}"
            f"{', …' if len(known) > 8 else ''}). "
            "Drop such rows, or name all outputs."
        )
    return number, known


def _lists_of_labels(raw: RawLog, name: str, labels: Labels | None, kind: type[Structure]) -> tuple[AnyArray, Labels]:
    column = raw.table.column(name)
    counts = lengths(column)
    codes, values = distinct_values(raw, flattened(column), name)
    row = np.repeat(np.arange(len(counts)), counts)
    if np.any(codes < 0):
        raise ReadError(
            f"{raw.origin.place(int(row[codes < 0][0]))}, column {name!r}: a label in the list is empty. Fix such rows."
        )
    # Lists of three or more can be 0/1 for each label, but not sets of 0 and 1. Lists of two could be the set of both,
    # but nobody logs the same set in each row; only what poem wrote itself is always a set.
    look_so = counts.min() == counts.max() > 1 and all(value in (0, 1) for value in values) and not raw.about.encoded
    if look_so and (raw.whole is None or raw.whole.vectors):
        return _vectors_of_labels(raw, name, int(counts[0]), np.array(values)[codes], labels)
    number, known = _numbered(raw, values, labels, lambda code: int(row[np.flatnonzero(codes == code)[0]]), name)
    if len(counts) * len(known) > MOST_CELLS:
        raise ReadError(
            f"{raw.origin.name}, column {name!r} has {len(known):,} different labels in {len(counts):,} rows, more "
            "than fit in memory. Name a column of label sets."
        )
    try:
        return kind.from_lists(row, number[codes], (len(counts), len(known))), known
    except LogError as error:
        raise named_error(raw, error) from error


def _vectors_of_labels(
    raw: RawLog, name: str, size: int, flat: AnyArray, labels: Labels | None
) -> tuple[AnyArray, Labels]:
    """Return lists that are 0/1 for each label."""
    known = tuple(range(size)) if labels is None else labels
    if len(known) != size:
        raise ReadError(
            f"{raw.origin.name}, column {name!r} has lists of {size} times 0 or 1, but {len(known)} labels are known. "
            "Each label needs its 0 or 1."
        )
    return flat.reshape(-1, size).astype(np.uint8), known


def _columns_of_labels(raw: RawLog, labels: Labels | None) -> tuple[AnyArray, Labels]:
    names = list(raw.roles.output)
    if labels is not None and set(map(str, labels)) == set(names):
        names = [str(label) for label in labels]
    matrix = np.empty((raw.table.num_rows, len(names)), dtype=np.uint8)
    for position, name in enumerate(names):
        values = numbers_in(raw, name)
        bad = np.flatnonzero((values != 0.0) & (values != 1.0))
        if len(bad):
            raise ReadError(
                f"{raw.origin.place(int(bad[0]))}, column {name!r} has {values[bad[0]]:g}; several columns of output "
                "hold 0 and 1 only."
            )
        matrix[:, position] = values
    return matrix, tuple(names) if labels is None else labels
