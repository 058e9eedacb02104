"""DSJSON, the decision service's log as Vowpal Wabbit reads it: one JSON object per line.

What is followed: the features of the context are what ``c`` has besides its actions (``_multi``), its slots
(``_slots``) and other keys that start with an underscore; those of an action or slot likewise. A number is a feature of
that value, and 0 is none; a string is a category, ``true`` is 1, ``false`` and ``null`` are nothing; an object is a
namespace, known by its own key alone wherever it stands; the numbers of an array are features of a namespace with the
array's key; ``_text`` is a bag of words; keys that repeat are features that repeat. Blanks, colons and bars in
categories become underscores. ``_labelIndex`` counts from 0 and decides, ``_label_Action`` (from 1) must agree with it.

``a`` lists actions from 1 and ``p`` their probabilities. If each line's ``a`` has a 0 and none is as high as the number
of its actions, ``a`` counts from 0.

``_slots`` with ``_outcomes`` are several decisions: one row per slot. A slot may have the actions that its ``_inc``
names (from 0), or all, without those that slots before it were filled with. ``_a`` counts from 0, and its first entry
is what the slot was filled with. The features of the slot join those of the context, with the one that Vowpal Wabbit
adds to tell slots apart. Slots of one line are not independent: they have the same ``group``.

Skipped: rewards and activations that found no decision (``RewardValue``, ``Observations``, ``ActionTaken``), lines and
outcomes with ``"_skipLearn": true``, deferred actions (``"DeferredAction": true``) if no observation in ``o`` says
``"ActionTaken": true``, and lines that start with ``[CHECKPOINT``.

``pdrop``, the chance that a line was not logged, only weighs lines against each other: it must be the same in all lines
(0 where it is missing), and has no effect then. ``_original_label_cost`` and all other keys are not read.

Vowpal Wabbit's plain JSON is read too, if it has actions: ``_multi`` stands beside ``_labelIndex``, ``_label_Cost`` and
``_label_Probability``, and all other keys are the context.

What is not followed: where Vowpal Wabbit skips a line that it cannot use, this is an error; lines need not have ``a``;
and numbers stay doubles.

Features are named as in :mod:`poem.readers.vw`: ``namespace^feature``, ``namespace^feature^text``, ``namespace^[0]``.
"""

import hashlib
import itertools
import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from poem.arrays import AnyArray, IntArray
from poem.errors import ReadError, WholeError
from poem.files import Source, content_of
from poem.readers.blocks import by_lines
from poem.readers.columns import Roles
from poem.readers.dsjson_decisions import Decisions, read_decisions
from poem.readers.dsjson_features import Lists
from poem.readers.dsjson_ranked import check_sums
from poem.readers.format import FIXED_ACTIONS, Format, Head
from poem.readers.lines import check_parsed, with_lines

_MOST_FEATURES = 2**31 - 1


def read_dsjson(
    content: bytes, name: str, *, actions_vary: bool = False, described: bool = False, unlabelled: bool = False
) -> pa.Table:
    """Read a DSJSON log.

    Parameters
    ----------
    content : bytes
        The whole file, decompressed.
    name : str
        What messages call it.
    actions_vary : bool
        An action is known by its index alone: that the number or the features of the actions differ between lines is
        ignored.
    described : bool
        An action is known by its features, even if all lines have the same actions.
    unlabelled : bool
        Accept lines without a label, as decisions to be made have none; their ``action``, ``cost`` and ``probability``
        are null. In a log this is an error.

    Returns
    -------
    pyarrow.Table
        One row for each decision: ``action`` (int64, from 1), ``cost``, ``probability`` (double), ``time`` (string),
        ``features.name`` (list of dictionary-encoded strings), ``features.value`` (list of doubles).

        If lines have different actions, or slots, or actions are ``described``: ``candidates`` (list of structs with
        ``features.name`` and ``features.value``), in which ``action`` is a position, and ``distribution`` (list of
        doubles, one for each candidate) where the probabilities of all are logged. Otherwise actions are classes, and
        where lines have ``a`` and ``p`` these are ``candidates`` (list of int64) and ``distribution``.
    """
    _check_utf8(content, name)
    decisions = read_decisions(content, name, unlabelled)
    codes, names = decisions.names.distinct(name)
    contexts, actions = (Lists.chained(parts).named(codes) for parts in (decisions.contexts, decisions.candidates))
    for lists in (contexts, actions):
        if len(lists.codes) > _MOST_FEATURES:
            raise ReadError(f"{name} has {len(lists.codes)} features, more than 2^31. Split it, and read the parts.")
    if decisions.has_slots:
        told, names = decisions.slots.features(names)
        contexts = contexts.joined(told)
    chosen = np.array(decisions.actions, dtype=np.int64)
    columns = {
        "action": pa.array(chosen, mask=chosen == 0),
        "cost": pa.array(np.array(decisions.costs, dtype=np.float64), mask=chosen == 0),
        "probability": pa.array(np.array(decisions.probabilities, dtype=np.float64), mask=chosen == 0),
        "time": pa.array(decisions.times, pa.string()),
        **_features(contexts, names),
    }
    if decisions.has_slots:
        counts = np.array(decisions.slots.counts, dtype=np.int64)
        more = {"candidates": _candidates(counts, actions, names), "distribution": decisions.slots.distribution()}
        more["group"] = pa.array([f"{name}:{line + 1}" for line in decisions.lines], pa.string())
    else:
        more = _choices(decisions, actions, names, name, actions_vary, described)
    table = pa.table(columns | {key: column for key, column in more.items() if column is not None})
    if actions_vary or _is_of_structs(table):
        return table
    return table.replace_schema_metadata({FIXED_ACTIONS: _fingerprint(decisions.available[:1], actions, names)})


