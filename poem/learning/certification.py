"""From a policy and rows that it has not seen to a certificate."""

from dataclasses import replace
from typing import Any

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.certificates import (
    UNORDERED,
    Certificate,
    Forecast,
    deviations,
    extremes,
    heavy_tail,
    interacting,
    known_logger,
)
from poem.compute import OneBlasThread, Threads, count_threads
from poem.data import BanditLog
from poem.errors import InputError
from poem.estimators import IPS
from poem.evaluation import PLURAL, Calibration, LossBounds, calibrate
from poem.learning.arguments import check_additive, check_features, check_kinds, weights_of
from poem.learning.held_out import HeldOut
from poem.learning.plan import Plan, conditions_of, plan_of
from poem.learning.sampled import check_apart, in_memory
from poem.learning.training import Training
from poem.packed import PackedLog
from poem.policies import NO_POLICY, FlooredPolicy, Policy, check_packed, was_trained_on
from poem.text import counted

KEPT = 0.8  # share of a log that certifies, if no earlier one helps
SURELY = 4.0  # standard errors above what chance explains
CERTAIN = 1e-12  # how far from 0 the logarithm of a propensity of 1 is kept
DIGITS = 12  # in which sums of copies agree
COPIES = 0.01  # share of the rows that certify that may be copies of others


def certify(
    policy: Policy | None,
    log: BanditLog | PackedLog,
    *,
    earlier: BanditLog | PackedLog | None = None,
    loss_bounds: LossBounds = "auto",
    confidence: float = 0.95,
    logging_policy: Policy | FlooredPolicy | None = None,
    additive: bool = False,
    n_jobs: int | None = -1,
    seed: int = 0,
) -> Certificate:
    """Certify that a policy is better than what was logged, on a log that it was not trained on.

    Parameters
    ----------
    policy : Policy
    log : BanditLog or PackedLog
        Rows that played no part in making the policy. Of a packed log, as many units are read as fit into an eighth of
        its memory: a random sample. The conditions of the certificate say how many rows these are.
    earlier : BanditLog or PackedLog, optional
        Other rows, such as those that the policy was trained on. They make the certificate sharper: what it expects
        of rewards and of the logging policy is learnt from them. By default, the first fifth of the log is used for it.
    loss_bounds : (lowest, highest) or "auto"
        What a loss can be: your promise. ``"auto"`` takes the extremes of the log, and the certificate says so.
    confidence : float
    logging_policy : Policy or FlooredPolicy, optional
        The policy that made the log, if it is known.
    additive : bool
        Losses are sums over labels: your promise, as in :class:`poem.Selection`.
    """
    if policy is None:
        raise InputError(NO_POLICY.format(name="the policy"))
    if not isinstance(policy, Policy):
        raise InputError(f"certify takes a poem.Policy; found {type(policy).__name__}. poem.Gate judges any other.")
    if isinstance(log, PackedLog) and isinstance(earlier, PackedLog):
        check_apart(log, earlier)
    conditions: tuple[str, ...] = ()
    whole: tuple[PackedLog, ...] = ()
    if isinstance(log, PackedLog):
        whole = (log,)
        check_packed(policy, log)
        _check_fresh(policy, log)
        log, conditions = in_memory(log)
    if isinstance(earlier, PackedLog):
        earlier, _ = in_memory(earlier)
    check_kinds(log, None, None, None, confidence, seed, n_jobs)
    log.need_propensities()
    policy.log_prob_of(log.take(np.arange(1)))  # says what does not fit
    _check_fresh(policy, log)
    check_features(log, policy.intercept)
    logging = weights_of(logging_policy, "logging_policy", log, policy.structure, policy.intercept)
    check_additive(additive, logging_policy, log, *(() if earlier is None else (earlier,)))
    plan = plan_of(log, KEPT, seed, True) if earlier is None else plan_of(earlier, log, seed, True)
    if not plan.rest:
        raise InputError("the log has one independent unit only; nothing can be certified on it. Log more units.")
    first, fresh = plan.first, plan.rest[0]
    calibration = calibrate(first, IPS(), loss_bounds, fresh, *whole)
    known = None if logging_policy is None else known_logger(logging_policy, logging)
    threads = Threads(count_threads(n_jobs))
    with OneBlasThread():
        training = Training(
            first,
            log.structure,
            policy.intercept,
            calibration,
            known=known,
            seed=seed,
            threads=threads,
            additive=additive,
        )
        seen = HeldOut(first, training, first.units(), True)
        foreseen = seen.forecast(policy, threads)
        found = certificate_of(policy, training, fresh, foreseen, confidence, plan)
    return replace(found, conditions=found.conditions + conditions)


def _check_fresh(policy: Policy, log: BanditLog | PackedLog) -> None:
    if was_trained_on(policy, log):
        raise InputError("the policy was learnt from this very log. Certify it on rows that it has not seen.")


