"""One shard of a packed log → sums of all policies and estimators: what an evaluation in one pass adds up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.compute import Threads
from poem.data import BanditLog
from poem.estimators import Estimator, Method, Moments, Rows, Scheme, Terms, UnitSums, Whole
from poem.evaluation.diagnostics import is_clipped
from poem.evaluation.found import clipped_weights
from poem.evaluation.judging import JudgedLog
from poem.evaluation.opinion import Opinion
from poem.evaluation.support import SupportSums, Unlogged, support_sums
from poem.evaluation.weight_sums import WeightSums, weight_sums
from poem.models import CrossFitted, LossModel, Model, enumerated
from poem.packed import HashArray, PackedLog, ShardNote, unit_folds
from poem.policies import is_supported, judge_one

LOGGED, WEIGHTS, EVENTS = "logged", "weights", "events"
Key = tuple[str, ...]  # of sums: (LOGGED,), (policy, WEIGHTS), (policy, EVENTS), (policy, "of", estimator), …


@dataclass(frozen=True)
class FoldModels:
    """The loss models of all folds: LossModels, or regressors. A unit's fold follows from its hash.

    ``shared`` says that a policy's own probabilities may have a share in what is predicted.
    """

    fitted: tuple[Any, ...]
    seed: int
    name: str
    shared: bool = False

    def of(self, log: BanditLog, hashes: HashArray) -> Model:
        """Return the models as rows of a log take them: each takes that of its unit's fold."""
        fold = unit_folds(hashes, len(self.fitted), self.seed)
        if isinstance(self.fitted[0], LossModel):
            return CrossFitted(self.fitted, fold, self.shared)
        return enumerated(log, self.fitted, fold)


@dataclass(frozen=True)
class Candidate:
    """One policy and the estimators that judge it, with all parameters set.

    ``wholes`` are the facts of all rows for estimators that need more of them than others do. ``opinion`` is how much
    the policy's own probabilities count in the loss model.
    """

    name: str
    policy: Any
    estimators: Mapping[str, Estimator]
    has_marginals: bool = True
    skipped: bool = False
    wholes: Mapping[str, Whole] = field(default_factory=dict)
    opinion: Opinion | None = None

    def sums(self, rows: Rows, unit: IntArray | None, interval: Method) -> dict[Key, UnitSums]:
        """Return the sums of all estimates of some rows, unit by unit."""
        found: dict[Key, UnitSums] = {
            (self.name, WEIGHTS): Terms(rows.ratio).by_unit(unit),
            (self.name, EVENTS): Terms(rows.ratio * rows.loss, rows.ratio).by_unit(unit),
        }
        for name, estimator in self.estimators.items():
            own = replace(rows, whole=self.wholes[name]) if name in self.wholes else rows
            found[self.name, "of", name] = estimator.terms(own).by_unit(unit)
            weights = clipped_weights(estimator, rows, interval)
            if weights is not None:
                found[self.name, "clipped", name] = weights.by_unit(unit)
        return found


def needs_ratio(estimator: Estimator, sums: UnitSums) -> bool:
    """Tell whether what an estimator holds back depends on its value: then two passes are needed."""
    return is_clipped(estimator) and not sums.is_mean


@dataclass
class ShardSums:
    """What one shard adds to an evaluation."""

    rows: int
    moments: Moments
    weights: list[WeightSums]
    support: list[SupportSums | None]
    clipped: FloatArray
    supported: list[bool]

    def add(self, other: "ShardSums") -> None:
        """Add another shard."""
        self.rows += other.rows
        self.moments.add(other.moments)
        for mine, more in zip(self.weights, other.weights, strict=True):
            mine.add(more)
        self.support = [
            None if one is None or two is None else one + two
            for one, two in zip(self.support, other.support, strict=True)
        ]
        self.clipped = self.clipped + other.clipped
        self.supported = [one or two for one, two in zip(self.supported, other.supported, strict=True)]


@dataclass(frozen=True)
class ShardTask:
    """Judges all policies on one shard.

    Attributes
    ----------
    log : PackedLog
    candidates : tuple of Candidate
    bounds : (lowest, highest)
        What a loss can be.
    model : FoldModels or None
    whole : Whole
        What holds for all rows.
    unlogged : Unlogged
        What was logged in no row of the log.
    clip : float
        By which diagnostics say how much weight a clip takes away.
    units : int
        Of the whole log.
    scheme : Scheme
        The moments to take of all sums.
    interval : str
    """

    log: PackedLog
    candidates: tuple[Candidate, ...]
    bounds: tuple[float, float]
    model: FoldModels | None
    whole: Whole
    unlogged: Unlogged
    clip: float
    units: int
    scheme: Scheme
    interval: Method

    def __call__(self, note: ShardNote) -> ShardSums:
        """Read the shard, and sum."""
        log, hashes = self.log.read_with_units(note)
        units = log.units()
        count = int(units.max()) + 1
        unit: IntArray | None = None if count == len(log) else units
        of_unit = np.empty(count, dtype=np.uint64)
        of_unit[units] = hashes
        model = None if self.model is None else self.model.of(log, hashes)
        here = JudgedLog(log, self.bounds, model, Threads())
        sums: dict[Key, UnitSums] = {(LOGGED,): Terms(here.loss).by_unit(unit)}
        weights, support, clipped, supported = [], [], [], []
        for one in self.candidates:
            judged = judge_one(one.name, one.policy, log, 1)
            rows = replace(here.rows(judged, one.opinion), whole=self.whole)
            found = one.sums(rows, unit, self.interval)
            sums |= found
            weights.append(weight_sums(rows, found[one.name, WEIGHTS].top, self.clip, self.units))
            support.append(support_sums(judged, log, self.unlogged) if one.has_marginals else None)
            clipped += [len(log) * estimator.clipped_share(rows) for estimator in one.estimators.values()]
            supported.append(is_supported(judged))
        moments = self.scheme.moments(list(sums.values()), of_unit)
        return ShardSums(len(log), moments, weights, support, np.array(clipped), supported)


def pairs_of(keys: Sequence[Key], against: str) -> tuple[tuple[int, int], ...]:
    """Return which estimates are compared: each with the logged loss, or with the same estimate of one policy."""
    place = {key: number for number, key in enumerate(keys)}
    found = []
    for key, number in place.items():
        if len(key) == 3 and key[1] == "of":
            other = (LOGGED,) if against == LOGGED else (against, "of", key[2])
            if other in place and other != key:
                found.append((number, place[other]))
    return tuple(found)


def estimate_places(keys: Sequence[Key]) -> tuple[int, ...]:
    """Return where the sums of estimates are, and last those of the logged loss."""
    return (*(number for number, key in enumerate(keys) if len(key) == 3 and key[1] == "of"), keys.index((LOGGED,)))
