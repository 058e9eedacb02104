"""A log that is read block by block is the log that is read whole."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from same_logs import FEATURES, TABLE, TEXTS, as_svmlight, dense, partition, write

import poem
from poem.compute import Threads
from poem.errors import ReadError
from poem.readers import Columns, LogStream

CUTS = (1, 2, 7)


def blocks_of(path, blocks, **options):
    """The logs of a file that is cut into about so many blocks."""
    size = sum(one.stat().st_size for one in ([path] if path.is_file() else path.iterdir()))
    stream = LogStream([path], block_bytes=max(size // blocks + (blocks == 1), 1), **options)
    kind = stream.learn()
    logs = list(stream.logs(kind))
    assert sum(map(len, logs)) == kind.rows
    assert (kind.outcome, kind.propensities) == (logs[0].outcome, logs[0].propensities)
    for log in logs:
        assert (log.labels, log.structure, log.features) == (kind.labels, kind.structure, kind.features)
        assert log.feature_names == kind.feature_names
        assert log.n_features == kind.n_features
    return logs


def assert_same_rows(one, two):
    """Expect the same decisions; how contexts are stored may differ."""
    assert sp.issparse(one.X) == sp.issparse(two.X)
    assert abs(one.X[one.context] - two.X[two.context]).max() == 0.0 if one.X.shape[1] else two.X.shape[1] == 0
    for name in ("y", "loss", "log_propensity", "time"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    for name in ("labels", "structure", "outcome", "propensities", "feature_names", "features"):
        assert getattr(one, name) == getattr(two, name), name
    assert list(map(type, one.labels)) == list(map(type, two.labels))
    assert partition(one.group) == partition(two.group)
    assert one.logger is two.logger is None or one.logger.tolist() == two.logger.tolist()


def assert_streams(path, least=(1, 2, 2), **options):
    """Expect the log that is read whole from blocks of several sizes."""
    named = {"columns": Columns(**options.pop("named"))} if "named" in options else {}
    whole = poem.read_log(path, **named, **options)
    for blocks, most in zip(CUTS, least, strict=True):
        logs = blocks_of(path, blocks, threads=Threads(1 + blocks % 2), **named, **options)
        assert len(logs) >= most
        assert_same_rows(poem.BanditLog.concat(logs), whole)
    return whole


def csv_text(columns):
    names = list(columns)
    rows = zip(*columns.values(), strict=True)
    return "\n".join([",".join(names), *(",".join(map(str, row)) for row in rows)]) + "\n"


def outcome(n):
    rng = np.random.default_rng(0)
    return {
        "output": rng.integers(1, 4, n).tolist(),
        "loss": rng.normal(size=n).round(3).tolist(),
        "propensity": rng.choice([0.25, 0.5, 1.0], n).tolist(),
    }


# ---- the same log from every format -----------------------------------------------------------------


@pytest.mark.parametrize("suffix", TEXTS)
@pytest.mark.parametrize("packed", ["", ".gz", ".zst"])
def test_text_formats(tmp_path, suffix, packed):
    assert_streams(write(tmp_path / f"log{suffix}{packed}", TEXTS[suffix]()), (1, 1, 1) if packed else (1, 2, 4))


def parquet(path, columns, **how):
    pq.write_table(pa.table(columns), path, **({"row_group_size": 30} | how))
    return path


def test_parquet(tmp_path):
    columns = {"x": np.arange(100.0), "u.name": [f"u{i % 7}" for i in range(100)], **outcome(100)}
    columns["flag"] = pa.array([i % 3 == 0 for i in range(100)])
    columns["plan"] = pa.array([f"p{i // 40}" for i in range(100)]).dictionary_encode()
    columns["user"] = pa.array([{"age": i, "town": f"t{i % 3}"} for i in range(100)])
    columns["price"] = pa.array([i if i < 90 else i + 0.5 for i in range(100)]).cast(pa.decimal128(9, 2))
    assert_streams(parquet(tmp_path / "log.parquet", columns))


def test_sparse_lists_in_parquet(tmp_path):
    index = [[i % 5, 7 + i % 11] if i % 4 else [] for i in range(100)]
    columns = {"x.index": index, "x.value": [[0.5] * len(row) for row in index], **outcome(100)}
    columns["v"] = [[1.0, float(i)] if i > 60 else None for i in range(100)]
    columns["tags"] = [[f"t{i % 9}"] if i % 5 else None for i in range(100)]
    assert_streams(parquet(tmp_path / "log.parquet", columns))


def test_libsvm_is_read_file_by_file(tmp_path):
    write(tmp_path / "log.svm", as_svmlight())
    pq.write_table(TABLE.drop(list(FEATURES)), tmp_path / "log.parquet")
    (log,) = blocks_of(tmp_path / "log.svm", 7)
    assert_same_rows(log, poem.read_log(tmp_path / "log.svm"))


def test_the_open_bandit_data_set(tmp_path):
    rows = {"timestamp": ["2019-11-24 00:00:00.5+00:00"] * 40, "item_id": [i % 5 for i in range(40)]}
    rows |= {"position": [i % 3 + 1 for i in range(40)], "click": [i % 2 for i in range(40)]}
    rows |= {"propensity_score": [0.2] * 40, "user_feature_0": [f"u{i % 4}" for i in range(40)]}
    write(tmp_path / "item_context.csv", "item_id\n" + "".join(f"{i}\n" for i in range(8)))
    assert len(assert_streams(write(tmp_path / "all.csv", csv_text(rows)), (1, 2, 7)).labels) == 8


# ---- columns of all kinds -----------------------------------------------------------------------------


def test_columns_that_are_more_than_features(tmp_path):
    columns = {"x": range(60), **outcome(60), "group": [f"g{i % 17}" if i % 9 else "" for i in range(60)]}
    columns |= {"logger": [f"policy {i % 2}" for i in range(60)]}
    columns |= {"time": [f"2026-01-01T00:00:{i:02d}Z" for i in range(60)]}
    whole = assert_streams(write(tmp_path / "log.csv", csv_text(columns)), (1, 2, 7))
    assert len(set(whole.group.tolist())) == 17 + 7


@pytest.mark.parametrize("encoding", [{}, {"scale": True}, {"hashed": ("s",), "hash_size": 16}, {"one_hot": ("n",)}])
def test_recipes_are_those_of_the_whole_log(tmp_path, encoding):
    columns = {
        "n": [i % 6 if i % 7 else "" for i in range(80)],  # with gaps
        "late": [i if i < 70 else "" for i in range(80)],
        "s": [f"value {i % 13}" for i in range(80)],
        "words": [f"some more words than three {i}" for i in range(80)],
        "never": [""] * 80,
        **outcome(80),
    }
    path = write(tmp_path / "log.csv", csv_text(columns))
    whole = poem.read_log(path, features=poem.Encoding(**encoding))
    joined = poem.BanditLog.concat(blocks_of(path, 7, features=poem.Encoding(**encoding)))
    np.testing.assert_allclose(dense(joined), dense(whole), rtol=1e-12, atol=1e-12)
    assert [kind.columns for kind in joined.features.kinds] == [kind.columns for kind in whole.features.kinds]
    assert encoding.get("scale") or joined.features == whole.features


def test_more_values_than_are_one_hot_encoded(tmp_path):
    columns = {"s": [f"v{i}" for i in range(1500)], "t": [f"v{i % 1000}" for i in range(1500)], **outcome(1500)}
    whole = assert_streams(write(tmp_path / "log.csv", csv_text(columns)), (1, 2, 7))
    assert [kind.kind for kind in whole.features.kinds] == ["hashed", "one-hot"]


def test_a_recipe_of_an_earlier_log_is_followed(tmp_path):
    columns = {"x": [f"00{i % 4}" for i in range(30)], **outcome(30)}
    earlier = poem.read_log(write(tmp_path / "earlier.csv", csv_text(columns)))
    columns["x"] = ["1"] * 30
    assert_streams(write(tmp_path / "log.csv", csv_text(columns)), (1, 2, 7), features=earlier.features)


def test_a_median_of_many_numbers_is_near(tmp_path):
    numbers = np.random.default_rng(1).permutation(60_000).astype(float)
    columns = {"x": pa.array(np.where(numbers < 10, np.nan, numbers)), **outcome(60_000)}
    stream = LogStream([parquet(tmp_path / "log.parquet", columns, row_group_size=9000)], block_bytes=200_000)
    assert stream.learn().features.kinds[0].fill == pytest.approx(30_000, abs=0.016 * 60_000)


# ---- types that differ between blocks ------------------------------------------------------------------


@pytest.mark.parametrize(
    "late", ["1.5", "text", "007", "true", "", "2020-01-01", "2020-01-01 10:00:00", "NA", "1e400", '"a\nb"']
)
@pytest.mark.parametrize("early", ["7", "0", "true", "2020-01-01", "", "NA"])
def test_csv_columns_have_the_types_of_the_whole_file(tmp_path, early, late):
    columns = {"x": [early] * 50 + [late] * 10, "y": [1] * 60, **outcome(60)}
    path = write(tmp_path / "log.csv", csv_text(columns))
    assert_same_errors_or_streams(path)


def assert_same_errors_or_streams(path, **options):
    """Expect the same log, or that both ways refuse it with nearly the same words."""
    try:
        poem.read_log(path, **options)
    except ReadError as error:
        with pytest.raises(ReadError) as found:
            blocks_of(path, 7, **options)
        shared = [word for word in str(error).split() if word.startswith(("log", "'x'", "0.csv", "1.csv"))]
        assert set(shared) <= set(str(found.value).split())
    else:
        assert_streams(path, **options)


@pytest.mark.parametrize("late", ["1.5", "null", '"a"', '"2020-01-01"', "[1]", '{"b": 1}', "true"])
@pytest.mark.parametrize("early", ["1", '"2020-01-01"', "null", "[]", '{"a": 1}'])
def test_json_fields_have_the_types_of_the_whole_file(tmp_path, early, late):
    rest = [json.dumps(dict(zip(outcome(60), row, strict=True)))[1:] for row in zip(*outcome(60).values(), strict=True)]
    lines = [f'{{"x": {early if i < 50 else late}, {row}\n' for i, row in enumerate(rest)]
    assert_same_errors_or_streams(write(tmp_path / "log.jsonl", "".join(lines)))


def test_fields_that_begin_late(tmp_path):
    rows = [dict(zip(outcome(60), row, strict=True)) for row in zip(*outcome(60).values(), strict=True)]
    rows = [row | ({"x": i} if i < 30 else {"z": {"a": f"t{i % 3}"}, "group": i}) for i, row in enumerate(rows)]
    assert_streams(write(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in rows)))


def test_part_files_are_one_log(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    for part in range(3):
        rows = {"x": [part + 0.5 * (part == 2)] * 20, "s": [f"s{part}"] * 20, **outcome(20), "output": [part] * 20}
        write(folder / f"{part}.csv", csv_text(rows if part != 1 else dict(reversed(rows.items()))))
    assert_streams(folder)


@pytest.mark.parametrize("other", [{"x": "a"}, {"z": 1}])
def test_part_files_that_differ_are_refused(tmp_path, other):
    folder = tmp_path / "log"
    folder.mkdir()
    write(folder / "0.csv", csv_text({"x": [1] * 20, **outcome(20)}))
    write(folder / "1.csv", csv_text({name: [value] * 20 for name, value in other.items()} | outcome(20)))
    assert_same_errors_or_streams(folder)


# ---- outputs ------------------------------------------------------------------------------------------


def as_lines(columns):
    return "".join(
        json.dumps(dict(zip(columns, row, strict=True))) + "\n" for row in zip(*columns.values(), strict=True)
    )


@pytest.mark.parametrize(
    ("outputs", "options"),
    [
        ([["a", f"b{i % 4}"][: i % 3] for i in range(60)], {}),
        ([[0, 1] if i < 30 else [i % 5] for i in range(60)], {}),  # the first half looks like 0/1 for each label
        ([[i % 2, 1, 0] for i in range(60)], {}),
        ([[i % 5, 5] for i in range(60)], {"structure": "subset"}),
        ([i % 5 if i < 40 else 0.5 for i in range(60)], {}),
        ([float(i % 5) for i in range(60)], {}),
        ([f"o{i // 10}" for i in range(60)], {"labels": [f"o{i}" for i in range(9)]}),
        ([bool(i % 2) for i in range(60)], {}),
    ],
)
def test_outputs_of_all_kinds(tmp_path, outputs, options):
    columns = {"x": list(range(60)), **outcome(60), "output": outputs}
    assert_streams(write(tmp_path / "log.jsonl", as_lines(columns)), **options)


def test_outputs_in_several_columns(tmp_path):
    columns = {"x": range(60), "a": [i % 2 for i in range(60)], "b": [i % 3 // 2 for i in range(60)], **outcome(60)}
    del columns["output"]
    assert_streams(write(tmp_path / "log.csv", csv_text(columns)), named={"output": ("a", "b")})


def test_other_ways_to_log_a_propensity(tmp_path):
    columns = {"x": list(range(60)), **outcome(60), "distribution": [[0.25, 0.25, 0.5]] * 60}
    del columns["propensity"]
    path = write(tmp_path / "log.jsonl", as_lines(columns))
    assert_streams(path)
    assert assert_streams(path, named={"propensity": "missing", "ignore": "distribution"}).propensities == "missing"