def certificate_of(
    policy: Policy, training: Training, fresh: BanditLog, foreseen: Forecast, confidence: float, plan: Plan
) -> Certificate:
    """Certify a policy on fresh rows, with the help of the rows that it was learnt from."""
    calibration = training.calibration
    held = HeldOut(fresh, training, _as_they_came(fresh.units()), True, stream=1)
    evidence = held.evidence(policy, foreseen.form, training.threads)
    span = calibration.loss_high - calibration.loss_low
    conditions = conditions_of(fresh, calibration, plan) + (_promised(fresh) if foreseen.form.additive else ())
    found = evidence.certificate(policy, foreseen, confidence, span, conditions)
    losses = np.concatenate([training.log.loss, fresh.loss])
    together = _interactions(policy, training, held, fresh) if foreseen.form.additive else ()
    more = (
        unbounded(losses, calibration, fresh.outcome),
        _copied(training.log, fresh),
        _shuffled(plan),
        plan.doubts,
        together,
    )
    logged = found.logged if fresh.outcome == "loss" else 0.0 - found.logged
    return replace(found, logged=logged, objections=found.objections + sum(more, ()))


def _promised(fresh: BanditLog) -> tuple[str, str]:
    """Return what additive terms take for granted."""
    return (
        f"{PLURAL[fresh.outcome]} are sums over labels, as you said",
        "the policy that you passed as logging_policy= made the log",
    )


def _interactions(policy: Policy, training: Training, held: HeldOut, fresh: BanditLog) -> tuple[str, ...]:
    """Say that losses are not sums over labels, if labels surely change them together."""
    learnt = deviations(training.labels, training.loss, training.log.units()[training.layout.order])
    found = interacting([learnt, held.deviations(policy, training.threads)])
    if found is None:
        return ()
    which = " and ".join(repr(fresh.labels[label]) for label in found) or "several labels"
    return (
        f"{PLURAL[fresh.outcome]} are not sums over labels: {which} change them together, beyond chance. "
        "Leave additive= out",
    )


def _as_they_came(units: IntArray) -> IntArray:
    """Number units in the order of their first rows."""
    _, first, number = np.unique(units, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[number]


def _shuffled(plan: Plan) -> tuple[str, ...]:
    if not plan.unordered:
        return ()
    if plan.order == "hashed":
        return (
            "propensities change with time, so that the logging policy may have learnt from its own log, and what "
            "certifies of a packed log is drawn at random. Certify on a later log instead (poem.certify)",
        )
    return tuple(UNORDERED[order] for order in UNORDERED if order == plan.order)


def _copied(learnt: BanditLog, fresh: BanditLog) -> tuple[str, ...]:
    """Say that rows that certify are copies of others: more rows in one context are equal than chance explains."""
    keys = [_row_keys(log) for log in (learnt, fresh)]
    scale = [max(float(np.abs(key[of]).max()) for key in keys) or 1.0 for of in (0, 1)]  # one for both logs
    (place, row), (new_place, new_row) = [[np.round(key[of] / scale[of], DIGITS) for of in (0, 1)] for key in keys]
    _, one = np.unique(new_row, return_index=True)
    places, counts = np.unique(place, return_counts=True)
    where = np.minimum(np.searchsorted(places, new_place[one]), len(places) - 1)
    tries = np.where(places[where] == new_place[one], counts[where], 0)
    chance = -np.expm1(tries * np.log1p(-np.exp(np.minimum(fresh.log_propensity[one], -CERTAIN))))
    copies = int(np.isin(new_row[one], row).sum())
    spread = float(np.sqrt(max(float((chance * (1.0 - chance)).sum()), 1.0)))
    if copies - float(chance.sum()) <= max(SURELY * spread, COPIES * len(one)):
        return ()
    return (f"{copies:,} of the rows that certify are copies of rows that were learnt from. Drop the copies",)


def _row_keys(log: BanditLog) -> tuple[FloatArray, FloatArray]:
    """Return two numbers per row that are the same for copies: of the context, and of the whole row."""
    rng = np.random.default_rng(11)
    X = np.asarray(log.X @ rng.normal(size=log.n_features))[log.context]
    y = log.y.reshape(len(log), -1)
    return X, np.asarray(X + y @ rng.normal(size=y.shape[1]) + log.loss + log.log_propensity)


def unbounded(losses: Any, calibration: Calibration, outcome: str) -> tuple[str, ...]:
    """Say why bounds that were taken from the data cannot be believed, if that is so."""
    if calibration.bounds_from != "data":
        return ()
    name, tail, rare = PLURAL[outcome], heavy_tail(losses), extremes(losses)
    advice = "Pass loss_bounds= that hold for every row"
    if tail.heavy:
        cap = tail.cap if outcome == "loss" else 0.0 - tail.cap
        return (
            f"{name} have a heavy tail, so that those of the log are no bounds. {advice}, or cap them at {cap:.3g}",
        )
    if rare is not None:
        count = int(np.count_nonzero(rare.rows))
        rows_have = f"{counted(count, 'row')} {f'has an extreme {outcome}' if count == 1 else f'have extreme {name}'}"
        return (f"{rows_have}, so that the {name} of the log are no bounds. {advice}",)
    return ()
