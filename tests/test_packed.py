"""A packed log holds what was packed, and says so if it does not any more."""

import json
import multiprocessing
import os
import pickle
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packing import packed
from test_laws_risk import FORMS, KINDS, make_log

import poem
from poem.backends import Threads
from poem.compute import Threads as Pool
from poem.errors import BusyError, InputError, PackedError, WriteError
from poem.packed import Keys, PackWriter, open_log, pack_folder, pack_log, quantiles_of
from poem.packed.hashing import context_hashes

SHARDS = (1, 2, 7)


def with_names(log, seed=0):
    """The same log with groups, loggers and times."""
    rng = np.random.default_rng(seed)
    names = np.array([f"user {number}" for number in rng.integers(0, 15, len(log))])
    loggers = np.array(["old", "new"])[rng.integers(0, 2, len(log))]
    return log.with_groups(names).with_loggers(loggers).replaced(time=rng.random(len(log)))


def rows_of(log):
    """All rows of a log as comparable tuples, in no order."""
    X = log.X.toarray() if hasattr(log.X, "toarray") else log.X
    offers = [()] * log.n_contexts
    if log.available is not None:
        given = log.available
        z = None if given.features is None else given.features.toarray()
        row = np.arange(len(given)) if given.row is None else given.row
        features = [() if z is None else tuple(z[one]) for one in row.tolist()] if z is not None else [()] * len(given)
        every = list(zip(given.action.tolist(), features, strict=True))
        offers = [tuple(every[a:b]) for a, b in zip(given.starts[:-1], given.starts[1:], strict=True)]
    named = [getattr(log, name) for name in ("group", "logger", "time")]
    return sorted(
        (
            tuple(X[c]),
            offers[c],
            tuple(np.atleast_1d(log.y[i]).tolist()),
            log.loss[i],
            log.log_propensity[i],
            *(None if one is None else one[i].item() for one in named),
        )
        for i, c in enumerate(log.context.tolist())
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("named", [False, True])
def test_what_was_packed_is_read(tmp_path, kind, form, named):
    log = make_log(kind, form)
    log = with_names(log) if named else log
    for shards in SHARDS:
        found = packed(log, tmp_path / str(shards), shards, parts=4)
        whole = found.to_log()
        assert rows_of(whole) == rows_of(log)
        assert len(found) == len(log)
        assert found.n_units == int(log.units().max()) + 1
        assert int(whole.units().max()) == int(log.units().max())
        for name in ("labels", "structure", "outcome", "propensities", "feature_names", "n_features"):
            assert getattr(found, name) == getattr(log, name), name
        assert found.loss_range == (log.loss.min(), log.loss.max())


@pytest.mark.parametrize(("form", "contexts"), [("dense", 120), ("csr", 120), ("csr-replayed", 40)])
def test_contexts_that_rows_share_are_stored_once(tmp_path, form, contexts):
    """Rows of a plain file are units of their own, as they are in memory, and keep their contexts."""
    found = packed(make_log("classes", form), tmp_path / "p", 2, parts=5)
    assert sum(note.contexts for note in found.shards) == found.n_units == contexts
    grouped = packed(with_names(make_log("classes", form)), tmp_path / "q", 1, parts=5)
    assert sum(note.contexts for note in grouped.shards) == 40


@pytest.mark.parametrize("named", [False, True])
def test_units_and_parts_do_not_depend_on_the_number_of_shards(tmp_path, named):
    log = make_log("classes", "csr", contexts=300)
    log = with_names(log) if named else log
    parts = []
    for shards in SHARDS:
        found = packed(log, tmp_path / str(shards), shards)
        for note in found.shards:
            unit = found.column(note, "unit")
            assert unit.min() >= note.low
            assert int(unit.max()) < note.high
            assert len(np.unique(unit)) == note.units
        pieces = [found.part(a, b) for a, b in ((0.0, 0.3), (0.3, 0.75), (0.75, 1.0))]
        assert sum(map(len, pieces)) == len(log)
        assert sum(one.n_units for one in pieces) == found.n_units
        parts.append([rows_of(one.to_log()) for one in pieces])
    assert parts[0] == parts[1] == parts[2]


@pytest.mark.parametrize("grouped", [False, True])
def test_a_file_of_few_contexts_has_the_units_that_it_has_in_memory(tmp_path, grouped):
    """A plain file with one column of six values: rows are independent, and intervals and certificates say so."""
    rng = np.random.default_rng(0)
    segment, chosen = rng.integers(0, 6, 900), rng.integers(0, 3, 900)
    clicks = (rng.random(900) < np.where(chosen == segment % 3, 0.8, 0.2)).astype(int)
    rows = zip(segment, chosen, clicks, np.arange(900) // 2, strict=True)
    text = "".join(f"s{s},{c},{r},{1 / 3:.17g},u{u}\n" for s, c, r, u in rows)
    (tmp_path / "log.csv").write_text("segment,output,reward,propensity,user\n" + text)
    columns = poem.Columns(group="user") if grouped else poem.Columns(ignore=("user",))
    log = poem.read_log(tmp_path / "log.csv", columns=columns)
    found = pack_log(tmp_path / "log.csv", tmp_path / "p", columns=columns)
    assert found.n_units == int(log.units().max()) + 1 == (450 if grouped else 900)
    policy = poem.fit(log, learners="direct", certify=False).policy
    for estimator in ("IPS", "SNIPS"):
        one, two = (poem.evaluate(policy, source, [estimator]).lines[0] for source in (log, found))
        np.testing.assert_allclose([two.value, two.low, two.high], [one.value, one.low, one.high], rtol=1e-12)
    results = [poem.fit(source, learners="direct", loss_bounds=(0, 1)) for source in (log, found)]
    assert results[0].certified
    if not grouped:  # the numbers of groups differ, and folds with them
        assert results[0].certificate.gain_at_least == results[1].certificate.gain_at_least
    assert results[1].certified


def test_a_part_is_a_fair_sample(tmp_path):
    log = make_log("classes", "dense", contexts=4000, replay=1)
    found = packed(log, tmp_path / "p", 4)
    assert abs(len(found.part(0.0, 0.25)) - 1000) < 5 * np.sqrt(750)
    with pytest.raises(InputError, match="lower to a higher share"):
        found.part(0.5, 0.5)


def test_the_same_context_has_one_hash_however_it_is_stored():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (50, 6)) * 1.5
    X[3, 2] = -0.0
    args = {"loss": rng.random(50), "propensity": np.full(50, 0.5)}
    dense = poem.BanditLog(X, rng.integers(0, 2, 50), **args)
    import scipy.sparse as sp

    stored = sp.csr_array(X)
    stored.data[0] = 0.0
    X[0, stored.indices[0]] = 0.0
    sparse = poem.BanditLog(stored, dense.y, **args)
    dense = poem.BanditLog(X, dense.y, **args)
    hashes = context_hashes(dense)
    np.testing.assert_array_equal(hashes, context_hashes(sparse))
    assert len(np.unique(hashes)) == len(np.unique(X + 0.0, axis=0))


def test_groups_are_told_apart_whatever_they_are():
    log = make_log("classes", "dense")
    kinds = (np.arange(120) % 7, (np.arange(120) % 7) / 2, np.array([f"ü{i % 7}" for i in range(120)]))
    for group in kinds:
        hashes = Keys.of_log(log.with_groups(group), 0, None, 0).unit
        assert len(np.unique(hashes)) == 7
        assert len({(a, b) for a, b in zip(group.tolist(), hashes.tolist(), strict=True)}) == 7


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-50.0, 0.0) | st.sampled_from([-1.0, -2.5]), min_size=2, max_size=60),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=4),
)
def test_quantiles_are_those_of_numpy(tmp_path_factory, values, at):
    log = make_log("classes", "dense", contexts=len(values), replay=1).replaced(log_propensity=np.array(values))
    found = packed(log, tmp_path_factory.mktemp("q") / "p", 3)
    np.testing.assert_array_equal(quantiles_of(found, "log_propensity", at, Threads(1)), np.quantile(values, at))


