"""DSJSON, the decision service's log as Vowpal Wabbit reads it: one JSON object a line.

What is followed: the features of the context are what ``c`` has besides its actions (``_multi``) and other keys that
start with an underscore. A number is a feature of that value, and 0 is none; a string is a category, ``true`` is 1,
``false`` and ``null`` are nothing; an object is a namespace, known by its own key alone wherever it stands; the numbers
of an array are features of a namespace with the array's key; ``_text`` is a bag of words; keys that repeat are
features that repeat. Blanks, colons and bars in categories become underscores. ``_labelIndex`` counts from 0 and
decides, ``_label_Action`` (from 1) must agree with it. Rewards and activations that found no decision
(``RewardValue``, ``Observations``, ``ActionTaken``) and lines with ``"_skipLearn": true`` are skipped.

``pdrop``, the chance that a line was not logged, only weighs lines against each other: it must be the same in all lines
(0 where it is missing), and has no effect then. ``_original_label_cost`` and all other keys are not read.

What is not followed: where Vowpal Wabbit skips a line that it cannot use, this is an error; lines need not have ``a``;
and numbers stay doubles.

Features are named as in :mod:`poem.readers.vw`: ``namespace^feature``, ``namespace^feature^text``, ``namespace^[0]``.
"""

import json
import math
from array import array
from io import BytesIO
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from poem.errors import ReadError

# Objects are read as tuples of (key, value), so that repeated keys are kept; arrays are lists.
_Object = tuple[tuple[str, Any], ...]
_Features = list[tuple[str, float]]

_OBSERVATIONS = ("RewardValue", "Observations", "ActionTaken")
_UNDERSCORED = str.maketrans(" \t:|", "____")
_UNDERSCORED_WORD = str.maketrans(":|", "__")
_MARK = b"\xef\xbb\xbf"
_MOST_ACTIONS = 2**31 - 1


class _LineError(Exception):
    """Something wrong with the line that is being read; the text says what, and what to do."""


def read_dsjson(content: bytes, name: str, *, actions_vary: bool = False) -> pa.Table:
    """Read a DSJSON log with a fixed set of actions.

    Parameters
    ----------
    content : bytes
        The whole file, decompressed.
    name : str
        What messages call it.
    actions_vary : bool
        Accept that the number or the features of the actions differ between lines, and ignore them: an action is
        known by its index alone. Otherwise this is an error.

    Returns
    -------
    pyarrow.Table
        One row for each decision: ``action`` (int64, from 1), ``cost``, ``probability`` (double), ``time`` (string),
        ``features.name`` (list of dictionary-encoded strings), ``features.value`` (list of doubles), and, where lines
        have ``a`` and ``p``, ``candidates`` (list of int64) and ``distribution`` (list of double).
    """
    decisions = _Decisions(actions_vary)
    for number, line in enumerate(BytesIO(content), start=1):
        try:
            decisions.add(line, number)
        except _LineError as problem:
            raise ReadError(f"{name}, line {number}: {problem}") from None
        except RecursionError:
            raise ReadError(
                f"{name}, line {number}: objects or arrays are nested too deeply. Flatten the context before it is "
                "logged, or leave the line out."
            ) from None
    decisions.check_labels(name)
    return decisions.table()


