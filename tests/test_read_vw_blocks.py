"""Vowpal Wabbit's text with several lines per decision, read by poem and by Vowpal Wabbit itself."""

import os
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
from poem.readers import read_contexts, vw_blocks
from poem.readers.detect import format_of
from poem.readers.vw import read_table, read_vw

DATA = Path(os.environ.get("POEM_DATA", Path(__file__).parent.parent.parent / "shared" / "data")) / "vw"
BLOCKS = [
    "cb_adf_sm.data",
    "cb_features_w_zero_vals.dat",
    "cb_load.dat",
    "cb_test.ldf",
    "cb_test_medium.ldf",
    "cb_test_non_binary_costs.ldf",
    "cb_test_with_empty_shared_feature.ldf",
]
SLOTS = "ccb_test.dat"
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="Vowpal Wabbit's own test files are not here")

QUICKLY = settings(max_examples=100, deadline=None)
SHARED, ACTION, SLOT = 0, 1, 2  # Vowpal Wabbit's kinds of lines with slots
CB = vowpalwabbit.LabelType.CONTEXTUAL_BANDIT
CCB = vowpalwabbit.LabelType.CONDITIONAL_CONTEXTUAL_BANDIT
NOT_LOGGED = 3e38
FEW_COLLISIONS = "--quiet --noconstant --bit_precision 30 --sparse_weights"


@pytest.fixture(scope="module")
def adf() -> vowpalwabbit.Workspace:
    return vowpalwabbit.Workspace(f"--cb_adf {FEW_COLLISIONS}")


@pytest.fixture(scope="module")
def ccb() -> vowpalwabbit.Workspace:
    return vowpalwabbit.Workspace(f"--ccb_explore_adf {FEW_COLLISIONS}")


def blocks_of(content: bytes) -> list[list[str]]:
    """Return the lines of each block; lines end like Vowpal Wabbit's own."""
    text = content.decode().replace("\r\n", "\n").replace("\n", "\n ").split("\n ")
    found: list[list[str]] = [[]]
    for line in text:
        if line:
            found[-1].append(line)
        elif found[-1]:
            found.append([])
    return [block for block in found if block]


class Names:
    """Which hash Vowpal Wabbit gives to each name of a feature: one to one."""

    def __init__(self) -> None:
        self.hashes: dict[str, int] = {}

    def check(self, features: dict[str, Any], *examples: vowpalwabbit.Example) -> None:
        """Compare the features of one line, or of several in a row, with what Vowpal Wabbit finds there."""
        hashes, values = [], []
        for example in examples:
            for space in range(example.num_namespaces()):
                for place in range(example.num_features_in(space)):
                    hashes.append(example.feature(space, place))
                    values.append(example.feature_weight(space, place))
        np.testing.assert_allclose(features["features.value"], values, rtol=1e-6)
        for name, hashed in zip(features["features.name"], hashes, strict=True):
            assert self.hashes.setdefault(name, hashed) == hashed
        assert len(set(self.hashes.values())) == len(self.hashes)


def check_label(row: dict[str, Any], known: list[tuple[int, float, float]]) -> None:
    """Compare a label with the only one that Vowpal Wabbit finds, or with none."""
    if row["action"] is None:
        assert (known, row["cost"], row["probability"]) == ([], None, None)
        return
    ((action, cost, probability),) = known
    assert row["action"] == action
    np.testing.assert_allclose([row["cost"], row["probability"]], [cost, probability], rtol=1e-6)


def check_blocks(content: bytes, workspace: vowpalwabbit.Workspace) -> pa.Table:
    """Compare each block, line by line, with what Vowpal Wabbit reads."""
    table, names, blocks = read_vw(content, "a.dat", unlabelled=True), Names(), blocks_of(content)
    table.validate(full=True)
    for row, lines in zip(table.to_pylist(), blocks, strict=True):
        examples = workspace.parse(lines)
        labels = [list(example.get_label(CB).costs) for example in examples]
        if len(labels[0]) == 1 and labels[0][0].probability == -1.0:
            names.check({name: row[name] for name in ("features.name", "features.value")}, examples[0])
            actions, labels = examples[1:], labels[1:]
        else:
            assert row["features.name"] == []
            actions = examples
        known = [
            (position, cost.cost, cost.probability)
            for position, costs in enumerate(labels, start=1)
            for cost in costs
            if cost.cost < NOT_LOGGED
        ]
        check_label(row, known)
        for candidate, action in zip(row["candidates"], actions, strict=True):
            names.check(candidate, action)
        workspace.finish_example(examples)
    return table


