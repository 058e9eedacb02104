"""The one way in which poem compiles loops, and the threads that run them."""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba
from threadpoolctl import threadpool_limits

from poem.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
R = TypeVar("R")


# Sums may be reordered (so that they vectorise), but NaN and infinity are kept intact.
_OPTIONS: dict[str, Any] = {
    "cache": True,
    "nogil": True,
    "fastmath": {"contract", "reassoc", "nsz"},
    "error_model": "numpy",
}


def kernel(function: F) -> F:
    """Compile a module-level loop once, keep it on disk, and run it without the GIL."""
    return cast(F, numba.njit(**_OPTIONS)(function))


def exact_kernel(function: F) -> F:
    """Like :func:`kernel`, for a part of kernels whose sums must be taken in the order they are written in."""
    return cast(F, numba.njit(**{**_OPTIONS, "fastmath": {"contract"}})(function))


def inlined(function: F) -> F:
    """Like :func:`kernel`, for a part of kernels: its caller's local buffers stay known to be local."""
    return cast(F, numba.njit(inline="always", **_OPTIONS)(function))


def count_threads(n_jobs: int | None) -> int:
    """Turn scikit-learn's ``n_jobs`` (None is 1, -1 is all cores) into a number of threads."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise InputError("n_jobs must not be 0. Pass 1 for one thread or -1 for all cores.")
    if n_jobs > 0:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores + 1 + n_jobs)


class OneBlasThread:
    """Holds BLAS to one thread while any fit runs; the limit is the process's, so the last one out lifts it."""

    _lock = threading.Lock()
    _inside = 0
    _limits: Any = None

    def __enter__(self) -> None:
        with OneBlasThread._lock:
            if OneBlasThread._inside == 0:
                OneBlasThread._limits = threadpool_limits(1, user_api="blas")
            OneBlasThread._inside += 1

    def __exit__(self, *_: object) -> None:
        with OneBlasThread._lock:
            OneBlasThread._inside -= 1
            if OneBlasThread._inside == 0:
                OneBlasThread._limits.restore_original_limits()


class Threads:
    """Maps a function over pieces of work, in order, with a fixed number of threads.

    How the work is cut never depends on the number of threads, so that results do not either.
    """

    def __init__(self, count: int = 1) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count, thread_name_prefix="poem") if count > 1 else None

    def map(self, function: Callable[[T], R], pieces: Iterable[T]) -> list[R]:
        """Apply ``function`` to each piece and return the results in the order of the pieces."""
        work: Sequence[T] = list(pieces)
        if self._pool is None or len(work) < 2:
            return [function(piece) for piece in work]
        return list(self._pool.map(function, work))

    def ahead(self, function: Callable[[T], R], pieces: Iterable[T], depth: int = 2) -> Iterator[R]:
        """Yield the results in the order of the pieces; with threads, the next ones are made while one is in use.

        ``depth`` is how many are being made, or wait to be used, at a time.
        """
        if self._pool is None:
            yield from map(function, pieces)
            return
        waiting = []
        for piece in pieces:
            waiting.append(self._pool.submit(function, piece))
            if len(waiting) == depth:
                yield waiting.pop(0).result()
        for last in waiting:
            yield last.result()
