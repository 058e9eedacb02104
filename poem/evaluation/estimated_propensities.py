"""Propensities that were not logged, and those of several loggers: explicit steps, with what they say of themselves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
from scipy import special

from poem import backends
from poem.arrays import AnyArray, FloatArray
from poem.compute import OneBlasThread, Threads, is_sparse
from poem.data import BanditLog, Layout, folds_of
from poem.errors import InputError, LogError
from poem.objectives import imitation
from poem.packed import HashArray, PackedLog, full_folds, how_to_open, logger_counts, sample_units, unit_folds
from poem.policies import Judged, Policy, Record, by_context_alone, judge_all, judge_one, policy_for, supervised
from poem.structures import Available

STRENGTHS = tuple(10.0**power for power in range(-3, 3))  # the C of the logistic regressions
BINS = 10
SAMPLE = 1 / 8  # of the memory of a packed log, for the rows that regressions are fitted to
MOST_UNITS = 200_000  # of them
AGREES = 0.01  # how far a logger's probability may be from what was logged, relatively
L = TypeVar("L", BanditLog, PackedLog)


@dataclass(frozen=True)
class Calibrated:
    """One bin of the calibration: outputs that were given about this probability, and how often they were chosen.

    Where rows have available actions of their own, ``count`` is that of candidates.
    """

    predicted: float
    observed: float
    count: int


@dataclass(frozen=True)
class PropensityFit:
    """Estimated propensities, and how far to trust them.

    Attributes
    ----------
    log : BanditLog or PackedLog
        The log with the estimated propensities; all that is made from it says "estimated".
    C : float
        The strength that was chosen on held-out rows.
    log_loss : float
        The mean of −log p of the logged outputs, each predicted without its fold. Lower is better.
    bins : tuple of Calibrated
    calibration_error : float
        The mean difference between predicted and observed, weighted by the bins.
    mean_log_error : float or None
        The mean of |log estimated − log logged|, where propensities were logged.
    """

    log: BanditLog | PackedLog
    C: float
    log_loss: float
    bins: tuple[Calibrated, ...]
    calibration_error: float
    mean_log_error: float | None

    def __repr__(self) -> str:
        error = "" if self.mean_log_error is None else f", off the logged ones by {self.mean_log_error:.3g} in log"
        return (
            f"PropensityFit: estimated for {len(self.log):,} rows, C = {self.C:g}, log loss {self.log_loss:.4g}, "
            f"calibration error {self.calibration_error:.3g}{error}"
        )

    def plot(self) -> Any:
        """Draw predicted against observed; return a matplotlib figure."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.5, 4.5), layout="constrained")
        axes = figure.subplots()
        sizes = np.array([found.count for found in self.bins], dtype=np.float64)
        x, y = [found.predicted for found in self.bins], [found.observed for found in self.bins]
        axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
        axes.scatter(x, y, s=20.0 + 180.0 * sizes / sizes.max())
        axes.set(xlabel="estimated probability", ylabel="share that was chosen", title="Estimated propensities")
        axes.grid(alpha=0.3)
        return figure


def estimate_propensities(
    log: BanditLog | PackedLog, *, C: float | None = None, folds: int = 5, seed: int = 0
) -> PropensityFit:
    """Estimate the logging policy from its choices, for a log that did not keep its probabilities.

    A logistic regression of the outputs on the contexts (for label sets, one for each label, as if they
    were chosen independently; where rows have available actions of their own, a softmax over these), cross-fitted: no
    row's propensity comes from a model that saw the row's unit. What the logging policy knew and the contexts do not
    hold is lost, and no interval accounts for that.

    Parameters
    ----------
    log : BanditLog or PackedLog
        With ``propensity="missing"``, or with logged ones to compare with. For a packed log that does not fit into its
        memory, the regressions are fitted to a sample of its units.
    C : float, optional
        The inverse strength of the l2 penalty; chosen on held-out rows if not given.
    folds, seed : int
    """
    if isinstance(log, PackedLog):
        return _of_packed(log, folds, C, seed)
    if not isinstance(log, BanditLog):
        raise InputError(
            f"estimate_propensities takes a BanditLog or a PackedLog; found {type(log).__name__}.{how_to_open(log)}"
        )
    with OneBlasThread():  # many small regressions: threads would only get in each other's way
        return _estimated(log, folds_of(log, folds, seed), folds, C)