def check_slots(content: bytes, workspace: vowpalwabbit.Workspace) -> pa.Table:
    """Compare each slot with what Vowpal Wabbit reads, and its candidates with what earlier slots have left."""
    table, names = read_vw(content, "a.dat", unlabelled=True), Names()
    table.validate(full=True)
    rows = iter(table.to_pylist())
    for lines in blocks_of(content):
        examples = workspace.parse(lines)
        labels = [example.get_label(CCB) for example in examples]
        kinds = [label.type for label in labels]
        shared, actions = examples[0], [e for e, kind in zip(examples, kinds, strict=True) if kind == ACTION]
        assert kinds == [SHARED, *[ACTION] * len(actions), *[SLOT] * (len(kinds) - len(actions) - 1)]
        left = list(range(len(actions)))
        for number, (slot, label) in enumerate(list(zip(examples, labels, strict=True))[len(actions) + 1 :]):
            row = next(rows)
            assert row["features.name"].pop() == f"_ccb_slot_index^index{number}"
            assert row["features.value"].pop() == 1.0
            names.check(row, shared, slot)
            allowed = [a for a in left if a in (list(label.explicit_included_actions) or left)]
            for candidate, action in zip(row["candidates"], allowed, strict=True):
                names.check(candidate, actions[action])
            outcome = label.outcome
            if outcome is None:
                check_label(row, [])
                continue
            chances = {pair.action: pair.score for pair in outcome.action_probs}
            chosen = outcome.action_probs[0].action
            check_label(row, [(allowed.index(chosen) + 1, outcome.cost, chances[chosen])])
            if len(chances) > 1:
                expected = [chances.get(action, 0.0) for action in allowed]
                np.testing.assert_allclose(row["distribution"], expected, rtol=1e-6)
            else:
                assert row.get("distribution") is None
            left.remove(chosen)
        workspace.finish_example(examples)
    assert next(rows, None) is None
    return table


def predicted(path: Path, options: str, place: Path) -> list[list[list[int]]]:
    """Return which actions Vowpal Wabbit sees: for each block, for each decision of it."""
    workspace = vowpalwabbit.Workspace(f"{options} --quiet -t -d {path} -p {place}")
    workspace.finish()
    blocks = place.read_text().strip("\n").split("\n\n")
    return [
        [sorted(int(pair.partition(":")[0]) for pair in line.split()[0].split(",")) for line in block.splitlines()]
        for block in blocks
    ]


# ---- real files ---------------------------------------------------------------------------------


@needs_data
@pytest.mark.parametrize("name", BLOCKS)
def test_real_blocks_are_what_vowpal_wabbit_reads(name: str, adf: vowpalwabbit.Workspace, tmp_path: Path) -> None:
    table = check_blocks((DATA / name).read_bytes(), adf)
    seen = predicted(DATA / name, "--cb_explore_adf", tmp_path / "seen")
    assert [[list(range(len(row)))] for row in table["candidates"].to_pylist()] == seen


@needs_data
def test_real_slots_are_what_vowpal_wabbit_reads(ccb: vowpalwabbit.Workspace, tmp_path: Path) -> None:
    table = check_slots((DATA / SLOTS).read_bytes(), ccb)
    seen = predicted(DATA / SLOTS, "--ccb_explore_adf", tmp_path / "seen")
    assert table.num_rows == sum(map(len, seen))
    # Vowpal Wabbit leaves out what it would have chosen itself: as many actions as poem, not the same ones.
    labelled = table.filter(table["cost"].is_valid())
    counts = [len(row) for row in labelled["candidates"].to_pylist()]
    assert counts == [len(slot) for block in seen for slot in block][: len(counts)]
    assert len(set(table["group"].to_pylist())) == len(seen)


@needs_data
@pytest.mark.parametrize("name", [*BLOCKS, SLOTS, "cb_multi_cost.dat", "rcv1_raw_cb_small.vw"])
def test_real_files_are_recognised(name: str) -> None:
    assert format_of(DATA / name) == "vw"