def _check_utf8(content: bytes, name: str) -> None:
    if content.isascii():
        return
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        found, line = content[error.start : error.start + 4], content.count(b"\n", 0, error.start) + 1
        raise ReadError(f"{name}, line {line}: the bytes {found!r} are not UTF-8. Convert the file to UTF-8.") from None


# ---- actions ----------------------------------------------------------------------------------


def _choices(
    decisions: Decisions, actions: Lists, names: pa.Array, name: str, actions_vary: bool, described: bool
) -> dict[str, pa.Array | None]:
    """Return the columns of what could have been chosen: actions with features, or classes."""
    lines = np.array(decisions.lines, dtype=np.int64) + 1
    available = np.array(decisions.available, dtype=np.int64)
    ranking = decisions.ranked.ranking(np.array(decisions.actions, dtype=np.int64), available, lines, name)
    if not actions_vary:
        _check_mixed(available, lines, name)
        if (described and available[:1] > 0) or not _is_fixed_set(actions, available):
            check_sums(ranking, lines, name)
            return {"candidates": _candidates(available, actions, names), "distribution": ranking.aligned(available)}
    if not ranking.present.any():
        return {}
    candidates, distribution = ranking.arrays(available)
    return {"candidates": candidates, "distribution": distribution}


def _check_mixed(available: IntArray, lines: IntArray, name: str) -> None:
    for odd in np.flatnonzero((available < 0) != (available[:1] < 0))[:1]:
        here, there = ("no actions", "some") if available[odd] < 0 else ("actions", "none")
        raise ReadError(
            f"{name}, line {lines[odd]}: there are {here} (_multi), and {there} on line {lines[0]}. Log the actions of "
            "every decision, or pass --actions-vary (actions_vary=True) to identify them by index alone."
        )


def _is_fixed_set(actions: Lists, available: IntArray) -> bool:
    """Tell whether all lines have the same actions: as many, with the same features, in the same order."""
    if available.size == 0 or available[0] < 0:
        return True
    by_line = np.diff(actions.offsets)
    if (available != available[0]).any() or not _repeats(by_line, len(available)):
        return False
    row = np.repeat(np.arange(len(by_line)), by_line)
    parts = (actions.codes, actions.values)
    if all(_repeats(part, len(available)) for part in parts):
        return True
    order = np.lexsort((actions.values, actions.codes, row))
    return all(_repeats(part[order], len(available)) for part in parts)


def _is_of_structs(table: pa.Table) -> bool:
    return "candidates" in table.column_names and pa.types.is_struct(table["candidates"].type.value_type)


def _fingerprint(count: Sequence[int], actions: Lists, names: pa.Array) -> bytes:
    """Return a digest of the features of the first line's actions."""
    found = []
    for start, stop in itertools.pairwise(actions.offsets[: max(sum(count), 0) + 1]):
        labels = names.take(pa.array(actions.codes[start:stop])).to_pylist()
        found.append(sorted(zip(labels, actions.values[start:stop].tolist(), strict=True)))
    return hashlib.sha256(json.dumps(found).encode()).hexdigest().encode()


def _repeats(items: AnyArray, times: int) -> bool:
    by_line = items.reshape(times, -1)
    return bool((by_line == by_line[:1]).all())


def _features(lists: Lists, names: pa.Array) -> dict[str, pa.Array]:
    names, values = lists.arrays(names)
    return {"features.name": names, "features.value": values}


def _candidates(counts: IntArray, actions: Lists, names: pa.Array) -> pa.Array:
    columns = _features(actions, names)
    structs = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], np.cumsum(counts)]), pa.int32()), structs)


# ---- the format -------------------------------------------------------------------------------


def read_table(path: Source, actions_vary: bool = False, described: bool = False, unlabelled: bool = False) -> pa.Table:
    """Read a file."""
    content = content_of(path)
    check_parsed(content, path.name, b",", per_feature=40, per_line=150)
    options = {"actions_vary": actions_vary, "described": described, "unlabelled": unlabelled}
    table = read_dsjson(content, path.name, **options)
    return table if _has_slots(content) else with_lines(table, content)


def _read_block(path: Source, actions_vary: bool = False, described: bool = False) -> pa.Table:
    """Read some lines of a file."""
    table = read_table(path, actions_vary, described)
    if "group" in table.column_names:
        raise WholeError(f"{path.name} has slots, and such logs cannot be read block by block yet. Read it whole.")
    return table


def _has_slots(content: bytes) -> bool:
    # Then a line may be several rows, and a row cannot be named by its line.
    return b'"_slots"' in content


def _looks(head: Head) -> bool:
    keys = ('"_label_cost"', '"_labelIndex"', '"_label_probability"', '"_multi"', '"_outcomes"')
    return any(key in head.text for key in keys)


FORMAT = Format(
    read_table,
    _looks,
    (".dsjson",),
    refines="jsonl",
    takes=("actions_vary", "described", "unlabelled"),
    roles=Roles(
        output=("action",),
        loss="cost",
        propensity="probability",
        time="time",
        candidates="candidates",
        distribution="distribution",
    ),
    counted="line",
    cut=by_lines(_read_block),
)
