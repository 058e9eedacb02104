"""Which rows of a raw log have broken lists of available actions."""

import numpy as np

from poem.arrays import AnyArray, BoolArray, IntArray
from poem.files import Column, coded, flattened, is_category, is_list, is_number, is_text, lengths, strings
from poem.health.broken import Sound
from poem.structures import MOST_CANDIDATES

LOG_ALL = "Log what was available when the decision was made, the chosen action among it, or drop such rows."


def check_available(sound: Sound) -> None:
    """Find rows without available actions, with too many, with one of them twice, or without what was chosen."""
    roles = sound.raw.roles
    if roles.candidates is None or len(roles.output) != 1:
        return
    column, output = sound.column(roles.candidates), sound.column(roles.output[0])
    if not is_list(column.type) or is_list(output.type):
        return  # what such a column holds is said when the log is made
    counts, named = lengths(column), np.array(column.is_valid().to_numpy(), dtype=bool)
    sound.note("availability", "no available action", named & (counts == 0), "have no available action", LOG_ALL)
    many = f"have more than {MOST_CANDIDATES:,} available actions"
    sound.note("availability", "too many actions", counts > MOST_CANDIDATES, many, "Choose among fewer.")
    ids = _ids(column)
    if ids is None:
        chosen, twice = _by_position(sound, counts), np.zeros(len(counts), dtype=bool)
    else:
        chosen, twice = _by_name(ids, output, counts)
    strange = named & (counts > 0) & ~chosen & ~sound.bad
    what = "have an output that was not available"
    sound.note("availability", "not available", strange, what, LOG_ALL)
    sound.note("availability", "actions twice", twice, "have an available action twice", "Name each one once.")


def _ids(column: Column) -> Column | None:
    """Return the names of all candidates, row after row; None if they are known by their positions."""
    import pyarrow as pa
    import pyarrow.compute as pc

    flat = flattened(column)
    if not pa.types.is_struct(flat.type):
        return flat if is_text(flat.type) or is_number(flat.type) or is_category(flat.type) else None
    fields = [field.name for field in flat.type]
    return pc.struct_field(flat, "id") if "id" in fields else None


def _by_position(sound: Sound, counts: IntArray) -> BoolArray:
    """Return which rows choose a position in their list, counted from 1."""
    position = sound.numbers(sound.raw.roles.output[0])
    return np.asarray((position >= 1.0) & (position <= counts))


def _by_name(ids: Column, output: Column, counts: IntArray) -> tuple[BoolArray, BoolArray]:
    """Return which rows have the name of their output in their list, and which have any name twice."""
    row = np.repeat(np.arange(len(counts)), counts)
    code, distinct = coded(strings(ids))
    logged, outputs = coded(strings(output))
    number = {value: place for place, value in enumerate(distinct.to_pylist())}
    of_output = np.array([number.get(value, -2) for value in outputs.to_pylist()] + [-2])
    return _rows_of(row[code == of_output[logged][row]], len(counts)), _rows_of(_repeated(row, code), len(counts))


def _repeated(row: IntArray, code: AnyArray) -> IntArray:
    """Return the rows in which a code occurs again."""
    order = np.lexsort((code, row))
    same = (np.diff(row[order]) == 0) & (np.diff(code[order]) == 0)
    return np.asarray(row[order[1:]][same])


def _rows_of(rows: IntArray, n: int) -> BoolArray:
    found = np.zeros(n, dtype=bool)
    found[rows] = True
    return found
