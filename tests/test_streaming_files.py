"""Files that are cut into blocks: bad rows deep in them, contexts that go over several, and memory."""

import gzip
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from same_logs import TEXTS, write
from test_streaming import as_lines, assert_same_rows, assert_streams, blocks_of, csv_text, outcome, parquet

import poem
from poem.errors import InputError, ReadError
from poem.readers import LogStream
from poem.readers.csv_records import last_record

# ---- what is wrong, and where ------------------------------------------------------------------------


def assert_same_error(path, blocks=7, **options):
    """Expect the words that the whole file is refused with."""
    with pytest.raises(ReadError) as whole:
        poem.read_log(path, **options)
    with pytest.raises(ReadError) as found:
        blocks_of(path, blocks, **options)
    assert str(found.value) == str(whole.value)
    return str(whole.value)


@pytest.mark.parametrize("changes", [{"propensity": 0.0}, {"loss": "nan"}, {"x": "inf"}, {"output": ""}])
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_bad_value_deep_in_a_file(tmp_path, suffix, changes):
    columns = {"x": [1.5] * 90, **outcome(90)}
    for name, value in changes.items():
        columns[name][77] = (None if value == "" else float(value)) if suffix == ".parquet" else value
    path = tmp_path / f"log{suffix}"
    if suffix == ".parquet":
        stream = LogStream([parquet(path, columns)], block_bytes=300)
        kind = stream.learn()
        with pytest.raises(ReadError, match=r"log\.parquet, row 77"):
            list(stream.logs(kind))
    else:
        assert "row 77" in assert_same_error(write(path, csv_text(columns)))


@pytest.mark.parametrize("row", ["1,2", "1,2,3,4,5", '"1,2,3,4'])
def test_a_row_that_is_cut_off(tmp_path, row):
    lines = csv_text({"x": range(90), **outcome(90)}).splitlines()
    message = assert_same_error(write(tmp_path / "log.csv", "\n".join([*lines[:80], row, *lines[80:]]) + "\n"))
    assert "row 79" in message or "quote" in message or "never closed" in message


@pytest.mark.parametrize("bad", ['{"x": 1', "null", "[" * 200, '{"x": 1}}', b'{"x": "\xff"}'])
def test_a_line_that_is_not_json(tmp_path, bad):
    lines = as_lines({"x": list(range(90)), **outcome(90)}).encode().splitlines()
    bad = bad if isinstance(bad, bytes) else bad.encode()
    message = assert_same_error(write(tmp_path / "log.jsonl", b"\n".join([*lines[:80], bad, *lines[80:]]) + b"\n"))
    assert "line 81" in message


@pytest.mark.parametrize("bad", ["1:0.5:nan | a:1", "| a b", "0:1:0.5 | a", "1:2:3 | x", "word:1:0.5 | a"])
def test_a_line_that_is_not_of_vowpal_wabbit(tmp_path, bad):
    lines = [f"{i % 3 + 1}:{i}:0.5 |u a:{i} b" for i in range(90)]
    assert "line 81" in assert_same_error(write(tmp_path / "log.vw", "\n".join([*lines[:80], bad, *lines[80:]]) + "\n"))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".vw", ".dsjson"])
@pytest.mark.parametrize("content", ["", "\n\n"])
def test_an_empty_file(tmp_path, suffix, content):
    path = write(tmp_path / f"log{suffix}", content)
    with pytest.raises(ReadError):
        poem.read_log(path)
    with pytest.raises(ReadError, match=r"empty|no rows|no decision"):
        blocks_of(path, 1)


def test_a_file_without_rows(tmp_path):
    assert_same_error(write(tmp_path / "log.csv", "x,output,loss,propensity\n"), 1)
    assert_same_error(parquet(tmp_path / "log.parquet", pa.table({"x": [1.0], **outcome(1)}).slice(0, 0)), 1)


@pytest.mark.parametrize("suffix", TEXTS)
def test_the_last_line_need_not_end(tmp_path, suffix):
    assert_streams(write(tmp_path / f"log{suffix}", TEXTS[suffix]().rstrip("\n")))


def test_a_compressed_file_that_is_cut_off(tmp_path):
    content = gzip.compress(csv_text({"x": range(900), **outcome(900)}).encode())
    with pytest.raises(ReadError, match="damaged or cut off"):
        blocks_of(write(tmp_path / "log.csv", content[:-50]), 1)


def test_a_parquet_file_that_is_cut_off(tmp_path):
    path = parquet(tmp_path / "log.parquet", {"x": np.arange(900.0), **outcome(900)})
    path.write_bytes(path.read_bytes()[:-50])
    assert_same_error(path)


def test_columns_that_are_not_there(tmp_path):
    assert_same_error(write(tmp_path / "log.csv", csv_text({"x": range(90)})))
    assert_same_error(parquet(tmp_path / "log.parquet", {"x": np.arange(90.0)}), 1)


def test_times_with_and_without_a_zone(tmp_path):
    times = [f"2026-01-01T00:00:{i:02d}{'Z' if i > 30 else ''}" for i in range(60)]
    path = parquet(tmp_path / "log.parquet", {"x": list(range(60)), "time": times, **outcome(60)})
    with pytest.raises(ReadError, match="zone"):
        LogStream([path], block_bytes=500).learn()


# ---- contexts that are stored once --------------------------------------------------------------------


