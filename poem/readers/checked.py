"""A raw log, column by column, checked and turned into a BanditLog; errors name file, row and column."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import Matrix
from poem.data import BanditLog
from poem.data.features import Features
from poem.errors import InputError, LogError, ReadError
from poem.files import (
    EXACT,
    Column,
    coded,
    decoded,
    first_odd,
    flattened,
    floats,
    is_category,
    is_list,
    is_number,
    is_text,
    lengths,
    numbers_of,
    strings,
)
from poem.readers.raw import RawLog, check_roles
from poem.structures import Coded, Labels, Structure, Wanted, encoded, structure_from_data

SUM_OFF = 1e-3  # how far from 1 the probabilities of all candidates may add up
MOST_CELLS = 1 << 32  # rows × labels, or characters
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
DAY = 86_400.0


def log_of(
    raw: RawLog,
    *,
    features: Features | None = None,
    labels: Sequence[Any] | None = None,
    structure: Wanted = None,
    missing: bool = False,
    encoding: Mapping[str, Any] | None = None,
) -> BanditLog:
    """Return the BanditLog of a raw log.

    ``features`` is a recipe to follow (else the file's own, else one is made by ``encoding``, the arguments of
    :meth:`Features.learn`), ``labels`` are all possible outputs,
    ``structure`` says what an output is if it is not to be inferred, ``missing`` says that there are no
    propensities.
    """
    if raw.table.num_rows == 0:
        raise ReadError(f"{raw.origin.name} has no rows, only column names. Pass a log with at least one decision.")
    check_roles(raw, missing)
    missing = missing or raw.says_missing()
    raw = raw if labels is None else replace(raw, labels=_plain_labels(labels))
    outputs, space = coded_outputs(raw, structure)
    if raw.roles.candidates is not None and space.lists_outputs:
        _check_candidates(raw)
    outcome: dict[str, Any] = {"loss": losses_of(raw)} if raw.roles.loss is not None else {"reward": losses_of(raw)}
    propensity: dict[str, Any] = {"propensity": "missing"} if missing else {"log_propensity": log_propensities_of(raw)}
    about = raw.about
    # A file of features that are already encoded has a recipe of its own; the raw columns are not there.
    recipe = raw.features if features is None or about.encoded else features
    context = raw.table.select(list(raw.roles.context if recipe is None else _needed(raw, recipe)))
    X, context_of, recipe = _contexts(raw, context, recipe, dict(encoding or {}))
    log = BanditLog(
        X,
        outputs,
        structure=space,
        **outcome,
        **propensity,
        context=context_of,
        group=names_of(raw, "group") if about.encoded else identities_of(raw, "group"),
        logger=names_of(raw, "logger"),
        time=times_of(raw),
        feature_names=about.feature_names if about.encoded else recipe.names(),
        features=about.recipe if about.encoded else recipe,
    )
    return log.with_propensities(log.log_propensity, "estimated") if about.estimated and not missing else log


def _plain_labels(labels: Sequence[Any]) -> Labels:
    """Return labels as Python's own strings and numbers, which a policy file can hold."""
    try:
        plain = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    except TypeError as error:
        raise InputError(f"labels must be a list of all outputs; found {type(labels).__name__}.") from error
    odd = [label for label in plain if not isinstance(label, str | int | float)]
    if odd:
        raise InputError(f"labels must be strings or numbers; found {odd[0]!r}. Convert them.")
    return plain


def _needed(raw: RawLog, recipe: Features) -> list[str]:
    """Return the columns of a recipe that are there; the recipe says what to do about others."""
    return [name for name in recipe.columns if name in raw.table.column_names]  # each once


# ---- contexts -----------------------------------------------------------------------------------


def _contexts(
    raw: RawLog, context: Any, recipe: Features | None, encoding: dict[str, Any]
) -> tuple[Matrix, IntArray | None, Features]:
    """Return ``(X, which row of X each decision saw, recipe)``."""
    ids, place = _context_ids(raw), raw.origin.place
    if ids is not None:
        # The features of a context stand in the first row that saw it.
        _, first, ids = np.unique(ids, return_index=True, return_inverse=True)
        context, place = context.take(first), lambda row: raw.origin.place(int(first[row]))
    try:
        recipe = Features.learn(context, place=place, **encoding) if recipe is None else recipe
        return recipe.transform(context, place), ids, recipe
    except LogError as error:
        raise _named(raw, error) from error