class _Decisions:
    """The columns of the decisions so far."""

    def __init__(self, actions_vary: bool) -> None:
        self.actions_vary = actions_vary
        self.actions = array("q")
        self.costs = array("d")
        self.probabilities = array("d")
        self.times: list[str | None] = []
        self.codes: dict[str, int] = {}
        self.feature_codes = array("i")
        self.feature_values = array("d")
        self.stops = array("i", [0])
        self.candidates: list[list[int] | None] = []
        self.distributions: list[list[float] | None] = []
        self.first: tuple[int, list[_Object] | None] | None = None
        self.first_features: list[_Features] = []
        self.drop: tuple[int, float] | None = None
        self.unlabelled = array("q")

    def add(self, line: bytes, number: int) -> None:
        """Add what a line says, if it is a decision."""
        pairs = _parsed(line)
        if pairs is None:
            return
        event = dict(pairs)
        if event.get("_skipLearn") is True:
            return
        label = _label(event)
        if "c" not in event:
            if not label and "a" not in event and any(key in event for key in _OBSERVATIONS):
                return
            raise _LineError('there is no context "c". Leave out lines that are no decisions, or check the format.')
        if not label:
            self.unlabelled.append(number)
            return
        context, actions = _context(event)
        self._check_drop(event, number)
        self._check_actions(actions, number)
        candidates, distribution = _candidates(event)
        action, cost, probability = _outcome(label, actions, candidates)
        time = _time(event)
        features: _Features = []
        _collect(context, "", features)
        for feature, value in features:
            self.feature_codes.append(self._code(feature))
            self.feature_values.append(value)
        self.stops.append(len(self.feature_codes))
        self.actions.append(action)
        self.costs.append(cost)
        self.probabilities.append(probability)
        self.times.append(time)
        self.candidates.append(candidates)
        self.distributions.append(distribution)

    def _code(self, feature: str) -> int:
        code = self.codes.get(feature)
        if code is None:
            _check_encodable(feature)
            code = self.codes[feature] = len(self.codes)
        return code

    def _check_drop(self, event: dict[str, Any], number: int) -> None:
        drop = _number("pdrop", event.get("pdrop") or 0)
        if not 0.0 <= drop < 1.0:
            raise _LineError(f"pdrop is {drop:g}, which is no chance below 1. Leave such lines out.")
        if self.drop is None:
            self.drop = number, drop
        elif self.drop[1] != drop:
            raise _LineError(
                f"pdrop is {drop:g}, but {self.drop[1]:g} on line {self.drop[0]}. Lines would have different weights, "
                "which poem does not know. Read the lines of each pdrop on their own."
            )

    def _check_actions(self, actions: list[_Object] | None, number: int) -> None:
        if self.actions_vary:
            return
        if self.first is None:
            self.first = number, actions
            self.first_features = [_sorted_features(action) for action in actions or ()]
            return
        first_number, first = self.first
        if actions == first:
            return
        if actions is None or first is None or len(actions) != len(first):
            counts = [0 if these is None else len(these) for these in (actions, first)]
            raise _LineError(f"there are {counts[0]} actions, and {counts[1]} on line {first_number}. " + _FIXED_SET)
        for index, (action, known) in enumerate(zip(actions, self.first_features, strict=True)):
            if _sorted_features(action) != known:
                raise _LineError(f"action {index + 1} has other features than on line {first_number}. " + _FIXED_SET)

    def check_labels(self, name: str) -> None:
        if self.unlabelled:
            count = len(self.unlabelled)
            raise ReadError(
                f"{name}, line {self.unlabelled[0]}: the decision has no label (_labelIndex, _label_cost and "
                f"_label_probability)"
                + (f", nor have {count - 1} more. " if count > 1 else ". ")
                + "Join rewards and decisions first, leave out decisions without a known reward, or mark them with "
                '"_skipLearn": true.'
            )

    def table(self) -> pa.Table:
        offsets = pa.array(np.array(self.stops, dtype=np.int32))
        names = pa.DictionaryArray.from_arrays(
            pa.array(np.array(self.feature_codes, dtype=np.int32)), pa.array(list(self.codes), pa.string())
        )
        values = pa.array(np.array(self.feature_values, dtype=np.float64))
        columns = {
            "action": pa.array(np.array(self.actions, dtype=np.int64)),
            "cost": pa.array(np.array(self.costs, dtype=np.float64)),
            "probability": pa.array(np.array(self.probabilities, dtype=np.float64)),
            "time": pa.array(self.times, pa.string()),
            "features.name": pa.ListArray.from_arrays(offsets, names),
            "features.value": pa.ListArray.from_arrays(offsets, values),
        }
        if any(candidates is not None for candidates in self.candidates):
            columns["candidates"] = pa.array(self.candidates, pa.list_(pa.int64()))
            columns["distribution"] = pa.array(self.distributions, pa.list_(pa.float64()))
        return pa.table(columns)


_FIXED_SET = (
    "poem learns over a fixed set of actions. Pass --actions-vary (actions_vary=True) if an index means the same "
    "action in every line; the features of actions are then ignored."
)


# ---- one line ---------------------------------------------------------------------------------


