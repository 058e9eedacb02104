"""What poem says where a packed log is not what it should be, or is put where it does not go."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from easy_logs import a_policy, easy, logged_by
from packing import packed

import poem
from poem.cli import main
from poem.errors import InputError, PackedError, ReadError
from poem.packed import open_log, pack_log, value_hashes
from poem.policies import with_packed

ROWS = "".join(f"{i % 7},{'xyz'[i % 3]},{i % 2},{0.25 + 0.25 * (i % 2)}\n" for i in range(300))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with files, and with one of them packed."""
    place = tmp_path_factory.mktemp("messages")
    for name in ("one.csv", "two.csv"):
        (place / name).write_text("age,output,loss,propensity\n" + ROWS)
    log = pack_log(place / "one.csv", place / "packed")
    with_packed(poem.uniform_policy(log), log).save(place / "small.poem")
    return place


@pytest.fixture
def said(place, monkeypatch, capsys):
    """Return a function that runs a command that is refused, and returns what it says."""
    monkeypatch.chdir(place)

    def call(*words):
        assert main([str(word) for word in words]) == 2
        return capsys.readouterr().err

    return call


# ---- folders ---------------------------------------------------------------------------------------


@pytest.fixture
def unfinished(place, tmp_path):
    """What a killed pack leaves."""
    (tmp_path / "killed" / ".packing").mkdir(parents=True)
    (tmp_path / "killed" / "shard-000000.parquet").write_text("half")
    return tmp_path / "killed"


@pytest.mark.parametrize("command", ["inspect", "train", "evaluate", "report", "watch", "convert", "predict"])
def test_an_unfinished_packed_log(said, unfinished, command):
    words = {
        "train": ("train", unfinished, "-o", "x.poem"),
        "evaluate": ("evaluate", "small.poem", unfinished, "--memory", "64MB"),
        "report": ("report", "small.poem", unfinished, "-o", "x.html"),
        "watch": ("watch", unfinished, "--policy", "small.poem", "--loss-bounds", "0,1"),
        "convert": ("convert", unfinished, "x.parquet"),
        "predict": ("predict", "small.poem", unfinished),
    }
    told = said(*words.get(command, (command, unfinished)))
    assert "killed is an unfinished packed log: a pack was interrupted. Run poem pack again" in told


def test_an_unfinished_packed_log_in_python(unfinished):
    for open_it in (open_log, poem.read_log):
        with pytest.raises(ReadError, match="is an unfinished packed log"):
            open_it(unfinished)


def test_a_place_that_is_no_packed_log(place, tmp_path):
    with pytest.raises(PackedError, match="there is no folder 'nothere'"):
        open_log("nothere")
    with pytest.raises(PackedError, match=r"one\.csv is a file\. Name the folder"):
        open_log(place / "one.csv")
    with pytest.raises(PackedError, match=r"is no packed log: it has no manifest\.json"):
        open_log(tmp_path)


@pytest.mark.parametrize("name", ["shard-000000.parquet", "kind.parquet", "manifest.json"])
def test_a_file_of_a_packed_log(said, name):
    told = said("train", f"packed/{name}", "-o", "x.poem")
    assert f"{name} is part of a packed log. Pass the folder, 'packed'." in told
    assert "is part of a packed log" in said("pack", f"packed/{name}", "-o", "again")


def test_a_file_of_such_a_name_elsewhere_is_a_file(place, tmp_path):
    log = poem.read_log(place / "one.csv")
    assert len(poem.read_log(poem.write_log(log, tmp_path / "shard-000000.parquet"))) == len(log)


def test_an_empty_folder(said, tmp_path):
    (tmp_path / "empty").mkdir()
    for more in ((), ("--memory", "64MB")):
        assert "the folder 'empty' is empty" in said("evaluate", "small.poem", tmp_path / "empty", *more)
    assert "there is no file or folder 'nothere'" in said("train", "nothere", "-o", "x.poem", "--memory", "1GB")


@pytest.mark.parametrize(
    "words",
    [
        ("predict", "small.poem", "packed"),
        ("convert", "packed", "x.parquet"),
        ("watch", "packed", "--policy", "small.poem", "--loss-bounds", "0,1"),
        ("pack", "packed", "-o", "again"),
    ],
)
def test_commands_that_take_no_packed_log(said, words):
    assert "packed is a packed log" in (told := said(*words))
    assert "For anything else, pass the original files." in told


# ---- files -----------------------------------------------------------------------------------------


def test_the_same_file_twice(said, place, tmp_path):
    assert "'one.csv' is given twice. Name each file once." in said("pack", "one.csv", "./one.csv", "-o", "again")
    shutil.copy(place / "one.csv", tmp_path)
    with pytest.raises(InputError, match="is given twice"):
        pack_log([tmp_path, tmp_path / "one.csv"], place / "again")


def test_files_of_two_kinds(said, place):
    poem.write_log(poem.read_log(place / "one.csv"), place / "one.parquet")
    told = said("pack", "one.parquet", "two.csv", "-o", "again")
    assert "one.parquet is parquet and two.csv is csv; all files of a log must be of one kind." in told


def test_a_column_that_is_no_feature_names_the_option(said, place):
    import pyarrow as pa
    import pyarrow.parquet as pq

    times = pa.array(np.arange(3), pa.timestamp("s"))
    columns = {"output": ["a", "b", "a"], "loss": [0, 1, 0], "propensity": [0.5] * 3, "seen": times}
    pq.write_table(pa.table(columns), place / "odd.parquet")
    assert "Leave it out (--ignore), turn it into" in said("pack", "odd.parquet", "-o", "again")