@needs_data
def test_real_files_with_unlabelled_decisions_are_no_logs() -> None:
    with pytest.raises(ReadError, match=r"^cb_test_medium\.ldf, line 9: the decision .* no label .* nor have 4 more"):
        read_table(DATA / "cb_test_medium.ldf")
    with pytest.raises(ReadError, match=r"^ccb_test\.dat, line 157: the decision .* no label .* 26 more.*poem predict"):
        read_table(DATA / SLOTS)
    with pytest.raises(ReadError, match=r"^cb_multi_cost\.dat, line 1: '2:2' is a second action with a cost"):
        read_table(DATA / "cb_multi_cost.dat")


# ---- made-up blocks -----------------------------------------------------------------------------

SAME_BLOCKS = [
    "shared | s\n7:1:.5 | a\n| b\n",
    "shared |s s:2 t |s u\n| a\n0:1:.5 |\n|\n|x b:3\n\n\n",
    "shared 'tag |u s\n'x | a\n0:1:.5 'tg | b\ntag| c\n",
    " shared  | s\n 0:1:.5 | a\n  | b\n",
    "prefix\t0:1:.5 | a\npr\t| b\n",
    "| a\n0:-1.5e3:1 | b\n\nshared |\n1:0:.25 | a:-1 |n:2 x:.5 :3\n3 | b\n\n| c\n",
    "shared |n s:0 t:1e-3\r\n0:0.1234567890123456789:.1234567890123456789 |n a:0.123456789012345678 b:0\r\n|n c:x\r\n",
    "2:1:.5 | a\n| b\n",
    "\ufeffshared | s\n0:1:.5 | a",
    "\n\n0:1:1 | a\n\n| b\n0:2:.5 | c\n",
    "shared |é ñ\n0:1:.5 |日 本:2\n",
]


@pytest.mark.parametrize("text", SAME_BLOCKS)
def test_blocks_are_what_vowpal_wabbit_reads(text: str, adf: vowpalwabbit.Workspace) -> None:
    # (Vowpal Wabbit's Python interface does not skip a byte order mark, as its file reader does.)
    table = check_blocks(text.encode(), adf) if text[0] != "\ufeff" else read_vw(text.encode(), "a.dat")
    assert table.num_rows == len(blocks_of(text.encode()))


NAME = st.text("abcdefgh=_0123456789é", min_size=1, max_size=4).filter(lambda name: not name.isdigit())
SPACE = st.sampled_from(["", "u", "v", "wide"])
VALUE = st.sampled_from(["", ":2", ":-0.5", ":0", ":1e-3", ":.25", ":0.1234567890123456789", ":7."])
FEATURES = st.lists(st.tuples(SPACE, NAME, VALUE), max_size=4).map(sorted)
COST = st.integers(-(10**6), 10**6).map(lambda number: repr(number / 700))
CHANCE = st.floats(0.001, 1.0).map(repr)
TAG = st.sampled_from(["", "'tag ", "'a:b "])
ENDS = st.sampled_from(["\n", "\r\n"])


def written(features: list[tuple[str, str, str]]) -> str:
    return " ".join(f"|{space} {name}{value}" for space, name, value in features) or "|"


@st.composite
def block(draw: st.DrawFn, labelled: bool = True) -> list[str]:
    actions = draw(st.lists(FEATURES, min_size=1, max_size=5))
    chosen = draw(st.integers(0, len(actions) - 1)) if labelled else -1
    label = f"{draw(st.sampled_from(['0', '0', '1', '5']))}:{draw(COST)}:{draw(CHANCE)} "
    lines = [
        (label if action == chosen else draw(st.sampled_from(["", "", "3 "]))) + draw(TAG) + written(features)
        for action, features in enumerate(actions)
    ]
    shared = [f"shared {draw(TAG)}{written(draw(FEATURES))}"] if len(lines) == 1 or draw(st.booleans()) else []
    return [*shared, *lines]


FIRST = ["shared |u x", "| a", "0:1:0.5 | b"]


# (Inside the tests, as hypothesis takes a workspace for a test case: both have a setup_example.)
def test_any_blocks_are_what_vowpal_wabbit_reads(adf: vowpalwabbit.Workspace) -> None:
    @QUICKLY
    @given(st.lists(block() | block(labelled=False), max_size=4), ENDS, st.integers(1, 2))
    def check(blocks: list[list[str]], end: str, empty: int) -> None:
        content = (end * (empty + 1)).join(end.join(lines) for lines in [FIRST, *blocks]).encode()
        assert check_blocks(content, adf).num_rows == len(blocks) + 1

    check()