def _parsed(line: bytes) -> _Object | None:
    """Return the object of a line, or None if the line is blank."""
    line = line.removeprefix(_MARK)
    try:
        text = line.decode("utf-8").strip(" \t\r\n")
    except UnicodeDecodeError as error:
        found = line[error.start : error.start + 4]
        raise _LineError(f"the bytes {found!r} are not UTF-8. Convert the file to UTF-8.") from None
    if not text:
        return None
    try:
        parsed = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        around = text[max(0, error.pos - 20) : error.pos + 20]
        if error.pos >= len(text) or error.msg.startswith("Unterminated"):
            raise _LineError(
                f"the line ends in the middle of its JSON, after {text[-30:]!r}. The file may have been cut off while "
                "it was written: leave the line out, or write it again."
            ) from None
        raise _LineError(f"this is no JSON: {error.msg} near {around!r}. Each line must be one JSON object.") from None
    except ValueError as error:  # A whole number of thousands of digits.
        raise _LineError(f"a number cannot be read ({error}). Log a number that a double can hold.") from None
    if type(parsed) is not tuple:
        raise _LineError(f'{_shown(parsed)} is not a JSON object. Each line must be one, with the context in "c".')
    return parsed


def _refuse_constant(constant: str) -> NoReturn:
    raise _LineError(f"{constant} is not a number in JSON. Leave the key out, or log a finite number.")


# Made once: json.loads would make one for each line.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=_refuse_constant)


