"""DSJSON, the decision service's log as Vowpal Wabbit reads it: one JSON object per line.

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

from array import array
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from poem.errors import ReadError
from poem.files import content_of
from poem.readers.columns import Roles
from poem.readers.dsjson_lines import (
    FeatureList,
    LineError,
    Object,
    candidates_of,
    check_encodable,
    collect_features,
    context_of,
    label_of,
    number_of,
    outcome_of,
    parsed_line,
    sorted_features,
    time_of,
)
from poem.readers.format import Format, Head
from poem.readers.lines import with_lines

_OBSERVATIONS = ("RewardValue", "Observations", "ActionTaken")


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
        except LineError as problem:
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
        self.first: tuple[int, list[Object] | None] | None = None
        self.first_features: list[FeatureList] = []
        self.drop: tuple[int, float] | None = None
        self.unlabelled = array("q")

    def add(self, line: bytes, number: int) -> None:
        """Add what a line says, if it is a decision."""
        pairs = parsed_line(line)
        if pairs is None:
            return
        event = dict(pairs)
        if event.get("_skipLearn") is True:
            return
        label = label_of(event)
        if "c" not in event:
            if not label and "a" not in event and any(key in event for key in _OBSERVATIONS):
                return
            raise LineError('there is no context "c". Leave out lines that are not decisions, or check the format.')
        if not label:
            self.unlabelled.append(number)
            return
        context, actions = context_of(event)
        self._check_drop(event, number)
        self._check_actions(actions, number)
        candidates, distribution = candidates_of(event)
        action, cost, probability = outcome_of(label, actions, candidates)
        time = time_of(event)
        features: FeatureList = []
        collect_features(context, "", features)
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
            check_encodable(feature)
            code = self.codes[feature] = len(self.codes)
        return code

    def _check_drop(self, event: dict[str, Any], number: int) -> None:
        drop = number_of("pdrop", event.get("pdrop") or 0)
        if not 0.0 <= drop < 1.0:
            raise LineError(f"pdrop is {drop:g}, which is not a probability below 1. Leave such lines out.")
        if self.drop is None:
            self.drop = number, drop
        elif self.drop[1] != drop:
            raise LineError(
                f"pdrop is {drop:g}, but {self.drop[1]:g} on line {self.drop[0]}. Lines would have different weights, "
                "which poem does not know. Read the lines of each pdrop on their own."
            )

    def _check_actions(self, actions: list[Object] | None, number: int) -> None:
        if self.actions_vary:
            return
        if self.first is None:
            self.first = number, actions
            self.first_features = [sorted_features(action) for action in actions or ()]
            return
        first_number, first = self.first
        if actions == first:
            return
        if actions is None or first is None or len(actions) != len(first):
            counts = [0 if these is None else len(these) for these in (actions, first)]
            raise LineError(f"there are {counts[0]} actions, and {counts[1]} on line {first_number}. " + _FIXED_SET)
        for index, (action, known) in enumerate(zip(actions, self.first_features, strict=True)):
            if sorted_features(action) != known:
                raise LineError(f"action {index + 1} has other features than on line {first_number}. " + _FIXED_SET)

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


# ---- the format -------------------------------------------------------------------------------


def read_table(path: Path, actions_vary: bool = False) -> pa.Table:
    """Read a file."""
    content = content_of(path)
    return with_lines(read_dsjson(content, path.name, actions_vary=actions_vary), content)


def _looks(head: Head) -> bool:
    return any(key in head.text for key in ('"_label_cost"', '"_labelIndex"', '"_label_probability"'))


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
