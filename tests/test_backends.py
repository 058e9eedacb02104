"""What all backends do alike, and threads: results in order, few at a time, errors as they are."""

import threading

import numpy as np
import pytest
from shard_tasks import Failing, Gradient, Slow, packed_log, plain_log

import poem
from poem.backends import Backend, Threads
from poem.errors import InputError, LogError


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return packed_log(tmp_path_factory.mktemp("packed") / "log")


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_come_in_the_order_of_the_pieces(count):
    assert list(Threads(count).each(Slow(0.004), range(12))) == list(range(12))
    assert list(Threads(count).each(Slow(0.0), [])) == []


def test_sums_over_shards_do_not_depend_on_threads(log):
    task = Gradient(log, np.linspace(-1.0, 1.0, 5))
    assert len(log.shards) > 6
    one, two = (list(Threads(count).each(task, log.shards)) for count in (1, 2))
    for (value, gradient), (same_value, same) in zip(one, two, strict=True):
        assert value == same_value
        np.testing.assert_array_equal(gradient, same)


def test_sums_over_shards_are_those_of_the_log(log):
    whole = plain_log()
    w = np.linspace(-1.0, 1.0, 5)
    value = sum(value for value, _ in Threads(1).each(Gradient(log, w), log.shards))
    margin = np.where(whole.y == 0, 1.0, -1.0) * (whole.X[whole.context] @ w)
    assert value == pytest.approx(whole.loss @ np.logaddexp(0.0, -margin), rel=1e-12)


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_of_a_task_reaches_the_caller_after_earlier_results(count):
    found = Threads(count).each(Failing(3), range(8))
    assert [next(found) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(LogError, match=r"row 17 of the shard is NaN\. Drop it\."):
        next(found)


def test_few_results_are_alive_at_a_time():
    begun, lock = [], threading.Lock()

    def task(piece):
        with lock:
            begun.append(piece)
        return piece

    for done, _ in enumerate(Threads(2).each(task, range(50)), 1):
        assert len(begun) <= done + 3


def test_a_pass_can_be_left_early():
    found = Threads(2).each(Slow(0.002), range(1000))
    assert next(found) == 0
    found.close()


def test_backends_are_public():
    assert issubclass(poem.Threads, Backend)
    assert issubclass(poem.Dask, Backend)
    assert repr(poem.Threads(3)) == "Threads(3)"
    assert poem.Threads().count >= 1
    with pytest.raises(InputError, match="must not be 0"):
        poem.Threads(0)
