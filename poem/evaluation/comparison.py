"""Policies × log × estimators → a table of estimates that one can decide on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from poem import backends
from poem.compute import OneBlasThread, Threads, count_threads
from poem.data import BanditLog
from poem.errors import InputError
from poem.estimators import (
    IPS,
    METHODS,
    SNIPS,
    DirectMethod,
    DoublyRobust,
    Estimate,
    Estimator,
    ImplicitExploration,
    LogSmoothing,
    Method,
    SelfNormalisedDR,
    ShrinkageDR,
    SwitchDR,
    check_level,
)
from poem.evaluation.calibration import Clips, LossBounds, loss_range
from poem.evaluation.diagnostics import is_clipped
from poem.evaluation.estimated_propensities import PropensityFit, balanced
from poem.evaluation.judging import JudgedLog, model_for
from poem.evaluation.lines import Options, evaluated
from poem.evaluation.streaming import Request, checked_policies, estimate_packed, evaluate_packed
from poem.evaluation.table import Evaluation
from poem.packed import PackedLog, how_to_open
from poem.policies import NO_POLICY, FlooredPolicy, Policy, judge_all, judge_one, named_policies, was_trained_on

L = TypeVar("L", BanditLog, PackedLog)
ALL: dict[str, Estimator] = {
    "IPS": IPS(None),
    "clipped IPS": IPS("auto"),
    "SNIPS": SNIPS(None),
    "DM": DirectMethod(),
    "DR": DoublyRobust(),
    "SNDR": SelfNormalisedDR(),
    "SWITCH-DR": SwitchDR(),
    "DRos": ShrinkageDR(),
    "IX": ImplicitExploration(),
    "LS": LogSmoothing(),
}
BY_ANY_CASE = {name.lower(): name for name in ALL}


def estimate(
    policy: Policy | FlooredPolicy | None, log: BanditLog | PackedLog, estimator: str | Estimator | None = None
) -> Estimate:
    """Estimate the mean loss that a policy would have had on a log it was not trained on; of rewards, the mean reward.

    Self-normalised without clipping by default. ``estimator`` is a name that :func:`evaluate` takes, such as ``"DR"``,
    or an estimator such as ``poem.IPS()``. IPS is taken around the worst logged loss, so that what the log does not
    cover counts as bad, not as good. Rows of one group, or of one context if there are no groups, are not taken to be
    independent. :func:`evaluate` does more.
    """
    if policy is None:
        raise InputError(NO_POLICY.format(name="the policy"))
    if not isinstance(policy, Policy | FlooredPolicy) or not isinstance(log, BanditLog | PackedLog):
        raise InputError(
            f"estimate takes (policy, log); found {type(policy).__name__} and {type(log).__name__}.{how_to_open(log)}"
        )
    name, chosen = _named_estimator("SNIPS" if estimator is None else estimator)
    log.need_propensities()
    worst = log.loss_range[1] if isinstance(log, PackedLog) else float(np.max(log.loss))
    bounds = loss_range("auto", log) if chosen.needs_model else (worst - 1.0, worst)
    options = Options(Threads(count_threads(-1)), "t", 0.95, 0, 0, bounds)
    if isinstance(log, PackedLog):
        found = estimate_packed(log, policy, chosen, options, log.backend or backends.Threads())
    else:
        found = _estimated(policy, log, Clips.of(log).set_in(chosen), options)
    return replace(found.rescaled(worst - 1.0, worst).as_outcome(log.outcome), estimator=name)


def _estimated(policy: Policy | FlooredPolicy, log: BanditLog, estimator: Estimator, options: Options) -> Estimate:
    """Judge one policy by one estimator on a log in memory, around the worst loss."""
    judged, threads = judge_one("the policy", policy, log), options.threads
    with OneBlasThread():
        several = int(log.units().max()) > 0  # one unit alone cannot be left out of a model
        wanted = estimator.needs_model and several
        model = model_for(log, "auto", Resampling().folds, options.bounds, 0, threads) if wanted else None
        rows = JudgedLog(log, options.bounds, model, threads).rows(judged)
        return estimator.tuned(rows).judge(rows, log.units())


@dataclass(frozen=True)
class Resampling:
    """How :func:`poem.evaluate` draws rows again.

    Attributes
    ----------
    folds : int
        A model that has not seen a row's fold predicts its loss.
    replicates : int
        Of the bootstrap.
    """

    folds: int = 2
    replicates: int = 1000


def evaluate(
    policies: Any,
    log: BanditLog | PackedLog,
    estimators: Any = "all",
    *,
    interval: Method = "t",
    level: float = 0.95,
    against: str = "logged",
    model: Any = "auto",
    loggers: Mapping[Any, Any] | None = None,
    estimated: PropensityFit | None = None,
    loss_bounds: LossBounds = "auto",
    resampling: Resampling | None = None,
    n_jobs: int | None = -1,
    seed: int = 0,
    progress: bool | None = None,
) -> Evaluation:
    """Say how policies would have done on a log that they were not trained on, and whether to believe it.

    Parameters
    ----------
    policies : policy, list, or dict of names and policies
        poem's own; any object with ``predict_proba(X)``; an array of the probabilities of the logged outputs
        (n,), of all classes (n, k), or of all available actions, flat in the order of the lists.
    log : BanditLog or PackedLog
        A packed log is read once, a shard at a time, and ``model`` is fitted on a sample of its units. Intervals are
        then "t", "normal", "bernstein" or "bootstrap", and policies are not arrays: rows have no order.
    estimators : "all", names, or Estimators
        Of IPS, clipped IPS, SNIPS, DM, DR, SNDR, SWITCH-DR, DRos, IX and LS.
    interval : "t", "normal", "bootstrap", "bernstein", "truncated", "ls", "betting" or "clopper-pearson"
        Student's t or normal by the delta method; BCa; empirical Bernstein, for clipped IPS; for IPS, the truncated
        bound of Thomas et al. (2015), logarithmic smoothing (Sakhi et al., 2024), and betting; Clopper and Pearson's,
        for IPS where all weights are equal. The first three are approximate; the others hold for any number of
        independent units if propensities and ``loss_bounds`` are right.
    level : float
    against : "logged" or a policy's name
        What the differences are to: the logged losses themselves, or another policy.
    model : "auto", "linear", a scikit-learn regressor, or None
        The loss model of DM and DR. ``"auto"`` is what :func:`poem.fit` uses: for classes, the better of a linear model
        and of a hidden right class; for label sets, a linear one. Where one of several outputs is chosen, the policy's
        own probabilities have a share in it. A regressor is for such outputs too; it sees the context beside the class,
        or beside the features of the action.
    loggers : dict, optional
        The policies of a log of several loggers: estimates then use the balanced weights of
        :func:`poem.balanced`. Each logger's own rows are also judged alone, in ``by_logger``.
    estimated : PropensityFit, optional
        What :func:`poem.estimate_propensities` made of this log: every policy is judged by it as well, in lines of
        its own, so that both answers stand side by side.
    loss_bounds : (lowest, highest) or "auto"
        What a loss can be, or a reward in a log of rewards. ``"auto"`` takes the extremes of the log; bounds for any n
        hold for losses within them.
    resampling : Resampling, optional
        Folds of the loss model and replicates of the bootstrap: ``poem.Resampling(folds=5, replicates=200)``.
    n_jobs, seed
        Threads, and the seed of folds and bootstrap.
    progress : bool, optional
        Show how far the reading of a packed log is; by default, in a terminal if it takes a while.
    """
    draws = Resampling() if resampling is None else resampling
    _check(log, interval, level, draws, n_jobs, seed)
    chosen, threads = _estimators(estimators), Threads(count_threads(n_jobs))
    if model is None and all(estimator.needs_model for estimator in chosen.values()):
        raise InputError(f"{', '.join(chosen)} need a loss model. Leave model= as it is, or choose other estimators.")
    if isinstance(log, PackedLog):
        options = Options(threads, interval, level, draws.replicates, seed, loss_range(loss_bounds, log))
        return _packed(policies, log, chosen, against, model, draws, options, loggers, estimated, progress)
    whole = log if loggers is None else balanced(log, loggers)
    whole.need_propensities()
    judged = judge_all(policies, log)
    _check_against(against, [policy.name for policy in judged])
    with OneBlasThread():
        several = int(log.units().max()) > 0  # one unit alone cannot be left out of a model
        usable = model is not None and several and any(policy.has_marginals for policy in judged)
        wanted = any(estimator.needs_model for estimator in chosen.values())
        bounds = loss_range(loss_bounds, log)
        fitted = model_for(log, model, draws.folds, bounds, seed, threads) if usable and wanted else None
        options = Options(threads, interval, level, draws.replicates, seed, bounds)
        found = evaluated(judged, whole, fitted, chosen, against, options)
        found = replace(found, trained_on_log=_trained_on(named_policies(policies), log))
        if estimated is not None:
            found = _beside(found, evaluated(judged, _same_rows(estimated, log), fitted, chosen, against, options))
        if log.logger is None or log.propensities == "missing":
            return found
        alone = {}
        for name in np.unique(log.logger).tolist():
            rows = np.flatnonzero(log.logger == name)
            part = None if fitted is None else fitted.of_rows(rows)
            own = [policy.of_rows(rows) for policy in judged]
            alone[name] = evaluated(own, log.take(rows), part, chosen, against, options)
    return replace(found, by_logger=alone)


def _packed(
    policies: Any,
    log: PackedLog,
    estimators: dict[str, Estimator],
    against: str,
    model: Any,
    draws: Resampling,
    options: Options,
    loggers: Mapping[Any, Any] | None,
    estimated: PropensityFit | None,
    progress: bool | None,
) -> Evaluation:
    """Evaluate a packed log."""
    whole = log if loggers is None else balanced(log, loggers)
    whole.need_propensities()
    other = None if estimated is None else _same_rows(estimated, log)
    named = checked_policies(policies)
    _check_against(against, [name for name, _ in named])
    backend = log.backend or backends.Threads(options.threads.count)
    request = Request(named, estimators, against, model, draws.folds, options, backend)
    found, by_estimated = evaluate_packed(log, request, weighted=whole, estimated=other, progress=progress)
    found = found if by_estimated is None else _beside(found, by_estimated)
    return replace(found, trained_on_log=_trained_on(named, log))


def _trained_on(named: Sequence[tuple[str, Any]], log: BanditLog | PackedLog) -> tuple[str, ...]:
    """Return the names of the policies that were trained on a log."""
    own = [(name, policy) for name, policy in named if isinstance(policy, Policy | FlooredPolicy)]
    return tuple(name for name, policy in own if was_trained_on(policy, log))


def _check_against(against: Any, names: list[str]) -> None:
    known = ["logged", *names]
    if not isinstance(against, str) or against not in known:
        raise InputError(f"against must be one of {', '.join(known)}; found {against!r}.")


def _check(log: Any, interval: Any, level: float, draws: Any, n_jobs: Any, seed: Any) -> None:
    """Refuse arguments that are wrong in themselves, before any work is done."""
    check_level(level)
    if interval not in METHODS:
        raise InputError(f"interval must be one of {', '.join(METHODS)}; found {interval!r}.")
    if not isinstance(log, BanditLog | PackedLog):
        raise InputError(f"evaluate takes (policies, log); found {type(log).__name__} as the log.{how_to_open(log)}")
    if not isinstance(draws, Resampling):
        raise InputError(f"resampling must be a poem.Resampling, such as poem.Resampling(folds=5); found {draws!r}.")
    for name, value in (("replicates", draws.replicates), ("seed", seed)):
        if not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"{name} must be a whole number, 0 or above; found {value!r}.")
    if not isinstance(n_jobs, int | None):
        raise InputError(f"n_jobs must be a number of threads, or -1 for all cores; found {n_jobs!r}.")


def _same_rows(estimated: PropensityFit, log: L) -> L:
    found = estimated.log if isinstance(estimated, PropensityFit) else None
    if not isinstance(found, type(log)) or len(found) != len(log):
        raise InputError("estimated must be what poem.estimate_propensities made of this very log.")
    return found


def _beside(logged: Evaluation, estimated: Evaluation) -> Evaluation:
    """Join the answers by logged and by estimated propensities; the names say which is which."""

    def named(name: str) -> str:
        return f"{name}, p estimated"

    lines = tuple(replace(line, policy=named(line.policy)) for line in estimated.lines)
    diagnostics = logged.diagnostics | {named(name): found for name, found in estimated.diagnostics.items()}
    shares = logged.shares | {named(name): share for name, share in estimated.shares.items()}
    return replace(logged, lines=logged.lines + lines, diagnostics=diagnostics, shares=shares)


def _estimators(given: Any) -> dict[str, Estimator]:
    if isinstance(given, str) and given == "all":
        return ALL
    many = list(given) if isinstance(given, list | tuple | set) else [given]
    found = {}
    for one in many:
        name, estimator = _named_estimator(one)
        found[name if name not in found else repr(estimator)] = estimator
    if not found:
        raise InputError(f"no estimator was given; choose from {', '.join(ALL)}.")
    return found


def _named_estimator(given: Any) -> tuple[str, Estimator]:
    """Return an estimator and what it is called; names count in any case."""
    if isinstance(given, Estimator):
        return _name_of(given), given
    name = BY_ANY_CASE.get(given.lower()) if isinstance(given, str) else None
    if name is None:
        raise InputError(
            f"there is no estimator {given!r}; choose from {', '.join(ALL)}, or pass one such as poem.IPS()."
        )
    return name, ALL[name]


def _name_of(estimator: Estimator) -> str:
    return f"clipped {estimator.name}" if is_clipped(estimator) else estimator.name