def _context_ids(raw: RawLog) -> IntArray | None:
    """Return a number for each row's context."""
    return None if raw.roles.context_id is None else whole_numbers(raw, raw.roles.context_id)


def contexts_by_row(raw: RawLog, recipe: Features) -> Matrix:
    """Return the features of each row's context."""
    X, context_of, _ = _contexts(raw, raw.table.select(_needed(raw, recipe)), recipe, {})
    return X if context_of is None else X[context_of]


def _named(raw: RawLog, error: LogError) -> ReadError:
    text, files = str(error), (raw.origin.name, *(name for name, _ in raw.origin.parts))
    return ReadError(text if text.startswith(files) else f"{raw.origin.name}: {text}")


# ---- outputs ------------------------------------------------------------------------------------


def coded_outputs(raw: RawLog, structure: Wanted = None) -> tuple[Coded, Structure]:
    """Return the outputs and what they are: as wanted, else as the file says, else as they look."""
    codes, labels = outputs_of(raw, raw.labels)
    if structure is None and raw.structure is not None:
        structure = structure_from_data(raw.structure, len(labels))
    try:
        return Coded(codes, labels), encoded(Coded(codes, labels), wanted=structure)[2]
    except LogError as error:
        raise _named(raw, error) from error


def outputs_of(raw: RawLog, labels: Labels | None) -> tuple[AnyArray, Labels]:
    """Return ``(codes, labels)``: (n,) positions in the labels, or (n, q) of 0/1 for label sets."""
    names = raw.roles.output
    if len(names) > 1:
        return _columns_of_labels(raw, labels)
    column = raw.table.column(names[0])
    if is_list(column.type):
        return _lists_of_labels(raw, names[0], labels)
    codes, values = _distinct(raw, column, names[0])
    if np.any(codes < 0):
        row = int(np.flatnonzero(codes < 0)[0])
        raise ReadError(f"{raw.origin.place(row)}, column {names[0]!r}: the output is empty. Drop such rows.")
    number, known = _numbered(raw, values, labels, lambda code: int(np.flatnonzero(codes == code)[0]), names[0])
    return number[codes].astype(np.int32), known


def _distinct(raw: RawLog, column: Column, name: str) -> tuple[IntArray, list[Any]]:
    """Return ``(codes, distinct values)`` of scalars; whole numbers that are stored as floats are whole numbers."""
    if not (is_text(column.type) or is_number(column.type) or is_category(column.type)):
        raise ReadError(
            f"{raw.origin.name}, column {name!r} holds {column.type}; an output is a string, a number, or a list "
            "of them."
        )
    codes, values = coded(column)
    plain = values.to_pylist()
    _check_exact(raw, name, plain)
    if all(isinstance(value, float) and value.is_integer() for value in plain):
        plain = [int(value) for value in plain]
    return codes, plain


def _check_exact(raw: RawLog, name: str, values: list[Any]) -> None:
    """Raise for floats that cannot name anything: infinite ones, and whole numbers that were rounded to floats."""
    odd = [value for value in values if isinstance(value, float) and not abs(value) < EXACT]
    if odd:
        raise ReadError(
            f"{raw.origin.name}, column {name!r} has {odd[0]:g}, a number that was rounded when it was stored as "
            "floating point, or is infinite: different ones cannot be told apart. Store them as strings or int64."
        )


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


def _lists_of_labels(raw: RawLog, name: str, labels: Labels | None) -> tuple[AnyArray, Labels]:
    column = raw.table.column(name)
    counts = lengths(column)
    codes, values = _distinct(raw, flattened(column), name)
    row = np.repeat(np.arange(len(counts)), counts)
    if np.any(codes < 0):
        raise ReadError(
            f"{raw.origin.place(int(row[codes < 0][0]))}, column {name!r}: a label in the list is empty. "
            "Mend such rows."
        )
    # Lists of three or more can be 0/1 for each label, but not sets of 0 and 1. Lists of two could be the set of both,
    # but nobody logs the same set in each row; only what poem wrote itself is always a set.
    if counts.min() == counts.max() > 1 and all(value in (0, 1) for value in values) and not raw.about.encoded:
        return _vectors_of_labels(raw, name, int(counts[0]), np.array(values)[codes], labels)
    number, known = _numbered(raw, values, labels, lambda code: int(row[np.flatnonzero(codes == code)[0]]), name)
    if len(counts) * len(known) > MOST_CELLS:
        raise ReadError(
            f"{raw.origin.name}, column {name!r} has {len(known):,} different labels in {len(counts):,} rows, more "
            "than fit in memory. Name a column of label sets."
        )
    matrix = np.zeros((len(counts), len(known)), dtype=np.uint8)
    matrix[row, number[codes]] = 1
    return matrix, known


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


