"""Recipes × folds → candidates, several at a time, kept on disk if wanted.

Folds come one after the other, so that only one of them has its layout, its loss models and its starts in memory.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar, cast

import numpy as np

from poem.arrays import FloatArray
from poem.certificates import Forecast
from poem.compute import Threads
from poem.estimators import Estimate, Rows
from poem.learning.arguments import Split
from poem.learning.checkpoint import Checkpoint
from poem.learning.held_out import HeldOut, Jury
from poem.learning.portfolio import Recipe
from poem.learning.selection import MEANING, NO_TREES, OVERFITS, Candidate, Gain, find_problems, overfits
from poem.learning.training import Training
from poem.policies import Policy, Record, TraceRecord
from poem.progress import Progress

KEPT_BYTES = 1 << 26  # of the weights of all candidates, above which they are not kept where there are several folds

R = TypeVar("R")


class _CancelledError(Exception):
    """Ends the work of other threads after Ctrl-C or an error."""


@dataclass
class _Entry:
    """What is known so far of one candidate: its first policy, if it is kept, its trace, and what each fold says."""

    policy: Policy | None = None
    trace: TraceRecord = field(init=False)
    problems: set[str] = field(default_factory=set)
    rows: list[Rows] = field(default_factory=list)
    terms: list[FloatArray] = field(default_factory=list)
    differences: list[FloatArray] = field(default_factory=list)


@dataclass
class Contest:
    """One set of recipes on the training rows of each fold, judged on the held-out ones."""

    whole: Training
    splits: Sequence[Split]
    jury: Jury | None
    recipes: Sequence[Recipe]
    record: Record
    kept: Checkpoint
    seed: int
    cancelled: threading.Event = field(default_factory=threading.Event)

    def run(self, line: Progress) -> list[Candidate]:
        """Make and judge every candidate."""
        entries = [_Entry() for _ in self.recipes]
        for fold in range(len(self.splits)):
            self._fold(fold, entries, line)
        return self._each(lambda position, threads: self._judged(entries[position], self.recipes[position]))

    def _each(self, one: Callable[[int, Threads], R]) -> list[R]:
        """Do something for every recipe: several at a time, or one with all threads."""
        every, count = self.whole.threads, len(self.recipes)
        if min(every.count, count) == 1:
            return [one(position, every if count == 1 else Threads()) for position in range(count)]
        pool = ThreadPoolExecutor(min(every.count, count), thread_name_prefix="poem-fit")
        try:
            return list(pool.map(lambda position: one(position, Threads()), range(count)))
        except BaseException:
            self.cancelled.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _training(self, fold: int, recipes: Sequence[Recipe]) -> Training:
        needs_model = any(recipe.needs_model for recipe in self.recipes) or self._judges_with_model
        training = self.whole.part(self.splits[fold].train, needs_model)
        training.prepare(recipes)
        return training

    @property
    def _judges_with_model(self) -> bool:
        return self.jury is not None and self.jury.judge.needs_model

    def _fold(self, fold: int, entries: Sequence[_Entry], line: Progress) -> None:
        """Make all candidates of one fold; of what they share, nothing is left afterwards."""
        split, training, held = self.splits[fold], self._training(fold, self.recipes), None
        if self.jury is not None and split.held is not None and split.units is not None:
            held = HeldOut(split.held, training, split.units, self._judges_with_model)
            self.jury.hear(held)

        def one(position: int, threads: Threads) -> None:
            self._enter(entries[position], fold, position, training, held, threads, line)

        self._each(one)

    def _enter(
        self,
        entry: _Entry,
        fold: int,
        position: int,
        training: Training,
        held: HeldOut | None,
        threads: Threads,
        line: Progress,
    ) -> None:
        """Make one candidate of one fold, or take it from the checkpoint, and hear the held-out rows."""
        policy = self._policy(fold, position, training, threads, line)
        trace = cast(TraceRecord, policy.record.trace)  # neither training nor the checkpoint makes one without it
        # Weights of whole label sets say little of what is known of single labels.
        weight = 1.0 if training.additive or self.recipes[position].weightless else trace.mean_weight
        entry.problems |= set(find_problems(*training.probe.seen_by(policy), weight))
        if training.lacks_trees(self.recipes[position]):
            entry.problems.add(NO_TREES)
        if held is not None:
            entry.rows.append(held.rows(policy, threads))
            if self.jury is not None and self.jury.additive:
                entry.differences.append(held.differences(policy, threads))
            if self.jury is not None and self.jury.foresees:
                entry.terms.append(held.paired(policy, threads))
        if fold == 0:
            entry.policy, entry.trace = policy if self._keeps(policy) else None, trace
        line.part_done()

    def _keeps(self, policy: Policy) -> bool:
        """Tell whether the weights of all candidates are kept: with several folds, they are no answers."""
        return len(self.splits) == 1 or policy.weights.nbytes * len(self.recipes) <= KEPT_BYTES

    def first_policy(self, candidate: Candidate, line: Progress) -> Policy:
        """Return the policy of a candidate in the first fold; it is made again if it was not kept."""
        if candidate.policy is not None:
            return candidate.policy
        position = next(place for place, recipe in enumerate(self.recipes) if recipe is candidate.recipe)
        return self._policy(0, position, self._training(0, [candidate.recipe]), self.whole.threads, line)

    def _policy(self, fold: int, position: int, training: Training, threads: Threads, line: Progress) -> Policy:
        recipe, number = self.recipes[position], fold * len(self.recipes) + position
        found = self.kept.load(number)
        if found is not None:
            return found

        def on_step(step: int, value: float) -> None:
            if self.cancelled.is_set():
                raise _CancelledError
            line.note(f"({recipe.label}: step {step}, objective {value:.4f})")

        # Each candidate has its own order of batches: seven unlucky ones are rarer than one.
        rng = np.random.default_rng([self.seed, 1, number])
        keeper = self.kept.keeper(number)
        policy = training.policy(recipe, rng, on_step, self.record, threads, keeper)
        self.kept.keep(number, policy)
        return policy

    def _judged(self, entry: _Entry, recipe: Recipe) -> Candidate:
        validation, gain = (None, None) if self.jury is None else self.jury.verdict(entry.rows)
        if validation is not None and overfits(validation) and not self.whole.additive:
            entry.problems.add(OVERFITS)
        foreseen = self.jury.forecast(entry.terms) if self.jury is not None and self.jury.foresees else None
        gain = self.jury.additive_gain(entry.differences) if self.jury is not None and self.jury.additive else gain
        found = tuple(problem for problem in MEANING if problem in entry.problems)
        lam = recipe.lam_for(self.whole.calibration.lam_star)
        return _candidate(entry, recipe, lam, validation, gain, foreseen, found)


def _candidate(
    entry: _Entry,
    recipe: Recipe,
    lam: float,
    validation: Estimate | None,
    gain: Gain | None,
    foreseen: Forecast | None,
    problems: tuple[str, ...],
) -> Candidate:
    policy, trace = entry.policy, entry.trace
    return Candidate(
        policy=policy,
        recipe=recipe,
        lam=lam,
        objective=trace.value,
        mean_weight=trace.mean_weight,
        clipped_share=trace.clipped_share,
        validation=validation,
        gain=gain,
        forecast=foreseen,
        problems=problems,
        seconds=trace.seconds,
        trace=trace.trace(np.empty((0, 0)) if policy is None else policy.weights),
    )
