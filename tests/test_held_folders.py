"""Folders that poem owns: one process at a time, and what a killed process left behind is removed."""

import contextlib
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from shop_logs import call
from test_datasets import SHARED

import poem
from poem.errors import BusyError
from poem.experiments import reproduce
from poem.files import held_folder

OWN = re.compile(r"own\.txt")

# Stops for ever when a file with some beginning is about to take its place.
STOPS = """
import os, sys, time
from pathlib import Path

replace = Path.replace

def stop(self, target):
    if target.name.startswith(sys.argv[1]):
        print("stopped", flush=True)
        time.sleep(600)
    return replace(self, target)

Path.replace = stop
"""
FIT = """
import numpy as np, poem
poem.fit(poem.read_log(sys.argv[3]), lam=[0.1, 1.0], checkpoint=sys.argv[2], n_jobs=1)
"""
REPRODUCE = """
from poem.cli import main
main(["reproduce", "table1", "--dataset", "yeast", "--data", sys.argv[3], "--out", sys.argv[2], "--quiet"])
"""


@contextlib.contextmanager
def stopped(code, *arguments):
    """Run a process that stops in the midst of writing a file, and kill it at the end."""
    line = [sys.executable, "-c", STOPS + code, *map(str, arguments)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "stopped\n"
            yield process
        finally:
            process.send_signal(signal.SIGKILL)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def temporary(folder):
    return [name for name in names(folder) if re.fullmatch(r"\..+\.[a-z0-9_]{8}", name)]


def make_log(path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(0, 2, 200)
    return poem.write_log(poem.BanditLog(X, y, loss=(y == (X[:, 0] > 0)) * 1.0, propensity=np.full(200, 0.5)), path)


def weights_of(found):
    return found.policy.weights.tobytes()


def test_a_killed_fit_leaves_nothing_for_the_next_one_and_a_living_one_is_left_alone(tmp_path, capsys):
    path, folder = make_log(tmp_path / "log.parquet"), tmp_path / "kept"
    log, options = poem.read_log(path), {"lam": [0.1, 1.0], "n_jobs": 1}
    with stopped(FIT, "candidate-1", folder, path) as process:
        (left,) = temporary(folder)
        assert left.startswith(".candidate-1.poem.")
        with pytest.raises(BusyError, match=rf"'{folder}' is in use by process {process.pid} .*another folder"):
            poem.fit(log, checkpoint=folder, **options)
        asked = ("train", path, "-o", tmp_path / "new.poem", "--quiet", "--checkpoint", folder)
        assert call(*asked) == 2
        assert f"is in use by process {process.pid} " in capsys.readouterr().err
        before = names(folder)
        assert temporary(folder) == [left]
    assert names(folder) == before  # nobody could remove it
    others = (".notes.txt.abcdefgh", ".candidate-1.poem", ".candidate-x.poem.abcdefgh", "candidate-7.poem.abcdefgh")
    for name in others:
        (folder / name).write_text("not poem's")
    resumed = poem.fit(log, checkpoint=folder, **options)
    assert weights_of(resumed) == weights_of(poem.fit(log, **options))
    assert set(names(folder)) == {*others, "fit.json", "candidate-0.poem", "candidate-1.poem"}


@pytest.mark.skipif(not SHARED.is_dir(), reason="the paper's data are not on this machine")
def test_results_are_those_of_one_process(tmp_path):
    with stopped(REPRODUCE, "paper-table1", tmp_path, SHARED) as process:
        assert temporary(tmp_path)
        with pytest.raises(BusyError, match=f"process {process.pid} .*--out"):
            reproduce(["table1"], dataset="yeast", data=SHARED, out=tmp_path)
    reproduce(["table1"], dataset="yeast", data=SHARED, out=tmp_path)
    assert names(tmp_path) == ["paper-table1-yeast.html", "paper-table1-yeast.md"]


def test_a_folder_is_free_again_after_an_error(tmp_path):
    with pytest.raises(KeyboardInterrupt), held_folder(tmp_path, OWN, ""):
        raise KeyboardInterrupt
    with held_folder(tmp_path, OWN, ""):
        assert names(tmp_path) == [".poem.lock"]
    assert names(tmp_path) == []


def test_the_lock_of_a_process_that_was_killed_holds_nobody_up(tmp_path):
    (tmp_path / ".poem.lock").write_text("process 1 on earth")
    (tmp_path / ".own.txt.abcdefgh").touch()
    with held_folder(tmp_path, OWN, ""):
        assert names(tmp_path) == [".poem.lock"]


def test_of_many_threads_one_at_a_time_is_inside(tmp_path):
    inside, most, entered, refused = [], [], [], []

    def enter():
        for _ in range(100):
            try:
                with held_folder(tmp_path, OWN, ""):
                    inside.append(1)
                    most.append(len(inside))
                    entered.append(1)
                    inside.pop()
            except BusyError:
                refused.append(1)

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert len(entered) + len(refused) == 400
    assert names(tmp_path) == []


def test_a_folder_without_permission_is_named(tmp_path):
    (tmp_path / ".poem.lock").mkdir()
    with pytest.raises(poem.errors.WriteError, match="cannot write to the folder"), held_folder(tmp_path, OWN, ""):
        pass


NO_MODULE = "import sys; sys.modules['fcntl'] = None"
NO_LOCKS = """
import fcntl, sys
def flock(*_):
    raise OSError(95, "Operation not supported")
fcntl.flock = flock
"""


@pytest.mark.parametrize("without", [NO_MODULE, NO_LOCKS], ids=["Windows", "a file system without locks"])
def test_without_locks_a_fit_works_and_removes_nothing(tmp_path, without):
    path, folder = make_log(tmp_path / "log.parquet"), tmp_path / "kept"
    folder.mkdir()
    (folder / ".candidate-1.poem.abcdefgh").touch()
    subprocess.run([sys.executable, "-c", without + FIT, "", folder, path], check=True)
    assert {".candidate-1.poem.abcdefgh", "candidate-1.poem"} <= set(names(folder))
