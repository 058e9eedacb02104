"""Vowpal Wabbit's text format for contextual bandits: ``action:cost:probability | features``, one decision per line.

What is followed: words before the bar are actions; one of them has a cost and a probability, the others are only
said to be available. The last word is a tag if it touches the bar or starts with a quote. Namespaces have weights,
features without a value are 1, features of value 0 are dropped, repeated ones are kept, ``name:text`` is a category
of value 1 whatever the weight of its namespace, and values without a name are counted within their namespace. Blank
lines and byte order marks are skipped. What stands before a tab in front of the bar is not read.

What is not followed: where Vowpal Wabbit warns and guesses (a value that is not a number, NaN, a probability above 1,
an action that is a word), this is an error; and numbers stay doubles.

A feature is called ``namespace^feature``, ``namespace^feature^text`` for a category, ``namespace^[0]`` without a name;
in the default namespace the first part is left out.
"""

import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.errors import ReadError
from poem.files import content_of
from poem.readers import vw_scan
from poem.readers.columns import Roles
from poem.readers.format import Format, Head
from poem.readers.lines import with_lines
from poem.readers.vw_names import copy_spans, measure_names, write_names

ROLES = Roles(output=("action",), loss="cost", propensity="probability")
_LARGEST_LIST = 2**31 - 1
_LABEL = re.compile(r"\d+(:|$)|'|shared$")

_PROBLEMS = {
    vw_scan.SHARED: "this is the multi-line form ({token}), in which each decision brings its own actions. poem "
    "learns over a fixed set of actions: write one line per decision, 'action:cost:probability | features', or log as "
    "DSJSON and read that.",
    vw_scan.NO_LABEL: "there is no label in {token}. Write 'action:cost:probability | features' with a space before "
    "the bar (a word that touches the bar or the end of the line is a tag, and what stands before a tab is not read). "
    "If these are blocks of lines, one for each action, write one line per decision or read DSJSON.",
    vw_scan.NO_COST: "none of the actions in {token} has a cost. Write the chosen one as action:cost:probability.",
    vw_scan.SEVERAL_COSTS: "{token} is a second action with a cost. A logged decision has one: write the other "
    "actions without cost.",
    vw_scan.BAD_ACTION: "{token} is not an action. Actions are whole numbers from 1 to 2147483647: number them, leave "
    "out comments, and start a tag with a quote (').",
    vw_scan.NO_PROBABILITY: "{token} has no probability. Write action:cost:probability, with the probability that the "
    "action had when it was chosen.",
    vw_scan.TOO_MANY_PARTS: "{token} has more than three parts. Write action:cost:probability.",
    vw_scan.BAD_COST: "the cost {token} is not a finite number. Write it like 1, -0.5 or 1e-3.",
    vw_scan.BAD_PROBABILITY: "the probability {token} is not a number above 0 and at most 1. Write the probability "
    "with which the action was chosen.",
    vw_scan.BAD_VALUE: "the value {token} of a feature starts like a number but is none that is finite. Write it like "
    "1, -0.5 or 1e-3; a category must not start with a digit, 'inf' or 'nan', nor be a lone 'e', '-' or '.'.",
    vw_scan.NO_VALUE: "the feature {token} ends in a colon without a value. Write feature:value, or the feature alone "
    "for 1.",
    vw_scan.BAD_WEIGHT: "the weight of the namespace {token} is not a finite number. Write |namespace:weight, like "
    "|user:0.5.",
    vw_scan.NO_NAMESPACE: "{token} has a weight but no name. Write |namespace:weight, or '| ' for the default "
    "namespace.",
}


class _Scanned(NamedTuple):
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


def read_vw(content: bytes, name: str) -> pa.Table:
    """Read Vowpal Wabbit's text format for ``--cb``.

    Parameters
    ----------
    content : bytes
        The whole file, decompressed.
    name : str
        What messages call it.

    Returns
    -------
    pyarrow.Table
        One row for each line that is not blank: ``action`` (int64), ``cost``, ``probability`` (double),
        ``features.name`` (list of dictionary-encoded strings) and ``features.value`` (list of doubles).
    """
    _check_text(content, name)
    scanned = _scan_content(content, name)
    values, codes, stops = _settle_late_numbers(scanned, content, name)
    return pa.table(
        {
            "action": pa.array(scanned.actions),
            "cost": pa.array(scanned.costs),
            "probability": pa.array(scanned.probabilities),
            "features.name": _lists(stops, _named(codes, _rendered_names(scanned.keys, content, name))),
            "features.value": _lists(stops, pa.array(values)),
        }
    )


def _check_text(content: bytes, name: str) -> None:
    lone = re.search(rb"\r[^\r\n]", content)
    if lone is not None:
        start = lone.start()
        following = content[start + 1 : start + 5].decode("utf-8", "ignore")[:1]
        raise ReadError(
            f"{name}, line {_line_number(content, start)}: a carriage return is followed by {following!r}, not by the "
            "end of the line, and Vowpal Wabbit would not read on. End lines by \\n or \\r\\n."
        )
    if content.isascii():
        return
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        found = content[error.start : error.start + 4]
        raise ReadError(
            f"{name}, line {_line_number(content, error.start)}: the bytes {found!r} are not UTF-8. "
            "Convert the file to UTF-8 and read it again."
        ) from None


