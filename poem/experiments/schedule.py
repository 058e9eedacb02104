"""Runs × processes → the record."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager

from poem.errors import LearningError
from poem.experiments.protocol import Protocol
from poem.experiments.record import Record
from poem.experiments.run import Result, perform
from poem.experiments.spec import Run
from poem.progress import Progress


def run_all(
    runs: Sequence[Run], protocol: Protocol, folder: str | None, record: Record, jobs: int, progress: bool
) -> None:
    """Do all runs and record each as soon as it is done. Runs in other processes share nothing."""
    with Progress("reproduce", len(runs), progress, "runs") as line:
        done = _in_order(runs, protocol, folder) if jobs == 1 else _side_by_side(runs, protocol, folder, jobs)
        for run, results in done:
            record.add(results)
            line.part_done(f"({run.dataset}, run {run.seed})")


def _in_order(runs: Sequence[Run], protocol: Protocol, folder: str | None) -> Iterator[tuple[Run, list[Result]]]:
    for run in runs:
        yield run, perform(run, protocol, folder)


def _side_by_side(
    runs: Sequence[Run], protocol: Protocol, folder: str | None, jobs: int
) -> Iterator[tuple[Run, list[Result]]]:
    # Fresh processes, not forks: a fork of threads that hold locks can hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, context, initializer=_depend_on_parent)
    try:
        with _interrupts_held():
            futures = {pool.submit(perform, run, protocol, folder): run for run in runs}
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool as error:
        raise LearningError(
            "a process of this run was killed, perhaps for want of memory. What was done is recorded; the same command "
            "with fewer --jobs goes on from there."
        ) from error
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        for child in multiprocessing.active_children():
            child.terminate()  # a run can take minutes; what it has so far is of no use
        raise
    pool.shutdown()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Let processes that start here inherit a blocked Ctrl-C: it is the parent's to end them, calmly."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _depend_on_parent() -> None:
    """Leave Ctrl-C to the parent, and end when it ends, whatever ended it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
