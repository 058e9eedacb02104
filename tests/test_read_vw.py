"""Vowpal Wabbit's formats, read by poem and by Vowpal Wabbit itself."""

import json
import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
import vowpalwabbit
from hypothesis import given, settings
from hypothesis import strategies as st

from poem.errors import PoemError, ReadError
from poem.readers.dsjson import read_dsjson
from poem.readers.vw import read_vw

QUICKLY = settings(max_examples=150, deadline=None)
CONSTANT = 128  # Vowpal Wabbit's own namespace


def features_of(example: vowpalwabbit.Example) -> dict[int, list[float]]:
    """Return the values of the features, by the first byte of their namespaces."""
    return {
        example.namespace(i): [example.feature_weight(i, j) for j in range(example.num_features_in(i))]
        for i in range(example.num_namespaces())
        if example.namespace(i) != CONSTANT
    }


def hashes_of(example: vowpalwabbit.Example) -> list[int]:
    return [
        example.feature(i, j)
        for i in range(example.num_namespaces())
        if example.namespace(i) != CONSTANT
        for j in range(example.num_features_in(i))
    ]


def read_by_poem(line: str) -> dict[str, Any]:
    (row,) = read_vw(line.encode(), "a.vw").to_pylist()
    return row


# ---- the text format --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workspace() -> vowpalwabbit.Workspace:
    return vowpalwabbit.Workspace("--cb 9 --quiet")


SAME_LINES = [
    "1:2:0.5 | a b",
    "1:2:0.5 |a x:2 y |b:3 x:2 y:0 z",
    "3:-1.5:1 'tag |n a:.5 b:-2 c:+1 d:1e-3 e:1E+2 f:5. g:-.5e-2 h:00012 i:-0 j:1e005",
    "1:2:0.5 tag| a",
    "1:2:0.5 2| a",
    "1:2:0.5 'tag | a",
    "1 2:0.5:0.3 4 | a",
    "2:0.5:0.3 4 3 'tag | a b",
    "   3:1:.25    2   |n  a   b  ",
    "prefix\t3:1:.25 |n\ta\tb",
    "1:2:.5 | a a a:2",
    "1:2:.5 |n a:2 |n b:3 |n:2 a:2",
    "1:2:.5 | c|d e",
    "1:2:.5 ||a b |",
    "1:2:.5 |",
    "1:2:.5 |a",
    "1:2:.5 |n:0 a b |m:-1.5 a b:2",
    "1:2:.5 |n:2|m a",
    "1:2:.5 |n:2 colour:red size:x|l b:c a::3 q:+ r:-x s:--1 t:.x 7:5",
    "1:2:.5 |n :3 :0 :4 |m :1 x :2",
    "1:2:.5 |é é:2 ñ:ü 日本:3",
    "1:2:.5 |n a:123456789012345678901234 b:0.1234567890123456789 c:1.7976931348623157 d:9007199254740993",
    "1:2:.5 |n:0.12345678901234567 a b:2 c:x d:0.12345678901234567",
    "1:-0.12345678901234567:0.12345678901234567 |n a",
    "01:+2:5e-1 | a",
    "1:1e30:1e-30 | a",
    "1:2:.5 | a\x00b c:2",
]


@pytest.mark.parametrize("line", SAME_LINES)
def test_a_line_has_the_label_and_the_features_that_vowpal_wabbit_finds(
    line: str, workspace: vowpalwabbit.Workspace
) -> None:
    row = read_by_poem(line)
    example = workspace.parse(line)
    try:
        label = example.get_label(vowpalwabbit.LabelType.CONTEXTUAL_BANDIT)
        (known,) = [cost for cost in label.costs if cost.cost < 3e38]
        assert (row["action"], np.float32(row["cost"])) == (known.action, np.float32(known.cost))
        assert np.float32(row["probability"]) == pytest.approx(known.probability, rel=1e-6)
        found = features_of(example)
        ours: dict[int, list[float]] = {}
        for name, value in zip(row["features.name"], row["features.value"], strict=True):
            space = _first_byte_of_namespace(name, line)
            ours.setdefault(space, []).append(value)
        assert list(ours) == list(found)
        for space, values in ours.items():
            np.testing.assert_allclose(values, found[space], rtol=1e-6)
        # Names are equal exactly where hashes are. (Numbers as names are their own hashes, and there is one only.)
        grouped = [
            name for space in ours for name in row["features.name"] if _first_byte_of_namespace(name, line) == space
        ]
        assert len(set(grouped)) == len(set(hashes_of(example)))
        assert len(set(zip(grouped, hashes_of(example), strict=True))) == len(set(grouped))
    finally:
        workspace.finish_example(example)