@st.composite
def request(draw: st.DrawFn) -> list[str]:
    actions = draw(st.lists(FEATURES, min_size=1, max_size=5))
    order = draw(st.permutations(range(len(actions))))
    slots, left = [], list(range(len(actions)))
    for chosen in order[: draw(st.integers(1, len(order)))]:
        others = [action for action in left if action != chosen]
        words = [f"{chosen}:{draw(COST)}:{draw(CHANCE)}"]
        if others and draw(st.booleans()):
            words = [f"{chosen}:{draw(COST)}:0.5," + ",".join(f"{other}:{0.5 / len(others)!r}" for other in others)]
        if draw(st.integers(0, 3)) == 0:
            listed = [chosen, *others] if "," in words[0] else [chosen, *draw(st.permutations(others))[:2]]
            words.insert(draw(st.integers(0, 1)), ",".join(map(str, listed)))
        if draw(st.integers(0, 9)) == 0:
            words = []
        else:
            left.remove(chosen)
        slots.append(f"ccb slot {' '.join([*words, ''])}{draw(TAG)}{written(draw(FEATURES))}")
    shared = f"ccb shared {draw(TAG)}{written(draw(FEATURES))}"
    return [shared, *[f"ccb action {draw(TAG)}{written(features)}" for features in actions], *slots]


def test_any_slots_are_what_vowpal_wabbit_reads(ccb: vowpalwabbit.Workspace) -> None:
    @QUICKLY
    @given(st.lists(request(), min_size=1, max_size=3), ENDS)
    def check(requests: list[list[str]], end: str) -> None:
        content = (end * 2).join(end.join(lines) for lines in requests).encode()
        rows = [line for lines in requests for line in lines if line.startswith("ccb slot")]
        assert check_slots(content, ccb).num_rows == len(rows)

    check()


# ---- tables -------------------------------------------------------------------------------------

REQUEST = "ccb shared |u s\nccb action | a\nccb action | b\nccb action | c\n"


def test_a_block_is_one_row() -> None:
    text = "shared |user age:3 | hour\n| a:2\n7:-1.5:0.25 |item b |item c:0\n|\n\n| x\n0:2:1 | y\n"
    table = read_vw(text.encode(), "a.dat")
    assert table.to_pylist() == [
        {
            "action": 2,
            "cost": -1.5,
            "probability": 0.25,
            "features.name": ["user^age", "hour"],
            "features.value": [3.0, 1.0],
            "candidates": [
                {"features.name": ["a"], "features.value": [2.0]},
                {"features.name": ["item^b"], "features.value": [1.0]},
                {"features.name": [], "features.value": []},
            ],
        },
        {
            "action": 2,
            "cost": 2.0,
            "probability": 1.0,
            "features.name": [],
            "features.value": [],
            "candidates": [
                {"features.name": ["x"], "features.value": [1.0]},
                {"features.name": ["y"], "features.value": [1.0]},
            ],
        },
    ]
    names, values = pa.list_(pa.dictionary(pa.int32(), pa.string())), pa.list_(pa.float64())
    struct = pa.struct({"features.name": names, "features.value": values})
    assert table.schema.types == [pa.int64(), pa.float64(), pa.float64(), names, values, pa.list_(struct)]


def test_names_of_contexts_and_of_actions_are_told_apart() -> None:
    table = read_vw(b"shared | s t\n| a\n0:1:1 | s\n", "a.dat")
    assert table["features.name"].chunk(0).values.dictionary.to_pylist() == ["s", "t"]
    assert table["candidates"].chunk(0).values.field("features.name").values.dictionary.to_pylist() == ["a", "s"]


def test_a_slot_is_one_row_with_the_actions_that_are_left() -> None:
    text = REQUEST + "ccb slot 1:0.5:0.2,0:0.3,2:0.5 |v h\nccb slot 2:-1:1 2 |v i:2\nccb slot 0:0:1 |\n"
    table = read_vw(text.encode(), "a.dat")
    assert [[a["features.name"] for a in row] for row in table["candidates"].to_pylist()] == [
        [["a"], ["b"], ["c"]],
        [["c"]],
        [["a"]],
    ]
    assert table["action"].to_pylist() == [2, 1, 1]
    assert table["cost"].to_pylist() == [0.5, -1.0, 0.0]
    assert table["distribution"].to_pylist() == [[0.3, 0.2, 0.5], None, None]
    assert table["features.name"].to_pylist() == [
        ["u^s", "v^h", "_ccb_slot_index^index0"],
        ["u^s", "v^i", "_ccb_slot_index^index1"],
        ["u^s", "_ccb_slot_index^index2"],
    ]
    assert table["features.value"].to_pylist() == [[1.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0]]
    assert table["group"].to_pylist() == ["a.dat:1"] * 3


