"""From a log to a policy: hold out → calibrate → follow each learner's recipes → select → refit on all rows."""

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poem.arguments import (
    Split,
    Validation,
    asked_for,
    check_features,
    check_kinds,
    checked_structure,
    judge_of,
    main_estimator,
    splits_of,
    weights_of,
)
from poem.arrays import FloatArray
from poem.calibrate import Calibration, LossBounds, calibrate, check_learnable
from poem.checkpoint import Checkpoint, fingerprint
from poem.contest import Contest, HeldOut, Jury
from poem.errors import InputError
from poem.estimators import Estimator, Objective
from poem.floor import FlooredPolicy
from poem.kernel import OneBlasThread, Threads, count_threads
from poem.learners import LOGGING, MULTIPLIERS, Lam, Recipe
from poem.log import BanditLog
from poem.optimizers import LBFGS, AdaGrad, Optimizer
from poem.policy import Policy
from poem.progress import Progress
from poem.result import Fit
from poem.select import Candidate, Table, choose, choose_safely
from poem.structures import Structure
from poem.training import Training

__all__ = ["MULTIPLIERS", "Fit", "Lam", "fit", "warm_up"]

PATIENCE = 2.0  # seconds after which a terminal is shown how far the work is


def fit(
    log: BanditLog,
    structure: Structure | None = None,
    *,
    learners: Any = "auto",
    estimator: Objective | None = None,
    lam: Lam | None = None,
    l2: float | None = None,
    optimizer: Optimizer | None = None,
    loss_bounds: LossBounds = "auto",
    fit_intercept: bool = True,
    validation: Validation = "auto",
    select_by: Literal["dr", "ips", "snips"] | Estimator | None = None,
    confidence: float = 0.95,
    start: Policy | FlooredPolicy | FloatArray | None = None,
    logging_policy: Policy | FlooredPolicy | None = None,
    guard: bool = True,
    force: bool = False,
    n_jobs: int | None = -1,
    seed: int = 0,
    progress: bool | None = None,
    checkpoint: str | Path | None = None,
) -> Fit:
    """Learn the best policy that a log supports: one that is surely better than what was logged, or else none.

    With no other word, candidates of several learners are compared on held-out contexts by their doubly robust
    estimates; of those that are surely better than what was logged, the one with the best bound on its loss is learnt
    again from all rows. If there is none, the policy is the logging policy's own behaviour, and the result says so.

    ``estimator``, ``lam``, ``l2`` and ``optimizer`` ask for one learner of one's own instead, chosen as in the
    paper: ``fit(log, lam="auto")`` is POEM, ``fit(log, lam=0)`` is IPS.

    Parameters
    ----------
    log : BanditLog
    structure : Structure, optional
        Inferred from y: (n, q) of 0/1 is MultiLabel, (n,) is MultiClass.
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
        What a loss can be; ``"auto"`` takes the extremes of the log and says so in the result.
    fit_intercept : bool
        Add a constant feature.
    validation : "auto", int, float, BanditLog or None
        What candidates are judged on: a number of folds (each judged by a policy that has not seen it), a share
        to hold out once, a log of its own, or nothing. ``"auto"`` is five folds of contexts or groups for
        ``learners``, and a quarter of the rows for a learner of one's own, as in the paper. After folds, and after
        the safe rule's share, the chosen recipe is followed on all rows.
    select_by : "dr", "ips", "snips" or Estimator
        How held-out rows are judged. ``"dr"``, the default for ``learners``, is the safe rule above; any
        other takes the lowest estimate: ``"ips"`` is the paper's rule, and the default for a learner of one's own.
    confidence : float
        How sure it must be that the chosen policy is better than what was logged.
    start : Policy or array, optional
        Where to start; w = 0, or what a learner finds best, by default. A portfolio has it as one more
        candidate, and as one more start.
    logging_policy : Policy, optional
        The policy that made the log, to fall back on; it is imitated if not given. The policies of a fit have no
        floor: what is left of a floored one is its main part.
    guard : bool
        Never choose a policy that avoids the log, and one with other problems only if there is
        nothing else. False takes the lowest estimate, whatever it is.
    force : bool
        Go on although the logging policy was deterministic.
    n_jobs : int
        Threads; -1 is all cores. The answer does not depend on it.
    seed : int
        For the split and for stochastic optimizers.
    progress : bool, optional
        Show a line on stderr; by default on a terminal only, after two seconds.
    checkpoint : path, optional
        A folder for finished candidates; a fit that was interrupted resumes from it.
    """
    check_kinds(log, estimator, optimizer, l2, confidence, seed, n_jobs)
    check_learnable(log, force)
    structure = checked_structure(structure, log)
    check_features(log, fit_intercept)
    begin = weights_of(start, "start", log, structure, fit_intercept)
    logging = weights_of(logging_policy, "logging_policy", log, structure, fit_intercept)
    chosen_learners, rule, own = asked_for(learners, estimator, lam, l2, optimizer, begin is not None, select_by)
    safe = isinstance(rule, str) and rule == "dr"

    splits = splits_of(log, validation, seed, by_unit=safe or not own)
    held_out = [split.held for split in splits if split.held is not None]
    judge = judge_of(rule, splits[0].train)
    # Folds share the calibration of the whole log; a single part to train on has its own, as in the paper.
    source, *others = (log,) if len(splits) > 1 else (splits[0].train, *held_out)
    calibration = calibrate(source, main_estimator(chosen_learners), loss_bounds, *others)
    recipes = [recipe for learner in chosen_learners for recipe in learner.recipes()]
    if not held_out and len(recipes) > 1:
        raise InputError(
            "several candidates can be told apart on held-out rows only; pass validation=0.25, or ask for one "
            "candidate, such as lam=0."
        )
    falls_back = safe and guard and bool(held_out)
    recipes += LOGGING.recipes() if falls_back else []
    settings = {
        "structure": repr(structure),
        "loss_bounds": loss_bounds,
        "fit_intercept": fit_intercept,
        "seed": seed,
        "propensities": "estimated" if "estimated" in {part.propensities for part in (log, *held_out)} else "logged",
    }
    everything = {
        **settings,
        "validation": repr(validation),
        "recipes": [repr(recipe) for recipe in recipes],
        "choice": repr((rule, confidence, guard)),  # what is refitted depends on it
    }
    kept = Checkpoint(checkpoint, fingerprint(log, everything, (begin, logging)) if checkpoint else "")
    again = len(splits) > 1 or (safe and not isinstance(validation, BanditLog | None))
    threads = Threads(count_threads(n_jobs))
    whole = Training(
        log, structure, fit_intercept, calibration, given=begin, logging=logging, seed=seed, threads=threads
    )
    with OneBlasThread(), _progress(progress, len(recipes) * len(splits) + again) as line:
        trainings = [whole.part(split.train, _needs_model(judge, recipes)) for split in splits]
        for training in trainings:
            training.prepare(recipes)
        jury = _jury(judge, splits, trainings, calibration)
        candidates = Contest(trainings, jury, recipes, settings, kept, seed).run(line)
        sure = None
        if falls_back:
            found, sure = choose_safely(candidates[:-1], confidence, jury.successes() if jury else len(log))
        else:
            found = choose(candidates, guard)
        chosen = candidates[-1] if found is None else found
        kept = kept.beginning_at(len(recipes) * len(splits))
        policy = _refitted(whole, chosen, settings, kept, seed, line) if again else chosen.policy
    result = Fit(
        policy=policy,
        chosen=chosen,
        table=Table(candidates, chosen, confidence if falls_back else None),
        calibration=calibration,
        n_train=len(splits[0].train),
        n_validation=sum(len(held) for held in held_out),
        logged=None if jury is None else jury.logged(),
        folds=len(splits),
        confidence=confidence if safe else None,
        sure=sure,
        fell_back=found is None,
        imitated=logging is None,
        refitted=policy is not chosen.policy,
        outcome=log.outcome,
    )
    return replace(result, policy=result.recorded(log))