def _first_byte_of_namespace(name: str, line: str) -> int:
    space, caret, _ = name.partition("^")
    # In the default namespace a category has a caret too; no line here has a namespace of that name.
    return space.encode()[0] if caret and f"|{space}" in line else ord(" ")


def test_names_tell_namespaces_features_and_categories() -> None:
    row = read_by_poem("1:2:.5 | a b:c :2 |user:2 age:3 colour:red :0 :5")
    assert row["features.name"] == ["a", "b^c", "[0]", "user^age", "user^colour^red", "user^[1]"]
    assert row["features.value"] == [1.0, 1.0, 2.0, 6.0, 1.0, 10.0]


def test_columns_have_their_types() -> None:
    table = read_vw(b"1:2:.5 | a\n", "a.vw")
    assert [str(kind) for kind in table.schema.types] == [
        "int64",
        "double",
        "double",
        "list<item: dictionary<values=string, indices=int32, ordered=0>>",
        "list<item: double>",
    ]
    assert read_vw(b"", "a.vw").schema == table.schema
    table.validate(full=True)


def test_blank_lines_line_ends_and_byte_order_marks_are_as_in_vowpal_wabbit() -> None:
    content = b"\xef\xbb\xbf1:2:.5 | a\r\n\r\n\n  \t\n\xef\xbb\xbf2:3:.25 |n b\n\n3:4:1 | c:2"
    table = read_vw(content, "a.vw")
    assert table["action"].to_pylist() == [1, 2, 3]
    assert table["features.name"].to_pylist() == [["a"], ["n^b"], ["c"]]


def test_a_decision_may_have_no_features() -> None:
    # In a file: Vowpal Wabbit's Python interface strips the blank, without which the label is a tag.
    row = read_by_poem("1:2:.5 ")
    assert (row["action"], row["features.name"]) == (1, [])


def test_line_ends_of_old_macs_are_refused() -> None:
    with pytest.raises(ReadError, match=r"^a\.vw, line 2: a carriage return is followed by '2'"):
        read_vw(b"1:2:.5 | a\r\n1:2:.5 | a\r2:2:.5 | b\r", "a.vw")


def test_one_name_is_one_entry_of_the_dictionary() -> None:
    names = read_vw(b"1:2:.5 | n^a |n a\n2:1:.5 |n a\n", "a.vw")["features.name"].chunk(0)
    assert names.to_pylist() == [["n^a", "n^a"], ["n^a"]]
    assert names.values.dictionary.to_pylist() == ["n^a"]


def test_many_names_and_many_late_numbers_make_the_tables_grow() -> None:
    lines = [f"{i % 9 + 1}:{i / 7!r}:{(i + 1) / 5001!r} |n f{i} g{i}:{math.pi * i!r} h:0.5" for i in range(5000)]
    table = read_vw("\n".join(lines).encode(), "a.vw")
    assert table["cost"].to_pylist() == [i / 7 for i in range(5000)]
    assert table["probability"].to_pylist() == [(i + 1) / 5001 for i in range(5000)]
    for i in (0, 1, 2500, 4999):
        drawn = [1.0, 0.5] if i == 0 else [1.0, math.pi * i, 0.5]
        assert table["features.value"][i].as_py() == drawn
    assert table["features.name"][4999].as_py() == ["n^f4999", "n^g4999", "n^h"]
    table.validate(full=True)


