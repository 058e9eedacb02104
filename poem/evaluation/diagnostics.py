"""When not to believe an off-policy estimate, in numbers and in words."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from poem.arrays import IntArray
from poem.estimators import LARGEST_LOG_RATIO, Estimator, Rows, Weighted
from poem.evaluation.support import ActionSupport, Support
from poem.evaluation.weight_facts import WeightFacts, weight_facts
from poem.text import counted

Verdict = Literal["trust", "caution", "don't"]
ORDER: tuple[Verdict, ...] = ("trust", "caution", "don't")

ENOUGH_EVENTS = 25.0  # for a t interval, by Cochran (1977, §2.15)
WHY = "what was logged there had propensity 1"


@dataclass(frozen=True)
class Finding:
    """One check: its value, what it says, and why."""

    name: str
    value: float
    verdict: Verdict
    reason: str
    note: bool = False  # worth a word although it is no fault


@dataclass(frozen=True)
class Diagnostics:
    """What speaks for and against the weights of one policy on one log.

    Attributes
    ----------
    findings : tuple of Finding
        Effective number of independent units, largest weight share, mean weight and its z-score against 1,
        clipped mass, Pareto shape of the largest weights, how far the estimate moves with the clip, how many
        outcomes decide, probability on outputs that cannot have been logged, and on outputs that were never logged.
        Clipped mass is a mere note if the estimator that decides does not clip.
    clip_curve : tuple of (clip, value)
        The clipped IPS estimate for several clips, around the worst loss: at most 0, also where the log has rewards.
    actions : tuple of ActionSupport
        The policy's most probable actions and how often each was logged, where rows have available actions of their
        own.
    """

    findings: tuple[Finding, ...]
    clip_curve: tuple[tuple[float, float], ...]
    actions: tuple[ActionSupport, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all findings."""
        return _worse(*(finding.verdict for finding in self.findings))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the verdict is not better."""
        return tuple(finding.reason for finding in self.findings if finding.verdict != "trust")

    @property
    def notes(self) -> tuple[str, ...]:
        """What is no fault, and worth knowing."""
        return tuple(finding.reason for finding in self.findings if finding.note)

    def verdict_of(self, estimator: Estimator) -> Verdict:
        """Return whether to believe one estimator: clipped mass counts where weights are clipped, whoever decides."""
        return _worse(self.verdict, _by_share(self["clipped mass"].value)) if is_clipped(estimator) else self.verdict

    def most_probable(self, most: int = 3) -> str:
        """Return the most probable actions in words, with the number of rows in which each was chosen."""
        return ", ".join(
            f"{action.action} in {action.probability:.1%} of its decisions (logged in {action.logged:,} of the "
            f"{action.available:,} rows that could)"
            for action in self.actions[:most]
        )

    def __getitem__(self, name: str) -> Finding:
        return next(finding for finding in self.findings if finding.name == name)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data."""
        found = {
            "verdict": self.verdict,
            "findings": [asdict(finding) for finding in self.findings],
            "clip_curve": [list(point) for point in self.clip_curve],
        }
        return found | ({"actions": [asdict(action) for action in self.actions]} if self.actions else {})

    def __str__(self) -> str:
        return "; ".join((self.verdict, *self.reasons, *(f"note: {note}" for note in self.notes)))


def diagnose(rows: Rows, unit: IntArray | None, support: Support | None, clip: float | None) -> Diagnostics:
    """Check the weights of a policy, unit by unit.

    ``support`` is what the log holds of its outputs, None if that is not known.
    """
    return diagnosed(weight_facts(rows, unit, clip), support)


def diagnosed(facts: WeightFacts, support: Support | None, unclipped: str | None = None) -> Diagnostics:
    """Say what speaks for and against some weights.

    ``unclipped`` is the estimator that decides, if it does not clip.
    """
    effective, units, mean, stderr = facts.effective, facts.units, facts.mean, facts.stderr
    independent = counted(units, "independent unit")
    z = (mean - 1.0) / stderr if stderr > 1e-12 else (0.0 if abs(mean - 1.0) < 1e-9 else np.inf)
    largest, shape, certain = facts.largest, facts.shape, facts.unsupported
    findings = (
        _high_is_good("effective units", effective, 30.0, 100.0, f"only {effective:.0f} of {independent} count"),
        _high_is_good("independent units", float(units), 2.0, 30.0, f"only {independent}"),
        _low_is_good("largest weight share", largest, 0.05, 0.2, f"one unit carries {largest:.0%} of all weight"),
        _mean_weight(mean, z),
        _clipped(facts.clipped, unclipped),
        _low_is_good("Pareto k", shape, 0.5, 0.7, f"the weights have a heavy tail (k = {shape:.2f})"),
        _steady(facts.moved),
        _events(facts.events),
        _low_is_good(
            "provably unsupported", certain, 0.01, 0.1, f"{certain:.0%} of its probability cannot be judged: {WHY}"
        ),
        *_cut(facts.cut),
    )
    if support is None:
        return Diagnostics(findings, facts.clip_curve)
    return Diagnostics((*findings, _never_logged(support)), facts.clip_curve, support.actions)