def _label(event: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the label that are there, by their names in lower case."""
    label = {}
    for key, value in event.items():
        lower = key.lower()
        if lower == "_labelindex":
            label["_labelindex"] = value
        elif lower.startswith("_label_"):
            label[lower.removeprefix("_label_")] = value
    if "ca" in label:
        raise _LineError("_label_ca is the label of a continuous action. poem learns over a fixed set of actions.")
    if "_outcomes" in event:
        raise _LineError(
            "_outcomes says that several slots were filled at once. poem reads one decision a line: log each slot as "
            "a line of its own."
        )
    return label


def _context(event: dict[str, Any]) -> tuple[_Object, list[_Object] | None]:
    """Return the context and the actions in it."""
    context = event["c"]
    if type(context) is not tuple:
        raise _LineError(f'the context "c" is {_shown(context)}, not an object. Log its features as an object.')
    known = dict(context)
    if "_slots" in known:
        raise _LineError("_slots says that several slots are filled at once. Log each slot as a line of its own.")
    actions = known.get("_multi")
    if actions is None:
        return context, None
    if type(actions) is not list or not all(type(action) is tuple for action in actions):
        raise _LineError(
            f'the actions "_multi" are {_shown(actions)}, not an array of objects. Log one object an action.'
        )
    return context, actions


def _candidates(event: dict[str, Any]) -> tuple[list[int] | None, list[float] | None]:
    candidates, probabilities = event.get("a"), event.get("p")
    if candidates is None or probabilities is None:
        return None, None
    for key, found in (("a", candidates), ("p", probabilities)):
        if type(found) is not list:
            raise _LineError(f'"{key}" is {_shown(found)}, not an array. Log one entry for each candidate.')
    for candidate in candidates:
        if type(candidate) is not int or not 1 <= candidate <= _MOST_ACTIONS:
            raise _LineError(f'"a" has {_shown(candidate)}, which is not an action. Actions are whole numbers from 1.')
    if len(set(candidates)) < len(candidates):
        raise _LineError(f'"a" has an action twice: {_shown(candidates)}. Name each candidate once.')
    if len(candidates) != len(probabilities):
        raise _LineError(
            f'"a" has {len(candidates)} entries and "p" has {len(probabilities)}. Log one probability a candidate.'
        )
    distribution = [_number("p", probability) for probability in probabilities]
    for probability in distribution:
        if not 0.0 <= probability <= 1.0:
            raise _LineError(f'"p" has {probability:g}, which is no probability. Log numbers between 0 and 1.')
    return candidates, distribution


def _outcome(
    label: dict[str, Any], actions: list[_Object] | None, candidates: list[int] | None
) -> tuple[int, float, float]:
    """Return the action, its cost and its probability."""
    for part in ("cost", "probability"):
        if label.get(part) is None:
            raise _LineError(f"the label has no _label_{part}. Log it with the decision, or leave the line out.")
    action = _chosen(label)
    if actions is not None and action > len(actions):
        raise _LineError(
            f"the label is for action {action}, but there are {len(actions)} in _multi. Check _labelIndex."
        )
    if candidates is not None and action not in candidates:
        raise _LineError(
            f'the label is for action {action}, which is not in "a": {_shown(candidates)}. Check _labelIndex.'
        )
    cost = _number("_label_cost", label["cost"])
    probability = _number("_label_probability", label["probability"])
    if not 0.0 < probability <= 1.0:
        raise _LineError(
            f"_label_probability is {probability:g}, not above 0 and at most 1. Log the probability with which the "
            "action was chosen."
        )
    return action, cost, probability


def _chosen(label: dict[str, Any]) -> int:
    index, action = label.get("_labelindex"), label.get("action")
    if index is None and action is None:
        raise _LineError("the label has neither _labelIndex nor _label_Action. Log which action was chosen.")
    for key, value, least in (("_labelIndex", index, 0), ("_label_Action", action, 1)):
        if value is not None and (type(value) is not int or not least <= value <= _MOST_ACTIONS):
            raise _LineError(
                f"{key} is {_shown(value)}, not a whole number from {least}. Log the number of the action."
            )
    if index is not None and action is not None and action != index + 1:
        raise _LineError(
            f"_labelIndex is {index} and _label_Action is {action}. The first counts from 0 and the second from 1: "
            "they must name the same action."
        )
    return int(index + 1) if index is not None else int(action or 0)


def _time(event: dict[str, Any]) -> str | None:
    time = event.get("Timestamp")
    if time is None:
        return None
    if type(time) is not str:
        raise _LineError(f"Timestamp is {_shown(time)}, not a string. Log it like 2020-01-31T12:00:00Z.")
    _check_encodable(time)
    return time


# ---- features ---------------------------------------------------------------------------------


def _collect(pairs: _Object, prefix: str, features: _Features) -> None:
    """Add the features of an object; ``prefix`` is its namespace and a caret, or nothing."""
    for key, value in pairs:
        kind = type(value)
        if key.startswith("_"):
            if key == "_text":
                _collect_words(value, prefix, features)
        elif kind is float or kind is int:
            number = _number(key, value)
            if number:
                features.append((prefix + key, number))
        elif kind is str:
            features.append((f"{prefix}{key}^{value.translate(_UNDERSCORED)}", 1.0))
        elif kind is tuple:
            _collect(value, _prefix(key), features)
        elif kind is list:
            _collect_array(key, value, features)
        elif value is True:
            features.append((prefix + key, 1.0))


def _collect_words(text: Any, prefix: str, features: _Features) -> None:
    if type(text) is not str:
        raise _LineError(f"_text is {_shown(text)}, not a string. Log it as a string of words.")
    for word in text.replace("\t", " ").split(" "):
        if word:
            features.append((prefix + word.translate(_UNDERSCORED_WORD), 1.0))


def _collect_array(key: str, items: list[Any], features: _Features) -> None:
    prefix, index = _prefix(key), 0
    for item in items:
        kind = type(item)
        if kind is float or kind is int:
            number = _number(key, item)
            if number:
                features.append((f"{prefix}[{index}]", number))
            index += 1
        elif kind is tuple:
            _collect(item, prefix, features)
        elif item is not None:
            raise _LineError(
                f"the array {_shown(key)} has {_shown(item)}, but arrays may only have numbers and objects. Log an "
                'object such as {"red": true, "blue": true}, or words in "_text".'
            )


def _prefix(namespace: str) -> str:
    # The default namespace is a blank.
    return "" if namespace == " " else namespace + "^"


def _sorted_features(action: _Object) -> _Features:
    features: _Features = []
    _collect(action, "", features)
    return sorted(features)


# ---- values -----------------------------------------------------------------------------------


def _number(key: str, value: Any) -> float:
    if type(value) is float or type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise _LineError(f"{key} is {_shown(value)}, not a finite number. Log a number that a double can hold.")


def _check_encodable(text: str) -> None:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise _LineError(f"{text!a} has half of a surrogate pair, which is no character. Log valid Unicode.") from None


def _shown(value: Any) -> str:
    """Return a value as it looks in JSON, shortened."""
    if type(value) is tuple:
        return "an object"
    text = f"an array of {len(value)}" if type(value) is list and len(value) > 8 else _json(value)
    return text if len(text) <= 60 else text[:60] + "…"


def _json(value: Any) -> str:
    try:
        return json.dumps(value)
    except ValueError:  # A whole number of thousands of digits.
        return "a very long number"
