"""One line of DSJSON: its label, its context, what could have been chosen, and its features."""

import json
import math
from typing import Any, NoReturn

from poem.readers.format import MARK

# Objects are read as tuples of (key, value), so that repeated keys are kept; arrays are lists.
Object = tuple[tuple[str, Any], ...]
FeatureList = list[tuple[str, float]]

_UNDERSCORED = str.maketrans(" \t:|", "____")
_UNDERSCORED_WORD = str.maketrans(":|", "__")
_MOST_ACTIONS = 2**31 - 1


class LineError(Exception):
    """Something wrong with the line that is being read; the text says what, and what to do."""


def parsed_line(line: bytes) -> Object | None:
    """Return the object of a line, or None if the line is blank."""
    line = line.removeprefix(MARK)
    try:
        text = line.decode("utf-8").strip(" \t\r\n")
    except UnicodeDecodeError as error:
        found = line[error.start : error.start + 4]
        raise LineError(f"the bytes {found!r} are not UTF-8. Convert the file to UTF-8.") from None
    if not text:
        return None
    try:
        parsed = _DECODER.decode(text)
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
    if type(parsed) is not tuple:
        raise LineError(f'{_shown(parsed)} is not a JSON object. Each line must be one, with the context in "c".')
    return parsed


def _refuse_constant(constant: str) -> NoReturn:
    raise LineError(f"{constant} is not a number in JSON. Leave the key out, or log a finite number.")


# Made once: json.loads would make one for each line.
_DECODER = json.JSONDecoder(object_pairs_hook=tuple, parse_constant=_refuse_constant)