def _estimated(log: BanditLog, fold: AnyArray, folds: int, C: float | None) -> PropensityFit:
    strength = _chosen_strength(log, fold) if C is None else C
    log_propensity = np.empty(len(log))
    predicted, observed = [], []
    for part in range(folds):
        rows = np.flatnonzero(fold == part)
        policy = _fitted(log, np.flatnonzero(fold != part), strength)
        log_propensity[rows] = policy.log_prob_of(log.take(rows), n_jobs=1)
        predicted.append(policy.marginals(*_contexts(log, rows)).ravel())
        observed.append(_chosen(log, rows).ravel())
    bins, error = _calibration(np.concatenate(predicted), np.concatenate(observed))
    off = None
    if log.propensities == "logged":
        off = float(np.mean(np.abs(log_propensity - log.log_propensity)))
    estimated = log.with_propensities(log_propensity, "estimated")
    return PropensityFit(estimated, strength, -float(log_propensity.mean()), bins, error, off)


@dataclass(frozen=True)
class Estimated:
    """Gives rows the propensities of the policy that has not seen their unit."""

    policies: tuple[Policy, ...]
    turn: int  # which way units are dealt into folds

    def __call__(self, log: BanditLog, unit: HashArray) -> BanditLog:
        """Return the log with estimated propensities."""
        fold = unit_folds(unit, len(self.policies), self.turn)
        log_propensity = np.empty(len(log))
        for part, policy in enumerate(self.policies):
            rows = np.flatnonzero(fold == part)
            if len(rows):
                log_propensity[rows] = policy.log_prob_of(log.take(rows), n_jobs=1)
        return log.with_propensities(log_propensity, "estimated")


def _of_packed(log: PackedLog, folds: int, C: float | None, seed: int) -> PropensityFit:
    """Estimate the logging policy from a sample; folds are by the hashes of units, the same in every shard."""
    sample = sample_units(log, MOST_UNITS, log.memory * SAMPLE)
    turn = full_folds(sample.unit, folds, seed)
    with OneBlasThread():
        fold = unit_folds(sample.unit, folds, turn)
        found = _estimated(sample.log, fold, folds, C)
        policies = tuple(_fitted(sample.log, np.flatnonzero(fold != part), found.C) for part in range(folds))
    return replace(found, log=log.seen_as(Estimated(policies, turn)))


def _contexts(log: BanditLog, rows: AnyArray) -> tuple[Any, Available | None]:
    """Return the context of each row, and what was available there."""
    context = log.context[rows]
    return log.X[context], None if log.available is None else log.available.of(context)


def _chosen(log: BanditLog, rows: AnyArray) -> FloatArray:
    """Return 1 for what was chosen and 0 for all else, in the shape of marginals."""
    _, available = _contexts(log, rows)
    if available is None:
        found = log.structure.indicators(log.y[rows])
        return np.asarray(found.toarray() if is_sparse(found) else found)
    observed = np.zeros(len(available))
    observed[available.starts[:-1] + available.positions(np.arange(len(rows)), log.y[rows])] = 1.0
    return observed


def _fitted(log: BanditLog, rows: AnyArray, C: float) -> Policy:
    """Fit a policy to the choices of some rows, whatever they cost."""
    if log.available is None:
        outputs = log.structure.decode(log.y[rows], log.labels)
        return supervised(log.X[log.context[rows]], outputs, C=C, labels=log.labels, structure=log.structure)
    if not C > 0.0:
        raise InputError(f"C must be above 0; found {C}.")
    even = log.take(rows).with_propensities(np.zeros(len(rows)), "estimated")  # a likelihood does not look at them
    weights = imitation(Layout(even, log.structure, True), Threads(), C)
    return policy_for(log, weights, True, Record(made_by="estimate_propensities", settings={"C": C}))


def _chosen_strength(log: BanditLog, fold: AnyArray) -> float:
    """Return the C of the largest likelihood on one fold."""
    train, held = np.flatnonzero(fold != 0), log.take(fold == 0)
    scores = [float(_fitted(log, train, C).log_prob_of(held, n_jobs=1).mean()) for C in STRENGTHS]
    return STRENGTHS[int(np.argmax(scores))]