def test_quantiles_narrow_down_to_the_value(tmp_path, monkeypatch):
    from poem.packed import quantiles

    monkeypatch.setattr(quantiles, "KEPT", 5)
    monkeypatch.setattr(quantiles, "BUCKETS", 4)
    rng = np.random.default_rng(0)
    values = np.concatenate([-np.exp(rng.normal(size=150) * 4), np.full(50, -0.3)])
    log = make_log("classes", "dense", contexts=200, replay=1).replaced(log_propensity=values)
    found, at = packed(log, tmp_path / "p", 3), np.linspace(0, 1, 23)
    np.testing.assert_array_equal(quantiles_of(found, "log_propensity", at), np.quantile(values, at))


# ---- folders ----------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path):
    packed(make_log("classes", "csr"), tmp_path / "p")
    return tmp_path / "p"


def test_a_shard_that_is_missing_cut_off_or_changed_is_refused(folder):
    shard = folder / open_log(folder).shards[0].name
    content = shard.read_bytes()
    shard.unlink()
    with pytest.raises(PackedError, match=f"{shard.name} is missing"):
        open_log(folder)
    shard.write_bytes(content[:-1])
    with pytest.raises(PackedError, match="cut off or was changed"):
        open_log(folder)
    middle = len(content) // 2
    shard.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])
    log = open_log(folder)
    with pytest.raises(PackedError, match="its checksum differs"):
        log.to_log()
    shard.write_bytes(content)
    open_log(folder).to_log()


