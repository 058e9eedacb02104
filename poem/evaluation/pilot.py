"""What an evaluation in one pass must know beforehand: facts of all rows, loss models, parameters and references.

Facts are exact; they come from passes over single columns. Models and automatic parameters come from a sample of units,
and so do the references that moments are taken around.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poem.arrays import IntArray
from poem.backends import Backend
from poem.compute import Threads
from poem.errors import InputError
from poem.estimators import Estimator, Reference, Scheme, Terms, UnitSums, Whole
from poem.evaluation.calibration import CLIP_QUANTILES, Clips
from poem.evaluation.found import usable
from poem.evaluation.judging import MODELS, JudgedLog
from poem.evaluation.lines import Options
from poem.evaluation.shard_sums import (
    LOGGED,
    Candidate,
    FoldModels,
    Key,
    estimate_places,
    needs_ratio,
    pairs_of,
)
from poem.evaluation.support import Unlogged
from poem.models import cross_fit, fit_regressors
from poem.packed import PackedLog, Sample, ShardNote, full_folds, quantiles_of, sample_units, unit_folds
from poem.policies import judge_one

MOST_UNITS = 200_000  # of which models and parameters come, at most
LEAST_REPLICATES = 100


@dataclass(frozen=True)
class Scan:
    """The task of one shard: the number of its rows, Σ(loss − worst), the least loss, and what it never logged."""

    log: PackedLog
    worst: float

    def __call__(self, note: ShardNote) -> tuple[int, float, float, Unlogged]:
        """Read two columns."""
        loss = self.log.column(note, "loss") - self.worst
        unlogged = Unlogged.of(self.log.structure, self.log.column(note, "y"))
        return len(loss), float(loss.sum()), float(loss.min()), unlogged


def facts_of(log: PackedLog, worst: float, backend: Backend) -> tuple[Whole, Clips, Unlogged]:
    """Return what holds for all rows, the clips that their propensities ask for, and what none of them logged."""
    rows, total, least, unlogged = 0, 0.0, 0.0, None
    for n, loss, lowest, never in backend.each(Scan(log, worst), log.shards):
        rows, total, least = rows + n, total + loss, min(least, lowest)
        unlogged = never if unlogged is None else unlogged.and_in(never)
    assert unlogged is not None
    middle, *others = quantiles_of(log, "log_propensity", [0.5, *CLIP_QUANTILES], backend).tolist()
    return Whole(rows, total / rows, least, middle), Clips.between(*others), unlogged


def sample_of(log: PackedLog) -> Sample:
    """Return the units that models and parameters come from: as many as an eighth of the memory holds."""
    return sample_units(log, MOST_UNITS, log.memory / 8.0)


def fold_models(
    sample: Sample, model: Any, folds: int, bounds: tuple[float, float], seed: int, threads: Threads
) -> FoldModels:
    """Fit the loss model that was asked for on a sample, for each fold on all others."""
    turn = full_folds(sample.unit, folds, seed)
    fold = unit_folds(sample.unit, folds, turn)
    if isinstance(model, str) and model in ("auto", "linear"):
        own = bounds if model == "auto" else None
        found = cross_fit(sample.log, folds, bounds=own, seed=seed, threads=threads, fold=fold)
        return FoldModels(found.models, turn, found.name, found.shared)
    if isinstance(model, str | type) or not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InputError(MODELS.format(model=model))
    if not sample.log.structure.one_each:
        raise InputError("a regressor as a loss model needs outputs that can be listed; use model='linear' for labels.")
    return FoldModels(fit_regressors(sample.log, model, fold), turn, type(model).__name__)


@dataclass(frozen=True)
class Pilot:
    """All policies on a sample of units.

    Attributes
    ----------
    candidates : tuple of Candidate
        With all parameters set.
    keys : tuple of Key
        What sums are taken, in their order.
    references : tuple of Reference
    again : tuple of (policy, estimator)
        Which estimates need a first pass.
    """

    candidates: tuple[Candidate, ...]
    keys: tuple[Key, ...]
    references: tuple[Reference, ...]
    again: tuple[tuple[str, str], ...]

    def scheme(self, against: str, options: Options) -> Scheme:
        """Return the moments to take."""
        events = tuple(number for number, key in enumerate(self.keys) if key[-1] == "events" and len(key) == 2)
        scheme = Scheme(self.references, pairs_of(self.keys, against), events)
        if options.interval != "bootstrap":
            return scheme
        if options.replicates < LEAST_REPLICATES:
            raise InputError(f"replicates must be at least {LEAST_REPLICATES}; found {options.replicates}. Use 1000.")
        return replace(scheme, drawn=estimate_places(self.keys), replicates=options.replicates, seed=options.seed)


def pilot(
    policies: Sequence[tuple[str, Any]],
    sample: Sample,
    model: FoldModels | None,
    estimators: Mapping[str, Estimator],
    clips: Clips,
    whole: Whole,
    options: Options,
) -> Pilot:
    """Judge all policies on a sample: set parameters, and find references."""
    log = sample.log
    units = log.units()
    unit: IntArray | None = None if int(units.max()) + 1 == len(log) else units
    here = JudgedLog(log, options.bounds, None if model is None else model.of(log, sample.unit), options.threads)
    sums: dict[Key, UnitSums] = {(LOGGED,): Terms(here.loss).by_unit(unit)}
    candidates, again = [], []
    for name, policy in policies:
        judged = judge_one(name, policy, log)
        rows = replace(here.rows(judged), whole=whole)
        followed = usable(dict(estimators), rows)
        ready = {each: clips.set_in(one).tuned(rows) for each, one in followed.items()}
        one = Candidate(
            name=name,
            policy=policy,
            estimators=ready,
            has_marginals=judged.has_marginals,
            skipped=len(ready) < len(estimators),
            opinion=here.opinions.get(name),
        )
        found = one.sums(rows, unit, options.interval)
        again += [(name, each) for each in ready if needs_ratio(ready[each], found[name, "of", each])]
        candidates.append(one)
        sums |= found
    references = {key: Reference.of(one) for key, one in sums.items()}
    for name, each in again:  # what is held back is not known yet: it is relative to the mean weight, which may be huge
        references[name, "of", each] = replace(references[name, "of", each], held=0.0)
    return Pilot(tuple(candidates), tuple(sums), tuple(references.values()), tuple(again))


def with_ratios(
    candidates: Sequence[Candidate], ratios: Mapping[tuple[str, str], float], means: Mapping[str, float], whole: Whole
) -> tuple[Candidate, ...]:
    """Return policies whose self-normalised estimators know their own value, and the mean weight."""

    def one(candidate: Candidate) -> Candidate:
        mean = means[candidate.name]
        wholes = {
            estimator: replace(whole, ratio_mean=ratio, mean_weight=mean if mean > 0.0 else np.inf)
            for (policy, estimator), ratio in ratios.items()
            if policy == candidate.name
        }
        return replace(candidate, wholes=wholes)

    return tuple(map(one, candidates))