def _scan_content(content: bytes, name: str) -> _Scanned:
    data = frozen(np.frombuffer(content, dtype=np.uint8))
    lines, blanks = vw_scan.count(data)
    if blanks > _LARGEST_LIST:
        raise ReadError(f"{name} may have {blanks} features, which is more than 2^31. Split it, and read the parts.")
    problem, start, stop, *found = vw_scan.scan(data, lines, blanks)
    if problem != vw_scan.FINE:
        raise _failed(problem, start, stop, content, name)
    return _Scanned(*found)


def _settle_late_numbers(scanned: _Scanned, content: bytes, name: str) -> tuple[FloatArray, AnyArray, IntArray]:
    """Fill in the numbers that the kernel could not read exactly; return values, codes and stops of the features."""
    late, values = scanned.late, scanned.values
    if len(late) == 0:
        return values, scanned.codes, scanned.stops
    numbers = _parsed_elsewhere(late, content)
    for which, array, problem in (
        (vw_scan.COSTS, scanned.costs, vw_scan.BAD_COST),
        (vw_scan.PROBABILITIES, scanned.probabilities, vw_scan.BAD_PROBABILITY),
        (vw_scan.VALUES, values, vw_scan.BAD_VALUE),
    ):
        chosen = late[:, 2] == which
        place = late[chosen, 3]
        with np.errstate(over="ignore", invalid="ignore"):
            # A feature may be here twice: for itself, and for the weight of its namespace.
            np.multiply.at(array, place, numbers[chosen])
        result = array[place]
        bad = ~np.isfinite(result)
        if which == vw_scan.PROBABILITIES:
            bad |= ~((result > 0.0) & (result <= 1.0))
        if bad.any():
            start, stop = late[chosen][np.argmax(bad), :2]
            raise _failed(problem, int(start), int(stop), content, name)
    return _without_zeros(values, scanned.codes, scanned.stops)


def _parsed_elsewhere(late: IntArray, content: bytes) -> FloatArray:
    """Return the numbers at these places, by Arrow, which rounds correctly as Python's ``float`` does."""
    lengths = late[:, 1] - late[:, 0]
    text = np.empty(int(lengths.sum()), dtype=np.uint8)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    copy_spans(frozen(np.frombuffer(content, dtype=np.uint8)), frozen(late, np.int64), text)
    strings = pa.LargeStringArray.from_buffers(len(late), pa.py_buffer(offsets), pa.py_buffer(text))
    return np.asarray(strings.cast(pa.float64()).to_numpy(zero_copy_only=False))


def _without_zeros(values: FloatArray, codes: AnyArray, stops: IntArray) -> tuple[FloatArray, AnyArray, IntArray]:
    kept = values != 0.0
    if kept.all():
        return values, codes, stops
    kept_before = np.concatenate([[0], np.cumsum(kept)])
    return values[kept], codes[kept], kept_before[stops]


def _rendered_names(keys: IntArray, content: bytes, name: str) -> pa.Array:
    lengths = np.empty(len(keys), dtype=np.int64)
    measure_names(frozen(keys, np.int64), lengths)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if offsets[-1] > _LARGEST_LIST:
        raise ReadError(
            f"{name} has {offsets[-1]} bytes of distinct names, more than 2^31. Split it, and read the parts."
        )
    text = np.empty(int(offsets[-1]), dtype=np.uint8)
    write_names(frozen(np.frombuffer(content, dtype=np.uint8)), frozen(keys, np.int64), text)
    return pa.StringArray.from_buffers(len(keys), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(text))


def _named(codes: AnyArray, names: pa.Array) -> pa.DictionaryArray:
    # Two keys may have one name: the feature n^a of the default namespace, and a of the namespace n.
    distinct = names.dictionary_encode()
    if len(distinct.dictionary) < len(names):
        codes = distinct.indices.to_numpy()[codes]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), distinct.dictionary)


def _lists(stops: IntArray, items: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], stops]), pa.int32()), items)


def _failed(problem: int, start: int, stop: int, content: bytes, name: str) -> ReadError:
    token = content[start : min(stop, start + 60)].decode("utf-8", "ignore") + ("…" if stop - start > 60 else "")
    return ReadError(f"{name}, line {_line_number(content, start)}: {_PROBLEMS[problem].format(token=repr(token))}")


def _line_number(content: bytes, position: int) -> int:
    return content.count(b"\n", 0, position) + 1


# ---- the format -----------------------------------------------------------------------------------


def read_table(path: Path) -> pa.Table:
    """Read a file."""
    content = content_of(path)
    return with_lines(read_vw(content, path.name), content)


def _looks(head: Head) -> bool:
    """Tell labels and features from column names with bars between them."""
    labels, bar, features = head.first_line.partition("|")
    words = labels.split()
    return bool(bar) and all(map(_LABEL.match, words)) and bool(words or " " in features)


FORMAT = Format(read_table, _looks, (".vw",), roles=ROLES, counted="line")
