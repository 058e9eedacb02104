"""The stages of one fit, each on what the ones before it have found: from checked arguments to a result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from poem.arrays import FloatArray
from poem.certificates import Certificate, known_logger
from poem.compute import Threads, count_threads
from poem.data import BanditLog
from poem.errors import InputError
from poem.estimators import Estimator, Objective
from poem.evaluation import Calibration, LossBounds, calibrate, check_learnable, check_varied
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
from poem.learning.portfolio import CAUTIOUS, LOGGING, Lam, Learner, Recipe
from poem.learning.result import Fit, Origin
from poem.learning.selection import Candidate, Table, choose, choose_for_certificate, choose_likely, rank
from poem.learning.training import Training
from poem.optimizers import Optimizer
from poem.policies import FlooredPolicy, Policy, Record, made_log, was_trained_on, without_floor
from poem.progress import Progress

AnyPolicy = Policy | FlooredPolicy


@dataclass(frozen=True)
class Wish:
    """The arguments of :func:`poem.fit`, by the same names."""

    log: BanditLog
    learners: Any
    estimator: Objective | None
    lam: Lam | None
    l2: float | None
    optimizer: Optimizer | None
    loss_bounds: LossBounds
    fit_intercept: bool
    start: AnyPolicy | FloatArray | None
    logging_policy: AnyPolicy | None
    certify: bool
    selection: Selection
    n_jobs: int | None
    seed: int
    checkpoint: str | Path | None


class Stages:
    """One fit: ``__init__`` checks and plans; what later stages find is computed when it is first asked for."""

    def __init__(self, wish: Wish) -> None:
        self.wish, self.log, self.choice = wish, wish.log, wish.selection
        self._check()
        learners, self.rule, own = asked_for(
            wish.learners,
            wish.estimator,
            wish.lam,
            wish.l2,
            wish.optimizer,
            self.begin is not None,
            self.choice.select_by,
        )
        held_out = self.choice.guard and self.choice.validation is not None
        self.doubly_robust = isinstance(self.rule, str) and self.rule == "dr" and held_out
        self.certifies = self.doubly_robust and wish.certify
        check_asked(wish.certify, self.choice.refit, self.choice.imitate)
        self._check_start()
        self.plan: Plan = plan_of(self.log, self.choice.validation, wish.seed, self.certifies)
        self.splits: list[Split] = splits_of(
            self.plan.first, self.plan.validation, wish.seed, by_unit=self.certifies or not own
        )
        self.held_out = [split.held for split in self.splits if split.held is not None]
        self.calibration: Calibration = self._calibrated(learners)
        self.judge: Estimator = judge_of(self.rule, self.calibration.clips)
        self.recipes: list[Recipe] = self._recipes(learners)
        validation = self.choice.validation
        self.again = not self.certifies and (
            len(self.splits) > 1 or (self.doubly_robust and isinstance(validation, str | float))
        )
        self.threads = Threads(count_threads(wish.n_jobs))

    # ---- arguments --------------------------------------------------------------------------

    def _check(self) -> None:
        wish = self.wish
        check_kinds(self.log, wish.estimator, wish.optimizer, wish.l2, self.choice.confidence, wish.seed, wish.n_jobs)
        check_learnable(self.log, self.choice.force)
        check_features(self.log, wish.fit_intercept)
        _ = self.begin, self._logging  # says what does not fit

    @cached_property
    def begin(self) -> FloatArray | None:
        """The weights to start from, if they were given."""
        return self._weights(self.wish.start, "start")

    @cached_property
    def _logging(self) -> FloatArray | None:
        return self._weights(self.wish.logging_policy, "logging_policy")

    def _weights(self, policy: Any, name: str) -> FloatArray | None:
        return weights_of(policy, name, self.log, self.log.structure, self.wish.fit_intercept)

    @cached_property
    def digest(self) -> str:
        """The log's own, for which it is read once, if at all."""
        return self.log.fingerprint()

    def _check_start(self) -> None:
        start = self.wish.start
        if not (self.certifies and isinstance(start, Policy | FlooredPolicy)):
            return
        if without_floor(start).record.log is not None and was_trained_on(start, self.digest):
            raise InputError(
                "start was learnt from this very log, so that no row of it is fresh. Pass a start from other rows, or "
                "certify=False."
            )

    def _calibrated(self, learners: Sequence[Learner]) -> Calibration:
        """Folds share the calibration of all that is learnt from; a single part has its own, as in the paper."""
        plan, splits = self.plan, self.splits
        source, *others = (plan.first,) if len(splits) > 1 else (splits[0].train, *self.held_out)
        if not self.certifies:
            check_varied(source)
        return calibrate(source, main_estimator(learners), self.wish.loss_bounds, *others, *plan.rest)

    def _recipes(self, learners: Sequence[Learner]) -> list[Recipe]:
        recipes = [recipe for learner in learners for recipe in learner.recipes()]
        if not self.held_out and len(recipes) > 1:
            raise InputError(
                "several candidates can be told apart on held-out rows only; pass a Selection with validation=0.25, "
                "or ask for one candidate, such as lam=0."
            )
        return recipes + (LOGGING.recipes() if self.certifies else [])

    # ---- what candidates share --------------------------------------------------------------

    @property
    def propensities(self) -> str:
        """Where the propensities come from."""
        return "estimated" if "estimated" in {part.propensities for part in (self.log, *self.held_out)} else "logged"

    @cached_property
    def record(self) -> Record:
        """What the records of all candidates begin with."""
        settings = {
            "structure": repr(self.log.structure),
            "loss_bounds": self.wish.loss_bounds,
            "fit_intercept": self.wish.fit_intercept,
            "seed": self.wish.seed,
        }
        return Record(propensities=self.propensities, settings=settings)

    @cached_property
    def kept(self) -> Checkpoint:
        """Finished candidates on disk, of this log and these settings."""
        if not self.wish.checkpoint:
            return Checkpoint(self.wish.checkpoint, "")
        choice = (self.rule, self.choice.confidence, self.choice.guard, self.wish.certify)
        everything = {
            **self.record.to_data(),
            "validation": repr(self.choice.validation),
            "recipes": [repr(recipe) for recipe in self.recipes],
            "choice": repr(choice),  # what is learnt afterwards depends on it
        }
        return Checkpoint(self.wish.checkpoint, fingerprint(self.digest, everything, (self.begin, self._logging)))

    @cached_property
    def whole(self) -> Training:
        """All rows that candidates compete on."""
        logger, weights = self.wish.logging_policy, self._logging
        return Training(
            self.plan.first,
            self.log.structure,
            self.wish.fit_intercept,
            self.calibration,
            given=self.begin,
            logging=weights,
            known=None if logger is None or weights is None else known_logger(logger, weights),
            seed=self.wish.seed,
            threads=self.threads,
        )

    @property
    def work(self) -> int:
        """How many candidates are learnt, as far as it is known before."""
        return len(self.recipes) * len(self.splits) + (self.again or self.certifies)

    # ---- work -------------------------------------------------------------------------------

    def result(self, line: Progress) -> Fit:
        """Learn, judge, choose and certify."""
        _ = self.kept  # another fit's folder is refused before any work; cautious learners follow from the log
        self._add_cautious(line)
        jury = Jury(self.judge, self.calibration, self.certifies) if self.held_out else None
        contest = Contest(self.whole, self.splits, jury, self.recipes, self.record, self.kept, self.wish.seed)
        end = _End(self, contest, contest.run(line), line)
        chosen, certificate, policy, origin = end.certified() if self.certifies else end.learnt()
        confidence = self.choice.confidence if self.certifies else None
        logger = self.wish.logging_policy
        result = Fit(
            policy=policy,
            chosen=chosen,
            table=Table(end.candidates, chosen, confidence),
            calibration=self.calibration,
            n_train=len(self.splits[0].train),
            n_validation=sum(len(held) for held in self.held_out),
            logged=None if jury is None else jury.logged(),
            n_rows=len(self.log),
            folds=len(self.splits),
            confidence=confidence,
            certificate=certificate,
            origin=origin,
            imitation=end.candidates[-1] if self.certifies else None,
            outcome=self.log.outcome,
            propensities=self.propensities,
            doubtful_logger=logger is not None and made_log(logger, self.log) is False,
        )
        return replace(result, policy=result.recorded(lambda: self.digest))

    def _add_cautious(self, line: Progress) -> None:
        """Let cautious learners compete where the logging policy never chose some outputs."""
        portfolio = isinstance(self.wish.learners, str) and self.wish.learners == "auto"
        if self.certifies and portfolio and self.whole.lacks_support:
            more = [recipe for learner in CAUTIOUS for recipe in learner.recipes()]
            self.recipes = more + self.recipes
            line.total += len(more) * len(self.splits)