def test_requests_are_named_by_file_and_line() -> None:
    text = f"\n{REQUEST}ccb slot 0:1:1 | h\n\n\n{REQUEST}ccb slot 0:1:1 | h\nccb slot 1:1:1 | h\n"
    table = read_vw(text.encode(), "a.dat")
    assert table["group"].to_pylist() == ["a.dat:2", "a.dat:9", "a.dat:9"]
    assert "distribution" not in table.column_names


def test_decisions_without_label_are_read_on_request(tmp_path: Path) -> None:
    text = "shared | s\n| a\n| b\n\n| c\n0:1:1 | d\n"
    table = read_vw(text.encode(), "a.dat", unlabelled=True)
    assert table.select(["action", "cost", "probability"]).to_pylist() == [
        {"action": None, "cost": None, "probability": None},
        {"action": 2, "cost": 1.0, "probability": 1.0},
    ]
    with pytest.raises(ReadError, match=r"^a\.dat, line 1: the decision that starts here has no label .*poem predict"):
        read_vw(text.encode(), "a.dat")
    slots = read_vw(f"{REQUEST}ccb slot 1:0:1 | h\nccb slot | i\n".encode(), "a.dat", unlabelled=True)
    assert slots["action"].to_pylist() == [2, None]
    assert [len(row) for row in slots["candidates"].to_pylist()] == [3, 2]
    path = tmp_path / "requests.dat"
    path.write_text(text)
    assert read_contexts(path).table["action"].to_pylist() == [None, 2]
    with pytest.raises(PoemError, match=r"requests\.dat"):
        poem.read_log(path)


def test_pieces_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        f"shared |u f{i % 7}:{i / 7!r} s{i}:0\n| a{i} b{i % 3}:{0.1 * i!r}\n"
        f"0:{i / 3!r}:{(i + 1) / 501!r} |v a{i % 5} c:0\n\n"
        for i in range(500)
    ]
    slots = [f"{REQUEST}ccb slot {i % 3}:{i / 3!r}:{(i + 1) / 501!r} | h{i % 9}:{i / 9!r}\n\n" for i in range(300)]
    for content in ("".join(lines).encode(), "".join(slots).encode()):
        whole = read_vw(content, "a.dat")
        assert whole["cost"].to_pylist() == [i / 3 for i in range(whole.num_rows)]
        with monkeypatch.context() as patched:
            for size in (1, 100, 5000):
                patched.setattr(vw_blocks, "_PIECE", size)
                pieces = read_vw(content, "a.dat")
                pieces.validate(full=True)
                assert pieces.equals(whole)


def test_ten_thousand_actions_are_read() -> None:
    text = "shared | s\n0:1:1 | a\n" + "| b\n" * 9_999
    assert len(read_vw(text.encode(), "a.dat")["candidates"][0]) == 10_000
    with pytest.raises(ReadError, match=r"^a\.dat, line 1: the decision that starts .* has more than 10,000 actions"):
        read_vw(f"{text}| b\n".encode(), "a.dat")
    slots = "ccb shared | s\n" + "ccb action | a\n" * 10_001 + "ccb slot 0:1:1 | h\n"
    with pytest.raises(ReadError, match=r"^a\.dat, line 1: .* more than 10,000 actions"):
        read_vw(slots.encode(), "a.dat")


# ---- bad input ----------------------------------------------------------------------------------

