"""DSJSON with actions and slots, read by poem and by Vowpal Wabbit itself."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import vowpalwabbit
from hypothesis import given, settings
from hypothesis import strategies as st

import poem
from poem.errors import PoemError, ReadError
from poem.readers.detect import format_of
from poem.readers.dsjson import read_dsjson

QUICKLY = settings(max_examples=150, deadline=None)
SHARED = Path(os.environ.get("POEM_DATA", Path(__file__).parent.parent.parent / "shared" / "data"))
FILES = SHARED / "vw"
REAL = pytest.mark.skipif(not FILES.is_dir(), reason="Vowpal Wabbit's files are not on this machine")
CONSTANT = 128  # Vowpal Wabbit's own namespace
UNKNOWN = 3e38
CB, CCB = vowpalwabbit.LabelType.CONTEXTUAL_BANDIT, vowpalwabbit.LabelType.CONDITIONAL_CONTEXTUAL_BANDIT


@pytest.fixture(scope="module")
def workspaces() -> dict[str, vowpalwabbit.Workspace]:
    return {
        "cb": vowpalwabbit.Workspace("--dsjson --cb_explore_adf --quiet --noconstant -b 30 --sparse_weights"),
        "ccb": vowpalwabbit.Workspace("--dsjson --ccb_explore_adf --quiet --noconstant -b 30 --sparse_weights"),
        "json": vowpalwabbit.Workspace("--json --cb_explore_adf --quiet --noconstant -b 30 --sparse_weights"),
    }


def features_of(example: vowpalwabbit.Example) -> list[tuple[int, float]]:
    """Return hashes and values of the features."""
    return [
        (example.feature(i, j), example.feature_weight(i, j))
        for i in range(example.num_namespaces())
        if example.namespace(i) != CONSTANT
        for j in range(example.num_features_in(i))
    ]


@contextmanager
def parsed(line: str, workspace: vowpalwabbit.Workspace) -> Iterator[list[vowpalwabbit.Example]]:
    examples = workspace.parse(line)
    try:
        yield examples
    finally:
        workspace.finish_example(examples)


class Hashes:
    """Says whether two features have one name exactly where they have one hash, over a whole file."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.hashes: set[int] = set()

    def compare(self, row: dict[str, Any], *examples: vowpalwabbit.Example) -> None:
        found = [pair for example in examples for pair in features_of(example)]
        np.testing.assert_allclose(sorted(row["features.value"]), sorted(value for _, value in found), rtol=1e-6)
        repeats = Counter(code for code, _ in found).values()
        assert sorted(Counter(row["features.name"]).values()) == sorted(repeats)
        self.names.update(row["features.name"])
        self.hashes.update(code for code, _ in found)

    def check(self) -> None:
        assert len(self.names) == len(self.hashes)


def same_as_vowpal_wabbit(lines: list[str], rows: list[dict[str, Any]], workspace: vowpalwabbit.Workspace) -> None:
    """Compare lines with one decision each: features, values, label."""
    hashes = Hashes()
    for line, row in zip(lines, rows, strict=True):
        with parsed(line, workspace) as (shared, *actions):
            hashes.compare(row, shared)
            assert len(row["candidates"]) == len(actions)
            for action, candidate in zip(actions, row["candidates"], strict=True):
                hashes.compare(candidate, action)
            costs = [one.get_label(CB).costs for one in actions]
            ((chosen, label),) = [(i, one) for i, some in enumerate(costs, 1) for one in some if one.cost < UNKNOWN]
            assert (chosen, label.cost) == (row["action"], pytest.approx(row["cost"]))
            assert label.probability == pytest.approx(row["probability"])
    hashes.check()


# ---- real files -------------------------------------------------------------------------------

OTHER_ACTIONS = json.dumps(
    {"_labelIndex": 0, "_label_cost": 0, "_label_probability": 1, "c": {"_multi": [{"only one": 7.5}]}}
)


