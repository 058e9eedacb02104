"""What runs work over the shards of a log: one verb."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Backend(ABC):
    """Runs stateless tasks, several at a time.

    A task reads what it needs by itself and returns sums. So a task that was lost can be run again anywhere. Each has
    one thread for linear algebra.
    """

    @abstractmethod
    def each(self, task: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
        """Yield what a task returns for each piece, in the order of the pieces; few results are alive at a time."""
