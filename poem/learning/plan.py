"""Which rows a fit learns from, which certify, and what the certificate takes for granted."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from poem.certificates import adapts, doubts
from poem.data import BanditLog
from poem.errors import InputError
from poem.evaluation import PLURAL, Calibration
from poem.learning.arguments import Validation, check_alike, check_share
from poem.learning.reserve import WORDS, Order, Reserve
from poem.text import counted

KEPT = 0.5  # share of the units that "auto" keeps at first


@dataclass(frozen=True)
class Plan:
    """What candidates compete on, and what is kept for the certificate.

    ``first`` is learnt from; ``rest`` is all that has not been looked at, ``most`` units. Of the latter, ``cut`` gives
    back what a certificate does not need, unless the size was ``fixed``. A plan is ``settled`` if candidates do not
    compete again, and ``unordered`` if the order of rows is not that of time, although propensities change along them.
    ``doubts`` say what in the log contradicts the conditions of a certificate.
    """

    first: BanditLog
    rest: tuple[BanditLog, ...]
    validation: Validation
    reserve: Reserve | None = None
    most: int = 0
    fixed: bool = True
    order: Order = "given"
    settled: bool = False
    unordered: bool = False
    doubts: tuple[str, ...] = ()

    @property
    def units(self) -> int:
        """How many units can be shared out between learning and certifying; 0 if that is settled."""
        return 0 if self.fixed or self.reserve is None else self.reserve.units

    @property
    def dropped(self) -> int:
        """How many rows are used for neither: those of learnt units that come after the first row that certifies."""
        used = len(self.first) + sum(map(len, self.rest))
        return 0 if self.reserve is None else len(self.reserve.log) - used

    def cut(self, kept: int) -> "Plan":
        """Return the plan in which the last ``kept`` units certify, and all others are learnt from."""
        if self.reserve is None or self.fixed or kept >= self.most:
            return self
        learnt, fresh = self.reserve.cut(kept)
        return replace(self, first=learnt, rest=(fresh,), most=kept)


def plan_of(log: BanditLog, validation: Validation, seed: int, certifies: bool) -> Plan:
    """Decide what is kept for a certificate; without one, nothing is."""
    if not certifies:
        return Plan(log, (), validation)
    if isinstance(validation, BanditLog):
        check_alike(log, validation)
        if len(validation) == len(log) and np.array_equal(validation.loss, log.loss):
            raise InputError(
                "what certifies must be other rows than those that are learnt from; both logs are the same."
            )
        most = int(validation.units().max()) + 1
        return Plan(log, (validation,), "auto", most=most, doubts=doubts(validation, in_order=True))
    folds: Validation = "auto" if isinstance(validation, float | np.floating) else validation
    share = check_share(validation) if isinstance(validation, float | np.floating) else KEPT
    reserve = Reserve.of(log, seed)
    if reserve.units < 2:
        return Plan(log, (), folds, order=reserve.order)  # one unit alone cannot be kept
    most = min(max(round(share * reserve.units), 1), reserve.units - 1)
    first, rest = reserve.cut(most)
    fixed = isinstance(validation, float | np.floating)
    unordered = reserve.order in ("random", "units") and adapts(log).changes
    found = doubts(log, in_order=reserve.order == "rows")
    return Plan(first, (rest,), folds, reserve, most, fixed, reserve.order, unordered=unordered, doubts=found)


def conditions_of(fresh: BanditLog, calibration: Calibration, plan: Plan) -> tuple[str, ...]:
    """Say what a certificate takes for granted, in words."""
    return tuple(_conditions(fresh, calibration, plan))


def _conditions(fresh: BanditLog, calibration: Calibration, plan: Plan) -> Iterator[str]:
    low, high = calibration.loss_low, calibration.loss_high
    low, high = (low, high) if fresh.outcome == "loss" else (0.0 - high, 0.0 - low)
    if fresh.propensities == "estimated":
        yield "the estimated propensities are right"
    else:
        yield "the logged propensities are right"
    name = PLURAL[fresh.outcome]
    if calibration.bounds_from == "data":
        yield f"{name} lie in [{low:.4g}, {high:.4g}], as in this log (a guess, not your promise)"
    else:
        yield f"{name} lie in [{low:.4g}, {high:.4g}], as you said"
    repeated = len(fresh) > int(fresh.units().max()) + 1
    units = "groups" if fresh.group is not None else "contexts" if repeated else "rows"
    dropped = (
        f"; {counted(plan.dropped, 'later row')} of other {units} {'was' if plan.dropped == 1 else 'were'} dropped"
    )
    yield WORDS[plan.order].format(units=units, dropped=dropped if plan.dropped else "")
