"""Logs with the probabilities of all candidates: do these match how often each was chosen?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.certificates import as_normal
from poem.files import coded, flattened, is_list, lengths, numbers_of, strings
from poem.health.finding import Finding
from poem.health.frequencies import CHECK, EXPECTED
from poem.health.propensities import MATERIAL, threshold
from poem.readers import RawLog, distributions
from poem.structures import Labels
from poem.text import counted

EDGES = np.array([0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.97, 1.1])


def calibration(raw: RawLog | None, rows: AnyArray, group: IntArray | None = None) -> Iterator[Finding]:
    """Compare, in bins of probability, how often candidates were chosen with their probability.

    The number of rows whose chosen candidate lies in a bin has mean Σq and variance Σq(1 − q), where q is the total
    probability of a row's candidates in that bin. This needs no model and no assumption on availability. ``group``
    says which rows belong together, if any do.
    """
    if raw is None or raw.roles.distribution is None:
        return
    bins = _bins(raw, rows, group)
    enough = (bins.expected >= EXPECTED * bins.effect) & (bins.spread > 0.0)
    if not enough.any():
        return
    z = (bins.observed[enough] - bins.expected[enough]) / np.sqrt(bins.spread[enough])
    if group is not None:
        z = as_normal(z, np.bincount(group).astype(np.float64))
    ratio = bins.observed[enough] / bins.expected[enough]
    worst = int(np.argmax(np.where(np.abs(ratio - 1.0) > MATERIAL, np.abs(z), 0.0)))
    if abs(z[worst]) <= threshold(len(z)) or abs(ratio[worst] - 1.0) <= MATERIAL:
        text = f"candidates were chosen as often as their distributions say ({counted(len(z), 'bin')} of probability)"
        yield Finding("propensities", "calibration", float(np.abs(z).max()), "fit", text)
        return
    at = np.flatnonzero(enough)[worst]
    text = (
        f"candidates with a probability between {EDGES[at]:g} and {min(1.0, EDGES[at + 1]):g} were chosen "
        f"{ratio[worst]:.2g} times as often as that says ({abs(z[worst]):.0f} standard errors)"
    )
    yield Finding(
        "propensities", "calibration", float(ratio[worst]), "unfit" if _far(ratio[worst]) else "with care", text, CHECK
    )


def _far(ratio: float) -> bool:
    return not 0.5 <= ratio <= 1.5


@dataclass(frozen=True)
class _Bins:
    """Per bin, the expected number of rows with their chosen candidate in it, its variance, and the actual number.

    ``effect`` is the design effect: how many rows of groups carry as much information as one independent row.
    """

    expected: FloatArray
    spread: FloatArray
    observed: FloatArray
    effect: float


def _bins(raw: RawLog, rows: AnyArray, group: IntArray | None) -> _Bins:
    _, chosen = distributions(raw)
    column = raw.table.column(raw.roles.distribution)
    counts, flat = lengths(column), numbers_of(flattened(column), np.float64)
    row = np.repeat(np.arange(len(counts)), counts)
    bins = len(EDGES) - 1
    number = np.clip(np.searchsorted(EDGES, flat, side="right") - 1, 0, bins - 1)
    where = np.clip(np.searchsorted(EDGES, chosen[rows], side="right") - 1, 0, bins - 1)
    expected, spread, by_group = np.zeros(bins), np.zeros(bins), np.zeros(bins)
    for position in range(bins):
        inside = number == position
        q = np.bincount(row[inside], flat[inside], minlength=len(counts))[rows]
        expected[position], spread[position] = q.sum(), (q * (1.0 - q)).sum()
        if group is not None:
            by_group[position] = np.sum(np.bincount(group, (where == position) - q) ** 2)
    # Over all bins: one in which no group happens to have its choice would seem to be sure of that.
    effect = max(1.0, float(by_group.sum() / max(float(spread.sum()), 1e-12)))
    observed = np.bincount(where, minlength=bins).astype(np.float64)
    return _Bins(expected, np.maximum(by_group, effect * spread), observed, effect)


def availability(raw: RawLog | None, rows: AnyArray, labels: Labels) -> FloatArray | None:
    """Return the share of rows in which each class was a candidate, if the log has candidates."""
    if raw is None or raw.roles.candidates is None:
        return None
    column = raw.table.column(raw.roles.candidates)
    if not is_list(column.type):
        return None
    codes, distinct = coded(strings(flattened(column)))
    number = _numbers(labels)
    of_value = np.array([number.get(value, len(labels)) for value in distinct.to_pylist()] + [len(labels)])
    counts = lengths(column)
    kept = np.zeros(len(counts), dtype=bool)
    kept[rows] = True
    there = of_value[codes][np.repeat(kept, counts)]
    return np.bincount(there, minlength=len(labels) + 1)[: len(labels)] / max(1, len(rows))


def _numbers(labels: Labels) -> dict[str, int]:
    """Return the number of each label, keyed by the label itself and by the reader's spelling of candidates."""
    import pyarrow as pa

    number = {str(label): code for code, label in enumerate(labels)}
    try:
        written = strings(pa.chunked_array([pa.array(list(labels))])).to_pylist()
    except pa.ArrowException:  # labels of several types have no common one
        return number
    return {text: code for code, text in enumerate(written)} | number