NOT_QUITE_NUMBERS = ["nan", "-inf", "inf", "Infinity", "nancy", "info", "1e400", "0x10", "1,5", "1.5.2", "1d"]
NOT_QUITE_NUMBERS += ["1e", "1e-", "-", ".", "-.", "e5", "E", "1_0", "1:2", "\x0b1", "9" * 400]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("shared | a", "multi-line form"),
        ("shared |u a", "files of their own"),
        ("| a", "no label"),
        ("1:2:.5", "a word that touches the bar"),
        ("1:2:.5| a", "no label"),
        ("1:2:.5\t| a", "before a tab"),
        ("1 2 3 | a", "none of the actions in '1 2 3 | a' has a cost"),
        ("1:2:.5 2:1:.5 | a", "'2:1:.5' is a second action with a cost"),
        ("1:2:.5 4:0 | a", "second action"),
        ("# comment", "'#' is not an action"),
        ("0:1:.5 | a", "'0:1:.5' is not an action"),
        ("x:1:.5 | a", "not an action"),
        ("-1:1:.5 | a", "not an action"),
        ("1.5:1:.5 | a", "not an action"),
        ("99999999999:1:.5 | a", "not an action"),
        ("1:2:.5 t1 t2 | a", "'t1' is not an action"),
        ("1:1 | a", "'1:1' has no probability"),
        ("1:2:.5:4 | a", "more than three parts"),
        ("1:x:.5 | a", "cost 'x' is not a finite number"),
        ("1::.5 | a", "cost '' is not"),
        ("1:nan:.5 | a", "cost 'nan'"),
        ("1:1e400:.5 | a", "cost '1e400'"),
        ("1:0x10:.5 | a", "cost '0x10'"),
        ("1:1:0 | a", "probability '0' is not"),
        ("1:1:1.01 | a", "probability '1.01'"),
        ("1:1:-.5 | a", "probability '-.5'"),
        ("1:1:nan | a", "probability 'nan'"),
        ("1:1: | a", "probability ''"),
        ("1:1:1e-400 | a", "probability '1e-400'"),
        ("1:1:1.00000000000000100000 | a", "probability '1.0000000"),
        *[(f"1:2:.5 | ok a:{value} b", "value " + repr(value)[:40]) for value in NOT_QUITE_NUMBERS],
        ("1:2:.5 |n:1e300 a:1e300", "value '1e300'"),
        ("1:2:.5 |n:1e200 a:1e200", "value '1e200'"),
        ("1:2:.5 | a: b", "feature 'a:' ends in a colon"),
        ("1:2:.5 | a:", "ends in a colon"),
        ("1:2:.5 | a:|n b", "ends in a colon"),
        ("1:2:.5 |n:x a", "namespace '|n:x' is not a finite number"),
        ("1:2:.5 |n: a", "namespace '|n:'"),
        ("1:2:.5 |n:1:2 a", "namespace '|n:1:2'"),
        ("1:2:.5 |n:nan a", "namespace '|n:nan'"),
        ("1:2:.5 |:2 a", "'|:2' has a weight but no name"),
    ],
)
def test_what_cannot_be_read_is_named_with_file_and_line(line: str, said: str) -> None:
    with pytest.raises(ReadError, match=r"^a\.vw, line 3: ") as caught:
        read_vw(f"1:2:.5 | a\n\n{line}\n1:2:.5 | b\n".encode(), "a.vw")
    assert said in str(caught.value)


def test_bytes_that_are_not_utf8_are_an_error_with_their_line() -> None:
    with pytest.raises(ReadError, match=r"^a\.vw, line 2: the bytes b'\\xffb' are not UTF-8"):
        read_vw(b"1:2:.5 | a\n1:2:.5 | a\xffb", "a.vw")


@QUICKLY
@given(st.binary(max_size=80) | st.text("1:2.5e|' \t\r\nab-+n", max_size=80).map(str.encode))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    for read in (read_vw, read_dsjson):
        try:
            table = read(content, "any")
        except PoemError:
            continue
        table.validate(full=True)


NAMES = st.text(st.characters(exclude_characters=" \t\r\n:|^", exclude_categories=("Cs",)), min_size=1, max_size=6)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False).filter(lambda x: x != 0.0)
ROWS = st.tuples(
    st.integers(1, 2**31 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(0.0, 1.0, exclude_min=True),
    st.dictionaries(NAMES, st.lists(st.tuples(NAMES, NUMBERS), max_size=4), max_size=3),
)


@QUICKLY
@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from(["\n", "\r\n", "\n\n", "\r\r\n"]))
def test_what_is_written_is_read_back_to_the_last_bit(rows: list[Any], line_end: str) -> None:
    lines, expected = [], []
    for action, cost, probability, spaces in rows:
        texts = [f"|{space} " + " ".join(f"{name}:{value!r}" for name, value in fs) for space, fs in spaces.items()]
        lines.append(f"{action}:{cost!r}:{probability!r} " + " ".join(texts))
        flat = [(f"{space}^{name}", value) for space, fs in spaces.items() for name, value in fs]
        expected.append((action, cost, probability, [name for name, _ in flat], [value for _, value in flat]))
    table = read_vw(line_end.join(lines).encode(), "a.vw")
    table.validate(full=True)
    assert [tuple(row.values()) for row in table.to_pylist()] == expected


