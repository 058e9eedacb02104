"""Policy × log → the plain figures of a report; no HTML here."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from poem.arrays import FloatArray
from poem.compute import OneBlasThread, Threads, count_threads
from poem.data import BanditLog, has_kinds
from poem.errors import InputError, MismatchError
from poem.estimators import LARGEST_LOG_RATIO
from poem.evaluation import Clips, Evaluation, Finding, JudgedLog, Line, evaluate, loss_range, model_for
from poem.models import Model
from poem.packed import PackedLog, how_to_open, sample_units
from poem.policies import (
    NO_POLICY,
    FlooredPolicy,
    Judged,
    Policy,
    check_packed,
    judge_all,
    was_trained_on,
    without_floor,
)
from poem.report.certified import Certified, certified_line
from poem.report.changes import Changes, find_changes
from poem.report.sums import AnyPolicy
from poem.report.trivial import trivial_policies
from poem.report.verdict import Case, Outcome, Range, Seen, Verdict, gain_of, reach_verdict, value_of
from poem.report.wording import Decimals

BINS_PER_DECADE = 4
LEAST_WEIGHT, MOST_WEIGHT = 1e-4, 1e6  # weights beyond are counted in the outermost bins
DECILES = 10
FOLDS = 2

SAMPLE = 1 / 8  # of the memory of a packed log, for the rows that a page shows
MOST_UNITS = 1_000_000  # of them


@dataclass(frozen=True)
class Estimated:
    """One line of the table of estimates."""

    policy: str
    estimator: str
    value: Range
    gain: Range
    probability_better: float


@dataclass(frozen=True)
class Bin:
    """Some of the weights: from ``low`` to ``high``, their share of the rows, and of all weight."""

    low: float
    high: float
    rows: float
    weight: float


@dataclass(frozen=True)
class Weights:
    """How far the log is from the policy."""

    bins: tuple[Bin, ...]
    mean: float
    largest: float
    clip: float
    clip_curve: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Decile:
    """Rows of similar predictions: what was predicted and what was seen, with its standard error."""

    predicted: float
    observed: float
    error: float
    rows: int


@dataclass(frozen=True)
class Facts:
    """What the report was made of: ``rows`` of a log that has ``rows_in_all``."""

    rows: int
    rows_in_all: int
    units: int
    contexts: int
    features: int
    outputs: int
    outputs_are: str  # in words
    one_each: bool  # a decision is one of the outputs, not a set of them
    available: bool  # each decision has available outputs of its own …
    described: bool  # … which have features that others share
    propensities: str
    interval: str
    level: float
    seed: int
    fingerprint: str
    trained_on_it: bool | None
    floor: float | None


@dataclass(frozen=True)
class Content:
    """All figures of a report, in the words of the user: rewards are rewards again."""

    title: str
    outcome: Outcome
    decimals: Decimals
    headline: str
    verdict: Verdict
    logged: Range
    value: Range
    gain: Range
    versus_other: Range | None
    surely: float
    estimates: tuple[Estimated, ...]
    trivial: tuple[Estimated, ...]
    by_logger: tuple[tuple[str, int, Estimated], ...]
    diagnosis: str
    findings: tuple[Finding, ...]
    weights: Weights
    calibration: tuple[Decile, ...]
    changes: Changes
    certified: Certified
    explanation: tuple[str, ...]
    candidates: tuple[dict[str, Any], ...]
    facts: Facts


def describe(
    policy: AnyPolicy,
    source: BanditLog | PackedLog,
    *,
    other: AnyPolicy | None = None,
    level: float = 0.95,
    title: str | None = None,
    n_jobs: int | None = -1,
    seed: int = 0,
) -> Content:
    """Find out all that a report says."""
    _check(policy, source, other)
    if isinstance(source, PackedLog):
        check_packed(policy, source)
    log = sample_units(source, MOST_UNITS, source.memory * SAMPLE).log if isinstance(source, PackedLog) else source
    threads, outcome = Threads(count_threads(n_jobs)), Outcome(log.outcome)
    judged = judge_all({"new": policy}, log)[0]
    bounds = loss_range("auto", log)
    model = _model(log, bounds, seed, threads)
    policies = {"new": policy} if other is None else {"new": policy, "other": other}
    options: dict[str, Any] = {"level": level, "n_jobs": n_jobs, "seed": seed}
    evaluation = evaluate(policies, log, "all", model=model, **options)
    headline = "SNIPS" if model is None else "DR"
    versus = None
    if other is not None:
        against = evaluate(policies, log, [headline], model=model, against="other", **options)
        versus = gain_of(against["new", headline], outcome)
    ratio = np.exp(np.minimum(judged.log_prob - log.log_propensity, LARGEST_LOG_RATIO))
    line = evaluation["new", headline]
    decimals = _decimals(evaluation, line)
    fingerprint, record = source.fingerprint(), without_floor(policy).record
    seen, other_seen = _seen(policy, fingerprint), other is not None and _seen(other, fingerprint) == "same"
    case = Case(evaluation, outcome, headline, decimals, bounds, seen, other_seen, versus)
    with OneBlasThread():
        changes = find_changes(policy, log, ratio, outcome.sign, other)
    return Content(
        title=title or "Would the new policy be better?",
        outcome=outcome,
        decimals=decimals,
        headline=headline,
        verdict=reach_verdict(case),
        logged=_logged(evaluation),
        value=value_of(line),
        gain=case.gain,
        versus_other=versus,
        surely=evaluation.bound("new", headline, level),
        estimates=tuple(_estimated(one, outcome) for one in evaluation.lines),
        trivial=_trivial(log, outcome, options),
        by_logger=_by_logger(evaluation, headline, outcome),
        diagnosis=evaluation.diagnostics["new"].verdict,
        findings=evaluation.diagnostics["new"].findings,
        weights=_weights(ratio, log, evaluation, outcome),
        calibration=_calibration(judged, log, model, outcome, threads),
        changes=changes,
        certified=certified_line(record),
        explanation=record.explanation,
        candidates=record.candidates,
        facts=_facts(policy, log, len(source), evaluation, seed, seen, fingerprint),
    )


def _check(policy: Any, log: Any, other: Any) -> None:
    kinds = Policy | FlooredPolicy
    if policy is None:
        raise InputError(NO_POLICY.format(name="the policy"))
    if not isinstance(policy, kinds) or not isinstance(log, BanditLog | PackedLog):
        found = f"{type(policy).__name__} and {type(log).__name__}"
        raise InputError(f"a report takes (policy, log); found {found}.{how_to_open(log)}")
    if other is not None and not isinstance(other, kinds):
        raise InputError(f"other must be a Policy or a FlooredPolicy; found {type(other).__name__}.")
    if other is not None and (other.features, other.labels) != (policy.features, policy.labels):
        raise MismatchError(
            "the other policy has other features or outputs, and a page is made from one reading of the log. Compare "
            "them by poem evaluate --against, or train the new one with start= the other."
        )


def _seen(policy: AnyPolicy, fingerprint: str) -> Seen:
    """Return whether the policy was trained on the log of a fingerprint."""
    seen = was_trained_on(policy, fingerprint)
    return "unknown" if seen is None else "same" if seen else "different"


def _facts(
    policy: AnyPolicy, log: BanditLog, in_all: int, evaluation: Evaluation, seed: int, seen: Seen, fingerprint: str
) -> Facts:
    return Facts(
        rows=len(log),
        rows_in_all=in_all,
        units=evaluation.logged.units,
        contexts=log.n_contexts,
        features=log.n_features,
        outputs=len(log.labels),
        outputs_are=_outputs_are(log),
        one_each=log.structure.one_each,
        available=log.available is not None,
        described=has_kinds(log),
        propensities=log.propensities,
        interval=evaluation.interval,
        level=evaluation.level,
        seed=seed,
        fingerprint=fingerprint,
        trained_on_it={"same": True, "different": False, "unknown": None}[seen],
        floor=float(policy.share) if isinstance(policy, FlooredPolicy) else None,
    )


def _outputs_are(log: BanditLog) -> str:
    """Describe an output in words; where each decision has available ones of its own, that they are."""
    if log.available is None:
        return log.structure.describe()
    counts = log.available.counts()[log.context]
    some = f"{counts.min():,} to {counts.max():,}" if counts.min() < counts.max() else f"{counts.min():,}"
    features = f" with {log.structure.n_scores:,} features each" if log.structure.described else ""
    return f"one of {some} available actions per decision ({len(log.labels):,} in all{features})"


# ---- estimates ------------------------------------------------------------------------------


def _model(log: BanditLog, bounds: tuple[float, float], seed: int, threads: Threads) -> Model | None:
    """Fit the loss model once for all that use it; one unit alone cannot be left out of a model."""
    log.need_propensities()
    if int(log.units().max()) == 0:
        return None
    with OneBlasThread():
        return model_for(log, "auto", FOLDS, bounds, seed, threads)


def _decimals(evaluation: Evaluation, line: Line) -> Decimals:
    sizes = [abs(value) for value in (evaluation.logged.value, line.value) if np.isfinite(value)]
    return Decimals.of(max(sizes), (line.difference_high - line.difference_low) / 2.0)


def _logged(evaluation: Evaluation) -> Range:
    return Range(evaluation.logged.value, *evaluation.logged.interval(evaluation.level))


def _estimated(line: Line, outcome: Outcome) -> Estimated:
    gain = gain_of(line, outcome)
    return Estimated(line.policy, line.estimator, value_of(line), gain, line.probability_better)


def _trivial(log: BanditLog, outcome: Outcome, options: dict[str, Any]) -> tuple[Estimated, ...]:
    """Judge policies that need no learning, by SNIPS: any policy worth its name must beat them."""
    named = trivial_policies(log)
    if not named:
        return ()
    evaluation = evaluate(named, log, ["SNIPS"], model=None, **options)
    return tuple(_estimated(line, outcome) for line in evaluation.lines)


def _by_logger(evaluation: Evaluation, headline: str, outcome: Outcome) -> tuple[tuple[str, int, Estimated], ...]:
    found = []
    for name, alone in evaluation.by_logger.items():
        estimators = {line.estimator for line in alone.lines}
        line = alone["new", headline if headline in estimators else "SNIPS"]
        found.append((str(name), alone.logged.n, _estimated(line, outcome)))
    return tuple(found)


# ---- weights --------------------------------------------------------------------------------


def _weights(ratio: FloatArray, log: BanditLog, evaluation: Evaluation, outcome: Outcome) -> Weights:
    worst = float(log.loss.max())
    curve = evaluation.diagnostics["new"].clip_curve
    return Weights(
        bins=histogram(ratio),
        mean=float(ratio.mean()),
        largest=float(ratio.max()),
        clip=Clips.of(log).auto,
        clip_curve=tuple((at, outcome.sign * (value + worst)) for at, value in curve),
    )


def histogram(ratio: FloatArray) -> tuple[Bin, ...]:
    """Count weights on a logarithmic scale; those too small to matter are in the first bin."""
    ends = np.clip([ratio.min(), ratio.max()], LEAST_WEIGHT, MOST_WEIGHT)
    first, last = np.floor(np.log10(ends[0]) * BINS_PER_DECADE), np.floor(np.log10(ends[1]) * BINS_PER_DECADE) + 1
    edges = 10.0 ** (np.arange(first, last + 1) / BINS_PER_DECADE)
    place = np.clip(np.searchsorted(edges, ratio, side="right") - 1, 0, len(edges) - 2)
    rows = np.bincount(place, minlength=len(edges) - 1) / len(ratio)
    weight = np.bincount(place, ratio, minlength=len(edges) - 1) / max(float(ratio.sum()), 1e-300)
    return tuple(Bin(float(edges[i]), float(edges[i + 1]), float(rows[i]), float(weight[i])) for i in range(len(rows)))


# ---- the loss model -------------------------------------------------------------------------


def _calibration(
    judged: Judged, log: BanditLog, model: Model | None, outcome: Outcome, threads: Threads
) -> tuple[Decile, ...]:
    if model is None:
        return ()
    bounds = loss_range("auto", log)
    with OneBlasThread():
        predicted, _ = JudgedLog(log, bounds, model, threads).rows(judged).model
    return deciles(outcome.sign * (predicted + bounds[1]), outcome.sign * log.loss)


def deciles(predicted: FloatArray, observed: FloatArray) -> tuple[Decile, ...]:
    """Cut rows into tenths by what was predicted for them; equal predictions stay together."""
    borders = np.unique(np.quantile(predicted, np.arange(1, DECILES) / DECILES))
    place = np.searchsorted(borders, predicted, side="left")
    rows = np.bincount(place, minlength=len(borders) + 1).astype(np.float64)
    filled = np.flatnonzero(rows)
    mean, seen, square = (
        np.bincount(place, column, minlength=len(rows))[filled] / rows[filled]
        for column in (predicted, observed, observed**2)
    )
    error = np.sqrt(np.maximum(square - seen**2, 0.0) / np.maximum(rows[filled] - 1.0, 1.0))
    parts = zip(mean.tolist(), seen.tolist(), error.tolist(), rows[filled].tolist(), strict=True)
    return tuple(Decile(p, o, e, int(n)) for p, o, e, n in parts)
