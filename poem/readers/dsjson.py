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
is what the slot was filled with. The features of the slot join those of the context.

Skipped: rewards and activations that found no decision (``RewardValue``, ``Observations``, ``ActionTaken``), lines and
outcomes with ``"_skipLearn": true``, deferred actions (``"DeferredAction": true``) of which no observation in ``o`` says
``"ActionTaken": true``, and lines that start with ``[CHECKPOINT``.

``pdrop``, the chance that a line was not logged, only weighs lines against each other: it must be the same in all lines
(0 where it is missing), and has no effect then. ``_original_label_cost`` and all other keys are not read.

Vowpal Wabbit's plain JSON is read too, if it has actions: ``_multi`` stands beside ``_labelIndex``, ``_label_Cost`` and
``_label_Probability``, and all other keys are the context.

What is not followed: where Vowpal Wabbit skips a line that it cannot use, this is an error; lines need not have ``a``;
and numbers stay doubles.

Features are named as in :mod:`poem.readers.vw`: ``namespace^feature``, ``namespace^feature^text``, ``namespace^[0]``.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa

from poem.arrays import BoolArray, IntArray
from poem.errors import ReadError
from poem.files import content_of
from poem.readers.columns import Roles
from poem.readers.dsjson_decisions import Decisions, read_decisions
from poem.readers.dsjson_features import Contexts, Lists, Spelling, gathered, read_contexts, spelling_of
from poem.readers.dsjson_ranked import check_sums
from poem.readers.dsjson_scan import ACTIONS
from poem.readers.format import Format, Head
from poem.readers.lines import with_lines


def read_dsjson(content: bytes, name: str, *, actions_vary: bool = False) -> pa.Table:
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

    Returns
    -------
    pyarrow.Table
        One row for each decision: ``action`` (int64, from 1), ``cost``, ``probability`` (double), ``time`` (string),
        ``features.name`` (list of dictionary-encoded strings), ``features.value`` (list of doubles).

        If lines have different actions, or slots: ``candidates`` (list of structs with ``features.name`` and
        ``features.value``), in which ``action`` is a position, and ``distribution`` (list of doubles, one for each
        candidate) where the probabilities of all are logged. Otherwise actions are classes, and where lines have ``a``
        and ``p`` these are ``candidates`` (list of int64) and ``distribution``.
    """
    _check_utf8(content, name)
    contexts = read_contexts(content, name)
    decisions = read_decisions(content, name, contexts)
    if len(decisions.slots.lines):
        return _slot_table(content, name, contexts, decisions)
    return _table(content, name, contexts, decisions, actions_vary)


def _check_utf8(content: bytes, name: str) -> None:
    if content.isascii():
        return
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        found, line = content[error.start : error.start + 4], content.count(b"\n", 0, error.start) + 1
        raise ReadError(
            f"{name}, line {line}: the bytes {found!r} are not UTF-8. Convert the file to UTF-8."
        ) from None


# ---- one decision per line --------------------------------------------------------------------


def _table(content: bytes, name: str, contexts: Contexts, decisions: Decisions, actions_vary: bool) -> pa.Table:
    lines = np.array(decisions.lines, dtype=np.int64)
    available = contexts.lines[lines, ACTIONS]
    chosen = np.array(decisions.actions, dtype=np.int64)
    ranking = decisions.ranked.ranking(chosen, available, lines + 1, name)
    shared = contexts.shared.taken(lines)
    columns = {
        "action": pa.array(chosen),
        "cost": pa.array(np.array(decisions.costs, dtype=np.float64)),
        "probability": pa.array(np.array(decisions.probabilities, dtype=np.float64)),
        "time": pa.array(decisions.times, pa.string()),
    }
    if not actions_vary:
        _check_mixed(available, lines, name)
        actions = contexts.actions.taken(_all_actions(contexts, lines))
        if available.size and not _is_fixed_set(actions, available):
            check_sums(ranking, lines + 1, name)
            spelling = _spelling(contexts, content, name, shared, actions)
            offsets = np.concatenate([[0], np.cumsum(available)])
            columns |= _features(shared, spelling) | {"candidates": _candidates(offsets, actions, spelling)}
            distribution = ranking.aligned(available)
            return pa.table(columns if distribution is None else columns | {"distribution": distribution})
    columns |= _features(shared, _spelling(contexts, content, name, shared))
    if ranking.present.any():
        columns["candidates"], columns["distribution"] = ranking.arrays()
    return pa.table(columns)


def _check_mixed(available: IntArray, lines: IntArray, name: str) -> None:
    for odd in np.flatnonzero((available < 0) != (available[:1] < 0))[:1]:
        here, there = ("no actions", "actions") if available[odd] < 0 else ("actions", "none")
        raise ReadError(
            f"{name}, line {lines[odd] + 1}: there are {here} (_multi), and {there} on line {lines[0] + 1}. Log the "
            "actions of every decision, or pass --actions-vary (actions_vary=True) to identify them by index alone."
        )


def _all_actions(contexts: Contexts, lines: IntArray) -> IntArray:
    """Return which of all actions in the file some lines have."""
    return gathered(np.concatenate([[0], np.cumsum(np.maximum(contexts.lines[:, ACTIONS], 0))]), lines)[1]


def _is_fixed_set(actions: Lists, available: IntArray) -> bool:
    """Tell whether all lines have the same actions: as many, with the same features, in the same order."""
    count, sizes = max(available[0], 0), np.diff(actions.offsets)
    if (available != available[0]).any() or count == 0:
        return count == 0
    by_line = sizes.reshape(len(available), count)
    if (by_line != by_line[0]).any():
        return False
    parts = (actions.codes, actions.values)
    return all(_repeats(part, len(available)) for part in parts) or all(
        _repeats(part[_sorted(actions)], len(available)) for part in parts
    )


def _repeats(items: IntArray, times: int) -> bool:
    by_line = items.reshape(times, -1)
    return bool((by_line == by_line[:1]).all())


def _sorted(lists: Lists) -> IntArray:
    """Return an order in which the features of each list are sorted."""
    row = np.repeat(np.arange(len(lists.offsets) - 1), np.diff(lists.offsets))
    return np.lexsort((lists.values, lists.codes, row))


# ---- one decision per slot --------------------------------------------------------------------


def _slot_table(content: bytes, name: str, contexts: Contexts, decisions: Decisions) -> pa.Table:
    slots = decisions.slots
    lines = np.array(slots.lines, dtype=np.int64)
    shared = contexts.shared.taken(lines).joined(contexts.slots.taken(np.array(slots.slots, dtype=np.int64)))
    actions = contexts.actions.taken(np.array(slots.candidates, dtype=np.int64))
    spelling = _spelling(contexts, content, name, shared, actions)
    columns = {
        "action": pa.array(np.array(slots.actions, dtype=np.int64)),
        "cost": pa.array(np.array(slots.costs, dtype=np.float64)),
        "probability": pa.array(np.array(slots.probabilities, dtype=np.float64)),
        "time": pa.array(slots.times, pa.string()),
        **_features(shared, spelling),
        "candidates": _candidates(slots.offsets(), actions, spelling),
    }
    distribution = slots.distribution()
    return pa.table(columns if distribution is None else columns | {"distribution": distribution})


# ---- columns ----------------------------------------------------------------------------------


def _spelling(contexts: Contexts, content: bytes, name: str, *lists: Lists) -> Spelling:
    used: BoolArray = np.zeros(len(contexts.keys), dtype=bool)
    for one in lists:
        used[one.codes] = True
    return spelling_of(contexts.keys, used, content, name)


def _features(lists: Lists, spelling: Spelling) -> dict[str, pa.Array]:
    names, values = lists.spelled(spelling).arrays(spelling.names)
    return {"features.name": names, "features.value": values}


def _candidates(offsets: IntArray, actions: Lists, spelling: Spelling) -> pa.Array:
    columns = _features(actions, spelling)
    structs = pa.StructArray.from_arrays(list(columns.values()), list(columns))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), structs)


# ---- the format -------------------------------------------------------------------------------


def read_table(path: Path, actions_vary: bool = False) -> pa.Table:
    """Read a file."""
    content = content_of(path)
    table = read_dsjson(content, path.name, actions_vary=actions_vary)
    return table if _has_slots(content) else with_lines(table, content)


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
    takes=("actions_vary",),
    roles=Roles(
        output=("action",),
        loss="cost",
        propensity="probability",
        time="time",
        candidates="candidates",
        distribution="distribution",
    ),
    counted="line",
)
