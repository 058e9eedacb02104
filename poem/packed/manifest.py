"""What a packed folder says of itself: its shards, their sizes and checksums, and sums over all rows."""

import hashlib
import json
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import isfinite
from typing import Any

from poem.errors import PackedError
from poem.text import as_json

NAME = "manifest.json"
KIND = "kind.parquet"
VERSION = 2
EMPTY = "0" * 64  # what stands in place of the checksum while it is computed
SIZES = ("rows", "contexts", "nonzeros", "candidates", "candidate_nonzeros")  # what memory is taken by
COUNTS = ("low", "high", "units", "bytes", *SIZES)


@dataclass(frozen=True)
class ShardNote:
    """One shard: its file, what it holds, and what it is checked by.

    Its units have hashes from ``low`` to below ``high``. ``loss`` are the lowest, the highest and the mean loss;
    ``quantiles`` are those of the log-propensities and of the losses, evenly spaced. ``candidates`` are those of all
    contexts, and ``candidate_nonzeros`` the values of their own features; those of a catalogue are not counted.
    """

    name: str
    low: int
    high: int
    rows: int
    contexts: int
    units: int
    nonzeros: int
    candidates: int
    candidate_nonzeros: int
    bytes: int
    sha256: str
    loss: tuple[float, float, float]
    quantiles: dict[str, list[float]]


@dataclass(frozen=True)
class Manifest:
    """All shards of a packed log, in the order of their hashes.

    ``kind_sha256`` is the checksum of the file that says what kind of log it is. ``columns`` are those that the log was
    packed from, in the words of a policy's record. ``digest`` is the checksum of the manifest itself, when it was read.
    """

    shards: tuple[ShardNote, ...]
    kind_sha256: str
    columns: dict[str, Any] | None = None
    digest: str = ""

    @property
    def rows(self) -> int:
        """The number of logged decisions."""
        return sum(shard.rows for shard in self.shards)

    @property
    def units(self) -> int:
        """The number of independent units."""
        return sum(shard.units for shard in self.shards)

    def text(self) -> str:
        """Return it as JSON, with a checksum of all that it says."""
        head = {"format": "poem.packed", "version": VERSION, "sha256": EMPTY, "rows": self.rows, "units": self.units}
        head |= {"kind_sha256": self.kind_sha256, "columns": self.columns}
        content = as_json(head | {"shards": [asdict(shard) for shard in self.shards]}) + "\n"
        return content.replace(EMPTY, _checksum(content.encode(), EMPTY), 1)


def _checksum(text: bytes, said: str) -> str:
    """Return the SHA-256 of a manifest as it was before its checksum was filled in."""
    return hashlib.sha256(text.replace(said.encode(), EMPTY.encode(), 1)).hexdigest()


def manifest_from(text: bytes, place: str) -> Manifest:
    """Read a manifest, or say what is wrong with it."""
    try:
        content = json.loads(text)
        if content["format"] != "poem.packed":
            raise ValueError(f"format {content['format']!r}")
        if content["version"] != VERSION:
            raise PackedError(
                f"{place} was packed in version {content['version']!r:.20} of the format; this poem reads version "
                f"{VERSION}. Pack the log again, or read it by the version of poem that packed it."
            )
        if content["sha256"] != _checksum(text, content["sha256"]):
            raise PackedError(
                f"{place}: {NAME} was changed after the log was packed: its checksum differs. Restore it, or pack the "
                "log again."
            )
        return _checked(content)
    except PackedError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise PackedError(f"{place} has a broken {NAME} ({error!r:.120}). Pack the log again.") from error


def _checked(content: dict[str, Any]) -> Manifest:
    """Return what a manifest says, if all of it goes together."""
    columns = None if content["columns"] is None else dict(content["columns"])
    shards = tuple(_shard(one) for one in content["shards"])
    found = Manifest(shards, str(content["kind_sha256"]), columns, str(content["sha256"]))
    if not shards or (found.rows, found.units) != (content["rows"], content["units"]):
        raise ValueError(f"{found.rows} rows and {found.units} units in {len(shards)} shards")
    if len({one.name for one in shards}) < len(shards):
        raise ValueError("a shard that is named twice")
    if any(one.high > two.low for one, two in pairwise(shards)):
        raise ValueError("shards that are not in order")
    return found


def _shard(content: dict[str, Any]) -> ShardNote:
    counts = {name: int(content[name]) for name in COUNTS}
    low, high, mean = (float(value) for value in content["loss"])
    name = str(content["name"])
    quantiles = {str(what): [float(one) for one in values] for what, values in content["quantiles"].items()}
    note = ShardNote(name=name, sha256=str(content["sha256"]), loss=(low, high, mean), quantiles=quantiles, **counts)
    numbers = (*note.loss, *(value for values in quantiles.values() for value in values))
    is_sound = 0 <= note.low < note.high <= 1 << 64 and 1 <= note.units <= note.rows and 1 <= note.contexts <= note.rows
    if not is_sound or "/" in name or "\\" in name or min(counts.values()) < 0 or not all(map(isfinite, numbers)):
        raise ValueError(f"the shard {name!r}")
    return note
