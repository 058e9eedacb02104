"""A log that is written is read back equal, whichever files it goes through."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from same_logs import FEATURES, TABLE, TEXTS, as_svmlight, assert_equal, frame, write, written

import poem
from poem.errors import MismatchError, ReadError
from poem.readers import read_contexts, read_raw
from poem.readers.checked import contexts_by_row

# ---- written and read back -------------------------------------------------------------------------

CHANGES = {
    "dense": {},
    "sparse": {"X": sp.csr_array(np.diag(np.arange(40.0)))},
    "no features": {"X": np.zeros((40, 0))},
    "repeated contexts": {"X": np.arange(12.0).reshape(4, 3), "context": np.arange(40) % 4},
    "repeated sparse contexts": {"X": sp.csr_array(np.diag([0.0, 1.0, 2.0, 3.0])), "context": np.arange(40)[::-1] % 4},
    "string labels": {"y": np.array(["u", "v"] * 20), "labels": ["w", "v", "u"]},
    "float labels": {"y": np.array([0.5, 2.0] * 20)},
    "labels of two types": {"y": np.array([1] * 40), "labels": [1, "v"]},
    "true and false": {"y": np.array([True, False] * 20)},
    "huge labels": {"y": np.array([-1] * 40), "labels": [-1, 2**64]},
    "groups of strings": {"group": np.repeat(["a", "b", "c", "d"], 10)},
    "groups of numbers": {"group": np.repeat([2**62, 2, 3, 4], 10)},
    "loggers and times": {"logger": np.repeat(["a", "b"], 20), "time": np.arange(40) / 7},
    "rewards": {"loss": None, "reward": np.arange(40) / 3},
    "names": {"feature_names": ["a", "é", "c"]},
    "tiny propensities": {"propensity": None, "log_propensity": np.linspace(-800.0, 0.0, 40)},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_log_is_read_back_equal(tmp_path, make_log, name):
    log = make_log(**CHANGES[name])
    assert_equal(written(log, tmp_path), log)


def test_label_sets_are_read_back_equal(tmp_path, make_log, rows):
    log = make_log(y=rows.labels, labels=["u", "v"])
    assert_equal(written(log, tmp_path), log)
    assert_equal(written(make_log(y=rows.labels), tmp_path), make_log(y=rows.labels))


def test_where_propensities_come_from_is_read_back(tmp_path, make_log):
    log = make_log()
    estimated = log.with_propensities(log.log_propensity, "estimated")
    assert_equal(written(estimated, tmp_path), estimated)
    missing = make_log(propensity="missing")
    assert_equal(written(missing, tmp_path), missing)
    poem.write_log(estimated, tmp_path / "log.parquet")
    assert poem.read_log(tmp_path / "log.parquet", propensity="missing").propensities == "missing"


def test_a_recipe_is_read_back(tmp_path):
    log = poem.read_log(frame(city=["Ulm", "Bonn", None, "Ulm"]), features=poem.Encoding(scale=True))
    assert log.features is not None
    assert_equal(written(log, tmp_path), log)


def test_contexts_that_no_row_saw_are_left_out(tmp_path, make_log):
    log = make_log().take([30, 3, 3])
    again = written(log, tmp_path)
    assert again.n_contexts == 2
    np.testing.assert_array_equal(again.X[again.context], log.X[log.context])


def test_a_frame_of_a_native_file_is_the_same_log(tmp_path, make_log):
    log = make_log(context=np.arange(40) // 2)
    poem.write_log(log, tmp_path / "log.parquet")
    again = poem.read_log(pq.read_table(tmp_path / "log.parquet"))
    np.testing.assert_array_equal(again.X[again.context], log.X[log.context])


def test_huge_context_ids_are_not_rounded(tmp_path, make_log):
    log = make_log(X=np.arange(6.0).reshape(2, 3), context=np.arange(40) % 2)
    table = pq.read_table(poem.write_log(log, tmp_path / "log.parquet"))
    huge = pa.array(2**53 + np.arange(40) % 2)
    at = table.column_names.index("context_id")
    assert_equal(poem.read_log(table.set_column(at, "context_id", huge)), log)


def test_features_by_row_follow_the_contexts(tmp_path, make_log):
    log = make_log(X=np.arange(12.0).reshape(4, 3), context=np.arange(40) % 4)
    raw = read_contexts(poem.write_log(log, tmp_path / "log.parquet"))
    np.testing.assert_array_equal(contexts_by_row(raw, raw.features), log.X[log.context])


def test_a_converted_log_keeps_its_raw_columns_and_roles(tmp_path):
    table = frame(city=["Ulm", "Bonn", None, "Ulm"], user=["k", "l", "k", "k"], note=["x"] * 4)
    raw = read_raw(table, poem.Columns(output="output", group="user", ignore=["note"]))
    path = poem.write_log(raw, tmp_path / "log.parquet")
    assert pq.read_table(path).column_names == [*TABLE.column_names, "city", "user"]
    assert pq.read_table(path).column("city").to_pylist() == ["Ulm", "Bonn", None, "Ulm"]
    again = poem.read_log(path)
    assert_equal(again, poem.read_log(table, columns=poem.Columns(group="user", ignore=["note"])))
    assert again.features.columns == ("a", "b", "c", "city")


@pytest.mark.parametrize("suffix", [*TEXTS, ".svm"])
def test_converted_logs_of_every_format_are_the_same_logs(tmp_path, suffix):
    write(tmp_path / f"log{suffix}", as_svmlight() if suffix == ".svm" else TEXTS[suffix]())
    if suffix == ".svm":
        pa.csv.write_csv(TABLE.drop(list(FEATURES)), tmp_path / "log.csv")
    raw = read_raw(tmp_path / f"log{suffix}")
    assert_equal(poem.read_log(poem.write_log(raw, tmp_path / "out.parquet")), poem.read_log(tmp_path / f"log{suffix}"))


def test_a_converted_log_can_be_read_with_other_roles(tmp_path):
    table = frame(user=["k", "l", "k", "k"], p=[50.0, 25.0, 100.0, 12.5])
    columns = poem.Columns(propensity="p", propensity_unit="percent")
    path = poem.write_log(read_raw(table, columns), tmp_path / "log.parquet")
    assert np.exp(poem.read_log(path).log_propensity).tolist() == pytest.approx([0.5, 0.25, 1.0, 0.125])
    log = poem.read_log(path, columns=poem.Columns(group="user"))
    assert log.feature_names == FEATURES  # not the user as well
    with pytest.raises(ReadError, match="look like percentages"):
        poem.read_log(path, propensity="p")  # the unit was that of the file's own choice


# ---- what goes from one file to another ------------------------------------------------------------


@pytest.fixture
def two_parts(tmp_path):
    """Two native files, each of which counts its contexts from 0."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "parts"
    folder.mkdir()
    logs = []
    for number in range(2):
        context = np.repeat(np.arange(5), 3)
        y = rng.permutation(np.arange(15) % 3)
        logs.append(
            poem.BanditLog(
                rng.random((5, 2)),
                y,
                loss=rng.random(15),
                propensity=np.full(15, 1 / 3),
                context=context,
                labels=range(3),
            )
        )
        poem.write_log(logs[-1], folder / f"part-{number}.parquet")
    return folder, poem.BanditLog.concat(logs)