def _clipped(share: float, unclipped: str | None) -> Finding:
    """Say how much weight a clip takes away: a fault, unless the estimator that decides does not clip."""
    reason = f"clipping takes away {share:.0%} of the weight"
    if unclipped is None:
        return Finding("clipped mass", share, _by_share(share), reason)
    noted = _by_share(share) != "trust"
    return Finding("clipped mass", share, "trust", f"{reason}, but not in {unclipped}, which decides", note=noted)


def _by_share(clipped: float) -> Verdict:
    return _low_is_good("", clipped, 0.1, 0.5, "").verdict


def is_clipped(estimator: Estimator) -> bool:
    """Tell whether an estimator clips weights."""
    return isinstance(estimator, Weighted) and estimator.clip is not None


def _worse(*verdicts: Verdict) -> Verdict:
    return max(verdicts, key=ORDER.index)


def _cut(count: int) -> tuple[Finding, ...]:
    """Say how many weights are too large to compute with, if any is: they count as e^300."""
    if count == 0:
        return ()
    rows_have, limit = "row has a weight" if count == 1 else "rows have weights", f"e^{LARGEST_LOG_RATIO:.0f}"
    reason = f"{count:,} {rows_have} above {limit}, counted as {limit}: check propensities"
    return (Finding("weights cut", float(count), "don't", reason),)


def _never_logged(support: Support) -> Finding:
    """Say how much probability is on what was never logged: a fault, unless features of actions say what to expect."""
    share, what = support.never_logged, "actions" if support.actions else "outputs"
    reason = f"{share:.0%} of its probability is on {what} never logged"
    if not support.described:
        return _low_is_good("never logged", share, 0.01, 0.1, reason)
    reason += ", which are known by their features alone"
    return Finding("never logged", share, "trust", reason, note=share > 0.01)


def _low_is_good(name: str, value: float, caution: float, bad: float, reason: str) -> Finding:
    verdict: Verdict = "don't" if value > bad else "trust" if value <= caution else "caution"  # NaN is no trust
    return Finding(name, value, verdict, reason)


def _high_is_good(name: str, value: float, bad: float, caution: float, reason: str) -> Finding:
    verdict: Verdict = "don't" if value < bad else "trust" if value >= caution else "caution"
    return Finding(name, value, verdict, reason)


def _mean_weight(mean: float, z: float) -> Finding:
    far = abs(mean - 1.0)
    reason = f"the mean weight is {mean:.3g}, {abs(z):.1f} standard errors from 1: wrong propensities or support"
    verdict: Verdict = "don't" if abs(z) > 5.0 and far > 0.1 else "caution" if abs(z) > 3.0 else "trust"
    return Finding("mean weight", mean, verdict, reason)


def _steady(moved: float) -> Finding:
    """Say how much of the estimate hangs on the largest weights: all above the 99th percentile cut back to it."""
    reason = f"{moved:.0%} of the estimate hangs on what the largest 1% of weights have above the others"
    return _low_is_good("moved by the clip", moved, 0.1, 0.5, reason)


def _events(count: float | None) -> Finding:
    """Say how many outcomes decide: (Σd²)³/(Σd³)² of the units' shares d in the error of SNIPS, 1/skewness² per unit.

    For a rare outcome this is how often it occurred. Below 25 an interval around a standard error covers too
    rarely. The difference to the log may still be clear, so that this alone is no "don't".
    """
    if count is None:
        return Finding("events", 0.0, "caution", "all outcomes that count are the same, so nothing tells how they vary")
    units = "unit" if 0.5 < count < 1.5 else "units"
    reason = f"the estimate rests on the outcomes of about {count:.0f} {units}"
    return Finding("events", count, "trust" if count >= ENOUGH_EVENTS else "caution", reason)
