"""PackedLog: a log on disk, as shards that are read one at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from poem.backends import Backend
from poem.data import BanditLog
from poem.data.features import Features
from poem.errors import InputError, PackedError
from poem.files import Folder, Table, room
from poem.packed.fingerprint import fingerprint_of
from poem.packed.hashing import HashArray
from poem.packed.keys import Keys, in_order
from poem.packed.manifest import SIZES, Manifest, ShardNote
from poem.packed.rows import has_catalogue, log_of_rows, outputs_of, some_rows
from poem.packed.shard_file import read_shard
from poem.structures import Labels, Structure
from poem.text import counted

ALL = 1 << 64  # one more than the largest hash
IN_MEMORY = "a part of it can be read into memory: log.part(0, 0.1).to_log()"

View = Callable[[BanditLog, HashArray], BanditLog]


@dataclass(frozen=True)
class _Both:
    """Two views, one after the other."""

    first: View
    second: View

    def __call__(self, log: BanditLog, unit: HashArray) -> BanditLog:
        return self.second(self.first(log, unit), unit)


class NotInMemoryError(InputError, AttributeError):
    """What was asked of a packed log only a log in memory has."""


class PackedLog:
    """A log on disk: as good as a :class:`BanditLog`, but no larger in memory than a few of its shards.

    Made by :func:`poem.pack_log` and opened by :func:`poem.open_log`. Shards are ranges of the hashes of units, and so
    are the parts of a packed log: which units a part holds does not depend on how many shards there are.

    Attributes
    ----------
    labels, structure, features, feature_names, outcome, propensities
        As those of a :class:`BanditLog`.
    manifest : Manifest
        What the folder says of its shards.
    low, high : int
        Units with hashes from ``low`` to below ``high`` belong to this part.
    memory : int
        How many bytes work on this log may take, about.
    backend : Backend or None
        Where work on its shards is run; None is threads of this process.
    view : callable or None
        What is made of each shard and the hashes of its units when it is read, such as other propensities.
    chosen_by : str, number or None
        Only rows that this logger chose belong to this part; None is all rows.
    """

    def __init__(
        self,
        folder: Folder,
        manifest: Manifest,
        kind: BanditLog,
        low: int = 0,
        high: int = ALL,
        *,
        memory: int | None = None,
        backend: Backend | None = None,
        view: View | None = None,
        chosen_by: Any = None,
    ) -> None:
        self.folder, self.manifest, self.stored, self.low, self.high = folder, manifest, kind, low, high
        self.memory = room().limit if memory is None else memory
        self.backend, self.view, self.chosen_by = backend, view, chosen_by

    def __reduce__(self) -> Any:
        from poem.packed.opening import reopened

        return reopened, (self.folder.place, self.manifest.digest, self.low, self.high, self.view, self.chosen_by)

    def __getattr__(self, name: str) -> Any:
        """Say how to get at what only a log in memory has; this is not called for anything that is here."""
        if hasattr(BanditLog, name) or name in BanditLog.__annotations__:
            raise NotInMemoryError(f"this takes a log in memory: a packed log has no {name!r}, but {IN_MEMORY}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def replaced(self, **changes: Any) -> "PackedLog":
        """Return the same log with other fields."""
        names = ("folder", "manifest", "low", "high", "memory", "backend", "view", "chosen_by")
        return PackedLog(kind=self.stored, **({name: getattr(self, name) for name in names} | changes))

    def seen_as(self, view: View) -> "PackedLog":
        """Return the log of which each shard is read as a view makes it; a view must be the same in any process."""
        found = self.replaced(view=view if self.view is None else _Both(self.view, view))
        _ = found.kind  # what the view refuses is refused now
        return found

    # ---- what it is -----------------------------------------------------------------------

    @cached_property
    def kind(self) -> BanditLog:
        """One row, which says what kind of log it is."""
        return self.stored if self.view is None else self.view(self.stored, np.zeros(1, dtype=np.uint64))

    @property
    def labels(self) -> Labels:
        """All possible outputs."""
        return self.kind.labels

    @property
    def structure(self) -> Structure:
        """What an output is."""
        return self.kind.structure

    @property
    def features(self) -> Features | None:
        """How raw columns became features."""
        return self.kind.features

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """The names of the features."""
        return self.kind.feature_names

    @property
    def n_features(self) -> int:
        """The number of features."""
        return self.kind.n_features

    @property
    def outcome(self) -> str:
        """Whether the log holds losses or rewards."""
        return self.kind.outcome

    @property
    def propensities(self) -> str:
        """Where propensities come from."""
        return self.kind.propensities

    @cached_property
    def shards(self) -> tuple[ShardNote, ...]:
        """The shards that hold units of this part, in the order of their hashes."""
        near = (one for one in self.manifest.shards if one.low < self.high and one.high > self.low)
        return tuple(one for one in near if self._is_whole(one) or len(self._hashes(one)))

    def _is_whole(self, note: ShardNote) -> bool:
        return self.chosen_by is None and note.low >= self.low and note.high <= self.high

    @cached_property
    def _counts(self) -> tuple[int, int]:
        """Rows and units; of shards that are cut, the hashes are counted."""
        rows = units = 0
        for note in self.shards:
            if self._is_whole(note):
                rows, units = rows + note.rows, units + note.units
            else:
                inside = self._hashes(note)
                rows, units = rows + len(inside), units + len(np.unique(inside))
        return rows, units

    def _hashes(self, note: ShardNote) -> Any:
        return self.column(note, "unit")

    def _mask(self, table: Table) -> Any:
        """Tell which rows of a shard belong to this part."""
        hashes = table.column("unit").to_numpy()
        inside = (hashes >= np.uint64(self.low)) & (hashes <= np.uint64(self.high - 1))
        return inside if self.chosen_by is None else inside & (table.column("logger").to_numpy() == self.chosen_by)

    def __len__(self) -> int:
        return self._counts[0]

    @property
    def n_units(self) -> int:
        """The number of independent units."""
        return self._counts[1]

    @property
    def nbytes(self) -> int:
        """About how much memory its rows would take."""
        notes, kind = self.manifest.shards, self.kind
        rows, contexts, nonzeros, offers, own = (sum(getattr(one, name) for one in notes) for name in SIZES)
        each = 12 if hasattr(kind.X, "nnz") else 8
        total = rows * (24 + max(kind.y.nbytes, 8)) + 8 * contexts + each * nonzeros + 16 * offers + 12 * own
        shared = 0 if own or kind.available is None else kind.available.nbytes
        return int(total * len(self) // rows) + shared

    @cached_property
    def loss_range(self) -> tuple[float, float]:
        """The lowest and the highest loss."""
        lows, highs = zip(*map(self._losses, self.shards), strict=True)
        return min(lows), max(highs)

    def _losses(self, note: ShardNote) -> tuple[float, float]:
        if self._is_whole(note):
            return note.loss[0], note.loss[1]
        loss = self.column(note, "loss")
        return float(loss.min()), float(loss.max())

    def __repr__(self) -> str:
        outputs, shards = self.structure.describe(), counted(len(self.shards), "shard")
        return (
            f"PackedLog of {counted(len(self), 'row')}, {self.n_units:,} independent, in {shards} "
            f"({self.folder.name}): {outputs}, {counted(self.n_features, 'feature')}"
        )

    # ---- parts ----------------------------------------------------------------------------

    def part(self, first: float, last: float) -> "PackedLog":
        """Return the units between two shares of this part, such as ``part(0.0, 0.8)``: a random sample of units."""
        if not 0.0 <= first < last <= 1.0:
            raise InputError(f"a part goes from a lower to a higher share of the units; found {first} and {last}.")
        span = self.high - self.low
        low = self.low + round(first * span) if first > 0.0 else self.low
        high = self.low + round(last * span) if last < 1.0 else self.high
        found = self.replaced(low=low, high=high)
        if not len(found):
            raise InputError(f"no unit lies between {first:g} and {last:g} of the log. Take a larger part of it.")
        return found

    def read(self, note: ShardNote) -> BanditLog:
        """Return the rows of a shard that belong to this part, as a log in memory."""
        return self.read_with_units(note)[0]

    def read_with_units(self, note: ShardNote) -> tuple[BanditLog, HashArray]:
        """Return the same rows, and the hash of each one's unit."""
        log, keys = self.read_with_keys(note)
        return log, keys.unit

    def read_with_keys(self, note: ShardNote) -> tuple[BanditLog, Keys]:
        """Return the same rows, and what they are known by."""
        table = read_shard(self.folder, note)
        try:
            log = log_of_rows(table, self.stored)
        except (KeyError, ValueError, TypeError, IndexError) as error:
            raise PackedError(
                f"{self.folder}: the shard {note.name} cannot be read ({error!r:.120}). Pack the log again."
            ) from error
        keys = Keys.of_table(table)
        if not self._is_whole(note):
            inside = self._mask(table)
            log, keys = some_rows(log, inside, has_catalogue(self.kind)), keys.take(inside)
        return (log if self.view is None else self.view(log, keys.unit)), keys

    def column(self, note: ShardNote, name: str) -> Any:
        """Return one column of the rows of a shard that belong to this part: nothing else is read."""
        if self.view is not None and name != "unit":
            return getattr(self.read(note), name)
        table = self._table(note, name)
        return table.column(name).to_numpy() if name != "y" else outputs_of(table, self.kind)

    def _table(self, note: ShardNote, name: str) -> Table:
        if self._is_whole(note):
            return read_shard(self.folder, note, [name])
        telling = ["unit"] if self.chosen_by is None else ["unit", "logger"]
        table = read_shard(self.folder, note, list(dict.fromkeys([*telling, name])))
        return table.take(np.flatnonzero(self._mask(table)))

    def of_logger(self, name: Any) -> "PackedLog":
        """Return the rows that one of several loggers chose."""
        return self.replaced(chosen_by=name)

    def logs(self) -> Iterator[BanditLog]:
        """Yield the rows shard by shard."""
        return map(self.read, self.shards)

    def to_log(self) -> BanditLog:
        """Return all rows in memory, in the order in which they were packed."""
        logs, keys = zip(*map(self.read_with_keys, self.shards), strict=True)
        return in_order(BanditLog.concat(logs), Keys.concat(keys))[0]

    def need_propensities(self) -> None:
        """Raise if the log has none."""
        self.kind.need_propensities()

    def fingerprint(self) -> str:
        """Return a digest of the folder by its checksums, the range of hashes of this part, and how it is seen."""
        seen = None if self.view is None else self.read(self.shards[0]).fingerprint()
        about = (None if self.chosen_by is None else str(self.chosen_by), seen)
        return fingerprint_of(self.manifest, self.low, self.high, None if about == (None, None) else repr(about))