def _needs_model(judge: Estimator, recipes: Sequence[Recipe]) -> bool:
    return judge.needs_model or any(recipe.needs_model for recipe in recipes)


def _jury(
    judge: Estimator, splits: Sequence[Split], trainings: Sequence[Training], calibration: Calibration
) -> Jury | None:
    """Return who judges the candidates; None if nothing was held out."""
    folds = [
        HeldOut(split.held, training, split.units, judge.needs_model)
        for split, training in zip(splits, trainings, strict=True)
        if split.held is not None and split.units is not None
    ]
    return Jury(judge, folds, calibration) if folds else None


def _refitted(
    whole: Training, chosen: Candidate, settings: dict[str, Any], kept: Checkpoint, seed: int, line: Progress
) -> Policy:
    """Follow the chosen recipe on all rows."""
    whole.prepare([chosen.recipe])
    (final,) = Contest([whole], None, [chosen.recipe], settings, kept, seed).run(line)
    # If the same recipe goes wrong on all rows where it did not on a part of them, the part's policy is safer.
    return chosen.policy if set(final.problems) - set(chosen.problems) else final.policy


def _progress(wanted: bool | None, total: int) -> Progress:
    if wanted is None:
        return Progress("fit", total, sys.stderr.isatty(), after=PATIENCE)
    return Progress("fit", total, wanted)


def warm_up(log: BanditLog) -> None:
    """Compile or load all kernels for a log's kind, so that what is timed afterwards is learning."""
    few = log.take(np.arange(min(len(log), 200)))
    for optimizer in (LBFGS(max_iterations=2), AdaGrad(max_batches=2, min_epochs=1)):
        fit(few, lam=0.0, optimizer=optimizer, guard=False, force=True)
