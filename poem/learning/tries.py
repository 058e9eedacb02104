"""Which policies are to be certified, one after the other: on which units, and with which probability of error.

A try certifies one policy, or climbs from one that is nearly sure to pass to others that promise more. A step is taken
only if the one before it succeeded, on the same units, with all of the probability of error: what fails first ends the
climb, so that more steps do not err more often (a fixed sequence of tests).

There are two tries where a first one on few units leaves many more of them to learn from. Each has its share of the
probability of error, so that both together err as often as one would (the union bound). What the second one certifies,
and on which units, does not depend on the first: it is only left out if the first succeeds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from poem.certificates import Certificate
from poem.evaluation import Calibration
from poem.learning.plan import Plan
from poem.learning.prospects import choose_for_certificate, expect_certificates, surest
from poem.learning.selection import Candidate, rank

LEAST = 50  # units that certify
LEAST_SHARE = 0.1  # the same as a share of all units
SLACK = 1.5  # times as many units as foreseen certify what is nearly sure to pass
LAST_SLACK = 2.0  # as SLACK, for a second try, which should not fail, and for sums over labels, whose tails are heavy
HOPE = 6.0  # times the units that certify may be missing for a step that is tried all the same
MOST_STEPS = 5  # policies that one try certifies
FIRST_LEAST = 20  # units that certify in a first try
FIRST_ERROR = 0.3  # part of the probability of error that a first try has
FIRST_CHANCE = 0.7  # that a first try succeeds, as foreseen
FIRST_SLACK = 1.3  # as SLACK, for a first try
SPARED = 0.5  # part of the units of a single try that a first one may take


@dataclass(frozen=True)
class Try:
    """Candidates to be learnt again and certified, from sure to bold, and the probability with which that may err."""

    steps: tuple[Candidate, ...]
    plan: Plan
    alpha: float

    def modest(self, calibration: Calibration) -> list[float]:
        """Return, per step, the part of its foreseen gain that is enough to go on."""
        span = calibration.loss_high - calibration.loss_low
        return [span * one.forecast.modest(self.plan.most) for one in self.steps if one.forecast is not None]


def climb(found: Iterable[Certificate], enough: Sequence[float]) -> tuple[int, Certificate]:
    """Return the last step that is certified, the first one if none is, or one that meets an objection.

    A step follows if the gain of the one before it is certified to be ``enough``. That is then all that is claimed of
    it, so that the order of the claims is fixed: gains of the first policy up to there, then gains of the next.
    """
    certificates = iter(found)
    reached, best = 0, next(certificates)
    while best.certified and best.gain_at_least >= enough[reached] and reached + 1 < len(enough):
        bolder = next(certificates)
        if bolder.objections:
            return reached + 1, bolder
        if not bolder.certified:
            return reached, replace(best, gain_at_least=enough[reached])
        reached, best = reached + 1, bolder
    return reached, best


def tries_of(candidates: Sequence[Candidate], plan: Plan, alpha: float) -> list[Try]:
    """Return what is to be tried, in order: nothing, one climb, or one policy on few units before it."""
    alone = _climb(candidates, plan, alpha, SLACK)
    if alone is None:
        return []
    early, late = FIRST_ERROR * alpha, (1.0 - FIRST_ERROR) * alpha
    quick, last = _on_few_units(candidates, plan, early), _climb(candidates, plan, late, LAST_SLACK)
    return [quick, last] if quick and last and _spares_units(quick, alone) else [alone]


def _climb(candidates: Sequence[Candidate], plan: Plan, alpha: float, slack: float) -> Try | None:
    """Return a try of the best candidate that can expect a certificate, after surer ones and before bolder ones."""
    goal = choose_for_certificate(candidates, alpha, plan.most)
    if goal is None:
        return None
    assert goal.forecast is not None
    slack = LAST_SLACK if goal.forecast.form.additive else slack
    kept = plan.cut(_within(slack * _needed(goal, alpha), _least(plan), plan.most))
    return Try(_steps(candidates, kept.most, alpha), kept, alpha)


def _steps(candidates: Sequence[Candidate], units: int, alpha: float) -> tuple[Candidate, ...]:
    """Return the candidates of a climb. Each takes more units than the one before it, and promises more."""
    start = _best(expect_certificates(candidates, alpha, units / SLACK)) or surest(candidates)
    assert start is not None
    hopeful = [one for one in expect_certificates(candidates, alpha, HOPE * units) if not one.problems]
    steps = [start]
    for one in sorted(hopeful, key=lambda each: _needed(each, alpha)):
        if _needed(one, alpha) > _needed(start, alpha) and rank(one) < rank(steps[-1]):
            steps.append(one)
    chosen = np.unique(np.linspace(0, len(steps) - 1, MOST_STEPS).round().astype(int))
    return tuple(steps[number] for number in chosen)


def _on_few_units(candidates: Sequence[Candidate], plan: Plan, alpha: float) -> Try | None:
    """Return a try of the best candidate on as few units as may well certify it."""
    bold = _best(expect_certificates(candidates, alpha, plan.most / FIRST_SLACK, FIRST_CHANCE))
    if bold is None:
        return None
    few = _within(FIRST_SLACK * _needed(bold, alpha, FIRST_CHANCE), FIRST_LEAST, plan.most)
    return Try((bold,), plan.cut(few), alpha)


def _spares_units(quick: Try, alone: Try) -> bool:
    """Tell whether the first of two tries leaves many more units to learn from; a tenth of them does not matter."""
    kept = alone.plan.most
    return kept > LEAST_SHARE * alone.plan.units and quick.plan.most <= SPARED * kept


def _best(candidates: Sequence[Candidate]) -> Candidate | None:
    return min(candidates, key=lambda one: (bool(one.problems), rank(one)), default=None)


def _least(plan: Plan) -> int:
    return max(LEAST, int(LEAST_SHARE * plan.units))


def _needed(candidate: Candidate, alpha: float, chance: float = 0.95) -> float:
    assert candidate.forecast is not None
    return candidate.forecast.units_needed(alpha, chance)


def _within(wanted: float, least: int, most: int) -> int:
    return int(np.clip(wanted, min(least, most), most))
