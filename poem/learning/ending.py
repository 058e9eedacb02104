"""The end of a fit: from judged candidates to the policy that is returned, and its certificate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from poem.certificates import Certificate
from poem.learning.arguments import Split
from poem.learning.certification import certificate_of
from poem.learning.contest import Contest
from poem.learning.plan import Plan
from poem.learning.result import Origin
from poem.learning.selection import Candidate, choose, choose_likely, rank
from poem.learning.training import Training
from poem.learning.tries import MOST_STEPS, Try, climb, tries_of
from poem.policies import FlooredPolicy, Policy
from poem.progress import Progress

if TYPE_CHECKING:
    from poem.learning.stages import Stages

WIDER = 1.3  # times as many rows to learn from, for which candidates compete again
MOST_LEARNT = 1 + MOST_STEPS  # policies that are learnt for a certificate
MANY_UNITS = 20_000  # above which they do not: the choice would be the same

AnyPolicy = Policy | FlooredPolicy
Ending = tuple[Candidate, Certificate | None, AnyPolicy | None, Origin]


@dataclass(frozen=True)
class End:
    """From judged candidates to the policy that is returned."""

    stages: "Stages"
    contest: Contest
    candidates: Sequence[Candidate]
    line: Progress

    def learnt(self) -> Ending:
        """Choose without a certificate, and learn the chosen one from all rows."""
        stages = self.stages
        chosen = (
            choose_likely(self.candidates) if stages.doubly_robust else choose(self.candidates, stages.choice.guard)
        )
        policy = self._again(stages.again_on(stages.plan.first), chosen) if stages.again else chosen.policy
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
            training = stages.again_on(stages.log)
            policy = self._again(training, final, earlier if isinstance(earlier, Policy) else None, MOST_LEARNT)
        return chosen, certificate, policy, origin

    def wider(self) -> Plan | None:
        """Return a plan with many more rows to learn from, if so few certify that candidates better compete again."""
        plan = self.stages.plan
        if plan.settled or not 0 < plan.units <= MANY_UNITS or not self.tries:
            return None
        wider = replace(plan.cut(max(one.plan.most for one in self.tries)), settled=True)
        return wider if len(wider.first) >= WIDER * len(plan.first) else None

    @cached_property
    def tries(self) -> list[Try]:
        """What is to be certified, one after the other, until one is."""
        return tries_of(self.candidates[:-1], self.stages.plan, 1.0 - self.stages.choice.confidence)

    def _certificate(self) -> tuple[Candidate, Certificate | None]:
        """Try to certify until it succeeds; the log may also object."""
        reached: tuple[Candidate, Certificate | None] = min(self.candidates[:-1], key=rank), None
        learnt = 0
        for one in self.tries:
            candidate, found = self._climbed(one, learnt)
            reached = candidate, replace(found, confidence=self.stages.choice.confidence)
            if found.certified or found.objections:
                break
            learnt += len(one.steps)
        return reached

    def _climbed(self, one: Try, learnt: int) -> tuple[Candidate, Certificate]:
        """Learn one candidate after the other from all rows that do not certify it, as long as each is certified."""
        training = self.stages.again_on(one.plan.first)
        steps = range(len(one.steps))
        step, found = climb(
            (self._tried(one, training, step, learnt) for step in steps), one.modest(training.calibration)
        )
        return one.steps[step], found

    def _tried(self, one: Try, training: Training, step: int, learnt: int) -> Certificate:
        """Learn a candidate again, and certify it on the units of a try."""
        self.line.total += learnt + step > 0
        candidate, fresh = one.steps[step], one.plan.rest[0]
        policy = self._again(training, candidate, number=learnt + step)
        assert candidate.forecast is not None
        return certificate_of(policy, training, fresh, candidate.forecast, 1.0 - one.alpha, one.plan)

    def _again(
        self, training: Training, candidate: Candidate, earlier: Policy | None = None, number: int = 0
    ) -> Policy:
        """Follow a recipe on more rows; if it goes wrong there and did not before, keep the earlier policy."""
        stages = self.stages
        place = stages.kept.beginning_at(sum(map(stages.work_of, stages.rungs)) + number)
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