def test_contexts_of_part_files_stay_apart_when_they_are_converted(two_parts, tmp_path):
    folder, joined = two_parts
    poem.write_log(read_raw(folder), tmp_path / "one.parquet")
    for found in (poem.read_log(folder), poem.read_log(tmp_path / "one.parquet")):
        assert found.n_contexts == 10
        assert np.array_equal(found.X[found.context], joined.X[joined.context])


def test_what_was_text_is_text_in_the_next_csv(tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text("zip,output,loss,propensity\n01234,a,0,0.5\n0A1,b,1,0.5\n9000,b,1,0.5\n")
    second.write_text("zip,output,loss,propensity\n01234,a,0,0.5\n9000,b,1,0.5\n")
    features = poem.read_log(first).features
    log = poem.read_log(second, features=features)
    assert log.X.toarray().tolist() == [[1, 0, 0], [0, 0, 1]]


def test_numbers_that_are_categories_stay_numbers(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("slot,output,loss,propensity\n1.0,a,0,0.5\n2.0,b,1,0.5\n")
    features = poem.read_log(path, features=poem.Encoding(one_hot=["slot"])).features
    assert poem.read_log(path, features=features).X.toarray().tolist() == [[1, 0], [0, 1]]


def test_a_log_of_another_recipe_is_not_judged(tmp_path):
    path = tmp_path / "log.csv"
    rows = [f"{x},{'ab'[x % 2]},{x % 2},0.5" for x in range(40)]
    path.write_text("x,output,loss,propensity\n" + "\n".join(rows))
    policy = poem.uniform_policy(poem.read_log(path, features=poem.Encoding(scale=True)))
    with pytest.raises(MismatchError, match="in another way"):
        policy.log_prob_of(poem.read_log(path))
    assert np.allclose(policy.log_prob_of(poem.read_log(path, features=policy.features)), np.log(0.5))
    with pytest.raises(MismatchError):
        policy.with_floor(0.1, poem.uniform_policy(poem.read_log(path)))


def test_numbers_that_begin_with_0_are_names(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("zip,x,output,loss,propensity\n01234,0,007,0,0.5\n90000,0.5,8,1,0.5\n")
    log = poem.read_log(path)
    assert log.feature_names == ("x", "zip=01234", "zip=90000")
    assert log.labels == ("007", "8")