# ---- numbers ------------------------------------------------------------------------------------


def numbers_in(raw: RawLog, name: str) -> FloatArray:
    """Return a column of numbers; what is missing is NaN."""
    column = decoded(raw.table.column(name))
    if not is_number(column.type):
        raise ReadError(
            f"{raw.origin.name}, column {name!r} should hold numbers and holds {column.type}"
            f"{first_odd(column, raw.origin.place)}. Mend the column, or name another one."
        )
    return floats(column)


def whole_numbers(raw: RawLog, name: str) -> IntArray:
    """Return a column of whole numbers, none of them missing; they do not pass through floats, which would round."""
    import pyarrow as pa

    values = present(raw, name)
    column = raw.table.column(name)
    if not pa.types.is_integer(column.type):
        odd = (values != np.floor(values)) | (np.abs(values) >= EXACT)
        if np.any(odd):
            row = int(np.flatnonzero(odd)[0])
            raise ReadError(f"{raw.origin.place(row)}, column {name!r} has {values[row]:g}; whole numbers are needed.")
        return values.astype(np.int64)
    return np.asarray(column.cast(pa.int64(), safe=False).to_numpy(), dtype=np.int64)


def present(raw: RawLog, name: str) -> FloatArray:
    """Return a column of finite numbers, or say where one is missing."""
    values = numbers_in(raw, name)
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ReadError(
            f"{raw.origin.place(int(bad[0]))}, column {name!r} is empty, NaN or infinite ({len(bad):,} such rows). "
            "Drop or mend them."
        )
    return values


def losses_of(raw: RawLog) -> FloatArray:
    """Return the losses, or the rewards."""
    name = raw.roles.loss if raw.roles.loss is not None else raw.roles.reward
    assert name is not None
    return present(raw, name)


def log_propensities_of(raw: RawLog) -> FloatArray:
    """Return the logarithms of the propensities, which may be logged in three units or as whole distributions."""
    name = raw.roles.propensity
    if name is None:
        return np.log(distribution_of(raw))
    values = present(raw, name)
    if raw.roles.unit == "log":
        _refuse(raw, name, values, values > 1e-9, "a logarithm of a probability is at most 0")
        return values
    scaled = values / 100.0 if raw.roles.unit == "percent" else values
    looks = looks_like(values) if raw.roles.unit == "probability" else None
    if looks is not None:
        raise ReadError(
            f"{raw.origin.name}, column {name!r} holds numbers from {values.min():.4g} to {values.max():.4g}: these "
            f"look like {looks[0]}, not like probabilities. Say so with --propensity-unit {looks[1]} "
            f"(propensity_unit={looks[1]!r})."
        )
    _refuse(raw, name, values, scaled <= 0.0, "an output that was chosen had a probability above 0")
    _refuse(raw, name, values, scaled > 1.0 + 1e-9, "no probability is above 1")
    return np.log(np.minimum(scaled, 1.0))


def looks_like(values: FloatArray) -> tuple[str, str] | None:
    """Recognise logarithms and per cents by their range: ``(what they are, the unit's name)``."""
    if values.max() <= 0.0 and values.min() < 0.0:
        return "logarithms", "log"
    if 1.0 < values.max() <= 100.0 + 1e-6 and values.min() > 0.0 and np.mean(values > 1.0) > 0.2:
        return "per cents", "percent"
    return None