def _calibration(predicted: FloatArray, observed: FloatArray) -> tuple[tuple[Calibrated, ...], float]:
    number = np.minimum((predicted * BINS).astype(np.int64), BINS - 1)
    bins = tuple(
        Calibrated(float(predicted[mine].mean()), float(observed[mine].mean()), int(mine.sum()))
        for mine in (number == position for position in range(BINS))
        if mine.any()
    )
    error = sum(found.count * abs(found.predicted - found.observed) for found in bins) / len(predicted)
    return bins, float(error)


# ---- several loggers ------------------------------------------------------------------------


def balanced(log: L, loggers: Mapping[Any, Any]) -> L:
    """Return a log of several loggers with the propensities of their mixture.

    p(y|x) = Σ over loggers of (their share of the rows)·p_logger(y|x): an output that one logger hardly
    ever chose and another one often did has no large weight any more (multiple importance sampling with
    the balance heuristic).

    Parameters
    ----------
    log : BanditLog or PackedLog
        With ``logger=``.
    loggers : dict
        For each name in ``log.logger`` its policy, or the probabilities (n,) that it gives to all logged outputs.
    """
    if not isinstance(log, BanditLog | PackedLog) or not isinstance(loggers, Mapping):
        raise InputError(
            f"balanced takes (log, dict of loggers' names and policies); found {type(log).__name__} and "
            f"{type(loggers).__name__}."
        )
    counts = _logger_counts(log)
    missing = [name for name in counts if name not in loggers]
    if missing:
        raise InputError(f"loggers must have a policy for each logger of the log; there is none for {missing[:5]}.")
    named = {f"logger {name}": loggers[name] for name in counts}
    shares = np.log(np.array(list(counts.values())) / sum(counts.values()))
    view = Balanced(tuple(counts), tuple(loggers[name] for name in counts), tuple(shares.tolist()))
    if isinstance(log, PackedLog):
        for name, policy in named.items():
            by_context_alone(name, policy)
        return log.seen_as(view)
    return view.of(log, judge_all(named, log))


def _logger_counts(log: BanditLog | PackedLog) -> dict[Any, int]:
    """Return how many rows each logger chose."""
    own = log if isinstance(log, BanditLog) else log.kind
    if own.logger is None:
        raise LogError("the log does not say which logger chose each row. Build it with logger=.")
    if isinstance(log, PackedLog):
        return logger_counts(log, log.backend or backends.Threads())
    names, counts = np.unique(own.logger, return_counts=True)
    return dict(zip(names.tolist(), counts.tolist(), strict=True))


@dataclass(frozen=True)
class Balanced:
    """Gives rows the propensities of the mixture of several loggers, whose shares are logarithms."""

    names: tuple[Any, ...]
    policies: tuple[Any, ...]
    shares: tuple[float, ...]

    def __call__(self, log: BanditLog, unit: HashArray) -> BanditLog:
        """Return the log with balanced propensities; they are the same for all units."""
        named = zip(self.names, self.policies, strict=True)
        return self.of(log, [judge_one(f"logger {name}", policy, log, 1) for name, policy in named])

    def of(self, log: BanditLog, judged: Sequence[Judged]) -> BanditLog:
        """Return the same from the loggers as the log sees them."""
        logs = np.stack([found.log_prob for found in judged])
        for row_of, name in zip(logs, self.names, strict=True):
            _check_agreement(log, row_of, name)
        mixed = special.logsumexp(logs + np.array(self.shares)[:, None], axis=0)
        return log.with_propensities(np.minimum(mixed, 0.0), "balanced")


def _check_agreement(log: BanditLog, log_prob: FloatArray, name: Any) -> None:
    """Compare a logger's policy with what its own rows say."""
    if log.propensities != "logged":
        return
    off = np.where(log.logger == name, np.abs(log_prob - log.log_propensity), 0.0)
    row = int(np.argmax(off))
    if off[row] > AGREES:
        raise InputError(
            f"logger {name} gives row {row} the probability {np.exp(log_prob[row]):.4g}, but "
            f"{np.exp(log.log_propensity[row]):.4g} was logged. Pass the policy that made these rows."
        )
