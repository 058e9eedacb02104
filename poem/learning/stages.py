"""The stages of one fit, each on what the ones before it have found: from checked arguments to a result."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from poem.arrays import FloatArray
from poem.certificates import known_logger
from poem.compute import Threads, count_threads
from poem.data import BanditLog, with_seen_contexts
from poem.errors import InputError
from poem.estimators import Estimator, Objective
from poem.evaluation import Calibration, LossBounds, calibrate, check_learnable, check_varied
from poem.learning.arguments import (
    asked_for,
    check_additive,
    check_asked,
    check_features,
    check_kinds,
    check_learners,
    judge_of,
    main_estimator,
    splits_of,
    weights_of,
)
from poem.learning.checkpoint import Allowed, Checkpoint, fingerprint
from poem.learning.contest import Contest
from poem.learning.ending import AnyPolicy, End
from poem.learning.ground import can_grow
from poem.learning.held_out import Jury
from poem.learning.options import Selection
from poem.learning.plan import Plan, plan_of
from poem.learning.portfolio import ADDITIVE, BOOSTED, CAUTIOUS, LOGGING, Lam, Learner, Recipe
from poem.learning.prospects import ordered_for_certificate
from poem.learning.result import Fit
from poem.learning.rungs import Rung, finalists, latest, rungs_of
from poem.learning.selection import Candidate, Table, ordered_by_likely
from poem.learning.shards import Shards, Source
from poem.learning.training import Training
from poem.optimizers import Optimizer
from poem.policies import FlooredPolicy, Policy, Record, made_log, was_trained_on, without_floor
from poem.progress import Progress


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
    source: Source | None = None  # the packed log that it comes from
    shards: Shards | None = None  # what the log is a sample of


class Stages:
    """One fit: ``__init__`` checks and plans; what later stages find is computed when it is first asked for.

    A ``plan`` comes from earlier stages that have kept ``done`` candidates.
    """

    def __init__(self, wish: Wish, plan: Plan | None = None, done: int = 0) -> None:
        self.wish, self.log, self.choice, self.done = wish, wish.log, wish.selection, done
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
        check_learners(learners, self.choice.additive, self.doubly_robust)
        self._check_start()
        self.plan: Plan = plan or plan_of(self.log, self.choice.validation, wish.seed, self.certifies)
        if wish.shards is not None and self.certifies:
            self.plan = replace(self.plan, order="hashed", unordered=wish.shards.adaptive)
        self.own = own
        self.rungs: list[Rung] = self._rungs(by_unit=self.certifies or not own)
        self.held_out = [split.held for split in self.rungs[0].splits if split.held is not None]
        self.calibration: Calibration = self._calibrated(learners)
        self.judge: Estimator = judge_of(self.rule, self.calibration.clips)
        self.recipes: list[Recipe] = self._recipes(learners)
        validation = self.choice.validation
        self.again = not self.certifies and (
            len(self.rungs[0].splits) > 1
            or (self.doubly_robust and isinstance(validation, str | float))
            or (wish.shards is not None and wish.shards.warm)
        )
        self.threads = Threads(count_threads(wish.n_jobs))

    # ---- arguments --------------------------------------------------------------------------

    def _check(self) -> None:
        wish = self.wish
        check_kinds(self.log, wish.estimator, wish.optimizer, wish.l2, self.choice.confidence, wish.seed, wish.n_jobs)
        check_learnable(self.log, self.choice.force)
        check_features(self.log, wish.fit_intercept)
        _ = self.begin, self._logging  # says what does not fit
        given = (self.choice.validation,) if isinstance(self.choice.validation, BanditLog) else ()
        check_additive(self.choice.additive, wish.logging_policy, self.log, *given)

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
        return self.log.fingerprint() if self.wish.source is None else self.wish.source.fingerprint

    def _learnt_from(self) -> str:
        """Return what the record of a policy says of its log: of a packed one in memory, both fingerprints."""
        in_memory = self.wish.source is not None and self.wish.shards is None
        return f"{self.log.fingerprint()} {self.digest}" if in_memory else self.digest

    def _check_start(self) -> None:
        start = self.wish.start
        if not (self.certifies and isinstance(start, Policy | FlooredPolicy)):
            return
        if without_floor(start).record.log is not None and was_trained_on(start, self.digest):
            raise InputError(
                "start was learnt from this very log, so that no row of it is fresh. Pass a start from other rows, or "
                "certify=False."
            )

    def _rungs(self, by_unit: bool) -> list[Rung]:
        """Return what candidates compete on: more and more rows, or splits of all of them at once."""
        first, validation, seed = self.plan.first, self.plan.validation, self.wish.seed
        found = rungs_of(first, seed) if self.doubly_robust and isinstance(validation, str) else []
        return found or [Rung(first, tuple(splits_of(first, validation, seed, by_unit=by_unit)))]

    def _calibrated(self, learners: Sequence[Learner]) -> Calibration:
        """Folds share the calibration of all that is learnt from; a single part has its own, as in the paper."""
        plan, splits = self.plan, self.rungs[0].splits
        shared = len(splits) > 1 or len(self.rungs) > 1
        source, *others = (plan.first,) if shared else (splits[0].train, *self.held_out)
        if not self.certifies:
            check_varied(source)
        everything = source if self.wish.shards is None else self.wish.shards.log
        return calibrate(everything, main_estimator(learners), self.wish.loss_bounds, *others, *plan.rest)

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
            "additive": self.choice.additive,
            "seed": self.wish.seed,
        }
        return Record(propensities=self.propensities, settings=settings)

    @cached_property
    def kept(self) -> Checkpoint:
        """Finished candidates on disk, of this log and these settings."""
        if not self.wish.checkpoint:
            return Checkpoint(self.wish.checkpoint, "")
        choice = (self.rule, self.choice.confidence, self.choice.guard, self.wish.certify)
        settings = {
            **self.record.to_data(),
            "recipes": [repr(recipe) for recipe in self.recipes],
            "choice": repr(choice),  # what is learnt afterwards depends on it
        }
        source, held = self.wish.source, self.choice.validation
        rows = {"validation": held.fingerprint() if isinstance(held, BanditLog) else repr(held)}
        rows |= {} if source is None else {"sample": self.log.fingerprint()}
        every, besides = (
            fingerprint(self.digest, what, (self.begin, self._logging)) for what in (settings | rows, settings)
        )
        allowed = None if source is None else Allowed(source.memory, besides)
        return Checkpoint(self.wish.checkpoint, every, allowed).beginning_at(self.done)

    @cached_property
    def whole(self) -> Training:
        """The rows that all candidates compete on."""
        logger, weights = self.wish.logging_policy, self._logging
        return Training(
            self.rungs[0].log,
            self.log.structure,
            self.wish.fit_intercept,
            self._calibration(self.rungs[0]),
            given=self.begin,
            logging=weights,
            known=None if logger is None else known_logger(logger, weights),
            seed=self.wish.seed,
            threads=self.threads,
            shards=self.wish.shards if self.own else None,
            keeper=self.kept.keeper_named("direct"),
            additive=self.choice.additive,
        )

    def _training(self, rung: Rung) -> Training:
        """The rows of one rung."""
        return self.whole.part(rung.log, True, self._calibration(rung))

    def _calibration(self, rung: Rung) -> Calibration:
        """λ* grows with the square root of the rows."""
        if len(self.rungs) == 1 and (self.wish.shards is None or self.own):
            return self.calibration
        share = len(rung.log) / len(self.plan.first if self.wish.shards is None else self.wish.shards.log)
        return replace(self.calibration, lam_star=self.calibration.lam_star * share**0.5)

    def again_on(self, log: BanditLog) -> Training:
        """Return rows to learn the chosen recipe from again."""
        rows = log if len(self.rungs) == 1 else with_seen_contexts(log)
        return self.whole.part(rows, True, self.calibration, self.wish.shards)

    @property
    def work(self) -> int:
        """How many candidates are learnt, as far as it is known before."""
        return sum(map(self.work_of, self.rungs)) + (self.again or self.certifies)

    def work_of(self, rung: Rung) -> int:
        """Return how many policies are learnt from the rows of a rung, at the most."""
        return len(rung.splits) * min(len(self.recipes), rung.most + self.certifies)

    # ---- work -------------------------------------------------------------------------------

    def result(self, line: Progress) -> Fit:
        """Learn, judge, choose and certify."""
        shards = self.wish.shards
        if shards is not None:
            shards.backend.line = line
        _ = self.kept  # another fit's folder is refused before any work; further learners follow from the log
        self._add_by_log(line)
        contest, rounds = self._contests(line)
        end = End(self, contest, rounds[-1], line)
        wider = end.wider() if self.certifies else None
        if wider is not None:
            again = Stages(self.wish, wider, self.done + sum(map(self.work_of, self.rungs)))
            line.total += again.work - 1
            return again.result(line)
        chosen, certificate, policy, origin = end.certified() if self.certifies else end.learnt()
        confidence = self.choice.confidence if self.certifies else None
        logger, outcome = self.wish.logging_policy, self.log.outcome
        logged = None if contest.jury is None else contest.jury.logged().as_outcome(outcome)
        shown = {id(one): one.as_outcome(outcome) for one in latest(self.recipes, rounds)}
        result = Fit(
            policy=policy,
            chosen=shown[id(chosen)],
            table=Table(list(shown.values()), shown[id(chosen)], confidence, outcome),
            calibration=self.calibration,
            n_train=len(shards.log) if shards is not None and self.own else len(contest.splits[0].train),
            n_validation=sum(len(split.held) for split in contest.splits if split.held is not None),
            logged=logged,
            n_rows=len(self.log) if shards is None else shards.n_rows,
            n_sample=None if shards is None or self.own else len(self.log),
            folds=len(contest.splits),
            confidence=confidence,
            certificate=certificate,
            origin=origin,
            imitation=shown[id(end.candidates[-1])] if self.certifies else None,
            outcome=outcome,
            propensities=self.propensities,
            doubtful_logger=logger is not None and made_log(logger, self.log) is False,
        )
        return replace(result, policy=result.recorded(self._learnt_from))

    def _add_by_log(self, line: Progress) -> None:
        """Let learners compete that suit the log: with trees where these help, cautious and additive ones."""
        if not (isinstance(self.wish.learners, str) and self.wish.learners == "auto" and self.doubly_robust):
            return
        trees = self.whole.strengths.boosting
        helps = trees is not None and (trees.ahead or self.log.structure.described)
        grows = helps and can_grow(self.log, self.wish.fit_intercept)
        learners: tuple[Learner, ...] = BOOSTED if grows else ()
        learners += (ADDITIVE,) if self.choice.additive else ()
        learners += CAUTIOUS if self.certifies and self.whole.lacks_support else ()
        more = [recipe for learner in learners for recipe in learner.recipes()]
        before = self.work
        self.recipes = more + self.recipes
        line.total += self.work - before

    def _contests(self, line: Progress) -> tuple[Contest, list[list[Candidate]]]:
        """Let candidates compete, rung by rung; return the last contest, and the candidates of all of them."""
        contest = self._contest(self.rungs[0], self.recipes, 0)
        rounds, number = [contest.run(line)], self.work_of(self.rungs[0])
        for rung in self.rungs[1:]:
            recipes = self._going_on(rounds[-1], rung.most)
            line.total += len(recipes) * len(rung.splits) - self.work_of(rung)
            if recipes:
                contest = self._contest(rung, recipes, number)
                rounds.append(contest.run(line))
            number += self.work_of(rung)
        return contest, rounds

    def _contest(self, rung: Rung, recipes: Sequence[Recipe], number: int) -> Contest:
        """Return the contest of some recipes; the first of its policies has a number in the checkpoint."""
        largest = None if rung.log is self.plan.first else float(np.bincount(self.plan.first.units()).max())
        jury = Jury(self.judge, self.calibration, self.certifies, largest) if self.held_out else None
        training, kept = self._training(rung), self.kept.beginning_at(number)
        return Contest(training, rung.splits, jury, recipes, self.record, kept, self.wish.seed)

    def _going_on(self, candidates: Sequence[Candidate], most: int) -> list[Recipe]:
        """Return the recipes that go on to the next rung; none if the choice is made."""
        if self.certifies:
            ordered = ordered_for_certificate(candidates[:-1], 1.0 - self.choice.confidence, self.plan.most)
        else:
            ordered = ordered_by_likely(candidates)
        found = [one.recipe for one in finalists(ordered, most)]
        return [*found, *(self.recipes[-1:] if self.certifies else [])] if len(found) > 1 else []