def _refuse(raw: RawLog, name: str, values: FloatArray, bad: AnyArray, why: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise ReadError(
            f"{raw.origin.place(int(rows[0]))}, column {name!r} has the propensity {values[rows[0]]:g}; {why} "
            f"({len(rows):,} such rows). Drop such rows or mend the logging."
        )


def distribution_of(raw: RawLog) -> FloatArray:
    """Return the logged outputs' probabilities out of the distributions over all candidates, which must add up to 1."""
    name = raw.roles.distribution
    assert name is not None
    sums, chosen = distributions(raw)
    off = np.flatnonzero(~(np.abs(sums - 1.0) <= SUM_OFF))
    if len(off):
        raise ReadError(
            f"{raw.origin.place(int(off[0]))}, column {name!r}: the probabilities add up to {sums[off[0]]:.6g}, not to "
            f"1 ({len(off):,} such rows). Mend the logging."
        )
    _refuse_strangers(raw, np.isnan(chosen))
    _refuse(raw, name, chosen, chosen <= 0.0, "an output that was chosen had a probability above 0")
    _refuse(raw, name, chosen, chosen > 1.0 + SUM_OFF, "no probability is above 1")
    return np.minimum(chosen, 1.0)


def _refuse_strangers(raw: RawLog, strange: AnyArray) -> None:
    rows = np.flatnonzero(strange)
    if len(rows):
        name = raw.roles.output[0]
        found = raw.table.column(name)[int(rows[0])].as_py()
        raise ReadError(
            f"{raw.origin.place(int(rows[0]))}, column {name!r}: the output {found!r} is not among the row's "
            f"candidates ({len(rows):,} such rows). Drop such rows or mend the logging."
        )


def _check_candidates(raw: RawLog) -> None:
    """Raise if an output is none of its row's candidates, where a row has any."""
    name = raw.roles.candidates
    assert name is not None
    column = raw.table.column(name)
    if not is_list(column.type):
        raise ReadError(f"{raw.origin.name}, column {name!r} should hold lists of candidates and holds {column.type}.")
    counts = lengths(column)
    row = np.repeat(np.arange(len(counts)), counts)
    found = np.array(column.is_null().to_numpy(), dtype=bool)
    found[row[_is_candidate(raw, column, row)]] = True
    _refuse_strangers(raw, ~found)


def distributions(raw: RawLog) -> tuple[FloatArray, FloatArray]:
    """Return the sum of each row's distribution, and the logged output's part of it (NaN: it is no candidate)."""
    name = raw.roles.distribution
    assert name is not None
    column = raw.table.column(name)
    if not is_list(column.type) or not is_number(column.type.value_type):
        raise ReadError(
            f"{raw.origin.name}, column {name!r} should hold lists of probabilities and holds {column.type}."
        )
    counts = lengths(column)
    flat = numbers_of(flattened(column), np.float64)
    row = np.repeat(np.arange(len(counts)), counts)
    sums = np.asarray(np.bincount(row, weights=flat, minlength=len(counts)), dtype=np.float64)
    here = np.flatnonzero(_is_chosen(raw, counts, row))
    chosen = np.full(len(counts), np.nan)
    chosen[row[here]] = flat[here]
    return sums, chosen


def _is_chosen(raw: RawLog, counts: IntArray, row: IntArray) -> AnyArray:
    """Return for every entry of the distributions whether it is that of the logged output."""
    (codes, known), space = coded_outputs(raw)
    if not space.lists_outputs:
        raise ReadError(
            f"{raw.origin.name}: a distribution is over single outputs, and the outputs are label sets. Name the "
            "propensity of each set (--propensity)."
        )
    if raw.roles.candidates is None:
        if len(set(counts.tolist())) != 1 or counts[0] != len(known):
            raise ReadError(
                f"{raw.origin.name}: distributions without a column of candidates need one probability for each of the "
                f"{len(known)} outputs. Add a column of candidates (--candidates), or name all outputs."
            )
        return np.asarray(np.tile(np.arange(len(known)), len(counts)) == np.repeat(codes, counts))
    column = raw.table.column(raw.roles.candidates)
    if not is_list(column.type) or np.any(lengths(column) != counts):
        raise ReadError(
            f"{raw.origin.name}, column {raw.roles.candidates!r} should hold as many candidates in each row as there "
            "are probabilities."
        )
    return _is_candidate(raw, column, row)


def _is_candidate(raw: RawLog, column: Column, row: IntArray) -> AnyArray:
    """Return for every entry of the lists of candidates whether it is the logged output."""
    flat = flattened(column)
    if not (is_text(flat.type) or is_number(flat.type) or is_category(flat.type)):
        raise ReadError(
            f"{raw.origin.name}, column {raw.roles.candidates!r} holds {column.type}; candidates are strings or "
            "numbers."
        )
    codes, distinct = coded(strings(flat))
    logged, outputs = coded(strings(raw.table.column(raw.roles.output[0])))
    number = {value: code for code, value in enumerate(distinct.to_pylist())}
    of_output = np.array([number.get(value, -2) for value in outputs.to_pylist()] + [-2])
    return np.asarray(codes == of_output[logged][row])


# ---- who and when -------------------------------------------------------------------------------


def identities_of(raw: RawLog, role: str) -> AnyArray | None:
    """Return numbers that are equal where a column's values are; each row without a value is one of its own."""
    name = getattr(raw.roles, role)
    if name is None:
        return None
    codes, distinct = _named_values(raw, role, name)
    alone = codes < 0
    codes[alone] = len(distinct) + np.arange(int(alone.sum()))
    return codes


def names_of(raw: RawLog, role: str) -> AnyArray | None:
    """Return a column's values: numbers as they are, anything else as strings."""
    name = getattr(raw.roles, role)
    if name is None:
        return None
    codes, distinct = _named_values(raw, role, name, as_text=not is_number(raw.table.column(name).type))
    empty = np.flatnonzero(codes < 0)
    if len(empty):
        raise ReadError(f"{raw.origin.place(int(empty[0]))}, column {name!r} is empty. Each row needs its {role}.")
    values = distinct.to_pylist()
    # numpy gives each string the room of the longest one: a single long one could take all memory.
    wide = len(codes) * max(len(str(value)) for value in values) > MOST_CELLS
    return np.array(values, dtype=object if wide else None)[codes]


def _named_values(raw: RawLog, role: str, name: str, as_text: bool = False) -> tuple[IntArray, Column]:
    """Return ``(codes, distinct values)`` of a column of names."""
    import pyarrow as pa

    column = raw.table.column(name)
    try:
        codes, distinct = coded(column)
        distinct = strings(distinct) if as_text else distinct
    except pa.ArrowException as error:
        raise ReadError(
            f"{raw.origin.name}, column {name!r} holds {column.type}; a {role} is a string or a number."
        ) from error
    if pa.types.is_floating(distinct.type):
        _check_exact(raw, name, distinct.to_pylist())
    return codes, distinct


def times_of(raw: RawLog) -> FloatArray | None:
    """Return when each decision was made: seconds for dates and times, numbers as they are."""
    import pyarrow as pa

    name = raw.roles.time
    if name is None:
        return None
    column = decoded(raw.table.column(name))
    if is_number(column.type):
        return present(raw, name)
    moments = _moments(column) if is_text(column.type) else column
    if moments is None or not (pa.types.is_timestamp(moments.type) or pa.types.is_date(moments.type)):
        raise ReadError(
            f"{raw.origin.name}, column {name!r} should hold times and holds {column.type}{_no_moment(raw, column)}. "
            "Use numbers, dates or ISO 8601 such as 2026-11-16T08:30:00Z, all with a zone or all without one."
        )
    seconds = _seconds(moments)
    empty = np.flatnonzero(np.isnan(seconds))
    if len(empty):
        raise ReadError(
            f"{raw.origin.place(int(empty[0]))}, column {name!r} is empty ({len(empty):,} such rows). Drop such rows, "
            "or do without times."
        )
    return seconds


def _moments(column: Column) -> Column | None:
    """Return ISO strings as moments, all with a zone or all without one; None if some are neither."""
    import pyarrow as pa

    for zone in ("UTC", None):
        for unit in ("us", "ns"):
            try:
                return column.cast(pa.timestamp(unit, tz=zone))
            except pa.ArrowException:
                continue
    return None


def _no_moment(raw: RawLog, column: Column) -> str:
    """Say where the first string stands that is no time."""
    import pyarrow as pa

    if not is_text(column.type):
        return ""
    codes, distinct = coded(column)
    first = _moments(pa.chunked_array([distinct.slice(0, 1)]))
    for code in range(len(distinct)):
        one = _moments(pa.chunked_array([distinct.slice(code, 1)]))
        if one is None or first is None or one.type.tz != first.type.tz:
            row = int(np.flatnonzero(codes == code)[0])
            return f" ({raw.origin.place(row)}: {distinct[code].as_py()[:40]!r})"
    return ""


def _seconds(moments: Column) -> FloatArray:
    """Return moments or dates as seconds; what is missing is NaN."""
    import pyarrow as pa

    if pa.types.is_date32(moments.type):
        return floats(moments.cast(pa.int32())) * DAY
    unit = "ms" if pa.types.is_date64(moments.type) else moments.type.unit
    return floats(moments.cast(pa.int64())) / PER_SECOND[unit]
