"""Threads of this process."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from poem.backends.base import Backend
from poem.compute import OneBlasThread, count_threads

T = TypeVar("T")
R = TypeVar("R")


class Threads(Backend):
    """Runs tasks in threads of this process: all cores by default.

    Parameters
    ----------
    count : int
        The number of threads; -1 is all cores.
    """

    def __init__(self, count: int = -1) -> None:
        self.count = count_threads(count)

    def __repr__(self) -> str:
        return f"Threads({self.count})"

    def each(self, task: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
        """Yield the results in the order of the pieces; one more than there are threads is under way."""
        with OneBlasThread():
            yield from map(task, pieces) if self.count == 1 or len(pieces) < 2 else self._several(task, pieces)

    def _several(self, task: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
        waiting: deque[Future[R]] = deque()
        with ThreadPoolExecutor(self.count, thread_name_prefix="poem") as pool:
            try:
                for piece in pieces:
                    waiting.append(pool.submit(task, piece))
                    if len(waiting) > self.count:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()