@QUICKLY
@given(st.sampled_from(SAME_LINES), st.data())
def test_a_changed_line_is_read_or_refused(line: str, data: st.DataObject) -> None:
    changed = bytearray(line.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed)))
        changed[place : place + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b"|", b":", b" ", b"\t", b"1", b"e", b"-", b".", b"\n", b"\xc3", b"'", b"9" * 30])
        )
    try:
        table = read_vw(bytes(changed), "a.vw")
    except PoemError:
        return
    table.validate(full=True)
    assert all(math.isfinite(value) for row in table["features.value"].to_pylist() for value in row)


# ---- DSJSON -----------------------------------------------------------------------------------

EVENT: dict[str, Any] = {
    "_label_cost": -1.5,
    "_label_probability": 0.8,
    "_label_Action": 2,
    "_labelIndex": 1,
    "o": [{"v": 1.5, "EventId": "e"}],
    "Timestamp": "2020-01-31T12:00:00.000Z",
    "EventId": "e",
    "a": [2, 1],
    "p": [0.8, 0.2],
    "VWState": {"m": "model"},
}
ACTIONS = [{"x": {"i": 1}}, {"x": {"i": 2}, "_tag": "second"}]


def event(context: Any = None, **changes: Any) -> str:
    """Return a line with these features; ``key=None`` leaves a key out."""
    changed = EVENT | {"c": {"f": 1} if context is None else context} | changes
    if isinstance(changed["c"], dict):
        changed["c"] = {"_multi": ACTIONS} | changed["c"]
    return json.dumps({key: value for key, value in changed.items() if value is not None}, ensure_ascii=False)


def decision(line: str) -> dict[str, Any]:
    (row,) = read_dsjson(line.encode(), "a.json").to_pylist()
    return row


@pytest.fixture(scope="module")
def decision_service() -> vowpalwabbit.Workspace:
    return vowpalwabbit.Workspace("--dsjson --cb_explore_adf --quiet --noconstant")


CONTEXTS: list[dict[str, Any]] = [
    {},
    {"s": {"a": 1, "b": "x y:z|w", "c": True, "d": False, "e": None, "f": 0, "g": -2.5}, "top": 3, "ts": "q"},
    {"s": {"n": {"a": 1}}, "t": {"n": {"a": 2}, "b": 1}},
    {"arr": [1, 0, None, 3], "s": {"arr": [1.5, 2]}},
    {"arr": [{"a": 1}, {"b": 2, "a": 3}, 4]},
    {"_text": "hello big|world a:b  b\tc", "s": {"_text": "x x"}},
    {"_ignored": {"a": 1}, "_foo": 2, "b": 1, "_tag": "t", "s": {"_x": {"y": 1}, "z": 1}},
    # (Not with a namespace that starts beyond ASCII: this version of Vowpal Wabbit then writes outside its arrays.)
    {"u": {"ü": "ñ ñ", "日": 2}, "": 4, "n": {"": 1, "e": ""}, " ": {"k": 1}, "k": 2},
    {"s": {"deep": {"deeper": {"deepest": 1e-3}}}, "x": {}, "big": 12345678901234567890},
]


@pytest.mark.parametrize("context", CONTEXTS, ids=range(len(CONTEXTS)))
def test_a_context_has_the_features_that_vowpal_wabbit_finds(
    context: dict[str, Any], decision_service: vowpalwabbit.Workspace
) -> None:
    line = event(context)
    row = decision(line)
    examples = decision_service.parse(line)
    try:
        shared, *actions = examples
        labels = [action.get_label(vowpalwabbit.LabelType.CONTEXTUAL_BANDIT).costs for action in actions]
        (label,) = labels[row["action"] - 1]
        assert (label.action, label.cost) == (row["action"], row["cost"])
        assert label.probability == pytest.approx(row["probability"])
        found = [value for values in features_of(shared).values() for value in values]
        np.testing.assert_allclose(sorted(row["features.value"]), sorted(found), rtol=1e-6)
        repeats = Counter(hashes_of(shared)).values()
        assert sorted(Counter(row["features.name"]).values()) == sorted(repeats)
    finally:
        decision_service.finish_example(examples)


