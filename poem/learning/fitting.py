"""From a log to a policy: what users call."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from poem.arrays import FloatArray
from poem.compute import OneBlasThread
from poem.data import BanditLog
from poem.estimators import Objective
from poem.evaluation import LossBounds
from poem.learning.checkpoint import held_checkpoint
from poem.learning.options import Selection, checked_selection
from poem.learning.portfolio import MULTIPLIERS, Lam
from poem.learning.result import Fit
from poem.learning.sampled import in_parts
from poem.learning.stages import Stages, Wish
from poem.optimizers import LBFGS, AdaGrad, Optimizer
from poem.packed import PackedLog
from poem.policies import FlooredPolicy, Policy, check_packed, with_packed
from poem.progress import Progress

__all__ = ["MULTIPLIERS", "Fit", "Lam", "fit", "warm_up"]

PATIENCE = 2.0  # seconds after which a terminal is shown how far the work is


def fit(
    log: BanditLog | PackedLog,
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

    By default, candidates of several learners compete on the first units of the log: in five folds, or in large logs on
    a sample, and the best few on a larger one. The best of them is learnt again from all of these rows and then
    certified on units that nothing has seen, by a lower bound on its gain.
    The bound holds for any number of rows, if propensities and loss bounds are right and units are independent (or rows
    are in the order of time). If it is not above 0, you get the logging policy back if you passed it, else no policy.

    ``estimator``, ``lam``, ``l2`` and ``optimizer`` ask for one learner of your own instead, chosen as in the
    paper and not certified: ``fit(log, lam="auto")`` is POEM, ``fit(log, lam=0)`` is IPS.

    Parameters
    ----------
    log : BanditLog or PackedLog
        Of a packed log that does not fit into its memory, candidates compete on a sample of the units. The chosen
        recipe is then followed on all shards, except for those that are held out and certify it. A learner of your own
        is trained on all of these shards directly.
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
        A folder for finished candidates; a fit that was interrupted resumes from it. One fit uses it at a time; another
        one raises a BusyError.
    """
    choice, source, shards, packed = checked_selection(selection), None, None, None
    if isinstance(log, PackedLog):
        packed = log
        for name, policy in (("start", start), ("logging_policy", logging_policy)):
            check_packed(policy, log, name)
        own = not all(given is None for given in (estimator, lam, l2, optimizer))
        log, choice, source, shards = in_parts(log, choice, n_jobs, warm=not own)
    wish = Wish(
        log=log,
        learners=learners,
        estimator=estimator,
        lam=lam,
        l2=l2,
        optimizer=optimizer,
        loss_bounds=loss_bounds,
        fit_intercept=fit_intercept,
        start=start,
        logging_policy=logging_policy,
        certify=certify,
        selection=choice,
        n_jobs=n_jobs,
        seed=seed,
        checkpoint=checkpoint,
        source=source,
        shards=shards,
    )
    stages = Stages(wish)
    with held_checkpoint(checkpoint), OneBlasThread(), _progress(progress, stages.work) as line:
        found = stages.result(line)
    if packed is None or found.learnt is None:
        return found
    return replace(found, policy=with_packed(found.learnt, packed))


def _progress(wanted: bool | None, total: int) -> Progress:
    if wanted is None:
        return Progress("fit", total, sys.stderr.isatty(), after=PATIENCE)
    return Progress("fit", total, wanted)


def warm_up(log: BanditLog) -> None:
    """Compile or load all kernels for a log's kind, so that what is timed afterwards is learning."""
    few = log.take(np.arange(min(len(log), 200)))
    for optimizer in (LBFGS(max_iterations=2), AdaGrad(max_batches=2, min_epochs=1)):
        fit(few, lam=0.0, optimizer=optimizer, selection=Selection(guard=False, force=True))