GOOD = "shared | s\n0:1:.5 | a\n| b\n\n"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("shared | s", 5, "'shared | s' has no actions: the file or the block breaks off"),
        ("shared | s\n\n" + GOOD, 5, "has no actions"),
        ("shared | s\nshared | t\n0:1:1 | a", 6, "'shared | t' is not the first line of its block"),
        ("0:1:1 | a\nshared | s", 6, "not the first line"),
        ("shared 1 | s\n0:1:1 | a", 5, "more words before the bar than 'shared'"),
        ("shared:1 | s\n0:1:1 | a", 5, "'shared:1' is not an action"),
        ("shared| s\n0:1:1 | a", 5, "touches the bar"),
        ("| a\n0:1:1| b", 6, "'0:1:1' touches the bar"),
        ("0:1:.5 | a\n1:2:.5 | b", 6, "'1:2:.5' is a second cost in one block"),
        ("0:1:.5 2:1:.5 | a\n| b", 5, "'0:1:.5 2:1:.5' has several labels"),
        ("1 2 | a\n0:1:1 | b", 5, "several labels"),
        ("0:1 | a\n| b", 5, "'0:1' has no probability"),
        ("0:1:0 | a\n| b", 5, "probability '0' is not"),
        ("0:1:1.5 | a\n| b", 5, "probability '1.5'"),
        ("0:1:nan | a\n| b", 5, "probability 'nan'"),
        ("0:1:1.00000000000000100000 | a\n| b", 5, "probability '1.0000000"),
        ("0:x:1 | a\n| b", 5, "cost 'x' is not a finite number"),
        ("0:1e400:1 | a\n| b", 5, "cost '1e400'"),
        ("0:1:.5:3 | a\n| b", 5, "more than three parts"),
        ("x:1:.5 | a\n| b", 5, "'x:1:.5' is not an action"),
        ("-1:1:.5 | a\n| b", 5, "not an action"),
        ("1.5:1:.5 | a\n| b", 5, "not an action"),
        ("# comment\n0:1:1 | a", 5, "no bar in '# comment'"),
        ("| a\n0:1:.5", 6, "no bar in '0:1:.5'"),
        ("0:1:1 | a\n  \t \n| b", 6, "only blanks"),
        ("3:1:.5 | a", 5, "'3:1:.5 | a' stands alone"),
        ("ccb shared | a", 5, "'ccb shared | a' is of another form"),
        ("slates shared 1 | a", 5, "is a slate, which has one cost for all its slots"),
        ("0:1:1 | a:nan\n| b", 5, "value 'nan'"),
        ("0:1:1 | a\n| b:1e999", 6, "value '1e999'"),
        ("shared | a:x:\n0:1:1 | b:", 6, "ends in a colon"),
        ("shared |n:x a\n0:1:1 | b", 5, "namespace '|n:x'"),
        ("| a\n| b", 5, "no label"),
        ("shared | s\n0 | a\n1 | b", 5, "no label"),
    ],
)
def test_bad_blocks_are_named_with_file_and_line(text: str, line: int, said: str) -> None:
    check_refused(GOOD + text, line, said)


