"""What each estimator found for one policy on the rows of a log."""

from dataclasses import dataclass

from poem.arrays import IntArray
from poem.data import BanditLog
from poem.estimators import Estimate, Estimator, Rows, UnitSums
from poem.evaluation.calibration import Clips
from poem.evaluation.diagnostics import Diagnostics, diagnose, provably_unsupported
from poem.evaluation.support import support_of
from poem.policies import Judged


@dataclass(frozen=True)
class Found:
    """One estimate of one policy, as its terms."""

    estimator: Estimator
    estimate: Estimate
    sums: UnitSums
    rows: Rows

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the standard error: effective independent units less one."""
        return self.estimate.effective_n - 1.0


@dataclass(frozen=True)
class Part:
    """All estimates of one policy.

    ``skipped`` tells whether some are missing for want of a loss model; ``unsupported`` is the probability that
    certainly has no support.
    """

    name: str
    found: dict[str, Found]
    diagnostics: Diagnostics
    skipped: bool
    unsupported: float


def find(
    policy: Judged, rows: Rows, log: BanditLog, unit: IntArray | None, estimators: dict[str, Estimator], clips: Clips
) -> Part:
    """Follow every estimator; those that need a loss model are left out if the rows have none."""
    known = rows.predicted is not None
    usable = {name: estimator for name, estimator in estimators.items() if known or not estimator.needs_model}
    found = {}
    for name, estimator in usable.items():
        ready = clips.set_in(estimator).tuned(rows)
        sums = ready.terms(rows).by_unit(unit)
        found[name] = Found(ready, ready.summary(sums, rows, unit), sums, rows)
    findings = diagnose(rows, unit, support_of(policy, log), clips.auto)
    return Part(policy.name, found, findings, len(usable) < len(estimators), provably_unsupported(rows))