@REAL
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("dsjson_cb.json", 23),
        ("dsjson_cb_default_ns.json", 4),
        ("decisionservice.json", 3),
        ("cb_simple.json", 1),
        ("cb_features_w_zero_vals.dsjson", 2),
    ],
)
def test_a_file_has_what_vowpal_wabbit_finds(
    name: str, count: int, workspaces: dict[str, vowpalwabbit.Workspace]
) -> None:
    content = (FILES / name).read_bytes().rstrip()
    classes = read_dsjson(content, name)
    classes.validate(full=True)
    assert classes.num_rows == count
    # All lines of these files have the same actions. One with others shows the features of all.
    lines = [line for line in content.decode().splitlines() if line.strip()]
    without_base = [json.dumps(json.loads(line) | {"a": None}) for line in lines]
    table = read_dsjson("\n".join([*without_base, OTHER_ACTIONS]).encode(), name)
    table.validate(full=True)
    same_as_vowpal_wabbit(lines, table.to_pylist()[:-1], workspaces["cb"])
    for column in ("action", "cost", "probability", "time", "features.name", "features.value"):
        assert classes[column].to_pylist() == table[column].to_pylist()[:-1]


@REAL
def test_equal_chances_to_be_dropped_are_no_news(workspaces: dict[str, vowpalwabbit.Workspace]) -> None:
    with_drop, without = (
        read_dsjson((FILES / name).read_bytes(), "a") for name in ("cb_simple_pdrop.json", "cb_simple.json")
    )
    assert with_drop.equals(without)


@REAL
def test_plain_json_has_what_vowpal_wabbit_finds(workspaces: dict[str, vowpalwabbit.Workspace]) -> None:
    content = (FILES / "cb_test256.json").read_bytes()
    table = read_dsjson(content, "cb_test256.json")
    table.validate(full=True)
    assert table.num_rows == 260
    same_as_vowpal_wabbit(content.decode().splitlines(), table.to_pylist(), workspaces["json"])


