"""A small packed log, and tasks over its shards that workers in other processes can run."""

import time
from dataclasses import dataclass

import numpy as np

import poem
from poem.compute import Threads as Pool
from poem.errors import LogError
from poem.packed import PackedLog, PackWriter, open_log, pack_folder
from poem.progress import Progress


def plain_log(rows=400, seed=0):
    """Return a log of some contexts, several rows each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows // 4, 5)).round(2)[rng.integers(0, rows // 4, rows)]
    propensity = rng.uniform(0.1, 0.9, rows)
    return poem.BanditLog(X, rng.integers(0, 3, rows), loss=rng.random(rows), propensity=propensity)


def packed_log(folder, rows=400, shards=12):
    """Pack a log into a folder and return it."""
    with pack_folder(folder):
        writer = PackWriter(folder, shards, Pool())
        writer.add(plain_log(rows))
        writer.finish(Progress("packed", shards, False))
    return open_log(folder)


@dataclass(frozen=True)
class Gradient:
    """Value and gradient of a logistic loss over the rows of a shard; it may take a while."""

    log: PackedLog
    weights: np.ndarray
    seconds: float = 0.0

    def __call__(self, note):
        time.sleep(self.seconds)
        rows = self.log.read(note)
        X, sign = rows.X[rows.context], np.where(rows.y == 0, 1.0, -1.0)
        margin = sign * (X @ self.weights)
        slope = -rows.loss * sign / (1.0 + np.exp(margin))
        return float(rows.loss @ np.logaddexp(0.0, -margin)), X.T @ slope


@dataclass(frozen=True)
class Failing:
    """Raises an error for one piece."""

    worst: int
    error: Exception = LogError("row 17 of the shard is NaN. Drop it.")  # noqa: RUF009

    def __call__(self, piece):
        if piece == self.worst:
            raise self.error
        return piece


@dataclass(frozen=True)
class Slow:
    """Returns its piece after some time, which differs from piece to piece."""

    seconds: float

    def __call__(self, piece):
        time.sleep(self.seconds * (1.5 if piece % 3 == 0 else 0.5))
        return piece