@pytest.mark.parametrize(("text", "size"), [("64M", 64_000_000), ("2G", 2_000_000_000), ("5k", 5_000), ("1 T", 10**12)])
def test_sizes_without_a_b(place, text, size):
    assert open_log(place / "packed", memory=text).memory == size


# ---- Python ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    rows = logged_by(a_policy(poem.MultiClass(3)), easy, contexts=2000)
    loss = rows.loss.copy()
    hashes = value_hashes(np.arange(len(rows)))
    loss[np.argmax(hashes)] = 1.9  # is not in a sample
    rows = rows.replaced(loss=loss)
    return packed(rows, tmp_path_factory.mktemp("log") / "packed", 4)


def test_functions_that_need_rows_in_memory_say_so(log):
    policy = poem.uniform_policy(log)
    for ask in (
        lambda: policy.log_prob_of(log),
        lambda: policy.with_floor(0.1).marginals_of(log),
        lambda: poem.BanditLog.concat([log, log]),
        lambda: log.units(),
        lambda: log.X,
    ):
        with pytest.raises(InputError, match=r"log\.part\(0, 0\.1\)\.to_log\(\)"):
            ask()
    with pytest.raises(InputError, match=r"Read the original files .* or pass log\.to_log\(\)"):
        poem.watch(policy, log, loss_bounds=(0, 1))
    with pytest.raises(InputError, match=r"write_log takes a log in memory.*to_log\(\)"):
        poem.write_log(log, "log.parquet")
    with pytest.raises(InputError, match="is packed already"):
        pack_log(log, "again")
    with pytest.raises(InputError, match="validation must be a log in memory"):
        poem.fit(log.to_log(), selection=poem.Selection(validation=log))
    assert not hasattr(log, "X")
    with pytest.raises(AttributeError, match="no attribute 'sonnet'"):
        _ = log.sonnet


def test_a_path_in_place_of_a_log(log):
    policy = poem.uniform_policy(log)
    for ask in (
        lambda: poem.fit("packed"),
        lambda: poem.certify(policy, "packed"),
        lambda: poem.evaluate(policy, "packed"),
        lambda: poem.estimate(policy, "packed"),
        lambda: poem.inspect("packed"),
        lambda: poem.write_report(policy, "packed", "page.html"),
        lambda: poem.watch(policy, "packed", loss_bounds=(0, 1)),
        lambda: poem.estimate_propensities("packed"),
    ):
        with pytest.raises(InputError, match=r"open a packed folder by poem\.open_log"):
            ask()


def test_simple_policies_of_a_packed_log(log):
    rows = log.to_log()
    for policy, same in (
        (poem.uniform_policy(log), poem.uniform_policy(rows)),
        (poem.constant_policy(log, 1), poem.constant_policy(rows, 1)),
    ):
        np.testing.assert_array_equal(policy.log_prob_of(rows), same.log_prob_of(rows))


# ---- certificates ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def better(tmp_path_factory):
    """A policy that was trained on an earlier packed log, and that log."""
    rows = logged_by(a_policy(poem.MultiClass(3)), easy, 5, contexts=1000)
    earlier = packed(rows, tmp_path_factory.mktemp("earlier") / "packed", 3)
    return poem.fit(earlier, learners="direct", certify=False).policy, earlier


def test_a_packed_log_that_fits_certifies_as_in_memory(log, better):
    policy, earlier = better
    for more, same in (({}, {}), ({"earlier": earlier}, {"earlier": earlier.to_log()})):
        found = poem.certify(policy, log, loss_bounds=(0, 2), **more)
        assert found.to_dict() == poem.certify(policy, log.to_log(), loss_bounds=(0, 2), **same).to_dict()


def test_a_packed_log_that_does_not_fit_certifies_by_a_sample(log, better):
    policy, _ = better
    small = open_log(log.folder.place, memory=4 * log.nbytes)
    found = poem.certify(policy, small, loss_bounds=(0, 2))
    part = small.part(0.0, 0.5)
    assert f"({len(part):,} of its 2,000 rows were read)" in found.conditions[-1]
    same = poem.certify(policy, part.to_log(), loss_bounds=(0, 2))
    assert found.gain_at_least == same.gain_at_least
    assert found.conditions[:-1] == same.conditions
    # Bounds are those of all rows, not of the sample.
    low, high = log.loss_range
    assert f"losses lie in [{low:.4g}, {high:.4g}], as in this log" in str(poem.certify(policy, small).conditions)
    with pytest.raises(InputError, match="but the log's losses go from"):
        poem.certify(policy, small, loss_bounds=(0.0, float(part.to_log().loss.max())))


def test_what_certifies_is_fresh(log, better):
    policy, earlier = better
    for own in (earlier, earlier.part(0.5, 0.6)):
        with pytest.raises(InputError, match="learnt from this very log"):
            poem.certify(policy, own, loss_bounds=(0, 1))
    with pytest.raises(InputError, match="both logs have units in common"):
        poem.certify(policy, log, earlier=log.part(0.0, 0.5), loss_bounds=(0, 1))
    found = poem.certify(policy, log.part(0.5, 1.0), earlier=log.part(0.0, 0.5), loss_bounds=(0, 2))
    assert found.gain_at_least is not None


def test_help_names_the_option():
    command = [sys.executable, "-m", "poem", "pack", "--help"]
    assert "--policy POLICY" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