def test_all_columns_of_a_decision() -> None:
    line = event({"user": {"age": 30, "home": "New York"}, "hour": 7, "scores": [0.5, 2]})
    assert decision(line) == {
        "action": 2,
        "cost": -1.5,
        "probability": 0.8,
        "time": "2020-01-31T12:00:00.000Z",
        "features.name": ["user^age", "user^home^New_York", "hour", "scores^[0]", "scores^[1]"],
        "features.value": [30.0, 1.0, 7.0, 0.5, 2.0],
        "candidates": [2, 1],
        "distribution": [0.8, 0.2],
    }


def test_columns_that_are_nowhere_are_left_out() -> None:
    table = read_dsjson(event(a=None, Timestamp=None).encode(), "a.json")
    assert table.column_names == ["action", "cost", "probability", "time", "features.name", "features.value"]
    assert table["time"].to_pylist() == [None]
    mixed = read_dsjson(f"{event(p=None)}\n{event()}".encode(), "a.json")
    assert mixed["candidates"].to_pylist() == [[1, 2], [2, 1]]
    assert mixed["distribution"].to_pylist() == [None, [0.8, 0.2]]


def test_keys_that_repeat_are_features_that_repeat(decision_service: vowpalwabbit.Workspace) -> None:
    line = event({"a": 1}).replace('"a": 1}', '"a": 1, "a": 2}')
    assert decision(line)["features.value"] == [1.0, 2.0]
    examples = decision_service.parse(line)
    assert features_of(examples[0]) == {ord(" "): [1.0, 2.0]}
    decision_service.finish_example(examples)


@pytest.mark.parametrize(
    "line",
    [
        '{"RewardValue": 1.0, "EventId": "e"}',
        '{"RewardValue": null, "Observations": [{"v": 1}], "EventId": "e"}',
        '{"ActionTaken": true, "EventId": "e"}',
        event(_skipLearn=True),
        event(_skipLearn=True, _label_cost=None),
    ],
)
def test_what_vowpal_wabbit_skips_is_skipped(line: str, decision_service: vowpalwabbit.Workspace) -> None:
    assert read_dsjson(f"{event()}\r\n\r\n{line}\n{event()}\n".encode(), "a.json").num_rows == 2
    examples = decision_service.parse(line)
    assert len(examples) == 1
    assert not features_of(examples[0])
    decision_service.finish_example(examples)


def test_either_way_to_name_the_action_is_enough() -> None:
    assert decision(event(_labelIndex=None))["action"] == 2
    assert decision(event(_label_Action=None))["action"] == 2
    assert decision(event(_label_cost=None, _label_COST=3))["cost"] == 3.0


def test_actions_are_compared_by_their_features() -> None:
    reordered = [{"_tag": "first", "x": {"i": 1.0}}, {"x": {"zero": 0, "i": 2}}]
    assert read_dsjson(f"{event()}\n{event({'_multi': reordered})}".encode(), "a.json").num_rows == 2


def test_actions_that_vary_are_ignored_on_request() -> None:
    for other in ([*ACTIONS, {"y": 1}], [{"x": {"i": 1}}, {"x": {"i": 3}}]):
        content = f"{event()}\n\n{event({'_multi': other})}".encode()
        table = read_dsjson(content, "a.json", actions_vary=True)
        assert table["candidates"].to_pylist() == [[2, 1], [2, 1]]


def test_an_equal_chance_to_be_dropped_changes_nothing() -> None:
    assert read_dsjson(f"{event(pdrop=0.5)}\n{event(pdrop=0.5)}".encode(), "a.json").num_rows == 2
    with pytest.raises(ReadError, match=r"line 2: pdrop is 0, but 0\.5 on line 1"):
        read_dsjson(f"{event(pdrop=0.5)}\n{event()}".encode(), "a.json")


