"""The state of a minimisation on disk, so that a run that was killed goes on where it stopped."""

import json
import os
import zlib
from pathlib import Path

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray
from poem.errors import CheckpointError
from poem.files import whole_file
from poem.optimizers.base import Arrays

FORMAT = "poem.optimizer.1"


class FileKeeper:
    """Keeps the state of a minimisation in one file, which is replaced whole.

    Parameters
    ----------
    path : path
        A safetensors file in a folder that is there. No other process may write to it.
    fingerprint : str
        A digest of all that decides the outcome: problem, start, optimizer, seed. What was kept with another one is
        refused.
    """

    def __init__(self, path: str | os.PathLike[str], fingerprint: str) -> None:
        self.path, self.fingerprint = Path(path), fingerprint

    def load(self) -> Arrays | None:
        """Return the arrays that were saved last; None if there are none."""
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return None
        try:
            with safe_open(self.path, "numpy") as file:
                about = file.metadata() or {}
                if about.get("format") == FORMAT and about.get("fingerprint") != self.fingerprint:
                    raise CheckpointError(
                        f"{str(self.path)!r} is the state of a run on another log or with other settings. Keep this "
                        "run elsewhere, or delete the file to start anew."
                    )
                found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        except (OSError, SafetensorError, ValueError, TypeError) as error:
            raise self._damaged(str(error)) from error
        if about.get("format") != FORMAT or about.get("crc32") != _checksum(found):
            raise self._damaged("its checksum is wrong")
        return found

    def _damaged(self, reason: str) -> CheckpointError:
        return CheckpointError(
            f"{str(self.path)!r} is cut off, damaged or not the state of a run ({reason:.120}). "
            "Delete it to start anew."
        )

    def save(self, arrays: Arrays) -> None:
        """Replace what was saved before."""
        from safetensors.numpy import save_file

        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        about = {"format": FORMAT, "fingerprint": self.fingerprint, "crc32": _checksum(arrays)}
        with whole_file(self.path) as temporary:
            save_file(arrays, temporary, about)

    def remove(self) -> None:
        """Remove the file: the run has ended, and its outcome is kept elsewhere."""
        self.path.unlink(missing_ok=True)


def _checksum(arrays: Arrays) -> str:
    found = 0
    for name in sorted(arrays):
        array = arrays[name]
        found = zlib.crc32(f"{name} {array.dtype} {array.shape}".encode(), found)
        found = zlib.crc32(array.reshape(-1).view(np.uint8).data, found)
    return f"{found:08x}"


# ---- what optimizers keep, as arrays ----------------------------------------------------------------


def text_array(text: str) -> AnyArray:
    """Return a text as an array of bytes."""
    return np.frombuffer(text.encode(), dtype=np.uint8)


def text_of(array: AnyArray) -> str:
    """Return the text that an array of bytes holds."""
    return array.tobytes().decode()


def rng_array(rng: Generator) -> AnyArray:
    """Return the state of a random generator."""
    return text_array(json.dumps(rng.bit_generator.state, default=np.ndarray.tolist))


def set_rng(rng: Generator, kept: AnyArray) -> None:
    """Put a random generator into a state that was kept."""
    try:
        rng.bit_generator.state = json.loads(text_of(kept))
    except (ValueError, TypeError, KeyError) as error:
        raise CheckpointError("the state that was kept is of another kind of random generator.") from error


def check_kept(kept: Arrays, expected: Arrays) -> None:
    """Raise an error unless arrays have the names and types of those expected, and the shapes of those that have one.

    The length of what grows is not compared: such arrays are expected to be empty.
    """
    wrong = sorted(set(kept) ^ set(expected))
    for name in set(kept) & set(expected):
        found, one = kept[name], expected[name]
        if found.dtype != one.dtype or (one.size and found.shape != one.shape):
            wrong.append(name)
    if wrong:
        raise CheckpointError(
            f"the state that was kept is not one of this problem and optimizer: {wrong[0]!r} differs. Delete it to "
            "start anew, or keep this run elsewhere."
        )
