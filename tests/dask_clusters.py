"""A Dask scheduler in this process, and workers in processes of their own."""

import os
import signal
from contextlib import contextmanager

import dask
import distributed


@contextmanager
def cluster(workers=2, allowed_failures=3):
    """Give a client of a new cluster; its workers have one thread each, and are started again when they die."""
    where = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "memory_limit": 0, "processes": True}
    # On a busy machine it takes a while until a worker is back; Dask would give it up after 15 seconds.
    rules = {"scheduler.allowed-failures": allowed_failures, "deploy.lost-worker-timeout": "10 minutes"}
    with (
        dask.config.set({f"distributed.{name}": value for name, value in rules.items()}),
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, silence_logs=50, **where) as found,
        distributed.Client(found, set_as_default=False, timeout=60) as client,
    ):
        yield client


def kill_a_worker(client, number=0):
    """Kill one of the workers as the system does when memory is short; its nanny starts another."""
    pids = client.run(os.getpid)
    os.kill(sorted(pids.values())[number % len(pids)], signal.SIGKILL)