def check_refused(text: str, line: int, said: str) -> None:
    with pytest.raises(ReadError, match=rf"^a\.dat, line {line}: ") as caught:
        read_vw(text.encode(), "a.dat")
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("ccb shared | s", 7, "has no actions"),
        ("ccb shared | s\nccb slot 0:1:1 | h", 8, "has no actions"),
        (REQUEST, 7, "the block that starts with 'ccb shared |u s' has no slots"),
        ("ccb action | a\nccb slot 0:1:1 | h", 7, "is not preceded by 'ccb shared'"),
        ("ccb shared | s\nccb shared | s", 8, "not the first line of its block"),
        (REQUEST + "ccb slot 0:1:1 | h\nccb action | d", 12, "stands below a slot"),
        ("ccb shared 1 | s", 7, "more words before the bar"),
        ("ccb shared | s\nccb action 0:1:1 | a", 8, "Write costs on the slots"),
        ("ccb | s", 7, "no line of a block with slots"),
        ("ccb slots | s", 7, "no line of a block with slots"),
        ("shared | s\n0:1:1 | a", 7, "of another form"),
        ("0:1:1 | a", 7, "of another form"),
        ("slates slot | s", 7, "slate"),
        (REQUEST + "ccb slot| h", 11, "touches the bar"),
        (REQUEST + "ccb slot 0:1:.5| h", 11, "touches the bar"),
        (REQUEST + "ccb slot\n", 11, "no bar"),
        (REQUEST + "ccb slot 0:1 | h", 11, "'0:1' has no probability"),
        (REQUEST + "ccb slot 0:1:2 | h", 11, "probability '2'"),
        (REQUEST + "ccb slot 0:nan:1 | h", 11, "cost 'nan'"),
        (REQUEST + "ccb slot x:1:1 | h", 11, "'x:1:1' is not an action"),
        (REQUEST + "ccb slot 3:1:1 | h", 11, "'3:1:1' is not the index of an action"),
        (REQUEST + "ccb slot 0:1:1 | h\nccb slot 0:1:1 | h", 12, "an earlier slot has taken it"),
        (REQUEST + "ccb slot 0:1:1 1,2 | h", 11, "leaves it out"),
        (REQUEST + "ccb slot 0:1:1 0,5 | h", 11, "'5' is not the index"),
        (REQUEST + "ccb slot 0:1:1 0,,1 | h", 11, "'' is not the index"),
        (REQUEST + "ccb slot 0:1:1 0,0 | h", 11, "lists an action twice"),
        (REQUEST + "ccb slot 0:1:1 0 1 | h", 11, "too many words"),
        (REQUEST + "ccb slot 0:1:1 1:1:1 | h", 11, "too many words"),
        (REQUEST + "ccb slot 0:1:.5,1 | h", 11, "'1' is not action:probability"),
        (REQUEST + "ccb slot 0:1:.5,1:2 | h", 11, "'1:2' is not action:probability"),
        (REQUEST + "ccb slot 0:1:.5,1:1.00000000000000100000 | h", 11, "not action:probability"),
        (REQUEST + "ccb slot 0:1:.5,7:.5 | h", 11, "'7:.5' is not the index"),
        (REQUEST + "ccb slot 0:1:.5,0:.5 | h", 11, "'0:.5' lists an action twice"),
        (REQUEST + "ccb slot 0:1:.5 0,1\nccb slot 1:1:1 | h", 11, "no bar"),
        (REQUEST + "ccb slot 0:1:1 |\nccb slot 1:1:1 0 | h", 12, "no action is left"),
        (REQUEST + "".join(f"ccb slot {i}:1:1 |\n" for i in range(3)) + "ccb slot |", 14, "no action is left"),
        (REQUEST + "ccb slot | h", 11, "no label"),
    ],
)
def test_bad_slots_are_named_with_file_and_line(text: str, line: int, said: str) -> None:
    check_refused(f"{REQUEST}ccb slot 0:1:1 | h\n\n{text}", line, said)


def test_blocks_after_single_lines_are_refused() -> None:
    check_refused("1:2:.5 | a\n2:1:.5 | b\n\nshared | s\n0:1:1 | a\n", 4, "starts with decisions of one line each")
    check_refused("1:2:.5 | a\n2:1:.5 | b\n\n| s\n0:1:1 | a\n", 4, "there is no label")
    check_refused("slates shared 1 | s\nslates action 0 | a\nslates slot 0:1 |\n", 1, "slate")


@pytest.mark.parametrize(
    "text",
    [
        "shared | a b\n",
        "ccb shared |User b\n",
        "ccb shared 'tag |User b\n",
        "slates shared 0.5 |User b\n",
        "ca 1.5:0.2:0.1 | a\n",
        " | a_1 b_1\n",
        "0:1:.5 | a\n",
    ],
)
def test_blocks_are_recognised_by_their_first_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "log.dat"
    path.write_text(text)
    assert format_of(path) == "vw"
    path.write_text("shared|b|c\n1|2|3\n")
    assert format_of(path) == "csv"


PARTS = ["", "|", ":", " ", "\t", "1", "-", ",", "\n", "\r\n", "'", "0:1:1 ", "shared ", "ccb slot ", "9" * 30]
SLOTTED = f"{REQUEST}ccb slot 1:0.5:0.2,0:0.3,2:0.5 |v h\nccb slot 2:-1:1 2,0 |v i:2\n\n{REQUEST}ccb slot |\n"


@QUICKLY
@given(st.sampled_from([*SAME_BLOCKS, SLOTTED]), st.data())
def test_changed_blocks_are_read_or_refused(text: str, data: st.DataObject) -> None:
    changed = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(changed)))
        changed[place : place + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(PARTS)).encode()
    try:
        table = read_vw(bytes(changed), "a.dat", unlabelled=True)
    except ReadError:
        return
    table.validate(full=True)
    if "candidates" in table.column_names:
        sizes = [len(row) for row in table["candidates"].to_pylist()]
        chosen = table["action"].to_pylist()
        assert all(action is None or 1 <= action <= size for action, size in zip(chosen, sizes, strict=True))