def label_of(event: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of the label that are there, by their names in lower case."""
    label = {}
    for key, value in event.items():
        lower = key.lower()
        if lower == "_labelindex":
            label["_labelindex"] = value
        elif lower.startswith("_label_"):
            label[lower.removeprefix("_label_")] = value
    if "ca" in label:
        raise LineError("_label_ca is the label of a continuous action. poem learns over a fixed set of actions.")
    if "_outcomes" in event:
        raise LineError(
            "_outcomes says that several slots were filled at once. poem reads one decision per line: log each slot as "
            "a line of its own."
        )
    return label


def context_of(event: dict[str, Any]) -> tuple[Object, list[Object] | None]:
    """Return the context and the actions in it."""
    context = event["c"]
    if type(context) is not tuple:
        raise LineError(f'the context "c" is {_shown(context)}, not an object. Log its features as an object.')
    known = dict(context)
    if "_slots" in known:
        raise LineError("_slots says that several slots are filled at once. Log each slot as a line of its own.")
    actions = known.get("_multi")
    if actions is None:
        return context, None
    if type(actions) is not list or not all(type(action) is tuple for action in actions):
        raise LineError(
            f'the actions "_multi" are {_shown(actions)}, not an array of objects. Log one object per action.'
        )
    return context, actions


def candidates_of(event: dict[str, Any]) -> tuple[list[int] | None, list[float] | None]:
    """Return what could have been chosen, and with which probabilities, if the line says so."""
    candidates, probabilities = event.get("a"), event.get("p")
    if candidates is None or probabilities is None:
        return None, None
    for key, found in (("a", candidates), ("p", probabilities)):
        if type(found) is not list:
            raise LineError(f'"{key}" is {_shown(found)}, not an array. Log one entry for each candidate.')
    for candidate in candidates:
        if type(candidate) is not int or not 1 <= candidate <= _MOST_ACTIONS:
            raise LineError(f'"a" has {_shown(candidate)}, which is not an action. Actions are whole numbers from 1.')
    if len(set(candidates)) < len(candidates):
        raise LineError(f'"a" has an action twice: {_shown(candidates)}. Name each candidate once.')
    if len(candidates) != len(probabilities):
        raise LineError(
            f'"a" has {len(candidates)} entries and "p" has {len(probabilities)}. Log one probability per candidate.'
        )
    distribution = [number_of("p", probability) for probability in probabilities]
    for probability in distribution:
        if not 0.0 <= probability <= 1.0:
            raise LineError(f'"p" has {probability:g}, which is not a probability. Log numbers between 0 and 1.')
    return candidates, distribution


def outcome_of(
    label: dict[str, Any], actions: list[Object] | None, candidates: list[int] | None
) -> tuple[int, float, float]:
    """Return the action, its cost and its probability."""
    for part in ("cost", "probability"):
        if label.get(part) is None:
            raise LineError(f"the label has no _label_{part}. Log it with the decision, or leave the line out.")
    action = _chosen(label)
    if actions is not None and action > len(actions):
        raise LineError(f"the label is for action {action}, but there are {len(actions)} in _multi. Check _labelIndex.")
    if candidates is not None and action not in candidates:
        raise LineError(
            f'the label is for action {action}, which is not in "a": {_shown(candidates)}. Check _labelIndex.'
        )
    cost = number_of("_label_cost", label["cost"])
    probability = number_of("_label_probability", label["probability"])
    if not 0.0 < probability <= 1.0:
        raise LineError(
            f"_label_probability is {probability:g}, not above 0 and at most 1. Log the probability with which the "
            "action was chosen."
        )
    return action, cost, probability


def _chosen(label: dict[str, Any]) -> int:
    index, action = label.get("_labelindex"), label.get("action")
    if index is None and action is None:
        raise LineError("the label has neither _labelIndex nor _label_Action. Log which action was chosen.")
    for key, value, least in (("_labelIndex", index, 0), ("_label_Action", action, 1)):
        if value is not None and (type(value) is not int or not least <= value <= _MOST_ACTIONS):
            raise LineError(f"{key} is {_shown(value)}, not a whole number from {least}. Log the number of the action.")
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
        raise LineError(f"Timestamp is {_shown(time)}, not a string. Log it like 2020-01-31T12:00:00Z.")
    check_encodable(time)
    return time


# ---- features ---------------------------------------------------------------------------------


def collect_features(pairs: Object, prefix: str, features: FeatureList) -> None:
    """Add the features of an object; ``prefix`` is its namespace and a caret, or nothing."""
    for key, value in pairs:
        kind = type(value)
        if key.startswith("_"):
            if key == "_text":
                _collect_words(value, prefix, features)
        elif kind is float or kind is int:
            number = number_of(key, value)
            if number:
                features.append((prefix + key, number))
        elif kind is str:
            features.append((f"{prefix}{key}^{value.translate(_UNDERSCORED)}", 1.0))
        elif kind is tuple:
            collect_features(value, _prefix(key), features)
        elif kind is list:
            _collect_array(key, value, features)
        elif value is True:
            features.append((prefix + key, 1.0))


def _collect_words(text: Any, prefix: str, features: FeatureList) -> None:
    if type(text) is not str:
        raise LineError(f"_text is {_shown(text)}, not a string. Log it as a string of words.")
    for word in text.replace("\t", " ").split(" "):
        if word:
            features.append((prefix + word.translate(_UNDERSCORED_WORD), 1.0))


def _collect_array(key: str, items: list[Any], features: FeatureList) -> None:
    prefix, index = _prefix(key), 0
    for item in items:
        kind = type(item)
        if kind is float or kind is int:
            number = number_of(key, item)
            if number:
                features.append((f"{prefix}[{index}]", number))
            index += 1
        elif kind is tuple:
            collect_features(item, prefix, features)
        elif item is not None:
            raise LineError(
                f"the array {_shown(key)} has {_shown(item)}, but arrays may only have numbers and objects. Log an "
                'object such as {"red": true, "blue": true}, or words in "_text".'
            )


def _prefix(namespace: str) -> str:
    # The default namespace is a blank.
    return "" if namespace == " " else namespace + "^"


def sorted_features(action: Object) -> FeatureList:
    """Return the features of an action in an order of their own, to be compared."""
    features: FeatureList = []
    collect_features(action, "", features)
    return sorted(features)


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
    raise LineError(f"{key} is {_shown(value)}, not a finite number. Log a number that a double can hold.")


def check_encodable(text: str) -> None:
    """Raise for text that has half of a character."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise LineError(
            f"{text!a} has half of a surrogate pair, which is not a character. Log valid Unicode."
        ) from None


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