@pytest.mark.parametrize("name", ["kind.parquet", "manifest.json"])
def test_what_describes_the_shards_is_checked_too(folder, name):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:-5])
    with pytest.raises(PackedError, match=r"kind\.parquet was changed|broken manifest\.json"):
        open_log(folder)
    (folder / name).unlink()
    with pytest.raises(PackedError, match=r"missing|no packed log"):
        open_log(folder)


def test_another_version_is_refused(folder):
    content = json.loads((folder / "manifest.json").read_text())
    for version in (1, 99, None, float("inf")):
        (folder / "manifest.json").write_text(json.dumps(content | {"version": version}))
        with pytest.raises(PackedError, match=f"version {version} of the format; this poem reads version 2"):
            open_log(folder)


def test_what_is_no_packed_log_is_refused(tmp_path):
    with pytest.raises(PackedError, match=r"is no packed log: it has no manifest\.json"):
        open_log(tmp_path)
    with pytest.raises(InputError, match="takes the path"):
        open_log(3)
    with pytest.raises(InputError, match=r"backend must be poem\.Threads"):
        open_log(tmp_path, backend=2)


def test_a_packed_log_is_not_read_as_part_files(folder, tmp_path):
    for read in (poem.read_log, lambda path: pack_log(path, tmp_path / "again")):
        with pytest.raises(poem.errors.ReadError, match=r"p is a packed log.*poem\.open_log"):
            read(folder)


def test_files_that_cannot_be_cut_are_packed_as_a_whole(tmp_path):
    block = "shared |user age:{}\n{}|item a\n{}|item b\n\n"
    lines = (block.format(i, "0:1:0.5 " * (i % 2), "0:0.5:0.5 " * (1 - i % 2)) for i in range(30))
    (tmp_path / "log.vw").write_text("".join(lines))
    found = pack_log(tmp_path / "log.vw", tmp_path / "p")
    assert rows_of(found.to_log()) == rows_of(poem.read_log(tmp_path / "log.vw"))
    assert found.manifest.columns is not None


