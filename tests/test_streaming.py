"""A log that is read block by block is the log that is read whole."""

import numpy as np
import pyarrow.parquet as pq
import pytest
from same_logs import FEATURES, TABLE, TEXTS, as_svmlight, dense, partition, write

import poem
from poem.compute import Threads
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
    np.testing.assert_array_equal(dense(one)[one.context], dense(two)[two.context])
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
        for threads in (Threads(1), Threads(2)):
            logs = blocks_of(path, blocks, threads=threads, **named, **options)
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


def test_parquet(tmp_path):
    pq.write_table(TABLE, tmp_path / "log.parquet", row_group_size=3)
    assert_streams(tmp_path / "log.parquet")


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
