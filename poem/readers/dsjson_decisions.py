"""What was decided in each line of a DSJSON file: labels, times and rankings of actions."""

import math
from array import array
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

import numpy as np

from poem.errors import ReadError
from poem.readers import dsjson_roles as roles
from poem.readers.dsjson_features import Block, Contexts, Lists, blocks_of, gathered, read_contexts
from poem.readers.dsjson_lines import (
    LineError,
    is_skipped,
    label_of,
    number_of,
    outcome_of,
    parsed_array,
    parsed_line,
    plain_label_of,
    shown,
    time_of,
)
from poem.readers.dsjson_names import Names
from poem.readers.dsjson_ranked import Ranked
from poem.readers.dsjson_slots import Outcome, Slots

_CHECKPOINT = b"[CHECKPOINT"
_MOST_CANDIDATES = 10_000
_ONE, _SLOTS, _PLAIN = "a context and one label", "slots", "actions beside its label"
_PROBLEMS = {
    roles.NOT_JSON: "this is not JSON near {token}. Each line must be one JSON object.",
    roles.TOO_DEEP: "objects or arrays are nested too deeply. Flatten the context before it is logged, or leave the "
    "line out.",
    roles.NOT_OBJECTS: "the actions (_multi) or slots (_slots) are not an array of objects. Log one object for each.",
    roles.BAD_ITEM: "arrays may only have numbers and objects, but one has others: {token}. Log an object such as "
    '{{"red": true, "blue": true}}, or words in "_text".',
    roles.BAD_TEXT: "_text is not a string. Log it as a string of words.",
    roles.BAD_NUMBER: "{token} is not a finite number. Log a number that a double can hold.",
    roles.INNER_LABEL: "{token} is a label inside the context or an action. Log one label per line, beside the "
    "context.",
    roles.SLATE: "{token} says that one cost is for all slots together (a slate). poem needs one for each decision: "
    "log a cost for each slot in _outcomes, or each slot as a line of its own.",
    roles.REPEATED: "{token} is there twice. A decision has one context, one list of actions and one of slots.",
}


