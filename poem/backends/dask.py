"""Workers of a Dask cluster."""

import ctypes
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Generic, TypeVar

from poem.backends.base import Backend
from poem.compute import OneBlasThread
from poem.errors import BackendError, InputError

T = TypeVar("T")
R = TypeVar("R")

CONNECT_SECONDS = 10.0  # until a scheduler must have answered
CHECK_SECONDS = 5.0  # between looks at the workers while a result is awaited
PART_BYTES = 8_000_000  # of a task that are sent at a time; Dask warns of more than 10 MB
PER_THREAD = 2  # pieces under way
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # of mallopt
KEPT_BYTES, LARGEST_BLOCK = 1 << 30, 1 << 25  # 32 MB is the most that glibc takes
MOST_TRIES = 5  # of a piece whose workers die; Dask itself makes four of each


class Dask(Backend):
    """Runs tasks on the workers of a Dask cluster.

    poem must be installed on the scheduler and on all workers, and all of them must reach the log at the same path or
    address. A worker that dies costs only what it was working on: others take over, and results do not change.

    Parameters
    ----------
    client : distributed.Client or str
        A client, or the address of a scheduler, such as ``"tcp://10.0.0.1:8786"``. Results come by way of the
        scheduler; a client made with ``direct_to_workers=True`` fetches them from the workers.
    patience : float
        For how many seconds to wait for a worker if there is none.
    """

    def __init__(self, client: Any, *, patience: float = 300.0) -> None:
        self.client, self.patience = _client_of(client), patience
        self._own = isinstance(client, str)

    def __repr__(self) -> str:
        return f"Dask({_address(self.client)!r})"

    def close(self) -> None:
        """Leave the scheduler, if this object has connected to it; a client that was passed in stays open."""
        if self._own:
            self.client.close()

    def __enter__(self) -> "Dask":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def each(self, task: Callable[[T], R], pieces: Sequence[T]) -> Iterator[R]:
        """Yield the results in the order of the pieces; two per thread of a worker are under way."""
        run = _Pass[T, R](self.client, task, self.patience)
        try:
            for piece in pieces:
                run.begin(piece)
                if run.is_full:
                    yield run.next_result()
            while run.waiting:
                yield run.next_result()
        finally:
            run.release()


@dataclass
class _Job(Generic[T]):
    """A piece under way, and the worker that was asked first."""

    piece: T
    worker: str | None
    future: Any


class _Pass(Generic[T, R]):
    """One task over many pieces.

    The task is kept by the workers, in a form that Dask can make again when a worker is lost with it. It travels as
    bytes, so that the scheduler opens no log.
    """

    def __init__(self, client: Any, task: Callable[[T], R], patience: float) -> None:
        from distributed.protocol.pickle import dumps

        self.client, self.patience, self.dumps = client, patience, dumps
        self.token, self.content = uuid.uuid4().hex, bytes(dumps(task))
        self.waiting: deque[_Job[T]] = deque()
        self.workers: dict[str, int] = {}
        self.kept: list[Any] = []
        self.looked = 0.0

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= PER_THREAD * max(1, sum(self.workers.values()))

    def begin(self, piece: T) -> None:
        """Give a piece to the worker with the least to do."""
        self._look(CHECK_SECONDS)
        worker = self._least_busy()
        self.waiting.append(_Job(piece, worker, self._submitted(piece, worker)))

    def _look(self, oldest: float) -> None:
        """Ask for the workers, unless that was done a short while ago."""
        if time.monotonic() - self.looked > oldest or not self.workers:
            try:
                self.workers = dict(self.client.nthreads())
            except (OSError, CancelledError) as error:
                raise self._gone(error) from error
            self.looked = time.monotonic()

    def _least_busy(self) -> str | None:
        """Return a worker; left to itself, Dask would choose the one that has the task until others complain."""
        busy = Counter(job.worker for job in self.waiting if not job.future.done())
        return min(self.workers, key=lambda worker: busy[worker] / max(1, self.workers[worker]), default=None)

    def _submitted(self, piece: T, worker: str | None) -> Any:
        if not self.kept:
            cuts = range(0, len(self.content), PART_BYTES)
            parts = (self.content[first : first + PART_BYTES] for first in cuts)
            self.kept = [self.client.submit(_itself, part, key=_key("task"), pure=False) for part in parts]
        where = {} if worker is None else {"workers": [worker], "allow_other_workers": True}
        content = bytes(self.dumps(piece))
        return self.client.submit(_run, self.token, self.kept, content, key=_key("shard"), pure=False, **where)

    def next_result(self) -> R:
        """Wait for the oldest piece; if several workers died of it, it is tried again."""
        from distributed import KilledWorker

        job = self.waiting.popleft()
        last: Exception | None = None
        for _ in range(MOST_TRIES):
            future = job.future if last is None else self._submitted(job.piece, None)
            try:
                return self._result(future)
            except KilledWorker as error:
                last = error
                if any(part.status == "error" for part in self.kept):
                    _release(self.kept)
                    self.kept = []
            finally:
                _release([future])
        raise BackendError(
            f"workers of {_address(self.client)} died again and again while they worked on {job.piece!r:.200}. They "
            "may be short of memory: start them with fewer threads or more memory, or pack the log into smaller shards."
        ) from last

    def _result(self, future: Any) -> R:
        """Return what a future holds; raise what its task raised."""
        alone_since: float | None = None
        timeout = CHECK_SECONDS
        while True:
            try:
                found: R = future.result(timeout=timeout)
                return found
            except TimeoutError as error:
                if future.status == "error":
                    raise
                if timeout > CHECK_SECONDS:
                    raise self._gone(error) from error
                if future.status == "finished":  # it takes long to be fetched
                    timeout = max(self.patience, 2 * CHECK_SECONDS)
                    continue
            except (OSError, CancelledError) as error:
                if future.status == "error":
                    raise
                raise self._gone(error) from error
            self._look(0.0)
            alone_since = None if self.workers else alone_since or time.monotonic()
            if alone_since is not None and time.monotonic() - alone_since >= self.patience:
                raise BackendError(
                    f"the scheduler at {_address(self.client)} has had no workers for {self.patience:g} seconds. "
                    f"Start some (dask worker {_address(self.client)}) and run it again."
                )

    def _gone(self, error: BaseException) -> BackendError:
        return BackendError(
            f"the scheduler at {_address(self.client)} went away or gave the work up ({_said(error)}). "
            "See that it runs, and run it again."
        )

    def release(self) -> None:
        """Let go of all that is under way."""
        _release([job.future for job in self.waiting] + self.kept)
        self.waiting.clear()


