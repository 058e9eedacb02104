"""What was decided in each line of a DSJSON file: labels, times and rankings of actions."""

from array import array
from typing import Any, NoReturn

from poem.errors import ReadError
from poem.readers import dsjson_scan as scan
from poem.readers.dsjson_features import Contexts
from poem.readers.dsjson_lines import (
    LineError,
    Object,
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
from poem.readers.dsjson_ranked import Ranked
from poem.readers.dsjson_slots import Slots

_CHECKPOINT = b"[CHECKPOINT"
_MOST_CANDIDATES = 10_000
_PROBLEMS = {
    scan.NOT_JSON: "this is not JSON near {token}. Each line must be one JSON object.",
    scan.TOO_DEEP: "objects or arrays are nested too deeply. Flatten the context before it is logged, or leave the "
    "line out.",
    scan.NOT_AN_ARRAY: "{token} is not an array of objects. Log one object per action or slot.",
    scan.NOT_AN_OBJECT: "_multi or _slots has {token}, which is not an object. Log one object per action or slot.",
    scan.BAD_ITEM: "an array has {token}, but arrays may only have numbers and objects. Log an object such as "
    '{{"red": true, "blue": true}}, or words in "_text".',
    scan.BAD_TEXT: "_text is {token}, not a string. Log it as a string of words.",
    scan.BAD_NUMBER: "{token} is not a finite number. Log a number that a double can hold.",
    scan.INNER_LABEL: "{token} is a label inside the context or an action. Log one label per line, beside the context.",
    scan.SLATE: "{token} says that each slot has actions of its own and one cost is for all slots together (a slate). "
    "poem needs the cost of each decision: log each slot as a line of its own, or as _outcomes with a cost each.",
    scan.REPEATED: "{token} is there twice. A decision has one context, one list of actions and one of slots.",
}


class Decisions:
    """The columns of the decisions so far."""

    def __init__(self) -> None:
        self.lines = array("q")
        self.actions = array("q")
        self.costs = array("d")
        self.probabilities = array("d")
        self.times: list[str | None] = []
        self.ranked = Ranked()
        self.slots = Slots()
        self.unlabelled = array("q")
        self.drop: tuple[int, float] | None = None
        self.form: tuple[int, str] | None = None

    def add(self, line: int, pairs: Object, label: dict[str, Any], actions: int | None) -> None:
        """Add the decision of a line; ``actions`` is how many it has, if it says so."""
        event = dict(pairs)
        self._check_drop(event, line)
        action, cost, probability = outcome_of(label, actions)
        time = time_of(event)
        self.ranked.add(event.get("a"), event.get("p"))
        self._append(line, action, cost, probability, time)

    def add_plain(self, line: int, label: dict[str, Any], actions: int) -> None:
        """Add the decision of a line of plain JSON, in which all keys but the label are features."""
        action, cost, probability = outcome_of(plain_label_of(label), actions)
        self.ranked.add(None, None)
        self._append(line, action, cost, probability, None)

    def add_slots(self, line: int, event: dict[str, Any], slots: list[Any], actions: int, first: tuple[int, int]) -> None:
        """Add the decisions of a line with slots; ``first`` numbers its first action and slot in the file."""
        self._check_drop(event, line)
        self.slots.add(line, time_of(event), slots, event["_outcomes"], actions, first)

    def _append(self, line: int, action: int, cost: float, probability: float, time: str | None) -> None:
        self.lines.append(line)
        self.actions.append(action)
        self.costs.append(cost)
        self.probabilities.append(probability)
        self.times.append(time)

    def check_form(self, line: int, form: str) -> None:
        """Raise if a line is of another form than those before."""
        if self.form is None:
            self.form = line, form
        elif self.form[1] != form:
            raise LineError(f"this line has {form}, and line {self.form[0] + 1} has {self.form[1]}. Read each kind on its own.")

    def _check_drop(self, event: dict[str, Any], line: int) -> None:
        drop = number_of("pdrop", event.get("pdrop") or 0)
        if not 0.0 <= drop < 1.0:
            raise LineError(f"pdrop is {drop:g}, which is not a probability below 1. Leave such lines out.")
        if self.drop is None:
            self.drop = line, drop
        elif self.drop[1] != drop:
            raise LineError(
                f"pdrop is {drop:g}, but {self.drop[1]:g} on line {self.drop[0] + 1}. Lines would have different "
                "weights, which poem does not know. Read the lines of each pdrop on their own."
            )

    def check_labels(self, name: str) -> None:
        """Raise if a decision has no label."""
        if self.unlabelled:
            count = len(self.unlabelled)
            raise ReadError(
                f"{name}, line {self.unlabelled[0] + 1}: the decision has no label (_labelIndex, _label_cost and "
                f"_label_probability, or _outcomes)"
                + (f", nor have {count - 1} more. " if count > 1 else ". ")
                + "Join rewards and decisions first, leave out decisions without a known reward, or mark them with "
                '"_skipLearn": true.'
            )


def read_decisions(content: bytes, name: str, contexts: Contexts) -> Decisions:
    """Return what was decided in all lines."""
    decisions = Decisions()
    first_action = first_slot = 0
    for number, line in enumerate(contexts.lines.tolist()):
        try:
            _add_line(content, decisions, number, line, (first_action, first_slot))
        except LineError as problem:
            raise ReadError(f"{name}, line {number + 1}: {problem}") from None
        except RecursionError:
            raise ReadError(f"{name}, line {number + 1}: {_PROBLEMS[scan.TOO_DEEP]}") from None
        first_action += max(line[scan.ACTIONS], 0)
        first_slot += line[scan.SLOTS]
    decisions.check_labels(name)
    return decisions


def _add_line(content: bytes, decisions: Decisions, number: int, line: list[int], first: tuple[int, int]) -> None:
    start, stop, cut, cut_stop = line[: scan.CUT_STOP + 1]
    text = content[start:stop]
    if start == stop or text.startswith(_CHECKPOINT):
        return
    if cut_stop:
        text = text[: cut - start] + b"0" + content[cut_stop:stop]
    pairs = parsed_line(text)
    assert pairs is not None
    label = label_of(pairs)
    if line[scan.PLAIN]:
        _refuse_problem(content, line)
        decisions.check_form(number, "actions beside its label")
        if label:
            decisions.add_plain(number, label, _checked_count(line[scan.ACTIONS]))
        else:
            decisions.unlabelled.append(number)
        return
    event = dict(pairs)
    if is_skipped(event, label):
        return
    _refuse_problem(content, line)
    if not cut_stop:
        _refuse_context(event)
    actions = None if line[scan.ACTIONS] < 0 else _checked_count(line[scan.ACTIONS])
    if line[scan.SLOTS_AT] >= 0 or "_outcomes" in event:
        decisions.check_form(number, "slots")
        if line[scan.SLOTS_AT] < 0 or actions is None:
            raise LineError("there are _outcomes, but no _slots or no _multi in the context. Log all three, or none.")
        if label:
            raise LineError(
                "one cost is for all slots together (a slate). poem needs the cost of each decision: log each slot as "
                "a line of its own, or as _outcomes with a cost each."
            )
        if "_outcomes" not in event:
            decisions.unlabelled.append(number)
            return
        slots = parsed_array(content[line[scan.SLOTS_AT] : line[scan.SLOTS_STOP]])
        decisions.add_slots(number, event, slots, actions, first)
        return
    decisions.check_form(number, "a context and one label")
    if not label:
        decisions.unlabelled.append(number)
        return
    decisions.add(number, pairs, label, actions)


def _refuse_problem(content: bytes, line: list[int]) -> None:
    problem, start, stop = line[scan.PROBLEM : scan.WRONG_STOP + 1]
    if problem == scan.FINE:
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
