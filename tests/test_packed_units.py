"""Units of a packed log are those of the same log in memory, above all where contexts are numbered."""

import pickle

import numpy as np
import pytest
from packing import packed
from test_laws_risk import FORMS, KINDS, make_log
from test_packed import rows_of

import poem
from poem.packed import pack_log, packing, sample_units
from poem.readers import LogStream

N = 1200


def few_segments(rng, context):
    """A log whose contexts have one of six features."""
    segment = rng.integers(0, 6, int(context.max()) + 1)
    chosen = rng.integers(0, 3, len(context))
    reward = (rng.random(len(context)) < np.where(chosen == segment[context] % 3, 0.8, 0.2)).astype(float)
    return poem.BanditLog(
        np.eye(6)[segment], chosen, reward=reward, propensity=np.full(len(context), 1 / 3), context=context
    )


@pytest.fixture(params=["file", "part files", "log", "permuted"])
def source(request, tmp_path):
    """A source of numbered contexts, many of which are equal."""
    rng = np.random.default_rng(0)
    log = few_segments(rng, np.arange(N) // 2)
    if request.param == "file":
        return poem.write_log(log, tmp_path / "log.parquet")
    if request.param == "part files":
        (tmp_path / "in").mkdir()
        for name, part in zip("ab", few_segments(rng, np.arange(N)).split(0.5, 0), strict=True):
            poem.write_log(part, tmp_path / "in" / f"{name}.parquet")
        return tmp_path / "in"
    return log if request.param == "log" else log.take(rng.permutation(N))


def in_memory(source):
    return source if isinstance(source, poem.BanditLog) else poem.read_log(source)


def test_units_and_the_certificate_are_those_of_memory(source, tmp_path):
    log, found = in_memory(source), pack_log(source, tmp_path / "p")
    assert found.n_units == int(log.units().max()) + 1 >= N // 2
    assert found.to_log().fingerprint() == log.fingerprint()
    results = [poem.fit(one, learners="direct", loss_bounds=(0, 1)) for one in (log, found)]
    lines = [poem.evaluate(results[0].learnt, one, ["SNIPS"]).lines[0] for one in (log, found)]
    np.testing.assert_allclose(*([one.value, one.low, one.high] for one in lines), rtol=1e-12)
    assert results[0].certificate.gain_at_least == results[1].certificate.gain_at_least
    np.testing.assert_array_equal(results[0].learnt.weights, results[1].learnt.weights)


def test_blocks_do_not_matter(source, tmp_path, monkeypatch):
    sums = []
    monkeypatch.setattr(packing, "shards_for", lambda rows, sample: 3)
    for size in (1 << 26, 9000, 2000):
        monkeypatch.setitem(LogStream.__init__.__kwdefaults__, "block_bytes", size)
        monkeypatch.setattr(packing, "BLOCK", size)
        sums.append([note.sha256 for note in pack_log(source, tmp_path / str(size)).shards])
    assert sums[0] == sums[1] == sums[2]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_logs_of_poems_own(tmp_path, kind, form, grouped):
    """Written in any order of their rows, whole or in parts, they are what they are in memory."""
    rng = np.random.default_rng(0)
    log = make_log(kind, form)
    log = log.with_groups(rng.integers(0, 30, len(log))) if grouped else log
    log = log.take(rng.permutation(len(log)))
    (tmp_path / "in").mkdir()
    path = poem.write_log(log, tmp_path / "log.parquet")
    for name, rows in zip("ab", np.array_split(np.arange(len(log)), 2), strict=True):
        poem.write_log(log.take(rows), tmp_path / "in" / f"{name}.parquet")
    for number, one in enumerate((path, tmp_path / "in", log)):
        memory, found = in_memory(one), pack_log(one, tmp_path / str(number))
        assert found.n_units == int(memory.units().max()) + 1
        np.testing.assert_array_equal(found.to_log().units(), memory.units())
        np.testing.assert_array_equal(found.to_log().context, memory.context)
        if kind not in ("own candidates",):  # whose features stand in another order
            assert found.to_log().fingerprint() == memory.fingerprint()


def test_contexts_that_groups_share_are_joined_from_all_shards(tmp_path):
    log = few_segments(np.random.default_rng(0), np.arange(N) // 4).with_groups(np.arange(N) % 100)
    for shards in (1, 7):
        found = packed(log, tmp_path / str(shards), shards, parts=3)
        assert found.to_log().n_contexts == log.n_contexts
        assert found.to_log().fingerprint() == log.fingerprint()


def test_the_rows_of_one_logger(tmp_path):
    """However they are read, and of any part, they are the rows of this logger and of no other."""
    log = make_log("classes", "csr", contexts=200)
    log = log.with_loggers(np.array(["old", "new"])[np.arange(len(log)) % 4 // 3])
    found = packed(log, tmp_path / "p", 3)
    for name in ("old", "new"):
        mine, part = found.of_logger(name), found.of_logger(name).part(0.0, 0.5)
        assert rows_of(mine.to_log()) == rows_of(log.take(log.logger == name))
        for one in (mine, part, mine.replaced(memory=10**6), pickle.loads(pickle.dumps(part))):
            whole = one.to_log()
            assert set(whole.logger) == {name}
            assert len(whole) == len(one) == len(sample_units(one, 10**6, 1e9).log) == sum(map(len, one.logs()))
        assert rows_of(part.to_log()) == rows_of(found.part(0.0, 0.5).of_logger(name).to_log())
