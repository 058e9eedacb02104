"""From a log to a policy: hold out → calibrate → follow each learner's recipes → select → certify."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from poem.arrays import FloatArray
from poem.certificates import Certificate, known_logger
from poem.compute import OneBlasThread, Threads, count_threads
from poem.data import BanditLog
from poem.errors import InputError
from poem.estimators import Objective
from poem.evaluation import LossBounds, as_losses, calibrate, check_learnable, check_varied
from poem.learning.arguments import (
    Split,
    asked_for,
    check_asked,
    check_features,
    check_kinds,
    judge_of,
    main_estimator,
    splits_of,
    weights_of,
)
from poem.learning.certification import certificate_of
from poem.learning.checkpoint import Checkpoint, fingerprint
from poem.learning.contest import Contest
from poem.learning.held_out import Jury
from poem.learning.options import Selection
from poem.learning.plan import Plan, plan_of
from poem.learning.portfolio import CAUTIOUS, LOGGING, MULTIPLIERS, Lam
from poem.learning.result import Fit, Origin
from poem.learning.selection import Candidate, Table, choose, choose_for_certificate, choose_likely, rank
from poem.learning.training import Training
from poem.optimizers import LBFGS, AdaGrad, Optimizer
from poem.policies import FlooredPolicy, Policy, Record, made_log
from poem.progress import Progress

__all__ = ["MULTIPLIERS", "Fit", "Lam", "fit", "warm_up"]

PATIENCE = 2.0  # seconds after which a terminal is shown how far the work is


def fit(
    log: BanditLog,
    *,
    learners: Any = "auto",
    estimator: Objective | None = None,
    lam: Lam | None = None,
    l2: float | None = None,
    optimizer: Optimizer | None = None,
    loss_bounds: LossBounds = "auto",
    fit_intercept: bool = True,
    start: Policy | FlooredPolicy | FloatArray | None = None,
    logging_policy: Policy | FlooredPolicy | None = None,
    certify: bool = True,
    selection: Selection | None = None,
    n_jobs: int | None = -1,
    seed: int = 0,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Fit:
    """Learn a policy from a log, and certify on fresh rows that it is better than what was logged.

    By default, candidates of several learners compete on the first units of the log, in five folds. The best of them is
    learnt again from all of these rows and then certified on units that nothing has seen, by a lower bound on its gain.
    The bound holds for any number of rows, if propensities and loss bounds are right and units are independent (or rows
    are in the order of time). If it is not above 0, you get the logging policy back if you passed it, else no policy.

    ``estimator``, ``lam``, ``l2`` and ``optimizer`` ask for one learner of your own instead, chosen as in the
    paper and not certified: ``fit(log, lam="auto")`` is POEM, ``fit(log, lam=0)`` is IPS.

    Parameters
    ----------
    log : BanditLog
    learners : "auto", name, Learner, or several
        Of ips, poem, norm-poem, direct, dr, ix and ls; or :class:`poem.Learner` objects.
    estimator : Objective, optional
        The risk to minimise: ``IPS()``; ``SNIPS()`` for Norm-POEM; ``DoublyRobust("auto")``;
        ``ImplicitExploration()`` and ``LogSmoothing()`` instead of the clip.
    lam : "auto", float or sequence of float, optional
        λ of the variance penalty on the scaled loss. ``"auto"`` tries c·λ* for c = 1e-6 … 1 (POEM);
        0 is the plain estimator.
    l2 : float, optional
        Adds ½·l2·‖w − start‖² to the objective.
    optimizer : Optimizer, optional
        ``LBFGS()`` by default; ``AdaGrad()`` is the paper's stochastic variant.
    loss_bounds : (lowest, highest) or "auto"
        What a loss can be, or a reward in a log of rewards; ``"auto"`` takes the extremes of the log and says so in the
        result.
    fit_intercept : bool
        Add a constant feature.
    start : Policy or array, optional
        Where to start; w = 0, or what a learner finds best, by default. A portfolio has it as one more
        candidate, and as one more start.
    logging_policy : Policy, optional
        The policy that made the log: what you get back if nothing is certified. It also sharpens the certificate.
    certify : bool
        False returns the candidate with the lowest likely bound on its loss, learnt again from all rows, and certifies
        nothing.
    selection : Selection, optional
        Which rows are held out, how candidates are judged, and what is returned if none is good enough:
        ``poem.Selection(validation=0.25, confidence=0.9)``.
    n_jobs : int
        Threads; -1 is all cores. The answer does not depend on it.
    seed : int
        For the split and for stochastic optimizers.
    progress : bool, optional
        Show a line on stderr; by default on a terminal only, after two seconds.
    checkpoint : path, optional
        A folder for finished candidates; a fit that was interrupted resumes from it.
    """
    choice = Selection() if selection is None else selection
    check_kinds(log, estimator, optimizer, l2, choice, seed, n_jobs)
    check_learnable(log, choice.force)
    validation, confidence = choice.validation, choice.confidence
    structure = log.structure
    check_features(log, fit_intercept)
    begin = weights_of(start, "start", log, structure, fit_intercept)
    logging = weights_of(logging_policy, "logging_policy", log, structure, fit_intercept)
    chosen_learners, rule, own = asked_for(learners, estimator, lam, l2, optimizer, begin is not None, choice.select_by)
    doubly_robust = isinstance(rule, str) and rule == "dr" and choice.guard and validation is not None
    certifies = doubly_robust and certify
    check_asked(certify, choice.refit, choice.imitate)
    loss_bounds = as_losses(loss_bounds, log)
    digest = cache(log.fingerprint)  # the log is read for it once, if at all
    if certifies and isinstance(start, Policy) and start.record.log == digest():
        raise InputError(
            "start was learnt from this very log, so that no row of it is fresh. Pass a start from other rows, or "
            "certify=False."
        )
    plan = plan_of(log, validation, seed, certifies)

    splits = splits_of(plan.first, plan.validation, seed, by_unit=certifies or not own)
    held_out = [split.held for split in splits if split.held is not None]
    # Folds share the calibration of all that is learnt from; a single part to train on has its own, as in the paper.
    source, *others = (plan.first,) if len(splits) > 1 else (splits[0].train, *held_out)
    if not certifies:
        check_varied(source)
    calibration = calibrate(source, main_estimator(chosen_learners), loss_bounds, *others, *plan.rest)
    judge = judge_of(rule, calibration.clips)
    recipes = [recipe for learner in chosen_learners for recipe in learner.recipes()]
    if not held_out and len(recipes) > 1:
        raise InputError(
            "several candidates can be told apart on held-out rows only; pass a Selection with validation=0.25, "
            "or ask for one candidate, such as lam=0."
        )
    recipes += LOGGING.recipes() if certifies else []
    propensities = "estimated" if "estimated" in {part.propensities for part in (log, *held_out)} else "logged"
    settings = {
        "structure": repr(structure),
        "loss_bounds": loss_bounds,
        "fit_intercept": fit_intercept,
        "seed": seed,
    }
    record = Record(propensities=propensities, settings=settings)  # what those of all candidates begin with
    everything = {
        **record.to_data(),
        "validation": repr(validation),
        "recipes": [repr(recipe) for recipe in recipes],
        "choice": repr((rule, confidence, choice.guard, certify)),  # what is learnt afterwards depends on it
    }
    kept = Checkpoint(checkpoint, fingerprint(digest(), everything, (begin, logging)) if checkpoint else "")
    again = not certifies and (len(splits) > 1 or (doubly_robust and isinstance(validation, str | float)))
    threads = Threads(count_threads(n_jobs))
    known = None if logging_policy is None or logging is None else known_logger(logging_policy, logging)
    whole = Training(
        plan.first,
        structure,
        fit_intercept,
        calibration,
        given=begin,
        logging=logging,
        known=known,
        seed=seed,
        threads=threads,
    )
    policy: Policy | FlooredPolicy | None
    certificate = None
    with OneBlasThread(), _progress(progress, len(recipes) * len(splits) + (again or certifies)) as line:
        if certifies and isinstance(learners, str) and learners == "auto" and whole.lacks_support:
            more = [recipe for learner in CAUTIOUS for recipe in learner.recipes()]
            recipes = more + recipes
            line.total += len(more) * len(splits)
        jury = Jury(judge, calibration, certifies) if held_out else None
        contest = Contest(whole, splits, jury, recipes, record, kept, seed)
        candidates = contest.run(line)
        after = len(recipes) * len(splits)

        def learnt(training: Training, candidate: Candidate, earlier: Policy | None = None, number: int = 0) -> Policy:
            """Follow a recipe on more rows; if it goes wrong there and did not before, keep the earlier policy."""
            alone, place = [Split(training.log, None, None)], kept.beginning_at(after + number)
            (final,) = Contest(training, alone, None, [candidate.recipe], record, place, seed).run(line)
            if final.policy is None or set(final.problems) - set(candidate.problems):
                return earlier or contest.first_policy(candidate, line)
            return final.policy

        if certifies:
            chosen, certificate = _certified(candidates[:-1], plan, confidence, whole, learnt)
            line.total -= certificate is None  # nothing was worth learning again
            if certificate is not None and begin is not None:
                conditions = (*certificate.conditions, "the start was not learnt from rows of this log")
                certificate = replace(certificate, conditions=conditions)
            policy, origin = _to_return(certificate, logging_policy, choice.refit, choice.imitate)
        else:
            chosen, origin = choose_likely(candidates) if doubly_robust else choose(candidates, choice.guard), "learnt"
            policy = learnt(whole, chosen) if again else chosen.policy
        if origin in ("refitted", "imitation"):
            line.total += 1
            final = chosen if origin == "refitted" else candidates[-1]
            policy = learnt(whole.part(log, True), final, policy if isinstance(policy, Policy) else None, 1)
    result = Fit(
        policy=policy,
        chosen=chosen,
        table=Table(candidates, chosen, confidence if certifies else None),
        calibration=calibration,
        n_train=len(splits[0].train),
        n_validation=sum(len(held) for held in held_out),
        logged=None if jury is None else jury.logged(),
        n_rows=len(log),
        folds=len(splits),
        confidence=confidence if certifies else None,
        certificate=certificate,
        origin=origin,
        imitation=candidates[-1] if certifies else None,
        outcome=log.outcome,
        propensities=propensities,
        doubtful_logger=logging_policy is not None and made_log(logging_policy, log) is False,
    )
    return replace(result, policy=result.recorded(digest))


def _certified(
    candidates: Sequence[Candidate],
    plan: Plan,
    confidence: float,
    whole: Training,
    learnt: Callable[[Training, Candidate], Policy],
) -> tuple[Candidate, Certificate | None]:
    """Choose a candidate, learn it again from all rows that do not certify it, and certify it on the others."""
    found = choose_for_certificate(candidates, 1.0 - confidence, plan.most)
    if found is None or found.forecast is None:
        return min(candidates, key=rank), None
    rows, fresh = plan.cut(found, 1.0 - confidence)
    training = whole.part(rows, True)
    policy = learnt(training, found)
    return found, certificate_of(policy, training, fresh, found.forecast, confidence, plan)


def _to_return(
    certificate: Certificate | None, logging_policy: Policy | FlooredPolicy | None, refit: bool, imitate: bool
) -> tuple[Policy | FlooredPolicy | None, Origin]:
    """Return the policy that a fit ends with, as far as it is there, and what it is."""
    if certificate is not None and certificate.certified:
        return certificate.policy, "refitted" if refit else "certified"
    if logging_policy is not None:
        return logging_policy, "logging policy"
    return None, "imitation" if imitate else "none"


def _progress(wanted: bool | None, total: int) -> Progress:
    if wanted is None:
        return Progress("fit", total, sys.stderr.isatty(), after=PATIENCE)
    return Progress("fit", total, wanted)


def warm_up(log: BanditLog) -> None:
    """Compile or load all kernels for a log's kind, so that what is timed afterwards is learning."""
    few = log.take(np.arange(min(len(log), 200)))
    for optimizer in (LBFGS(max_iterations=2), AdaGrad(max_batches=2, min_epochs=1)):
        fit(few, lam=0.0, optimizer=optimizer, selection=Selection(guard=False, force=True))
