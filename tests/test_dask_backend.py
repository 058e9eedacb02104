"""Work on a Dask cluster: the same results as with threads, whatever happens to its workers."""

import os
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
from dask_clusters import cluster, kill_a_worker
from shard_tasks import Failing, Gradient, Slow, packed_log

import poem
import poem.backends.dask as module
from poem.errors import BackendError, InputError, LogError


@pytest.fixture(scope="module")
def client():
    # Dask gives a task up as soon as one worker has died of it: what poem does then is seen at once.
    with cluster(workers=2, allowed_failures=0) as found:
        yield found


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return packed_log(tmp_path_factory.mktemp("packed") / "log")


def assert_same_sums(found, expected):
    for (value, gradient), (same_value, same) in zip(found, expected, strict=True):
        assert value == same_value
        np.testing.assert_array_equal(gradient, same)


def test_sums_over_shards_are_those_of_threads_to_the_bit(client, log):
    backend, task = poem.Dask(client), Gradient(log, np.linspace(-1.0, 1.0, 5))
    expected = list(poem.Threads(1).each(task, log.shards))
    assert_same_sums(backend.each(task, log.shards), expected)
    assert_same_sums(poem.Threads(2).each(task, log.shards), expected)
    assert list(backend.each(Slow(0.01), range(9))) == list(range(9))
    assert list(backend.each(Slow(0.01), [])) == []


def test_a_client_is_taken_for_its_cluster(client, log):
    found = poem.open_log(log.folder.place, backend=client)
    assert isinstance(found.backend, poem.Dask)
    assert found.backend.client is client


def test_large_tasks_are_sent_in_parts(client, monkeypatch):
    monkeypatch.setattr(module, "PART_BYTES", 1000)
    task = Added(np.arange(2000.0))
    assert list(poem.Dask(client).each(task, range(3))) == [task(piece) for piece in range(3)]


class Added:
    def __init__(self, values):
        self.values = values

    def __call__(self, piece):
        return float(self.values.sum()) + piece


def test_blas_has_one_thread_in_a_task(client):
    assert set(poem.Dask(client).each(blas_threads, range(2))) <= {(1,), ()}


def blas_threads(piece):
    from threadpoolctl import threadpool_info

    return tuple({each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"})


def test_an_error_of_a_task_reaches_the_caller_after_earlier_results(client):
    found = poem.Dask(client).each(Failing(2), range(8))
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(LogError, match=r"row 17 of the shard is NaN\. Drop it\."):
        next(found)
    with pytest.raises(TimeoutError, match="slow disk"):
        list(poem.Dask(client).each(Failing(0, TimeoutError("slow disk")), range(2)))


def test_few_results_are_under_way_and_all_are_let_go(client):
    found = poem.Dask(client).each(Slow(0.0), range(40))
    assert next(found) == 0
    assert len(client.futures) <= 5  # two for each thread, and the task
    found.close()
    until = time.monotonic() + 10.0
    while client.futures and time.monotonic() < until:
        time.sleep(0.01)
    assert not client.futures


def test_workers_that_are_killed_change_nothing(client, log):
    task = Gradient(log, np.linspace(-1.0, 1.0, 5), seconds=0.05)
    expected = list(poem.Threads(1).each(task, log.shards))
    found = []
    for number, result in enumerate(poem.Dask(client).each(task, log.shards)):
        found.append(result)
        if number == 2:
            kill_a_worker(client)
    assert_same_sums(found, expected)


def test_a_piece_that_kills_its_workers_is_given_up(client, monkeypatch):
    monkeypatch.setattr(module, "MOST_TRIES", 1)
    with pytest.raises(BackendError, match=r"died again and again while they worked on 7.*short of memory"):
        list(poem.Dask(client).each(deadly, [7]))


def deadly(piece):
    os.kill(os.getpid(), 9)


# ---- schedulers -----------------------------------------------------------------------------------


def test_a_scheduler_by_its_address_and_one_that_goes_away(monkeypatch):
    monkeypatch.setattr(module, "CHECK_SECONDS", 0.1)
    monkeypatch.setattr(module, "CONNECT_SECONDS", 3.0)
    with cluster(workers=0) as client:
        address = client.scheduler.address
        with poem.Dask(address, patience=0.2) as backend:
            assert repr(backend) == f"Dask('{address}')"
            with pytest.raises(
                BackendError, match=f"{address} has had no workers for 0.2 seconds.*dask worker {address}"
            ):
                next(backend.each(Slow(0.0), range(3)))
            client.cluster.close()
            with pytest.raises(BackendError, match=f"the scheduler at {address} went away"):
                list(backend.each(Slow(0.0), range(3)))


def test_no_scheduler(monkeypatch):
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.5)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
        begin = time.monotonic()
        with pytest.raises(InputError, match=f"no Dask scheduler answers at '{address}'.*dask scheduler"):
            poem.Dask(address)
        assert time.monotonic() - begin < 10.0
    for odd in ("nowhere", "xyz://here:1"):
        with pytest.raises(InputError, match=f"no Dask scheduler answers at '{odd}'"):
            poem.Dask(odd)


NO_SCHEDULERS = ("nonsense", "xyz://here:1", "tls://127.0.0.1:1")
REFUSED = """
import time, distributed, poem
for odd in {addresses}:
    begin = time.monotonic()
    try: poem.Dask(odd)
    except poem.errors.InputError as error: print(time.monotonic() - begin, error)
"""


def test_an_address_that_is_none_is_refused_at_once():
    """Without a client half made, which would hang and complain at the end of the process."""
    code = REFUSED.format(addresses=NO_SCHEDULERS)
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (found.returncode, found.stderr) == (0, "")
    for odd, line in zip(NO_SCHEDULERS, found.stdout.splitlines(), strict=True):
        seconds, _, said = line.partition(" ")
        assert said.startswith(f"no Dask scheduler answers at '{odd}'")
        assert float(seconds) < 15.0


def test_only_clients_and_addresses_are_taken():
    with pytest.raises(InputError, match=r"a distributed\.Client or the address of a scheduler; found int"):
        poem.Dask(8786)


def test_without_distributed_the_message_says_what_to_install():
    code = "import sys; sys.modules['distributed'] = None; import poem; poem.Dask('tcp://127.0.0.1:1')"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert "InputError: a Dask cluster needs the packages dask and distributed" in found.stderr
    assert "pip install 'poem[dask]'" in found.stderr