def of_contexts(context, sparse=False):
    rng, n = np.random.default_rng(0), len(context)
    X = rng.normal(size=(max(context) + 1, 3)) * rng.integers(0, 2, (max(context) + 1, 3))
    X = poem.compute.as_matrix(X)[0] if not sparse else __import__("scipy.sparse").sparse.csr_array(X)
    y, loss = rng.integers(0, 3, n), rng.normal(size=n)
    return poem.BanditLog(X, y, loss=loss, propensity=np.full(n, 0.5), context=context, group=rng.integers(0, 9, n))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("context", [np.arange(60) // 7, np.arange(60) % 8, np.arange(60), np.arange(60) ^ 5])
def test_logs_of_poems_own(tmp_path, context, sparse):
    log = of_contexts(context, sparse)
    path = poem.write_log(log, tmp_path / "log.parquet")
    for size in (1 << 20, 1500, 300):
        stream = LogStream([path], block_bytes=size)
        logs = list(stream.logs(stream.learn()))
        assert len(logs) > (size < 1000)
        assert_same_rows(poem.BanditLog.concat(logs), poem.read_log(path))


def test_rows_of_one_context_that_stand_far_apart(tmp_path):
    path = poem.write_log(of_contexts(np.tile(np.arange(200), 3)), tmp_path / "log.parquet")
    stream = LogStream([path], block_bytes=500)
    kind = stream.learn()
    with pytest.raises(InputError, match="Sort its rows by context_id"):
        list(stream.logs(kind))


# ---- cuts --------------------------------------------------------------------------------------------

CELLS = st.sampled_from(["1", '"a\nb"', '"x,""y"""', 'a"b', "", '""', "'=1", "é"])


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(CELLS, CELLS), min_size=1, max_size=12), st.integers(1, 200), st.sampled_from(["\n", "\r\n"]))
def test_quoted_values_are_never_cut(tmp_path_factory, cells, size, end):
    rows = [f"{one},{two},1,0.5,0.25" for one, two in cells]
    path = write(tmp_path_factory.mktemp("cut") / "log.csv", end.join(["a,b,output,loss,propensity", *rows]) + end)
    stream = LogStream([path], block_bytes=size)
    logs = list(stream.logs(stream.learn()))
    assert_same_rows(poem.BanditLog.concat(logs), poem.read_log(path))


@pytest.mark.parametrize(
    ("content", "end"),
    [(b'a\n"b\n', 2), (b'a\n"b\n"\n', 7), (b'a"b\nc', 4), (b'"a"""\n"\n', 6), (b"a", 0), (b'"";"\n', 0)],
)
def test_where_the_last_record_ends(content, end):
    assert last_record(content, ord(";")) == end


# ---- memory ------------------------------------------------------------------------------------------

PEAKS = """
import resource, sys
from poem.compute import Threads
from poem.readers import LogStream
for path in sys.argv[1:]:
    stream = LogStream([path], block_bytes=1 << 20, threads=Threads(2))
    rows = sum(map(len, stream.logs(stream.learn())))
    print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def test_memory_does_not_grow_with_the_file(tmp_path):
    rng = np.random.default_rng(0)
    n = 160_000
    table = pa.table({**{f"x{i}": rng.normal(size=n) for i in range(30)}, **outcome(n)})
    paths = [tmp_path / "short.parquet", tmp_path / "long.parquet"]
    for path, rows in zip(paths, (n // 10, n), strict=True):  # 4 and 42 MB, and as many blocks
        pq.write_table(table.slice(0, rows), path, row_group_size=n)
    found = subprocess.run([sys.executable, "-c", PEAKS, *paths], capture_output=True, text=True, check=True)
    few, most = (tuple(map(int, line.split())) for line in found.stdout.splitlines())
    assert (few[0], most[0]) == (n // 10, n)
    assert most[1] < few[1] + 24  # MB


def test_part_files_with_column_names_alone_are_scaled(tmp_path):
    (tmp_path / "in").mkdir()
    names = "x,y,output,loss,propensity\n"
    for number, rows in enumerate(("", "1,2,0,1,0.5\n3,5,1,0,0.5\n", "", "8,1,0,0,0.5\n")):
        write(tmp_path / "in" / f"part-{number}.csv", names + rows)
    whole = poem.read_log(tmp_path / "in", features=poem.Encoding(scale=True))
    found = poem.BanditLog.concat(blocks_of(tmp_path / "in", 1, features=poem.Encoding(scale=True)))
    np.testing.assert_allclose(found.X, whole.X, rtol=1e-12)
    with pytest.raises(ReadError, match="has no rows, only column names"):
        LogStream([write(tmp_path / "log.csv", names)], features=poem.Encoding(scale=True)).learn()


@pytest.mark.parametrize("large", [["1e300", "-1e300"], ["1e160"], ["1e300"]])
def test_numbers_too_large_to_be_scaled(tmp_path, large):
    """They are refused without a warning, however the file is cut."""
    columns = {"x": [f"{i}.5" for i in range(90)], **outcome(90)}
    for place, number in enumerate(large):
        columns["x"][1 + 60 * place] = number
    path = write(tmp_path / "log.csv", csv_text(columns))
    assert_same_error(path, features=poem.Encoding(scale=True))
    with pytest.raises(ReadError, match="too large to be scaled"):
        poem.read_log(path, features=poem.Encoding(scale=True))
