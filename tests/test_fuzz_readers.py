"""Whatever a file or a data frame holds, nothing but a PoemError comes out of the readers.

POEM_FUZZ_SECONDS says how long all of it may take, about. Without it, the same examples are tried each time, in about
half a minute; with it, others.
"""

import copy
import gzip
import json
import os
import resource
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_values import SCALARS

import poem
from poem.errors import PoemError
from poem.readers import read_contexts

SECONDS = float(os.environ.get("POEM_FUZZ_SECONDS", 30))
HEADROOM = 4 << 30  # bytes that a reader may ask for beyond what is in use: a hostile file must not take it all

LINES = {
    "csv": 'x,city,output,loss,propensity,group,time\n1,"a ""b""",u,0.5,0.25,7,2026-11-16T08:30:00Z\n'
    '2.5,"c\nd",v,1,0.5,8,2026-11-16T08:31:00Z\n-3,,u,0,1,8,2026-11-16T08:32:00Z\n',
    "jsonl": '{"x": 1, "user": {"age": 3, "tags": ["a", "b"]}, "output": "u", "loss": 0.5, "propensity": 0.25}\n'
    '{"x": 2.5, "user": {"age": null, "tags": []}, "output": "v", "loss": 1, "propensity": 0.5}\n'
    '{"x": -3, "user": null, "output": "u", "loss": 0, "propensity": 1.0}\n',
    "svmlight": "1 0:1 3:0.5 # first\n0,2 qid:1 1:2e-3\n 4:-1 7:1\n",
    "vw": "1:2:0.5 |user age:3 city=Ulm |item:2 a b:0.5 name:text\n2:-1:.25 'tag |user age:4\n3 1:0:1e-1 | x:1 y\n",
    "dsjson": '{"_label_cost":-1,"_label_probability":0.8,"_label_Action":1,"_labelIndex":0,"a":[1,2],"p":[0.8,0.2],'
    '"Timestamp":"2026-11-16T08:30:00Z","c":{"user":{"age":3,"city":"Ulm"},"_multi":[{"i":{"x":1}},{"i":{"x":2}}]}}\n'
    '{"_label_cost":0,"_label_probability":0.2,"_label_Action":2,"_labelIndex":1,"a":[1,2],"p":[0.8,0.2],'
    '"Timestamp":"2026-11-16T08:31:00Z","c":{"user":{"age":4,"vip":true},"_multi":[{"i":{"x":1}},{"i":{"x":2}}]}}\n',
    "blocks": "shared |user age:3 city=Ulm\n| a:0.5 b\n0:-1:.25 'tag |item:2 a name:text\n\n| a\n0:2:0.5 | b:1e-1\n\n"
    "shared |\n0:1:1 | c\n",
    "slots": "ccb shared |user age:3\nccb action | a:0.5\nccb action |item:2 b name:text\nccb action | c\n"
    "ccb slot 1:-1:.25,0:.25,2:.5 | h\nccb slot 2:0:1 2,0 'tag | i:2\n\n"
    "ccb shared |\nccb action | a\nccb slot 0:1:1 |\n",
    "obd": ",timestamp,item_id,position,click,propensity_score,user_feature_0,user-item_affinity_0\n"
    "0,2019-11-24 00:00:10.043,79,2,0,0.0125,81ce,0.0\n1,2019-11-24 00:00:11,14,1,1,0.0125,81ce,1.5\n",
}
# Other forms of the same formats.
FORMS = {
    "candidates": LINES["dsjson"] + '{"_label_cost":-1,"_label_probability":0.5,"_labelIndex":1,"a":[2,1,3],'
    '"p":[0.5,0.25,0.25],"c":{"user":{"age":3},"_multi":[{"i":{"x":1}},{"_text":"a b","j":[1,2]},{"k":"\\u00e9"}]}}\n',
    "slots": '{"c":{"user":{"age":3},"_multi":[{"i":{"x":1}},{"i":{"x":2}},{"i":{"x":3}}],"_slots":[{"_id":"s"},'
    '{"_inc":[0,2],"t":{"y":1}}]},"_outcomes":[{"_label_cost":1,"_id":"s","_a":[1,0,2],"_p":[0.5,0.25,0.25]},'
    '{"_label_cost":0,"_a":[2,0],"_p":[0.5,0.5]}]}\n',
    "plain": '{"s":1,"_labelIndex":0,"_label_Cost":1,"_label_Probability":0.5,"_multi":[{"a":"1"},{"b":2}]}\n'
    '{"s":2,"_labelIndex":0,"_label_Cost":1,"_label_Probability":0.5,"_multi":[{"a":"1"}]}\n',
}
SIDE = "output,loss,propensity\nu,0.5,0.25\nv,1,0.5\nu,0,1\n"
SUFFIX = {"obd": ".csv", "blocks": ".vw", "slots": ".vw"}
FORMAT = {"blocks": "vw", "slots": "vw"}
WORDS = r""", " | : { } ] # ' ; nan -1 1e999 null true \ud800 0:1 4294967301:1 qid: PAR1 BZh91AY&SY _label_cost é🎲"""
SNIPPETS = [
    *(word.encode() for word in WORDS.split(" ")),
    *(
        b"",
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\n",
        b"\r",
        b"\t",
        b" ",
        b"[" * 300,
        b"9" * 25,
        b"shared |",
        b"ccb slot",
    ),
    *(b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd", b"ccb slot"),
]


def seconds(share, a_second, least=10):
    """Settings for about this share of the time, where so many examples are done in a second."""
    return settings(
        max_examples=max(least, round(SECONDS * share * a_second)),
        deadline=None,
        derandomize="POEM_FUZZ_SECONDS" not in os.environ,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module", autouse=True)
def limited_memory():
    """Let allocations of many gigabytes fail, as they would on a smaller machine."""
    sizes = Path("/proc/self/statm")
    if not sizes.is_file():  # not Linux
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(sizes.read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + HEADROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def native(folder):
    """A Parquet file that write_log wrote, with repeated contexts and a recipe."""
    raw = pa.table({"x": [1.0, 2.0, 3.0], "city": ["Ulm", "Bonn", "Ulm"]})
    recipe = poem.Features.learn(raw)
    log = poem.BanditLog(
        recipe.transform(raw),
        ["u", "v", "u", "v"],
        loss=[0.0, 1.0, 0.5, 0.5],
        propensity=[0.25, 0.5, 0.75, 1.0],
        context=[0, 1, 2, 0],
        group=["a", "a", "b", "b"],
        time=[1.0, 2.0, 3.0, 4.0],
    )
    return poem.write_log(log.with_features(recipe), folder / "native.parquet").read_bytes()


def only_poem_errors(read, *arguments, **options):
    """Read, and let nothing out but what poem raises on purpose."""
    try:
        return read(*arguments, **options)
    except PoemError:
        return None


@st.composite
def mutated(draw, content):
    """Flip, cut, repeat, insert and remove bytes."""
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        length = draw(st.integers(0, 40))
        way = draw(st.sampled_from(["flip", "cut", "repeat", "insert", "remove"]))
        if way == "flip" and at < len(content):
            content = content[:at] + bytes([content[at] ^ (1 << draw(st.integers(0, 7)))]) + content[at + 1 :]
        elif way == "cut":
            content = content[:at]
        elif way == "repeat":
            content = content[:at] + content[at : at + length] * draw(st.integers(2, 4)) + content[at + length :]
        elif way == "insert":
            content = content[:at] + draw(st.sampled_from(SNIPPETS) | st.binary(max_size=8)) + content[at:]
        elif way == "remove":
            content = content[:at] + content[at + length :]
    return content


# ---- bytes ----------------------------------------------------------------------------------------

# How many files are read in a second, on one slow core.
RATES = {"csv": 115, "jsonl": 110, "svmlight": 105, "vw": 110, "blocks": 110, "slots": 110, "dsjson": 170, "obd": 115}


def check_file(folder, name, content, suffix):
    path = folder / f"log{suffix}"
    path.write_bytes(content)
    beside = folder / "log.csv"
    if name == "svmlight":
        beside.write_text(SIDE)
    only_poem_errors(poem.read_log, path, format=None if suffix else FORMAT.get(name, name))
    only_poem_errors(read_contexts, path)
    path.unlink()
    beside.unlink(missing_ok=True)


@pytest.mark.parametrize("name", LINES)
def test_mutated_text(folder, name):
    @seconds(0.07, RATES[name])
    @given(st.data())
    def check(data):
        content = data.draw(mutated(LINES[name].encode()))
        packed = gzip.compress(content) if data.draw(st.integers(0, 9)) == 0 else content
        check_file(
            folder, name, packed, data.draw(st.sampled_from([f".{SUFFIX.get(name, name)}".replace("..", "."), ""]))
        )

    check()


@pytest.mark.parametrize("form", FORMS)
def test_mutated_forms(folder, form):
    @seconds(0.03, RATES["dsjson"])
    @given(mutated(FORMS[form].encode()))
    def check(content):
        check_file(folder, "dsjson", content, ".dsjson")

    check()


@pytest.mark.parametrize("name", [*LINES, "parquet"])
def test_random_bytes(folder, name):
    @seconds(0.01, 180)
    @given(st.binary(max_size=200) | st.lists(st.sampled_from(SNIPPETS), max_size=12).map(b"".join))
    def check(content):
        path = folder / "random.bin"
        path.write_bytes(content)
        only_poem_errors(poem.read_log, path, format=FORMAT.get(name, name))
        only_poem_errors(poem.read_log, path)

    check()


@pytest.mark.parametrize(
    ("main", "beside", "content"),
    [("svmlight", "log.csv", SIDE), ("obd", "item_context.csv", "item_id,item_feature_0\n79,0.5\n14,1\n")],
)
def test_mutated_tables_beside(folder, main, beside, content):
    path = folder / f"log.{SUFFIX.get(main, main)}".replace("..", ".")
    path.write_text(LINES[main])

    @seconds(0.01, 150)
    @given(mutated(content.encode()))
    def check(mutant):
        (folder / beside).write_bytes(mutant)
        only_poem_errors(poem.read_log, path)

    check()
    path.unlink()
    (folder / beside).unlink(missing_ok=True)


@pytest.mark.parametrize("pack", [gzip.compress, lambda content: pa.compress(content, "zstd", asbytes=True)])
def test_mutated_compression(folder, pack):
    @seconds(0.01, 220)
    @given(mutated(pack(LINES["csv"].encode() * 20)))
    def check(content):
        check_file(folder, "csv", content, ".csv.gz")

    check()


def test_mutated_parquet(folder, native):
    @seconds(0.1, 150)
    @given(mutated(native))
    def check(content):
        check_file(folder, "parquet", content, ".parquet")

    check()


# ---- the note that poem leaves in Parquet -----------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["output", "features"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def changed(draw, content):
    """Replace, remove or add something somewhere in plain data."""
    content = copy.deepcopy(content)
    for _ in range(draw(st.integers(1, 3))):
        inner = content
        while True:
            keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(inner[key], dict | list) and draw(st.integers(0, 3)):
                inner = inner[key]
                continue
            if draw(st.integers(0, 4)) == 0:
                del inner[key]
            else:
                inner[key] = draw(JSON)
            break
    return content


def test_changed_notes(folder, native):
    path = folder / "noted.parquet"
    path.write_bytes(native)
    table = pq.read_table(path)
    note = json.loads(table.schema.metadata[b"poem"])

    @seconds(0.1, 200)
    @given(changed(note).map(lambda content: json.dumps(content).encode()) | mutated(json.dumps(note).encode()))
    def check(content):
        noted = table.replace_schema_metadata({b"poem": content})
        log = only_poem_errors(poem.read_log, noted)
        if log is not None:
            only_poem_errors(poem.write_log, log, folder / "again.parquet")

    check()


# ---- data frames ------------------------------------------------------------------------------------

NAMES = ["x", "y", "f.index", "f.value", "f.name", "user.age", "", "a[0]"]
ROLES = ["output", "loss", "reward", "propensity", "group", "time", "logger", "candidates", "distribution"]


@st.composite
def columns(draw, rows):
    kind, values = draw(st.sampled_from(SCALARS))
    missing = draw(st.sampled_from([st.nothing(), st.none()]))
    if draw(st.integers(0, 2)) == 0:
        size = draw(st.integers(0, 3))
        lists = st.lists(values | missing, min_size=size, max_size=draw(st.sampled_from([size, 4])))
        wrap = draw(st.sampled_from([pa.list_, pa.large_list]))
        return pa.array(draw(st.lists(lists | missing, min_size=rows, max_size=rows)), wrap(kind))
    array = pa.array(draw(st.lists(values | missing, min_size=rows, max_size=rows)), kind)
    if draw(st.integers(0, 9)) == 0:
        return pa.StructArray.from_arrays([array], names=["inner"])
    return array


@st.composite
def tables(draw):
    """Columns of any type; often enough with what a log needs, so that reading gets far."""
    rows = draw(st.integers(0, 4))
    names = draw(st.lists(st.sampled_from(NAMES + ROLES), max_size=6))
    found = {name: draw(columns(rows)) for name in names}
    if draw(st.integers(0, 3)):
        outputs = draw(st.sampled_from([["a", "b", "a", "c"], [1, 2, 1, 1], [["a"], [], ["a", "b"], ["c"]]]))
        sound = {"output": outputs, "loss": [0.0, 1.0, 0.5, 0.5], "propensity": [0.5, 0.25, 1.0, 0.5]}
        found |= {name: pa.array(values[:rows]) for name, values in sound.items() if draw(st.integers(0, 5))}
    arrays = list(found.values())
    names = list(found)
    if arrays and draw(st.integers(0, 20)) == 0:
        names[-1] = names[0]
    return pa.Table.from_arrays(arrays, names=names)


NAME = st.sampled_from([*NAMES, *ROLES, "nothing", "*", "f*"])
COLUMNS = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(ROLES, NAME),
        "output": NAME | st.lists(NAME, max_size=3),
        "context": NAME | st.lists(NAME, max_size=3),
        "ignore": NAME | st.lists(NAME, max_size=2),
        "propensity": NAME | st.just("missing"),
        "propensity_unit": st.sampled_from(["probability", "percent", "log", "share"]),
    },
)
ENCODINGS = st.fixed_dictionaries(
    {},
    optional={
        "scale": st.booleans(),
        "one_hot": st.lists(NAME, max_size=2),
        "hashed": st.lists(NAME, max_size=2),
        "text": st.lists(NAME, max_size=2),
        "hash_size": st.sampled_from([1, 8]),
    },
)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "columns": COLUMNS.map(lambda named: poem.Columns(**named)),
        "features": ENCODINGS.map(lambda asked: poem.Encoding(**asked)),
        "labels": st.lists(st.sampled_from(["a", "b", "c", 1, 2, 0.5, True, None]), max_size=4),
    },
)
FEW = st.sampled_from([{}, {"features": poem.Encoding(scale=True)}, {"propensity": "missing"}]) | OPTIONS


