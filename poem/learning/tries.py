"""Which policies are to be certified, one after the other: on which units, and with which probability of error.

One try of one policy is usual. There are two where that is worth it. A first one on few units leaves more of them to
learn from. And where the best policy may well fail, a more careful one can follow. Each try has its share of the
probability of error, so that both together err as often as one would (the union bound). What the second one certifies,
and on which units, does not depend on the first: it is only left out if the first succeeds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from poem.learning.plan import Plan
from poem.learning.prospects import choose_for_certificate, expect_certificates, surest
from poem.learning.selection import Candidate, rank

LEAST = 50  # units that certify
LEAST_SHARE = 0.1  # the same as a share of all units
SLACK = 1.5  # times as many units as foreseen certify, if there are so many
FIRST_LEAST = 20  # units that certify in a first try
FIRST_ERROR = 0.3  # part of the probability of error that a first try has
FIRST_CHANCE = 0.7  # that a first try succeeds, as foreseen
FIRST_SLACK = 1.3  # as SLACK, for a first try
LAST_SLACK = 2.0  # as SLACK, for a second try: it should not fail
SPARED = 0.5  # part of the units of a single try that a first one may take
RISKY = 1.2  # a single try may well fail that lacks so many times the units that it needs


@dataclass(frozen=True)
class Try:
    """A candidate to be learnt again and certified, and the probability with which that may err."""

    candidate: Candidate
    plan: Plan
    alpha: float


def tries_of(candidates: Sequence[Candidate], plan: Plan, alpha: float) -> list[Try]:
    """Return what is to be tried, in order: nothing, one policy or two. A try follows only if all before it failed."""
    alone = choose_for_certificate(candidates, alpha, plan.most)
    if alone is None:
        return []
    single = Try(alone, plan.cut(_kept(alone, plan, alpha)), alpha)
    pair = _pair(candidates, plan, alpha)
    return pair if pair and (_spares_units(pair, single) or _is_safer(pair, single, plan.most)) else [single]


def _pair(candidates: Sequence[Candidate], plan: Plan, alpha: float) -> list[Try]:
    """Return a bold candidate on few units and a careful one on many, if there are such."""
    early, late = FIRST_ERROR * alpha, (1.0 - FIRST_ERROR) * alpha
    bold = _best(expect_certificates(candidates, early, plan.most / FIRST_SLACK, FIRST_CHANCE))
    careful = _best(expect_certificates(candidates, late, plan.most / LAST_SLACK)) or surest(candidates)
    if bold is None or careful is None:
        return []
    few = _within(FIRST_SLACK * _needed(bold, early, FIRST_CHANCE), FIRST_LEAST, plan.most)
    many = _kept(careful, plan, late, LAST_SLACK)
    return [Try(bold, plan.cut(few), early), Try(careful, plan.cut(many), late)]


def _spares_units(pair: Sequence[Try], single: Try) -> bool:
    """Tell whether the first of two tries leaves many more units to learn from; a tenth of them does not matter."""
    kept, units = single.plan.most, single.plan.units
    return kept > LEAST_SHARE * units and pair[0].plan.most <= SPARED * kept


def _is_safer(pair: Sequence[Try], single: Try, most: int) -> bool:
    """Tell whether a single try may well fail where another candidate would not."""
    return RISKY * _needed(single.candidate, single.alpha) > most and pair[1].candidate is not single.candidate


def _best(candidates: Sequence[Candidate]) -> Candidate | None:
    return min(candidates, key=lambda one: (bool(one.problems), rank(one)), default=None)


def _kept(candidate: Candidate, plan: Plan, alpha: float, slack: float = SLACK) -> int:
    """Return how many units certify a candidate, if that may not fail."""
    return _within(slack * _needed(candidate, alpha), max(LEAST, int(LEAST_SHARE * plan.units)), plan.most)


def _needed(candidate: Candidate, alpha: float, chance: float = 0.95) -> float:
    assert candidate.forecast is not None
    return candidate.forecast.units_needed(alpha, chance)


def _within(wanted: float, least: int, most: int) -> int:
    return int(np.clip(wanted, min(least, most), most))
