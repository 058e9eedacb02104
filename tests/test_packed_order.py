"""A packed log that fits into memory is the log that was packed, row by row: times say nothing of the order of ties."""

import numpy as np
import pytest
from packing import packed

import poem
from poem.packed import pack_log, sample_units

N = 900
TIMES = {
    "daily": np.arange(N) // 90,
    "constant": np.zeros(N, dtype=int),
    "not sorted": np.random.default_rng(3).integers(0, 9, N),
}


def write(path, days):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4)).round(3)
    chosen = rng.integers(0, 3, N)
    clicks = (rng.random(N) < np.where(chosen == (X[:, 0] > 0), 0.8, 0.2)).astype(int)
    rows = zip(X.tolist(), chosen, clicks, days, strict=True)
    text = (f"{','.join(map(str, x))},{c},{r},{1 / 3:.17g},2026-01-{d + 1:02d}\n" for x, c, r, d in rows)
    path.write_text("a,b,c,d,output,reward,propensity,time\n" + "".join(text))
    return path


@pytest.mark.parametrize("days", TIMES)
def test_rows_and_the_fit_are_those_of_memory(tmp_path, days):
    path = write(tmp_path / "log.csv", TIMES[days])
    log, found = poem.read_log(path), pack_log(path, tmp_path / "p")
    whole = found.to_log()
    np.testing.assert_array_equal(whole.time, log.time)
    assert whole.fingerprint() == log.fingerprint()
    one, two = (poem.fit(source, learners="dr", loss_bounds=(0, 1)) for source in (log, found))
    assert one.certificate.gain_at_least == two.certificate.gain_at_least
    np.testing.assert_array_equal(one.learnt.weights, two.learnt.weights)


@pytest.mark.parametrize("shards", [1, 5])
def test_parts_and_samples_are_in_the_order_of_the_rows(tmp_path, shards):
    log = poem.read_log(write(tmp_path / "log.csv", TIMES["daily"])).replaced(loss=np.arange(float(N)))
    found = packed(log, tmp_path / "p", shards, parts=4)
    for some in (found.part(0.2, 0.7).to_log(), sample_units(found, 500, 1e9).log):
        assert 0 < len(some) < N
        rows = some.loss.astype(int)
        assert np.all(np.diff(rows) > 0)
        np.testing.assert_array_equal(some.X[some.context], log.X[rows])
