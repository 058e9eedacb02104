"""Finished candidates on disk, so that an interrupted grid resumes where it stopped."""

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poem.arrays import FloatArray
from poem.errors import CheckpointError, PolicyFileError
from poem.files import held_folder, write_whole
from poem.optimizers import FileKeeper
from poem.policies import Policy, load_policy
from poem.version import VERSION

OWN = re.compile(r"fit\.json|candidate-\d+\.poem|state-\w+\.safetensors")


@contextmanager
def held_checkpoint(folder: str | Path | None) -> Iterator[None]:
    """Keep other fits out of a checkpoint folder, which is made if it is not there."""
    if folder is None:
        yield
        return
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise CheckpointError(f"the checkpoint {str(folder)!r} is a file; a folder is needed. Pass another path.")
    path.mkdir(parents=True, exist_ok=True)
    with held_folder(path, OWN, "Wait until that fit has ended, or pass another folder."):
        yield


@dataclass(frozen=True)
class Allowed:
    """How much memory a packed log may take, which decides what is sampled; ``besides`` is a digest of all else."""

    memory: int
    besides: str


class Checkpoint:
    """A folder that is held and belongs to one log and one set of settings; None keeps nothing."""

    def __init__(self, folder: str | Path | None, fingerprint: str, allowed: Allowed | None = None) -> None:
        self.folder, self.first, self._fingerprint = None if folder is None else Path(folder), 0, fingerprint
        if self.folder is None:
            return
        owner = self.folder / "fit.json"
        if not owner.exists():
            more = {} if allowed is None else asdict(allowed)
            write_whole(owner, json.dumps({"fingerprint": fingerprint, **more}).encode())
            return
        found = _owner(owner)
        if found.get("fingerprint") != fingerprint:
            raise CheckpointError(_whose(str(folder), found, allowed))

    def beginning_at(self, position: int) -> "Checkpoint":
        """Return the same folder for more candidates, which are numbered from ``position`` on."""
        rest = copy(self)
        rest.first = self.first + position
        return rest

    def load(self, position: int) -> Policy | None:
        """Return the policy that was kept for a candidate, with the trace in its record."""
        path = self._path(position)
        if path is None or not path.exists():
            return None
        try:
            found = load_policy(path)
        except PolicyFileError:  # damaged since: it is fitted again
            return None
        return found if isinstance(found, Policy) and found.record.trace is not None else None

    def keep(self, position: int, policy: Policy) -> None:
        """Keep a finished candidate; the state of its optimizer is not needed any more."""
        path, keeper = self._path(position), self.keeper(position)
        if path is not None and keeper is not None:
            policy.save(path)
            keeper.remove()

    def keeper(self, position: int) -> FileKeeper | None:
        """Return where the optimizer of a candidate keeps its state: its steps may take long."""
        return self.keeper_named(str(self.first + position))

    def keeper_named(self, name: str) -> FileKeeper | None:
        """Return where some other optimizer keeps its state."""
        if self.folder is None:
            return None
        return FileKeeper(self.folder / f"state-{name}.safetensors", f"{self._fingerprint}-{name}")

    def _path(self, position: int) -> Path | None:
        return None if self.folder is None else self.folder / f"candidate-{self.first + position}.poem"


def _owner(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text()))
    except (ValueError, TypeError):
        return {}


def _whose(folder: str, found: dict[str, Any], allowed: Allowed | None) -> str:
    """Say why a folder is another fit's."""
    memory = found.get("memory")
    if allowed is None or found.get("besides") != allowed.besides or memory == allowed.memory:
        return (
            f"the checkpoint folder {folder!r} belongs to another log or to other settings. Pass an empty folder, or "
            "delete this one to start anew."
        )
    return (
        f"the fit in the checkpoint folder {folder!r} could take {memory} bytes of memory, and this one can take "
        f"{allowed.memory}, so that its sample of the log differs. Open the log with the same memory "
        f"(open_log(…, memory={memory}), --memory {memory}), or pass an empty folder to start anew."
    )


def fingerprint(log: str, settings: dict[str, Any], starts: Sequence[FloatArray | None]) -> str:
    """Return a digest of everything that decides the outcome of a fit; ``log`` is that of the log."""
    about = {**settings, "poem": VERSION}
    digest = hashlib.sha256(json.dumps(about, sort_keys=True, default=str).encode())
    for start in starts:
        digest.update(b"none" if start is None else np.ascontiguousarray(start).tobytes())
    digest.update(log.encode())
    return digest.hexdigest()