def test_decisions_without_label_are_counted() -> None:
    unlabelled = event(_label_cost=None, _label_probability=None, _label_Action=None, _labelIndex=None)
    with pytest.raises(ReadError, match=r"^a\.json, line 2: the decision has no label .*, nor have 2 more"):
        read_dsjson("\n".join([event(), *[unlabelled] * 3]).encode(), "a.json")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (event()[:40], "ends in the middle of its JSON"),
        (event()[:-1], "ends in the middle of its JSON"),
        ("[1, 2]", "[1, 2] is not a JSON object"),
        ("not json", "this is not JSON"),
        ("{}", 'no context "c"'),
        (event(c=[1]), 'context "c" is [1], not an object'),
        (event().replace('"c"', '"d"'), 'no context "c"'),
        (event(_label_cost=None), "no _label_cost"),
        (event(_label_probability=None), "no _label_probability"),
        (event(_labelIndex=None, _label_Action=None), "neither _labelIndex nor _label_Action"),
        (event(_labelIndex=0), "_labelIndex is 0 and _label_Action is 2"),
        (event(_labelIndex=-1), "_labelIndex is -1, not a whole number"),
        (event(_labelIndex=True), "_labelIndex is true, not a whole number"),
        (event(_labelIndex=5, _label_Action=6), "action 6, but there are 2 in _multi"),
        (event(a=[1], p=[1.0]), 'action 2, which is not in "a": [1]'),
        (event(a=[2, 1, 3]), '"a" has 3 entries and "p" has 2'),
        (event(a=[2, 2]), "an action twice"),
        (event(a=[0, 2]), '"a" has 0, which is not an action'),
        (event(a=2), '"a" is 2, not an array'),
        (event(p=[0.8, 1.2]), '"p" has 1.2'),
        (event(p=[0.8, "x"]), 'p is "x", not a finite number'),
        (event(_label_probability=0), "_label_probability is 0, not above 0"),
        (event(_label_probability=1.5), "_label_probability is 1.5"),
        (event(_label_cost="NaN"), '_label_cost is "NaN", not a finite number'),
        (event(Timestamp=5), "Timestamp is 5, not a string"),
        (event(pdrop=1), "pdrop is 1"),
        (event(_outcomes=[]), "this line has slots, and line 1 has a context and one label"),
        (event({"_slots": []}), "this line has slots"),
        (event(_label_ca={"action": 1}), "continuous action"),
        (event({"_multi": 5}), "the actions (_multi) or slots (_slots) are not an array of objects"),
        (event({"f": float("nan")}), "NaN is not a number in JSON"),
        (event({"f": 1}).replace('"f": 1', '"f": 1e400'), "1e400 is not a finite number"),
        (event({"f": 10**400}), "not a finite number"),
        (event({"f": 1}).replace('"f": 1', '"f": ' + "1" * 5000), "111… is not a finite number"),
        (event({"f": "x"}).replace('"x"', r'"\ud800"'), "surrogate"),
        (event(Timestamp="x").replace('"x"', r'"\ud800"'), "surrogate"),
        (event({"tags": ["red"]}), 'one has others: tags": ["red"'),
        (event({"tags": [True]}), 'one has others: tags": [true'),
        (event({"grid": [[1]]}), 'one has others: grid": [['),
        (event({"_text": 5}), "_text is not a string"),
        ('{"c":' * 100_000, "nested too deeply"),
        (event({"f": 1}).replace('"f": 1', '"f": ' + '{"f":' * 2000 + "1" + "}" * 2000), "nested too deeply"),
    ],
)
def test_a_line_that_is_no_decision_is_named_with_file_and_line(line: str, said: str) -> None:
    with pytest.raises(ReadError, match=r"^a\.json, line 3: ") as caught:
        read_dsjson(f"{event()}\n\n{line}\n".encode(), "a.json", actions_vary=True)
    assert said in str(caught.value)


def test_dsjson_that_is_not_utf8_is_an_error_with_its_line() -> None:
    with pytest.raises(ReadError, match=r"^a\.json, line 2: the bytes b'\\xff\"\}' are not UTF-8"):
        read_dsjson(event().encode() + b'\n{"c": "\xff"}', "a.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
KEYS = ["c", "a", "p", "_labelIndex", "_label_Action", "_label_cost", "_label_probability", "Timestamp", "pdrop", "_x"]


@QUICKLY
@given(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3), JSON, st.integers(0, 400))
def test_a_changed_decision_is_read_or_refused(changes: dict[str, Any], context: Any, cut: int) -> None:
    line = json.dumps(EVENT | {"c": context if cut % 2 else {"f": context, "_multi": ACTIONS}} | changes)
    for content in (line, line[:cut]):
        try:
            table = read_dsjson(content.encode(), "a.json")
        except PoemError:
            continue
        table.validate(full=True)