class Decisions:
    """The decisions so far, one row each.

    With ``to_be_made``, a line without a label is a decision to be made: its action is 0, and it has no cost.
    """

    def __init__(self, to_be_made: bool = False) -> None:
        self.to_be_made = to_be_made
        self.lines = array("q")
        self.actions = array("q")
        self.costs = array("d")
        self.probabilities = array("d")
        self.times: list[str | None] = []
        self.available = array("q")
        """How many actions a row's line has; −1 if it does not say."""
        self.ranked = Ranked()
        self.slots = Slots()
        self.names = Names()
        self.contexts: list[Lists] = []
        self.candidates: list[Lists] = []
        self.unlabelled = array("q")
        self._drop: tuple[int, float] | None = None
        self._form: tuple[int, str] | None = None

    def add_block(self, block: Block, found: Contexts) -> None:
        """Add the decisions of a block of lines."""
        rows, first_action, first_slot = len(self.lines), 0, 0
        slots_before, actions_before = len(self.slots.slots), len(self.slots.candidates)
        for number, line in enumerate(found.lines.tolist()):
            try:
                self._add_line(block, block.first + number, line, (first_action, first_slot))
            except LineError as problem:
                raise LineError(str(problem), block.first + number) from None
            except RecursionError:
                raise LineError(_PROBLEMS[roles.TOO_DEEP], block.first + number) from None
            first_action += max(line[roles.ACTIONS], 0)
            first_slot += line[roles.SLOTS]
        lines = np.array(self.lines[rows:], dtype=np.int64) - block.first
        shared = found.shared.taken(lines)
        if self.has_slots:
            shared = shared.joined(found.slots.taken(np.array(self.slots.slots[slots_before:], dtype=np.int64)))
            actions = np.array(self.slots.candidates[actions_before:], dtype=np.int64)
        else:
            actions = gathered(np.concatenate([[0], np.cumsum(np.maximum(found.lines[:, roles.ACTIONS], 0))]), lines)[1]
        shared, candidates = self.names.spelled([shared, found.actions.taken(actions)], found.keys, block)
        self.contexts.append(shared)
        self.candidates.append(candidates)

    @property
    def has_slots(self) -> bool:
        """Whether rows are slots."""
        return self._form is not None and self._form[1] == _SLOTS

    def _add_line(self, block: Block, number: int, line: list[int], first: tuple[int, int]) -> None:
        """Add what a line says, if it is a decision; ``first`` numbers its first action and slot in the block."""
        start, stop, cut, cut_stop = line[: roles.CUT_STOP + 1]
        text = block.content[start:stop]
        if start == stop or text.startswith(_CHECKPOINT):
            return
        if cut_stop:
            text = text[: cut - start] + b"0" + block.content[cut_stop:stop]
        pairs = parsed_line(text)
        label, event = label_of(pairs), dict(pairs)
        if not line[roles.PLAIN] and is_skipped(event, label):
            return
        _refuse_problem(block.content, line)
        if not cut_stop:
            _refuse_context(event)
        actions = None if line[roles.ACTIONS] < 0 else _checked_count(line[roles.ACTIONS])
        if line[roles.PLAIN]:
            self._add_plain(number, label, actions or 0)
        elif line[roles.SLOTS_AT] >= 0 or "_outcomes" in event:
            slots = block.content[line[roles.SLOTS_AT] : line[roles.SLOTS_STOP]] if line[roles.SLOTS_AT] >= 0 else None
            self._add_slots(number, event, label, slots, actions, first)
        else:
            self._add_one(number, event, label, actions)

    def _add_one(self, line: int, event: dict[str, Any], label: dict[str, Any], actions: int | None) -> None:
        self._check_form(line, _ONE)
        if not label:
            self._add_unlabelled(line, actions, time_of(event))
            return
        self._check_drop(event, line)
        outcome, time = outcome_of(label, actions), time_of(event)
        self.ranked.add(event.get("a"), event.get("p"))
        self._append(line, outcome, time, actions)

    def _add_plain(self, line: int, label: dict[str, Any], actions: int) -> None:
        """Add the decision of a line of plain JSON, in which all keys but the label are features."""
        self._check_form(line, _PLAIN)
        if not label:
            self._add_unlabelled(line, actions)
            return
        self.ranked.add(None, None)
        self._append(line, outcome_of(plain_label_of(label), actions), None, actions)

    def _add_unlabelled(self, line: int, actions: int | None, time: str | None = None) -> None:
        if not self.to_be_made:
            self.unlabelled.append(line)
            return
        self.ranked.add(None, None)
        self._append(line, (0, math.nan, math.nan), time, actions)

    def _add_slots(
        self,
        line: int,
        event: dict[str, Any],
        label: dict[str, Any],
        slots: bytes | None,
        actions: int | None,
        first: tuple[int, int],
    ) -> None:
        self._check_form(line, _SLOTS)
        if slots is None or actions is None:
            raise LineError("there are several slots, but no _slots or no _multi in the context. Log both.")
        if label:
            raise LineError(_PROBLEMS[roles.SLATE].format(token="a label beside the slots"))
        if "_outcomes" not in event:
            self.unlabelled.append(line)
            return
        self._check_drop(event, line)
        time = time_of(event)
        for outcome in self.slots.add(parsed_array(slots), event["_outcomes"], actions, first):
            self._append(line, outcome, time, actions)

    def _append(self, line: int, outcome: Outcome, time: str | None, actions: int | None) -> None:
        self.lines.append(line)
        self.actions.append(outcome[0])
        self.costs.append(outcome[1])
        self.probabilities.append(outcome[2])
        self.times.append(time)
        self.available.append(-1 if actions is None else actions)

    def _check_form(self, line: int, form: str) -> None:
        if self._form is None:
            self._form = line, form
        elif self._form[1] != form:
            raise LineError(
                f"this line has {form}, and line {self._form[0] + 1} has {self._form[1]}. Read each kind on its own."
            )

    def _check_drop(self, event: dict[str, Any], line: int) -> None:
        drop = number_of("pdrop", event.get("pdrop") or 0)
        if not 0.0 <= drop < 1.0:
            raise LineError(f"pdrop is {drop:g}, which is not a probability below 1. Leave such lines out.")
        if self._drop is None:
            self._drop = line, drop
        elif self._drop[1] != drop:
            raise LineError(
                f"pdrop is {drop:g}, but {self._drop[1]:g} on line {self._drop[0] + 1}. Lines would have different "
                "weights, which poem does not know. Read the lines of each pdrop on their own."
            )

    def check_labels(self) -> None:
        """Raise if a decision has no label."""
        if self.unlabelled:
            count = len(self.unlabelled)
            raise LineError(
                "the decision has no label (_labelIndex, _label_cost and _label_probability, or _outcomes)"
                + (f", nor have {count - 1} more. " if count > 1 else ". ")
                + "Join rewards and decisions first, leave out decisions without a known reward, or mark them with "
                '"_skipLearn": true.',
                self.unlabelled[0],
            )


def read_decisions(content: bytes, name: str, to_be_made: bool = False) -> Decisions:
    """Return what was decided in all lines; one thread or two read features while this one reads all else."""
    decisions = Decisions(to_be_made)
    blocks = list(blocks_of(content))
    with ThreadPoolExecutor(2) as pool:
        try:
            for block, contexts in zip(blocks, pool.map(read_contexts, blocks), strict=True):
                decisions.add_block(block, contexts)
            decisions.check_labels()
        except LineError as problem:
            raise ReadError(f"{name}, line {(problem.line or 0) + 1}: {problem}") from None
    return decisions


def _refuse_problem(content: bytes, line: list[int]) -> None:
    problem, start, stop = line[roles.PROBLEM : roles.WRONG_STOP + 1]
    if problem == roles.FINE:
        return
    token = content[start : min(stop, start + 60)].decode("utf-8", "ignore") + ("…" if stop - start > 60 else "")
    raise LineError(_PROBLEMS[problem].format(token=token))


def _refuse_context(event: dict[str, Any]) -> NoReturn:
    if "c" in event:
        raise LineError(f'the context "c" is {shown(event["c"])}, not an object. Log its features as an object.')
    raise LineError(
        'there is no context "c" and there are no actions "_multi". Leave out lines that are not decisions, or check '
        "the format."
    )


def _checked_count(actions: int) -> int:
    if actions == 0:
        raise LineError("there are no candidates: _multi is empty. Log the actions that were available.")
    if actions > _MOST_CANDIDATES:
        raise LineError(f"there are {actions:,} candidates in _multi; at most {_MOST_CANDIDATES:,} are read.")
    return actions
