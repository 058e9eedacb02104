"""What each estimator found for one policy on the rows of a log."""

from collections.abc import Mapping
from dataclasses import dataclass

from poem.arrays import IntArray
from poem.data import BanditLog
from poem.estimators import IPS, Estimate, Estimator, Method, Rows, Sums, Terms
from poem.evaluation.calibration import Clips
from poem.evaluation.conclusion import deciding
from poem.evaluation.diagnostics import Diagnostics, diagnosed, is_clipped
from poem.evaluation.support import support_of
from poem.evaluation.weight_facts import weight_facts
from poem.policies import Judged


@dataclass(frozen=True)
class Found:
    """One estimate of one policy, as its sums.

    ``weights`` are the sums of its clipped weights, where an interval needs them; ``rows`` are None where they are
    nowhere in memory at once.
    """

    estimator: Estimator
    estimate: Estimate
    sums: Sums
    weights: Sums | None = None
    rows: Rows | None = None

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the standard error: effective independent units less one."""
        return self.estimate.effective_n - 1.0


def clipped_weights(estimator: Estimator, rows: Rows, interval: Method) -> Terms | None:
    """Return the weights that an interval needs beside the estimate: those of clipped IPS for a Bernstein bound."""
    if interval != "bernstein" or not isinstance(estimator, IPS) or estimator.clip is None:
        return None
    return Terms(estimator.ratios(rows.log_ratio))


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


def usable(estimators: dict[str, Estimator], rows: Rows) -> dict[str, Estimator]:
    """Return the estimators that rows suffice for: some need a loss model."""
    known = rows.predicted is not None
    return {name: estimator for name, estimator in estimators.items() if known or not estimator.needs_model}


def find(
    policy: Judged,
    rows: Rows,
    log: BanditLog,
    unit: IntArray | None,
    estimators: dict[str, Estimator],
    clips: Clips,
    interval: Method,
) -> Part:
    """Follow every estimator; those that need a loss model are left out if the rows have none."""
    followed, found = usable(estimators, rows), {}
    for name, estimator in followed.items():
        ready = clips.set_in(estimator).tuned(rows)
        sums = ready.terms(rows).by_unit(unit)
        weights = clipped_weights(ready, rows, interval)
        found[name] = Found(
            ready, ready.summary(sums, rows, unit), sums, None if weights is None else weights.by_unit(unit), rows
        )
    facts = weight_facts(rows, unit, clips.auto)
    findings = diagnosed(facts, support_of(policy, log), unclipped(followed, interval))
    return Part(policy.name, found, findings, len(followed) < len(estimators), facts.unsupported)


def unclipped(estimators: Mapping[str, Estimator], interval: Method) -> str | None:
    """Return the estimator that decides, if it does not clip weights; None if it does, or if there is none."""
    if not estimators:
        return None
    name = deciding(estimators, interval)
    return None if is_clipped(estimators[name]) else name
