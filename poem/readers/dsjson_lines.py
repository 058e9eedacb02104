"""One line of DSJSON without its features: its label, when it was decided, and whether it is to be learnt from."""

import json
import math
from typing import Any, NoReturn

# Objects are read as tuples of (key, value), so that repeated keys are seen; arrays are lists.
Object = tuple[tuple[str, Any], ...]

_OBSERVATIONS = ("RewardValue", "Observations", "ActionTaken")
MOST_ACTIONS = 2**31 - 1


class LineError(Exception):
    """Something wrong with the line that is being read, or with ``line`` (from 0): what it is, and what to do."""

    def __init__(self, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.line = line


def parsed_line(line: bytes) -> Object:
    """Return the object of a line."""
    text = line.decode("utf-8")
    parsed = _parsed(text)
    if type(parsed) is not tuple:
        raise LineError(f'{shown(parsed)} is not a JSON object. Each line must be one, with the context in "c".')
    return parsed


def parsed_array(text: bytes) -> list[Any]:
    """Return an array in a line that is known to be one."""
    found: list[Any] = _parsed(text.decode("utf-8"))
    return found


def _parsed(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        around = text[max(0, error.pos - 20) : error.pos + 20]
        if error.pos >= len(text) or error.msg.startswith("Unterminated"):
            raise LineError(
                f"the line ends in the middle of its JSON, after {text[-30:]!r}. The file may have been cut off while "
                "it was written: leave the line out, or write it again."
            ) from None
        raise LineError(f"this is not JSON: {error.msg} near {around!r}. Each line must be one JSON object.") from None
    except ValueError as error:  # A whole number of thousands of digits.
        raise LineError(f"a number cannot be read ({error}). Log a number that a double can hold.") from None


def _refuse_constant(constant: str) -> NoReturn:
    raise LineError(f"{constant} is not a number in JSON. Leave the key out, or log a finite number.")


# Made once: json.loads would make one for each line.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=_refuse_constant)


def label_of(pairs: Object) -> dict[str, Any]:
    """Return the parts of the label that are there, by what follows ``_label``, in lower case."""
    parts = [(key[6:].lower(), value) for key, value in pairs if key[:6].lower() == "_label"]
    label = dict(parts)
    if len(label) < len(parts):
        raise LineError("the line has several labels: a part is there twice. A decision has one.")
    if "_ca" in label:
        raise LineError("_label_ca is the label of a continuous action. poem learns over actions that can be listed.")
    return label


def plain_label_of(label: dict[str, Any]) -> dict[str, Any]:
    """Return the label of plain JSON, in which ``_labelIndex`` alone says which action it is for."""
    if "" in label:
        raise LineError("_label is a label as text. Log _labelIndex, _label_Cost and _label_Probability.")
    if label.get("index") is None:
        raise LineError("the label has no _labelIndex. Log which of the actions was chosen, counted from 0.")
    return {part: value for part, value in label.items() if part != "_action" or value != 0}


def is_skipped(event: dict[str, Any], label: dict[str, Any]) -> bool:
    """Tell whether a line is not to be learnt from: it says so, or is a deferred action not taken, or only a reward."""
    if event.get("_skipLearn") is True:
        return True
    if event.get("DeferredAction") is True:
        observations = event.get("o")
        return not any(
            type(found) is tuple and dict(found).get("ActionTaken") is True
            for found in (observations if type(observations) is list else ())
        )
    return "c" not in event and not label and "a" not in event and any(key in event for key in _OBSERVATIONS)


def outcome_of(label: dict[str, Any], actions: int | None) -> tuple[int, float, float]:
    """Return the action, its cost and its probability; ``actions`` is how many there are, if the line says so."""
    for part in ("_cost", "_probability"):
        if label.get(part) is None:
            raise LineError(f"the label has no _label{part}. Log it with the decision, or leave the line out.")
    action = _chosen(label)
    if actions is not None and action > actions:
        raise LineError(f"the label is for action {action}, but there are {actions} in _multi. Check _labelIndex.")
    cost = number_of("_label_cost", label["_cost"])
    return action, cost, probability_of("_label_probability", label["_probability"])


def probability_of(key: str, value: Any) -> float:
    """Return the probability of what was chosen."""
    probability = number_of(key, value)
    if not 0.0 < probability <= 1.0:
        raise LineError(
            f"{key} is {probability:g}, not above 0 and at most 1. Log the probability with which the action was "
            "chosen."
        )
    return probability


def _chosen(label: dict[str, Any]) -> int:
    index, action = label.get("index"), label.get("_action")
    if index is None and action is None:
        raise LineError("the label has neither _labelIndex nor _label_Action. Log which action was chosen.")
    for key, value, least in (("_labelIndex", index, 0), ("_label_Action", action, 1)):
        if value is not None and (type(value) is not int or not least <= value <= MOST_ACTIONS):
            raise LineError(f"{key} is {shown(value)}, not a whole number from {least}. Log the number of the action.")
    if index is not None and action is not None and action != index + 1:
        raise LineError(
            f"_labelIndex is {index} and _label_Action is {action}. The first counts from 0 and the second from 1: "
            "they must name the same action."
        )
    return int(index + 1) if index is not None else int(action or 0)


def time_of(event: dict[str, Any]) -> str | None:
    """Return when it was decided, if the line says so."""
    time = event.get("Timestamp")
    if time is None:
        return None
    if type(time) is not str:
        raise LineError(f"Timestamp is {shown(time)}, not a string. Log it like 2020-01-31T12:00:00Z.")
    check_encodable(time)
    return time


# ---- values -----------------------------------------------------------------------------------


def number_of(key: str, value: Any) -> float:
    """Return a finite number, or say that the value of a key is none."""
    if type(value) is float or type(value) is int:
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise LineError(f"{key} is {shown(value)}, not a finite number. Log a number that a double can hold.")


def check_encodable(text: str) -> None:
    """Raise for text that has half of a character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise LineError(
            f"{text!a} has half of a surrogate pair, which is not a character. Log valid Unicode."
        ) from None


def shown(value: Any) -> str:
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