def test_a_folder_is_packed_once(folder, tmp_path):
    log = make_log("classes", "csr")
    with pytest.raises(InputError, match="holds a packed log already"):
        pack_log(log, folder)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"is not empty: it holds 'notes\.txt'"):
        pack_log(log, tmp_path / "other")
    with pytest.raises(InputError, match="there is no folder"):
        pack_log(log, tmp_path / "no" / "where")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="Name a folder"):
        pack_log(log, tmp_path / "file")


def test_a_folder_that_cannot_be_worked_in_is_said(tmp_path):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / ".packing").write_text("a file")
    with pytest.raises(WriteError, match=r"cannot write to .*Nothing was packed"):
        pack_log(make_log("classes", "csr"), tmp_path / "p")


def test_two_packs_into_one_folder(tmp_path):
    with pack_folder(tmp_path / "p"), pytest.raises(BusyError, match="in use by process"):
        pack_log(make_log("classes", "csr"), tmp_path / "p")


def test_an_interrupted_pack_leaves_nothing_and_the_next_one_starts_anew(tmp_path):
    log = make_log("classes", "csr")

    def interrupted():
        with pack_folder(tmp_path / "p"):
            writer = PackWriter(tmp_path / "p", 3, Pool())
            writer.add(log)
            writer._append()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not (tmp_path / "p").exists()
    # What a killed process leaves cannot be opened, and is removed by the next pack.
    (tmp_path / "p" / ".packing").mkdir(parents=True)
    (tmp_path / "p" / ".packing" / "000000.arrow").write_text("half")
    (tmp_path / "p" / "shard-000009.parquet").write_text("half")
    with pytest.raises(PackedError):
        open_log(tmp_path / "p")
    found = pack_log(log, tmp_path / "p")
    assert rows_of(found.to_log()) == rows_of(log)
    assert not (tmp_path / "p" / "shard-000009.parquet").exists()


def _pack_with_little_room(folder, most):
    import signal

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    try:
        pack_log(make_log("classes", "dense", contexts=2000), folder)
    except WriteError as error:
        os._exit(7 if "check the disk space" in str(error) else 8)
    os._exit(0)


@pytest.mark.parametrize("most", [4_000, 130_000])
def test_a_full_disk_is_said_and_nothing_is_left(tmp_path, most):
    work = multiprocessing.get_context("fork").Process(target=_pack_with_little_room, args=(tmp_path / "p", most))
    work.start()
    work.join()
    assert work.exitcode == 7
    assert not (tmp_path / "p").exists()


def test_a_packed_log_travels_as_its_path(folder):
    log = open_log(folder).part(0.1, 0.6)
    again = pickle.loads(pickle.dumps(log))
    assert len(pickle.dumps(log)) < 1000
    assert (again.low, again.high, len(again)) == (log.low, log.high, len(log))
    assert rows_of(again.to_log()) == rows_of(log.to_log())


def test_files_are_packed_by_the_command(tmp_path):
    rows = "".join(f"{i % 5},{'xyz'[i % 3]},{i % 2},{0.25 + 0.25 * (i % 2)}\n" for i in range(200))
    for name in ("one.csv", "two.csv"):
        (tmp_path / name).write_text("age,output,loss,propensity\n" + rows)
    command = [sys.executable, "-m", "poem", "pack", "one.csv", "two.csv", "-o", "packed", "--json"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(found.stdout) == {
        "log": "packed",
        "rows": 400,
        "units": 400,
        "shards": 1,
        "outputs": 3,
        "features": 1,
        "propensities": "logged",
    }
    one = poem.read_log(tmp_path / "one.csv")
    assert rows_of(open_log(tmp_path / "packed").to_log()) == sorted(2 * rows_of(one))
    shutil.rmtree(tmp_path / "packed")
    (tmp_path / "two.csv").write_text("age,output,loss,propensity\n" + rows + "3,x,1,1.5\n")
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert found.returncode == 2
    assert "two.csv, row 200" in found.stderr
    assert not (tmp_path / "packed").exists()
