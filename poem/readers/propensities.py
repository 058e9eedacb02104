"""The probability of what was decided: logged as a number, or as a distribution over all candidates."""

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.errors import ReadError
from poem.files import Column, coded, flattened, is_category, is_list, is_number, is_text, lengths, numbers_of, strings
from poem.readers.candidates import candidate_ids
from poem.readers.offered import one_output, refuse_strangers
from poem.readers.outputs import coded_outputs
from poem.readers.raw import RawLog
from poem.readers.values import present
from poem.text import counted

SUM_OFF = 1e-3  # how far from 1 the probabilities of all candidates may add up


def log_propensities_of(raw: RawLog) -> FloatArray:
    """Return the logarithms of the propensities, which may be logged in three units or as whole distributions."""
    name = raw.roles.propensity
    if name is None:
        return np.log(distribution_of(raw))
    if raw.has_candidates and raw.roles.distribution is not None:
        _check_sums(raw, distributions(raw)[0])
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
    """Recognise logarithms and percentages by their range: ``(what they are, the unit's name)``."""
    if values.max() <= 0.0 and values.min() < 0.0:
        return "logarithms", "log"
    if 1.0 < values.max() <= 100.0 + 1e-6 and values.min() > 0.0 and np.mean(values > 1.0) > 0.2:
        return "percentages", "percent"
    return None


def _refuse(raw: RawLog, name: str, values: FloatArray, bad: AnyArray, why: str) -> None:
    rows = np.flatnonzero(bad)
    if len(rows):
        raise ReadError(
            f"{raw.origin.place(int(rows[0]))}, column {name!r} has the propensity {values[rows[0]]:g}; {why} "
            f"({counted(len(rows), 'such row')}). Drop such rows or fix the logging."
        )


def distribution_of(raw: RawLog) -> FloatArray:
    """Return the logged outputs' probabilities out of the distributions over all candidates, which must add up to 1."""
    name = raw.roles.distribution
    assert name is not None
    sums, chosen = distributions(raw)
    _check_sums(raw, sums)
    refuse_strangers(raw, np.isnan(chosen))
    _refuse(raw, name, chosen, chosen <= 0.0, "an output that was chosen had a probability above 0")
    _refuse(raw, name, chosen, chosen > 1.0 + SUM_OFF, "no probability is above 1")
    return np.minimum(chosen, 1.0)


def _check_sums(raw: RawLog, sums: FloatArray) -> None:
    """Raise if the probabilities of a row do not add up to 1; beside a propensity, all of them may be missing."""
    name = raw.roles.distribution
    off = ~(np.abs(sums - 1.0) <= SUM_OFF)
    if raw.roles.propensity is not None:
        off &= ~raw.table.column(name).is_null().to_numpy()
    rows = np.flatnonzero(off)
    if len(rows):
        raise ReadError(
            f"{raw.origin.place(int(rows[0]))}, column {name!r}: the probabilities add up to {sums[rows[0]]:.6g}, not "
            f"to 1 ({counted(len(rows), 'such row')}). Fix the logging."
        )


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
    if not raw.has_candidates:
        (codes, known), space = coded_outputs(raw)
        if not space.lists_outputs:
            raise ReadError(
                f"{raw.origin.name}: a distribution is over single outputs, and the outputs are label sets. Name the "
                "propensity of each set (--propensity)."
            )
        if len(set(counts.tolist())) != 1 or counts[0] != len(known):
            raise ReadError(
                f"{raw.origin.name}: distributions without a column of candidates need one probability for each of the "
                f"{len(known)} outputs. Add a column of candidates (--candidates), or name all outputs."
            )
        return np.asarray(np.tile(np.arange(len(known)), len(counts)) == np.repeat(codes, counts))
    within, ids = candidate_ids(raw)
    missing = raw.table.column(raw.roles.distribution).is_null().to_numpy()
    if np.any((within != counts) & ~missing):
        differs = int(np.argmax((within != counts) & ~missing))
        raise ReadError(
            f"{raw.origin.place(differs)}, column {raw.roles.candidates or raw.actions.id!r} should hold as many "
            f"candidates as there are probabilities; found {within[differs]} and {counts[differs]}."
        )
    return _is_logged(raw, ids.filter(~np.repeat(missing, within)) if missing.any() else ids, row)


def _is_logged(raw: RawLog, ids: Column, row: IntArray) -> AnyArray:
    """Return for every candidate whether it is the logged output."""
    if not (is_text(ids.type) or is_number(ids.type) or is_category(ids.type)):
        raise ReadError(
            f"{raw.origin.name}, column {raw.roles.candidates!r} holds {ids.type}; candidates are strings or numbers."
        )
    codes, distinct = coded(strings(ids))
    logged, outputs = coded(strings(raw.table.column(one_output(raw))))
    number = {value: code for code, value in enumerate(distinct.to_pylist())}
    of_output = np.array([number.get(value, -2) for value in outputs.to_pylist()] + [-2])
    return np.asarray(codes == of_output[logged][row])