def as_pandas(table):
    return table.to_pandas()


def as_polars(table):
    import polars as pl

    assert "decimal256" not in str(table.schema)  # polars would panic
    return pl.from_arrow(table)


@pytest.mark.parametrize("form", [pa.table, as_pandas, as_polars])
def test_random_frames(folder, form):
    @seconds(0.08, 85)
    @given(tables(), FEW)
    def check(table, options):
        try:
            frame = form(table)
        except Exception:  # what the other library cannot hold
            return
        log = only_poem_errors(poem.read_log, frame, **options)
        if log is not None:
            only_poem_errors(poem.write_log, log, folder / "frame.parquet")

    check()


def as_json(table, path):
    rows = [json.dumps(row, default=str) for row in table.to_pylist()]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8", errors="surrogatepass")


WRITERS = {
    ".parquet": pq.write_table,
    ".csv": pa.csv.write_csv,
    ".jsonl": as_json,
}


@pytest.mark.parametrize("suffix", WRITERS)
def test_random_tables_in_files(folder, suffix):
    @seconds(0.03, 55)
    @given(st.lists(tables(), min_size=1, max_size=2), FEW)
    def check(parts, options):
        parts_folder = folder / "parts"
        parts_folder.mkdir(exist_ok=True)
        for number, table in enumerate(parts):
            try:
                WRITERS[suffix](table, parts_folder / f"part-{number}{suffix}")
            except Exception:  # what the format cannot hold
                (parts_folder / f"part-{number}{suffix}").unlink(missing_ok=True)
        only_poem_errors(poem.read_log, parts_folder, **options)
        for file in parts_folder.iterdir():
            file.unlink()

    check()


def test_recipes_on_random_frames():
    known = pa.table(
        {
            "x": [1.0, 2.0],
            "y": ["a", "b"],
            "f.index": [[0], [3]],
            "f.value": [[1.0], [2.0]],
            "a[0]": [["u"], ["v"]],
            "": [1, 2],
        }
    )
    recipe = poem.Features.learn(known, poem.Encoding(hashed=[""], hash_size=4))

    @seconds(0.03, 105)
    @given(tables())
    def check(table):
        found = only_poem_errors(recipe.transform, table)
        assert found is None or found.shape == (table.num_rows, recipe.width)

    check()
