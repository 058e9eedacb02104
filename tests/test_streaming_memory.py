"""The memory of an evaluation does not grow with the rows of a packed log."""

import subprocess
import sys

import numpy as np
import pytest
from packing import packed

import poem

JUDGE = """
import sys, threading, time

import numpy as np
import poem
from mmap import PAGESIZE as PAGE
from poem.packed import open_log

log = open_log(sys.argv[1], memory=32_000_000)
policy = poem.Policy(poem.MultiClass(4), np.random.default_rng(1).normal(size=(6, 4)), True, (0, 1, 2, 3))
seen = [0]  # what the system counts as the peak has that of the parent process in it


def look():
    while True:
        with open("/proc/self/statm") as file:
            seen.append(int(file.read().split()[1]) * PAGE // 1024)
        time.sleep(0.002)


threading.Thread(target=look, daemon=True).start()
found = poem.evaluate(policy, log, model="linear", n_jobs=2)
assert found.logged.n == int(sys.argv[2])
print(max(seen) // 1024)
"""


def peak(path, rows):
    """Return the memory in MB that a process needs to judge so many rows, in shards of 10,000."""
    rng = np.random.default_rng(0)
    log = poem.BanditLog(
        rng.normal(size=(rows, 5)), rng.integers(0, 4, rows), loss=rng.random(rows), propensity=np.full(rows, 0.25)
    )
    packed(log, path, rows // 10_000)
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(path), str(rows)], capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="counts memory as Linux does")
def test_memory_does_not_grow_with_rows(tmp_path):
    small, large = peak(tmp_path / "small", 50_000), peak(tmp_path / "large", 500_000)
    assert large < small + 40  # the rows alone take 44 MB, and terms of ten estimators many times that
