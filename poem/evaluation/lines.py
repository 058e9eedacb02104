"""The lines of an evaluation's table: every policy by every estimator, with intervals and differences."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from poem.arrays import IntArray
from poem.compute import Threads
from poem.data import BanditLog
from poem.estimators import ONLY_FOR, Estimate, Estimator, Method, Sums, Terms, UnitSums, bootstrap
from poem.evaluation.calibration import Clips
from poem.evaluation.found import Found, Part, find
from poem.evaluation.judging import JudgedLog
from poem.evaluation.table import Evaluation, Line
from poem.evaluation.uncertainty import RowUncertainty, Uncertainty
from poem.models import Model
from poem.policies import Judged


@dataclass(frozen=True)
class Options:
    """What does not depend on policies: threads, the kind of interval, and what a loss can be."""

    threads: Threads
    interval: Method
    level: float
    replicates: int
    seed: int
    bounds: tuple[float, float]

    @property
    def best(self) -> float:
        """The best loss, around the worst one."""
        return self.bounds[0] - self.bounds[1]

    @property
    def interval_kind(self) -> dict[str, Any]:
        """What intervals ask for."""
        return {"interval": self.interval, "level": self.level, "seed": self.seed}


def evaluated(
    judged: Sequence[Judged],
    log: BanditLog,
    model: Model | None,
    estimators: dict[str, Estimator],
    against: str,
    options: Options,
) -> Evaluation:
    """Judge all policies on one log."""
    units = log.units()
    unit: IntArray | None = None if int(units.max()) + 1 == len(log) else units
    rows = JudgedLog(log, options.bounds, model, options.threads)
    clips = Clips.of(log)
    parts = [find(policy, rows.rows(policy), log, unit, estimators, clips, options.interval) for policy in judged]
    logged, sums = Terms(rows.loss).by_unit(unit), cast(list[UnitSums], estimates_of(parts))
    drawn = None
    if options.interval == "bootstrap":
        drawn = bootstrap([*sums, logged], options.replicates, seed=options.seed, threads=options.threads)
    uncertainty = RowUncertainty(rows.loss, unit, options.best, logged, sums, drawn, **options.interval_kind)
    found = Table(parts, logged, against, options, uncertainty).evaluation(log)
    shares = {name: opinion.share for name, opinion in rows.opinions.items()}
    return replace(found, model=None if model is None else model.name, shares=shares)


def estimates_of(parts: Sequence[Part]) -> list[Sums]:
    """Return the sums of all estimates."""
    return [found.sums for part in parts for found in part.found.values()]


class Table:
    """Estimates of all policies on the rows of one log, to be compared with one of them or with what was logged."""

    def __init__(
        self, parts: Sequence[Part], logged: Sums, against: str, options: Options, uncertainty: Uncertainty
    ) -> None:
        self.worst, self.best = options.bounds[1], options.best
        self.parts, self.logged, self.options = parts, logged, options
        self.base = next((part for part in parts if part.name == against), None)
        self.against, self.interval, self.uncertainty = against, options.interval, uncertainty

    def evaluation(self, log: BanditLog) -> Evaluation:
        """Return the whole answer, as losses or rewards; of the log, only what kind it is."""
        return Evaluation(
            lines=tuple(line.as_outcome(log.outcome) for line in self.lines()),
            diagnostics={part.name: part.diagnostics for part in self.parts},
            logged=self.logged_mean().as_outcome(log.outcome),
            interval=self.interval,
            level=self.options.level,
            against=self.against,
            propensities=log.propensities,
            outcome=log.outcome,
            skipped=tuple(part.name for part in self.parts if part.skipped),
        )

    def logged_mean(self) -> Estimate:
        """Return the mean loss that was logged."""
        n, value = self.logged.n_rows, self.logged.value() + self.worst
        return Estimate(value, self.logged.stderr(), n, self.logged.n_units, 1.0, 0.0, float(n))

    def lines(self) -> list[Line]:
        """Return one line for each policy and estimator, of losses."""
        return [self._line(part, name, found) for part in self.parts for name, found in part.found.items()]

    def _other(self, part: Part, name: str) -> tuple[Sums | None, Found | None]:
        """Return what an estimate is compared with: its sums, and the estimate that they are of, if they are of one."""
        if self.base is None:
            return self.logged, None
        versus = None if part is self.base else self.base.found.get(name)
        return (versus.sums, versus) if versus else (None, None)

    def _line(self, part: Part, name: str, found: Found) -> Line:
        low, high = self.uncertainty.of(found)
        other, versus = self._other(part, name)
        difference = better = np.nan
        ends = (np.nan, np.nan)
        if other is not None:
            difference, ends, better = self.uncertainty.of_difference(found, other, versus)
        bias, above = self._bias(part, found)
        below = 0.0 if self.interval == "bernstein" else bias  # its low end has the bias in it
        others = (0.0, 0.0) if versus is None or self.base is None else self._bias(self.base, versus)
        ends = ends[0] - bias - others[1], ends[1] + above + others[0]
        if bias + others[0] > 0.0 and ends[0] <= 0.0 <= ends[1]:
            better = np.nan  # the bias alone may decide it
        return Line(
            policy=part.name,
            estimator=name,
            value=found.estimate.value + self.worst,
            low=low - below + self.worst,
            high=high + above + self.worst,
            stderr=found.estimate.stderr,
            bias_bound=bias,
            difference=difference,
            difference_low=ends[0],
            difference_high=ends[1],
            probability_better=better,
            verdict=part.diagnostics.verdict_of(found.estimator),
            freedom=found.freedom,
            bias_above=above,
        )

    def _bias(self, part: Part, found: Found) -> tuple[float, float]:
        """Return how far the true loss can be below and above the estimate because weight was held back or is missing.

        What certainly has no support may cost anything within the range of the loss; pessimistic estimators have
        taken it to be the worst, and intervals that hold for any n count it themselves.
        """
        missing = 0.0 if self.interval in ONLY_FOR else -self.best * part.unsupported
        bias = found.estimate.bias_bound + missing
        return bias, 0.0 if found.estimator.pessimistic else bias
