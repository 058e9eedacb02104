"""What a packed folder says of itself: its shards, their sizes and checksums, and sums over all rows."""

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from poem.errors import PackedError
from poem.text import as_json

NAME = "manifest.json"
KIND = "kind.parquet"
VERSION = 2
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
    packed from, in the words of a policy's record.
    """

    shards: tuple[ShardNote, ...]
    kind_sha256: str
    columns: dict[str, Any] | None = None

    @property
    def rows(self) -> int:
        """The number of logged decisions."""
        return sum(shard.rows for shard in self.shards)

    @cached_property
    def digest(self) -> str:
        """The checksum of all that it says, and so of all that the folder holds."""
        return hashlib.sha256(self.text().encode()).hexdigest()

    def text(self) -> str:
        """Return it as JSON."""
        head = {"format": "poem.packed", "version": VERSION, "rows": self.rows}
        head |= {"kind_sha256": self.kind_sha256, "columns": self.columns}
        return as_json(head | {"shards": [asdict(shard) for shard in self.shards]}) + "\n"


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
        columns = None if content["columns"] is None else dict(content["columns"])
        shards = tuple(_shard(one) for one in content["shards"])
        return Manifest(shards, str(content["kind_sha256"]), columns)
    except PackedError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise PackedError(f"{place} has a broken {NAME} ({error!r:.120}). Pack the log again.") from error


def _shard(content: dict[str, Any]) -> ShardNote:
    counts = {name: int(content[name]) for name in COUNTS}
    low, high, mean = (float(value) for value in content["loss"])
    name = str(content["name"])
    if "/" in name or "\\" in name or min(counts.values()) < 0:
        raise ValueError(f"the shard {name!r}")
    quantiles = {str(what): [float(one) for one in values] for what, values in content["quantiles"].items()}
    return ShardNote(name=name, sha256=str(content["sha256"]), loss=(low, high, mean), quantiles=quantiles, **counts)