Ending = tuple[Candidate, Certificate | None, AnyPolicy | None, Origin]


@dataclass(frozen=True)
class _End:
    """From judged candidates to the policy that is returned."""

    stages: Stages
    contest: Contest
    candidates: Sequence[Candidate]
    line: Progress

    def learnt(self) -> Ending:
        """Choose without a certificate, and learn the chosen one from all rows."""
        stages = self.stages
        chosen = (
            choose_likely(self.candidates) if stages.doubly_robust else choose(self.candidates, stages.choice.guard)
        )
        policy = self._again(stages.whole, chosen) if stages.again else chosen.policy
        return chosen, None, policy, "learnt"

    def certified(self) -> Ending:
        """Certify the best candidate on rows that nothing has seen, and say what is returned."""
        stages, choice = self.stages, self.stages.choice
        chosen, certificate = self._certificate()
        if certificate is None:
            self.line.total -= 1  # nothing was worth learning again
        elif stages.begin is not None:
            conditions = (*certificate.conditions, "the start was not learnt from rows of this log")
            certificate = replace(certificate, conditions=conditions)
        policy, origin = _to_return(certificate, stages.wish.logging_policy, choice.refit, choice.imitate)
        if origin in ("refitted", "imitation"):
            self.line.total += 1
            final, earlier = chosen if origin == "refitted" else self.candidates[-1], policy
            training = stages.whole.part(stages.log, True)
            policy = self._again(training, final, earlier if isinstance(earlier, Policy) else None, 1)
        return chosen, certificate, policy, origin

    def _certificate(self) -> tuple[Candidate, Certificate | None]:
        """Choose a candidate, learn it again from all rows that do not certify it, and certify it on the others."""
        plan, confidence, candidates = self.stages.plan, self.stages.choice.confidence, self.candidates[:-1]
        found = choose_for_certificate(candidates, 1.0 - confidence, plan.most)
        if found is None or found.forecast is None:
            return min(candidates, key=rank), None
        rows, fresh = plan.cut(found, 1.0 - confidence)
        training = self.stages.whole.part(rows, True)
        policy = self._again(training, found)
        return found, certificate_of(policy, training, fresh, found.forecast, confidence, plan)

    def _again(
        self, training: Training, candidate: Candidate, earlier: Policy | None = None, number: int = 0
    ) -> Policy:
        """Follow a recipe on more rows; if it goes wrong there and did not before, keep the earlier policy."""
        stages = self.stages
        place = stages.kept.beginning_at(len(stages.recipes) * len(stages.splits) + number)
        alone = [Split(training.log, None, None)]
        again = Contest(training, alone, None, [candidate.recipe], stages.record, place, stages.wish.seed)
        (final,) = again.run(self.line)
        if final.policy is None or set(final.problems) - set(candidate.problems):
            return earlier or self.contest.first_policy(candidate, self.line)
        return final.policy


def _to_return(
    certificate: Certificate | None, logging_policy: AnyPolicy | None, refit: bool, imitate: bool
) -> tuple[AnyPolicy | None, Origin]:
    """Return the policy that a fit ends with, as far as it is there, and what it is."""
    if certificate is not None and certificate.certified:
        return certificate.policy, "refitted" if refit else "certified"
    if logging_policy is not None:
        return logging_policy, "logging policy"
    return None, "imitation" if imitate else "none"
