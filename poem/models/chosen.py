"""Which loss models to take: those that predict held-out logged losses best, each at its best strength."""

from dataclasses import dataclass

from poem.compute import Threads
from poem.data import BanditLog, with_seen_contexts
from poem.models.boosting import Boosting, boosted
from poem.models.bounded import BoundedLoss, bounded_error
from poem.models.fitted import LossModel
from poem.models.held_out import held_out, some_units
from poem.models.linear import fit_linear, linear_error
from poem.models.logistic import Logistic
from poem.models.race import best_boosting, can_boost
from poem.models.truth import HiddenTruth, fit_truth

MANY_CLASSES = 8  # times as many as are available, above which a model of all of them costs too much


@dataclass(frozen=True)
class Strengths:
    """The l2 strengths of the loss models, and how trees are added to them.

    That of the hidden truth is None where the linear model predicts better, or where there is none; and the logistic
    one where either does, or where it was not asked for. ``boosting`` is None where no tree helps the best of them.
    """

    linear: float
    truth: float | None = None
    logistic: float | None = None
    boosting: Boosting | None = None


def chosen_strengths(
    log: BanditLog, bounds: tuple[float, float], seed: int, threads: Threads, *, ranking: bool = False
) -> Strengths:
    """Compare the models on the logged losses of held-out units, each at its best strength.

    Estimates rest on the linear model or on the hidden truth. With ``ranking``, the logistic model is compared as well:
    it ranks outputs, but its mean under a policy is not known.
    """
    log = some_units(log, seed)
    parts = held_out(log, seed)
    if not parts:
        return Strengths(1.0)
    linear, least = linear_error(log, parts, threads)
    better: dict[type[BoundedLoss], float] = {}
    truth: float | None = None
    if not bounds[0] < bounds[1]:  # all losses are the same
        return Strengths(linear)
    kinds: list[type[BoundedLoss]] = [HiddenTruth] if _can_have_truth(log) else []
    kinds += [Logistic] if ranking else []
    for kind in kinds:
        strength, miss = bounded_error(kind, log, parts, bounds, threads)
        truth = strength if kind is HiddenTruth else truth
        if miss < least:
            better[kind], least = strength, miss
    trees = best_boosting(log, linear, truth, least, bounds, seed, threads) if can_boost(log) else None
    return Strengths(linear, better.get(HiddenTruth), better.get(Logistic), trees)


def _can_have_truth(log: BanditLog) -> bool:
    """Tell whether a hidden truth is tried: it scores all classes, so most of them must be available."""
    if not log.structure.lists_outputs or log.available is None:
        return log.structure.lists_outputs
    return len(log.labels) <= MANY_CLASSES * float(log.available.counts().mean())


def fit_for_estimates(log: BanditLog, strengths: Strengths, bounds: tuple[float, float], threads: Threads) -> LossModel:
    """Fit the best model of those whose mean under a policy is known, for estimates."""
    if strengths.boosting is not None and strengths.boosting.ahead:
        return boosted(log, strengths.boosting, bounds, threads)
    return fit_without_trees(log, strengths, bounds, threads)


def fit_on_part(log: BanditLog, strengths: Strengths, bounds: tuple[float, float], threads: Threads) -> LossModel:
    """Do the same with a part of a log, which shares its contexts: trees draw from them, all else takes a copy."""
    samples = strengths.boosting is not None and strengths.boosting.ahead
    return fit_for_estimates(log if samples else with_seen_contexts(log), strengths, bounds, threads)


def fit_without_trees(log: BanditLog, strengths: Strengths, bounds: tuple[float, float], threads: Threads) -> LossModel:
    """Fit the best of the linear models, for estimates."""
    if strengths.truth is None:
        return fit_linear(log, strengths.linear, threads)
    return fit_truth(log, strengths.truth, bounds, threads)