def without_slot_index(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without its last feature, which Vowpal Wabbit adds when it learns."""
    assert row["features.name"][-1].startswith("_ccb_slot_index^index")
    return row | {"features.name": row["features.name"][:-1], "features.value": row["features.value"][:-1]}


def same_slots(lines: list[str], rows: list[dict[str, Any]], workspace: vowpalwabbit.Workspace) -> None:
    """Compare lines with slots: features, values, labels, available actions and their probabilities."""
    hashes, following = Hashes(), iter(rows)
    for line in lines:
        with parsed(line, workspace) as (shared, *others):
            slots = [one for one in others if one.get_label(CCB).type == 2]
            actions = others[: len(others) - len(slots)]
            taken: set[int] = set()
            for slot in slots:
                row, label = next(following), slot.get_label(CCB)
                named = list(label.explicit_included_actions) or range(len(actions))
                left = [action for action in named if action not in taken]
                ranked = {one.action: one.score for one in label.outcome.action_probs}
                chosen = next(iter(ranked))
                hashes.compare(without_slot_index(row), shared, slot)
                assert len(row["candidates"]) == len(left)
                for action, candidate in zip(left, row["candidates"], strict=True):
                    hashes.compare(candidate, actions[action])
                assert left[row["action"] - 1] == chosen
                assert row["cost"] == pytest.approx(label.outcome.cost)
                assert row["probability"] == pytest.approx(ranked[chosen])
                assert dict(zip(left, row["distribution"], strict=True)) == pytest.approx(ranked)
                taken.add(chosen)
    assert next(following, None) is None
    hashes.check()


@REAL
@pytest.mark.parametrize(
    ("name", "count"), [("ccb_data.json", 66), ("ccb_reuse_medium.dsjson", 12), ("ccb_simple.json", 2)]
)
def test_slots_are_those_of_vowpal_wabbit(name: str, count: int, workspaces: dict[str, vowpalwabbit.Workspace]) -> None:
    content = (FILES / name).read_bytes()
    table = read_dsjson(content, name)
    table.validate(full=True)
    assert table.num_rows == count
    same_slots(content.decode().splitlines(), table.to_pylist(), workspaces["ccb"])


@REAL
@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("*json")))
def test_all_these_files_are_taken_for_dsjson(name: str) -> None:
    assert format_of(FILES / name) == "dsjson"


@REAL
def test_blocks_of_lines_are_one_table() -> None:
    content = (FILES / "cb_test256.json").read_bytes()
    few, many = (read_dsjson(content * times, "a.json") for times in (1, 400))
    many.validate(full=True)
    assert many.equals(pa.concat_tables([few] * 400))
    with pytest.raises(ReadError, match=r"^a\.json, line 104001: this is not JSON"):
        read_dsjson(content * 400 + b"{]", "a.json")


# ---- lines ------------------------------------------------------------------------------------

EVENT: dict[str, Any] = {
    "_label_cost": -1.5,
    "_label_probability": 0.7,
    "_label_Action": 2,
    "_labelIndex": 1,
    "o": [{"v": 1.5, "EventId": "e"}],
    "Timestamp": "2020-01-31T12:00:00.000Z",
    "EventId": "e",
    "a": [2, 3, 1],
    "p": [0.7, 0.2, 0.1],
    "VWState": {"m": "model"},
    "_original_label_cost": -3,
}
ACTIONS: list[dict[str, Any]] = [{"i": {"x": 1, "id": "a"}}, {"i": {"x": 2}, "_tag": "second"}, {"j": [0.5, 0, 2]}]


def event(actions: Any = ACTIONS, context: Any = None, **changes: Any) -> str:
    """Return a line; ``key=None`` leaves a key out."""
    found = EVENT | {"c": {"u": {"f": 1}, "_multi": actions} | (context or {})} | changes
    return json.dumps({key: value for key, value in found.items() if value is not None}, ensure_ascii=False)


def slotted(slots: Any = ({}, {"s": {"f": 2}}), outcomes: Any = None, actions: Any = ACTIONS, **more: Any) -> str:
    first = {"_label_cost": -1, "_a": [1, 0, 2], "_p": [0.5, 0.3, 0.2]}
    second = {"_label_cost": 0.5, "_a": [2, 0], "_p": [0.6, 0.4], "_o": [], "_original_label_cost": 1}
    context = {"u": {"f": 1}, "_multi": actions, "_slots": slots}
    return json.dumps({"c": context, "_outcomes": [first, second] if outcomes is None else outcomes} | more)


def rows_of(*lines: str) -> list[dict[str, Any]]:
    table = read_dsjson("\n".join(lines).encode(), "a.json")
    table.validate(full=True)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


OTHER = event(ACTIONS[:1], _label_Action=1, _labelIndex=0, a=[1], p=[1.0], _label_probability=1)


def test_all_columns_of_a_decision_with_candidates() -> None:
    row, other = rows_of(event(), OTHER)
    assert row == {
        "action": 2,
        "cost": -1.5,
        "probability": 0.7,
        "time": "2020-01-31T12:00:00.000Z",
        "features.name": ["u^f"],
        "features.value": [1.0],
        "candidates": [
            {"features.name": ["i^x", "i^id^a"], "features.value": [1.0, 1.0]},
            {"features.name": ["i^x"], "features.value": [2.0]},
            {"features.name": ["j^[0]", "j^[2]"], "features.value": [0.5, 2.0]},
        ],
        "distribution": [0.1, 0.7, 0.2],
    }
    assert (other["action"], len(other["candidates"]), other["distribution"]) == (1, 1, [1.0])


def test_types_of_candidates() -> None:
    schema = read_dsjson(f"{event()}\n{OTHER}".encode(), "a.json").schema
    features = [
        pa.field("features.name", pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        pa.field("features.value", pa.list_(pa.float64())),
    ]
    assert schema.field("candidates").type == pa.list_(pa.struct(features))
    assert schema.field("distribution").type == pa.list_(pa.float64())
    assert schema.field("features.name").type == features[0].type


def test_the_same_actions_in_all_lines_are_classes() -> None:
    again = event([{"i": {"id": "a", "x": 1.0}}, {"_tag": "2", "i": {"x": 2, "y": 0}}, ACTIONS[2]])
    assert [row["candidates"] for row in rows_of(event(), again)] == [[2, 3, 1], [2, 3, 1]]
    moved = event([ACTIONS[1], ACTIONS[0], ACTIONS[2]])
    assert isinstance(rows_of(event(), moved)[0]["candidates"][0], dict)


def test_part_files_must_have_the_same_actions(tmp_path: Path) -> None:
    lines = {"a": event(), "b": event(), "c": event([ACTIONS[1], ACTIONS[0], ACTIONS[2]])}
    for name, line in lines.items():
        (tmp_path / f"{name}.dsjson").write_text(line)
    with pytest.raises(ReadError, match=r"^c\.dsjson and a\.dsjson have different actions.*actions_vary=True"):
        poem.read_log(tmp_path)
    assert len(poem.read_log(tmp_path, actions_vary=True)) == 3
    (tmp_path / "c.dsjson").unlink()
    assert len(poem.read_log(tmp_path)) == 2


def test_names_have_a_dictionary_for_contexts_and_one_for_actions() -> None:
    table = read_dsjson(f"{event()}\n{OTHER}".encode(), "a.json")
    assert table["features.name"].chunk(0).values.dictionary.to_pylist() == ["u^f"]
    names = table["candidates"].chunk(0).values.field("features.name").values.dictionary
    assert names.to_pylist() == ["i^x", "i^id^a", "j^[0]", "j^[2]"]


def test_a_that_counts_from_zero() -> None:
    zero = event(a=[1, 2, 0], p=[0.7, 0.2, 0.1])
    assert rows_of(zero)[0]["candidates"] == [2, 3, 1]
    one = event(ACTIONS[:1], _label_Action=1, _labelIndex=0, a=[0], p=[1.0])
    assert [row["distribution"] for row in rows_of(zero, one)] == [[0.1, 0.7, 0.2], [1.0]]
    with pytest.raises(ReadError, match=r'^a\.json, line 1: "a" has 0, which is not an action'):
        rows_of(zero, event())


def test_distributions_where_they_are_known() -> None:
    rows = rows_of(
        event(a=None), event(p=None), event(a=[2, 3], p=[0.7, 0.3]), event(a=[2], p=[0.7]), event(a=[2], p=[1]), OTHER
    )
    assert [row["distribution"] for row in rows] == [None, None, [0.0, 0.7, 0.3], None, [0.0, 1.0, 0.0], [1.0]]
    assert "distribution" not in rows_of(event(a=None), OTHER.replace('"a"', '"b"'))[0]


TAKEN = [{"v": 1, "EventId": "e"}, {"EventId": "e", "ActionTaken": True}]


@pytest.mark.parametrize(
    ("line", "rows"),
    [
        ("[CHECKPOINT ended at 2020-01-31]", 0),
        ("   ", 0),
        ('{"RewardValue": 1.0, "EventId": "e", "DeferredAction": false}', 0),
        ('{"ActionTaken": true, "EventId": "e"}', 0),
        (event(_skipLearn=True), 0),
        (event(_skipLearn=True, context={"_text": 5}), 0),
        (event(_skipLearn=False), 1),
        (event(DeferredAction=True), 0),
        (event(DeferredAction=True, o=None), 0),
        (event(DeferredAction=True, o=TAKEN), 1),
        (event(DeferredAction=False), 1),
    ],
)
def test_what_is_not_to_be_learnt_from_is_skipped(line: str, rows: int) -> None:
    assert len(rows_of(OTHER, line, OTHER)) == 2 + rows


def test_text_has_words_and_escapes_are_followed() -> None:
    line = event([{"_text": r"a b\tc:d", "i": {"_text": ""}}, {"é": 'x"y', 'k"': 1}, {}])
    row = rows_of(line.replace(r"\\t", r"\t").replace("é", r"\u00e9"), event())[0]
    assert [one["features.name"] for one in row["candidates"]] == [["a", "b", "c_d"], ['é^x"y', 'k"'], []]


# ---- slots ------------------------------------------------------------------------------------


def test_all_columns_of_slots() -> None:
    first, second = rows_of(slotted(Timestamp="2020-01-31T12:00:00Z"))
    slot = "_ccb_slot_index^index"
    assert [row["features.name"] for row in (first, second)] == [["u^f", slot + "0"], ["u^f", "s^f", slot + "1"]]
    assert first["group"] == second["group"]
    assert [row["action"] for row in (first, second)] == [2, 2]
    assert [row["cost"] for row in (first, second)] == [-1.0, 0.5]
    assert [row["probability"] for row in (first, second)] == [0.5, 0.6]
    assert [row["distribution"] for row in (first, second)] == [[0.3, 0.5, 0.2], [0.4, 0.6]]
    assert first["candidates"][0] == second["candidates"][0]
    assert first["candidates"][2] == second["candidates"][1]
    assert second["time"] == "2020-01-31T12:00:00Z"


def test_slots_may_be_skipped_have_one_action_or_name_theirs() -> None:
    outcomes = [{"_skipLearn": True, "_a": 1, "_p": 0.5}, {"_label_cost": 1, "_a": [2], "_p": [0.25]}]
    (row,) = rows_of(slotted(outcomes=outcomes))
    assert (row["action"], row["probability"], len(row["candidates"])) == (2, 0.25, 2)
    assert "distribution" not in row
    named = slotted(
        slots=[{"_inc": [2, 1]}, {"_inc": [0, 1]}],
        outcomes=[
            {"_label_cost": 1, "_a": [1, 2], "_p": [0.5, 0.5]},
            {"_label_cost": 1, "_a": [0], "_p": [1]},
        ],
    )
    first, second = rows_of(named)
    assert [(row["action"], len(row["candidates"])) for row in (first, second)] == [(2, 2), (1, 1)]


def test_slots_of_several_lines(workspaces: dict[str, vowpalwabbit.Workspace]) -> None:
    one = slotted(
        slots=[{"s": {"g": 3}}], outcomes=[{"_label_cost": 2, "_a": [0, 1], "_p": [0.9, 0.1]}], actions=ACTIONS[:2]
    )
    lines = [slotted(), one, "", slotted(_skipLearn=True), slotted()]
    read = [line for line in lines if line and "_skipLearn" not in line]
    same_slots(read, rows_of(*lines), workspaces["ccb"])


# ---- what cannot be read ----------------------------------------------------------------------

OUTCOME = {"_label_cost": 1, "_a": [0, 1, 2], "_p": [0.5, 0.25, 0.25]}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (event([]), "there are no candidates: _multi is empty"),
        (event([{}] * 10_001, a=None), "there are 10,001 candidates in _multi; at most 10,000"),
        (event(_labelIndex=3, _label_Action=4), "action 4, but there are 3 in _multi"),
        (event(a=[1, 3], p=[0.5, 0.5]), 'action 2, which is not in "a": [1, 3]'),
        (event(a=[2, 3, 3]), '"a" has an action twice: [2, 3, 3]'),
        (event(a=[2, 3, 4]), '"a" has 4, but there are 3 actions in _multi'),
        (event(a=[2, 3, 1.0]), '"a" has 1.0, which is not an action'),
        (event(p=[0.7, 0.2, 0.2]), 'probabilities in "p" add up to 1.1, not to 1'),
        (event(a=[2, 3], p=[0.7, 0.2]), "add up to 0.9"),
        (event(p=[0.7, 0.2]), '"a" has 3 entries and "p" has 2'),
        (event(_label_probability=None), "no _label_probability"),
        (event(_label_probability=0), "_label_probability is 0, not above 0"),
        (event(_label_probability=1.01), "_label_probability is 1.01"),
        (event(_label_Cost=1), "several labels"),
        (event([{"_label_cost": 1}, {}, {}]), "_label_cost is a label inside the context or an action"),
        (event(context={"_labelIndex": 1}), "_labelIndex is a label inside"),
        (event()[:-20], "ends in the middle of its JSON"),
        (event()[:100], "ends in the middle of its JSON"),
        (event({"a": 1}), "not an array of objects"),
        (event([1, 2, 3]), "not an array of objects"),
        (event([[], {}, {}]), "not an array of objects"),
        (event([{"t": ["red"]}, {}, {}]), 't": ["red"'),
        (event([{"x": float("inf")}, {}, {}]), "Infinity is not a number in JSON"),
        (event([{"x": 10**400}, {}, {}]), "is not a finite number"),
        (event([{"x": "q"}, {}, {}]).replace('"q"', r'"\udc00"'), "surrogate"),
        (event().replace('"_multi"', '"_multi": [], "_multi"'), "_multi is there twice"),
        (event().replace('"c"', '"c": {}, "c"'), "c is there twice"),
        (event(c={"u": 1}), "there are no actions (_multi), and some on line 1"),
        (event(c={"f": 1, "_multi": None}), "not an array of objects"),
        ('{"_multi": [{}], "_labelIndex": 0, "_label_Cost": 1, "_label_Probability": 1}', "has actions beside"),
        (slotted(), "this line has slots, and line 1 has a context and one label"),
        (event().replace("]}}", "]}} 7"), "this is not JSON"),
        (event().replace("0.7", "0x7"), "this is not JSON"),
        (event([{"x": 1}, {"y": 1}]).replace('"y": 1', '"y": 01'), "this is not JSON"),
        (event([{"x": 1}, {"y": 1}]).replace('"y": 1', '"y": 1,'), "this is not JSON"),
        (event([{"x": 1}, {"y": "z"}]).replace('"z"', r'"\x"'), "this is not JSON"),
    ],
)  # fmt: skip
def test_a_bad_decision_is_named_with_file_and_line(line: str, said: str) -> None:
    with pytest.raises(ReadError, match=r"^a\.json, line 3: ") as caught:
        rows_of(OTHER, "", line)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (slotted(outcomes=[OUTCOME]), "there are 2 slots and 1 outcomes"),
        (slotted(outcomes=5), "_outcomes is 5, not an array of objects"),
        (slotted(outcomes=[OUTCOME, OUTCOME]), 'slot 2: "_a" has the action 0, which is not available: [1, 2] are'),
        (slotted(outcomes=[OUTCOME | {"_a": [0, 1, 3]}, {}]), 'slot 1: "_a" has the action 3'),
        (slotted(outcomes=[OUTCOME | {"_a": [0, 1, 1]}, {}]), 'slot 1: "_a" has an action twice'),
        (slotted(outcomes=[OUTCOME | {"_p": [0.5, 0.2, 0.1]}, {}]), '"_p" add up to 0.8'),
        (slotted(outcomes=[OUTCOME | {"_p": [0, 0.5, 0.5]}, {}]), "the first of _p is 0, not above 0"),
        (slotted(outcomes=[OUTCOME | {"_p": None}, {}]), "slot 1: the outcome has no _p"),
        (slotted(outcomes=[OUTCOME | {"_label_cost": None}, {}]), "slot 1: the outcome has no _label_cost"),
        (slotted(outcomes=[OUTCOME | {"_id": "x"}, {}], slots=[{"_id": "y"}, {}]), 'its _id is "y"'),
        (slotted(slots=[{"_inc": [0, 7]}, {}]), "slot 1: _inc is [0, 7], not an array of actions from 0 to 2"),
        (slotted(slots=[{"_inc": [0, 0]}, {}]), "slot 1: _inc has an action twice"),
        (slotted(slots=[{}, {"_inc": [1]}]), "slot 2: no action is left"),
        (slotted(slots=[1, 2]), "not an array of objects"),
        (slotted(_label_cost=1), "one cost is for all slots together (a slate)"),
        (slotted(actions=[{"_slot_id": 0}, {"_slot_id": 1}]), "_slot_id says that one cost is for all slots"),
        (slotted().replace('"_slots"', '"_x"'), "no _slots or no _multi"),
        (slotted().replace('"_multi"', '"_x"'), "no _slots or no _multi"),
        (slotted().replace('"_outcomes"', '"_x"'), "the decision has no label"),
        (event(), "this line has a context and one label, and line 1 has slots"),
    ],
)
def test_bad_slots_are_named_with_file_and_line(line: str, said: str) -> None:
    with pytest.raises(ReadError, match=r"^a\.json, line 2: ") as caught:
        rows_of(slotted(), line)
    assert said in str(caught.value)


PLAIN: dict[str, Any] = {
    "_labelIndex": 0,
    "_label_Cost": 1,
    "_label_Probability": 0.5,
    "c": {"a": 2},
    "_multi": [{}, {}],
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"_label": "1:2:.5"}, "_label is a label as text"),
        ({"_labelIndex": None}, "the label has no _labelIndex"),
        ({"_label_Action": 2}, "_labelIndex is 0 and _label_Action is 2"),
        ({"_multi": []}, "there are no candidates"),
        ({"_multi": [{"_label_Cost": 1}, {}]}, "a label inside the context or an action"),
    ],
)
def test_bad_plain_json_is_named_with_file_and_line(changes: dict[str, Any], said: str) -> None:
    assert rows_of(json.dumps(PLAIN))[0]["features.name"] == ["c^a"]
    with pytest.raises(ReadError, match=r"^a\.json, line 2: ") as caught:
        rows_of(json.dumps(PLAIN), json.dumps(PLAIN | changes))
    assert said in str(caught.value)


# ---- any lines --------------------------------------------------------------------------------

# Not drawn is what has one hash for two names in Vowpal Wabbit: a key with a string and the two as one word, blanks
# around keys, numbers as keys, a namespace and a feature of one name. It writes outside its arrays where a namespace
# does not begin with ASCII.
KEYS = st.text("abc-.é", min_size=1, max_size=4)
SPACES = st.text("XYZ-.é", min_size=1, max_size=4).map("N".__add__)
NUMBERS = st.integers(-(10**6), 10**6) | st.floats(-1e6, 1e6, width=32) | st.just(0.1234567890123456789)
STRINGS = st.text('ab :|"\\é\n\t/', min_size=1, max_size=5)
SCALARS = NUMBERS | STRINGS.map("=".__add__) | st.booleans() | st.none()
TEXTS = st.dictionaries(st.just("_text"), st.text('PQ :|"\\\t', max_size=5), max_size=1)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    parts = st.tuples(
        st.dictionaries(KEYS, SCALARS, max_size=3),
        st.dictionaries(SPACES | st.just("_ignored"), inner, max_size=2),
        TEXTS,
    )
    return parts.map(lambda found: found[0] | found[1] | found[2])


ARRAYS = st.lists(NUMBERS | st.none(), max_size=3)
OBJECTS = objects(
    st.recursive(ARRAYS, lambda inner: objects(inner) | st.lists(objects(inner), max_size=2), max_leaves=4)
)
LINES = st.tuples(OBJECTS, st.lists(OBJECTS, min_size=1, max_size=4), st.integers(0, 3), st.floats(0.0625, 1, width=32))


@QUICKLY
@given(st.lists(LINES, min_size=1, max_size=3), st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_drawn_lines_have_what_vowpal_wabbit_finds(
    workspaces: dict[str, vowpalwabbit.Workspace], drawn: list[Any], separators: tuple[str, str], ascii: bool
) -> None:
    lines = []
    for context, actions, chosen, probability in drawn:
        chosen %= len(actions)
        line = {"_labelIndex": chosen, "_label_cost": 2, "_label_probability": probability}
        line |= {"a": [chosen + 1], "p": [probability], "c": context | {"_multi": actions}}
        lines.append(json.dumps(line, separators=separators, ensure_ascii=ascii))
    rows = rows_of(*lines, OTHER, event())[:-2]
    same_as_vowpal_wabbit(lines, rows, workspaces["cb"])


@QUICKLY
@given(st.sampled_from([event(), slotted(), json.dumps(PLAIN)]), st.data())
def test_a_changed_line_is_read_or_refused(line: str, data: st.DataObject) -> None:
    changed = bytearray(line.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed)))
        snippets = [b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"9" * 30, b"-", b"e", b"\n", b"_", b"\xc3"]
        changed[place : place + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(snippets))
    for content in (bytes(changed), f"{line}\n{OTHER}\n".encode() + changed):
        try:
            table = read_dsjson(content, "a.json")
        except PoemError:
            continue
        table.validate(full=True)