def _release(futures: list[Any]) -> None:
    for future in futures:
        future.release()


def _key(name: str) -> str:
    return f"poem-{name}-{uuid.uuid4().hex}"


# ---- on a worker ----------------------------------------------------------------------------------

_tasks: dict[str, Any] = {}  # the last two
_lock = threading.Lock()


@cache
def keep_freed_memory() -> None:
    """Let the C library keep memory that a task has freed, for the next one.

    Dask has its workers give back all of it at once. Shards take the same memory again and again, and asking the system
    for it each time took a third of the time. Only glibc has these settings.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for setting, value in ((M_TRIM_THRESHOLD, KEPT_BYTES), (M_MMAP_THRESHOLD, LARGEST_BLOCK)):
            library.mallopt(setting, value)


def _itself(part: bytes) -> bytes:
    return part


def _run(token: str, parts: list[bytes], piece: bytes) -> Any:
    from distributed.protocol.pickle import loads

    keep_freed_memory()
    task = _task(token, parts)
    with OneBlasThread():
        return task(loads(piece))


def _task(token: str, parts: list[bytes]) -> Any:
    """Return the task that parts hold; it is opened once per process."""
    from distributed.protocol.pickle import loads

    with _lock:
        if token not in _tasks:
            while len(_tasks) > 1:
                del _tasks[next(iter(_tasks))]
            _tasks[token] = loads(b"".join(parts))
        return _tasks[token]


# ---- clients --------------------------------------------------------------------------------------


def _client_of(client: Any) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise InputError(
            "a Dask cluster needs the packages dask and distributed, which are not installed. "
            "Install them: pip install 'poem[dask]'."
        ) from error
    if isinstance(client, str):
        return _connected(client)
    if not isinstance(client, Client):
        raise InputError(
            f"Dask takes a distributed.Client or the address of a scheduler; found {type(client).__name__}."
        )
    if client.asynchronous:
        raise InputError("Dask needs a client that waits for results. Make it without asynchronous=True.")
    return client


def _connected(address: str) -> Any:
    from distributed import Client

    class Own(Client):  # type: ignore[misc] # distributed has no types
        """A client that is closed if it does not get through: let go half made, it would wait for 20 seconds."""

        def __init__(self) -> None:
            try:
                super().__init__(address, timeout=CONNECT_SECONDS, set_as_default=False, name="poem")
            except BaseException:
                with suppress(Exception):
                    self.close(timeout=1.0)
                raise

    try:
        return Own()
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"no Dask scheduler answers at {address!r} ({_said(error)}). Start one (dask scheduler), "
            "start workers (dask worker ADDRESS), and pass the address that the scheduler shows, such as "
            "tcp://10.0.0.1:8786."
        ) from error


def _address(client: Any) -> str:
    return str(client.scheduler.address if client.scheduler is not None else client)


def _said(error: BaseException) -> str:
    return (str(error) or repr(error))[:200]
