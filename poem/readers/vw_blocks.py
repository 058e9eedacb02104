"""Vowpal Wabbit's text in blocks, one line per action, as a table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute import Threads, count_threads, exact_kernel
from poem.errors import ReadError
from poem.readers.format import SLOT_NAME
from poem.readers.vw_block_lines import ACTION, BREAK, scan_lines
from poem.readers.vw_columns import (
    LARGEST_LIST,
    counted,
    lists,
    named,
    rendered_names,
    settle_late_numbers,
    without_zeros,
)
from poem.readers.vw_decisions import decide
from poem.readers.vw_features import COSTS, DISTRIBUTION, PROBABILITIES, VALUES
from poem.readers.vw_problems import FINE, failed, line_number
from poem.readers.vw_slots import decide_slots, most_candidates
from poem.readers.vw_words import NEWLINE

_PIECE = 1 << 22  # bytes that are read at a time
_FEATURE_STOP, _PLACE = 3, 3  # of a span: where the features of its line stop; of a late number: which feature it is


@dataclass(frozen=True)
class _Features:
    """The features of lines of one kind, one after another."""

    names: pa.Array
    codes: AnyArray
    values: FloatArray
    stops: IntArray

    def columns(self) -> dict[str, pa.Array]:
        return {
            "features.name": lists(self.stops, named(self.codes, self.names)),
            "features.value": lists(self.stops, pa.array(self.values)),
        }

    def as_structs(self) -> pa.StructArray:
        columns = self.columns()
        return pa.StructArray.from_arrays(list(columns.values()), names=list(columns))


@dataclass(frozen=True)
class _Lines:
    """What one pass over the bytes found."""

    content: bytes
    name: str
    kinds: AnyArray
    spans: IntArray
    context: _Features
    actions: _Features

    def settle(self, late: IntArray, arrays: dict[int, FloatArray]) -> None:
        settle_late_numbers(late, arrays, self.content, self.name)

    def check(self, problem: int, start: int, stop: int) -> None:
        if problem != FINE:
            raise failed(problem, start, stop, self.content, self.name)


def read_blocks(content: bytes, name: str, *, with_slots: bool, unlabelled: bool) -> pa.Table:
    """Read a file that has one line per action, with or without slots."""
    data = frozen(np.frombuffer(content, dtype=np.uint8))
    lines = _lines(data, content, name, with_slots)
    read = _slots if with_slots else _decisions
    return read(data, lines, unlabelled)


def _lines(data: AnyArray, content: bytes, name: str, with_slots: bool) -> _Lines:
    def scanned(piece: tuple[int, int]) -> Any:
        start, stop = piece
        return scan_lines(data, start, stop, *counted(data[start:stop], name), with_slots)

    found = Threads(count_threads(-1)).map(scanned, _pieces(content))
    for problem, start, stop, *_ in found:
        if problem != FINE:
            raise failed(problem, start, stop, content, name)
    kinds, spans, context, actions = list(zip(*found, strict=True))[3:]
    is_action = [kind == ACTION for kind in kinds]
    features = []
    for parts, of_kind in ((context, [~one for one in is_action]), (actions, is_action)):
        stops = [span[chosen, _FEATURE_STOP] for span, chosen in zip(spans, of_kind, strict=True)]
        features.append(_joined(parts, stops, content, name))
    kind, span = np.concatenate(kinds), np.concatenate(spans)
    span[kind != ACTION, _FEATURE_STOP], span[kind == ACTION, _FEATURE_STOP] = (one.stops for one in features)
    return _Lines(content, name, kind, span, *features)


def _pieces(content: bytes) -> list[tuple[int, int]]:
    """Cut a file into pieces of whole lines."""
    cuts = [0]
    while cuts[-1] < len(content):
        newline = content.find(b"\n", cuts[-1] + _PIECE)
        cuts.append(len(content) if newline < 0 else newline + 1)
    return list(pairwise(cuts))


def _joined(parts: Sequence[Any], stops: list[IntArray], content: bytes, name: str) -> _Features:
    """Put the features of the pieces together: each has numbered its names and features for itself."""
    features, names = 0, 0
    for (codes, values, keys, late), stop in zip(parts, stops, strict=True):
        codes += names
        stop += features
        late[:, _PLACE] += features
        names, features = names + len(keys), features + len(values)
    _check_size(features, name)
    codes, values, keys, late = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    settle_late_numbers(late, {VALUES: values}, content, name)
    values, codes, stop = without_zeros(values, codes, np.concatenate(stops))
    return _Features(rendered_names(keys, content, name), codes, values, stop)


def _check_size(features: int, name: str) -> None:
    if features > LARGEST_LIST:
        raise ReadError(f"{name} has {features} features, which is more than 2^31. Split it, and read the parts.")


def _decisions(data: AnyArray, lines: _Lines, unlabelled: bool) -> pa.Table:
    """Return one row per block."""
    most_rows = int(np.sum(lines.kinds == BREAK)) + 1
    *wrong, chosen, costs, probabilities, starts, feature_stops, action_stops, late = decide(
        data, lines.kinds, lines.spans, most_rows
    )
    lines.check(*wrong)
    lines.settle(late, {COSTS: costs, PROBABILITIES: probabilities})
    return pa.table(
        {
            **_labels(lines, chosen, costs, probabilities, starts, unlabelled),
            **replace(lines.context, stops=feature_stops).columns(),
            "candidates": lists(action_stops, lines.actions.as_structs()),
        }
    )


def _slots(data: AnyArray, lines: _Lines, unlabelled: bool) -> pa.Table:
    """Return one row per slot."""
    most = most_candidates(lines.kinds)
    if most > LARGEST_LIST:
        raise ReadError(f"{lines.name} has {most} candidates, which is more than 2^31. Split it, and read the parts.")
    *wrong, chosen, costs, probabilities, facts, candidates, distribution, complete, late = decide_slots(
        data, lines.kinds, lines.spans, most
    )
    lines.check(*wrong)
    lines.settle(late, {COSTS: costs, PROBABILITIES: probabilities, DISTRIBUTION: distribution})
    starts, requests, candidate_stops = facts[:, 0], facts[:, 1], facts[:, 7]
    columns = {
        **_labels(lines, chosen, costs, probabilities, starts, unlabelled),
        **_slot_features(lines, facts).columns(),
        "group": _names_of_requests(data, requests, lines.name),
        "candidates": lists(candidate_stops, _taken(lines, candidates)),
    }
    if complete.any():
        columns["distribution"] = _distributions(distribution, complete, candidate_stops)
    return pa.table(columns)


def _labels(
    lines: _Lines,
    chosen: IntArray,
    costs: FloatArray,
    probabilities: FloatArray,
    starts: IntArray,
    unlabelled: bool,
) -> dict[str, pa.Array]:
    without = chosen == 0
    if without.any() and not unlabelled:
        line, more = line_number(lines.content, int(starts[np.argmax(without)])), int(without.sum()) - 1
        raise ReadError(
            f"{lines.name}, line {line}: the decision that starts here has no label (cost and probability "
            "of the chosen action)"
            + (f", nor have {more:,} more. " if more else ". ")
            + "A log needs one per decision: join rewards and decisions first, or leave out decisions without a known "
            "cost. Decisions to be made are for poem predict."
        )
    found = {"action": chosen, "cost": costs, "probability": probabilities}
    return {name: pa.array(values, mask=without if unlabelled else None) for name, values in found.items()}


# ---- slots --------------------------------------------------------------------------------------


def _slot_features(lines: _Lines, facts: IntArray) -> _Features:
    """Return what is known when a slot is filled: shared features, its own, and which slot it is."""
    context = lines.context
    _, _, number, shared, shared_stop, own, own_stop, _ = facts.T
    stops = np.cumsum(shared_stop - shared + own_stop - own + 1)
    total = int(stops[-1]) if len(stops) else 0
    _check_size(total, lines.name)
    codes, values = np.empty(total, dtype=np.int32), np.empty(total)
    _join(facts, context.codes, context.values, len(context.names), codes, values)
    slots = pa.array([SLOT_NAME.format(slot) for slot in range(int(number.max(initial=-1)) + 1)], pa.string())
    return _Features(pa.concat_arrays([context.names, slots]), codes, values, stops)


@exact_kernel
def _join(
    facts: IntArray,
    codes: AnyArray,
    values: FloatArray,
    first_slot: int,
    out_codes: AnyArray,
    out_values: FloatArray,
) -> None:
    at = 0
    for row in range(facts.shape[0]):
        for part in (3, 5):
            for place in range(facts[row, part], facts[row, part + 1]):
                out_codes[at] = codes[place]
                out_values[at] = values[place]
                at += 1
        out_codes[at] = first_slot + facts[row, 2]
        out_values[at] = 1.0
        at += 1


def _taken(lines: _Lines, candidates: IntArray) -> pa.StructArray:
    """Return the candidates of all slots, one after another."""
    lengths = np.diff(lines.actions.stops, prepend=0)
    _check_size(int(lengths[candidates].sum()), lines.name)
    return lines.actions.as_structs().take(pa.array(candidates))


def _names_of_requests(data: AnyArray, requests: IntArray, name: str) -> pa.Array:
    """Return file and line of the request of each slot."""
    distinct, which = np.unique(requests, return_inverse=True)
    numbers = np.searchsorted(np.flatnonzero(data == NEWLINE), distinct) + 1
    return pa.array([f"{name}:{number}" for number in numbers], pa.string()).take(pa.array(which))


def _distributions(distribution: FloatArray, complete: AnyArray, stops: IntArray) -> pa.Array:
    sizes = np.diff(stops, prepend=0)
    offsets = np.concatenate([[0], np.cumsum(np.where(complete, sizes, 0))])
    values = pa.array(distribution[np.repeat(complete, sizes)])
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, mask=pa.array(~complete))
