"""What a fit found, and what it says of itself."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

from poem.certificates import LIKELY, Certificate, finite
from poem.estimators import Estimate
from poem.evaluation import PLURAL, Calibration
from poem.learning.selection import MEANING, NO_TREES, Candidate, Table
from poem.policies import FlooredPolicy, Policy
from poem.text import Grid, Sheet, counted, rounded

Origin = Literal["certified", "refitted", "logging policy", "imitation", "none", "learnt"]

MANY = 0.1  # of a policy's decisions that the log lacks
UNITS = 5  # independent units below which nothing can be said
FEW = 50.0  # effective rows below which an estimate hangs on a few


@dataclass(frozen=True)
class Fit:
    """What :func:`poem.fit` found.

    Attributes
    ----------
    policy : Policy, FlooredPolicy or None
        The one to use; None if nothing was certified and there is no logging policy to fall back on.
    origin : str
        What the policy is: "certified", "refitted" (the certified recipe on all rows), "logging policy", "imitation",
        "none", or "learnt" where no certificate was asked for.
    certificate : Certificate or None
        What fresh rows say of the policy that was chosen, certified or not; None if no candidate was worth trying,
        or where no certificate was asked for.
    chosen : Candidate
        Its row of the table, which was learnt from fewer rows.
    table : Table
        Every candidate that was tried.
    calibration : Calibration
        Loss scale, clip and λ*, and where they come from.
    n_rows, n_train, n_validation : int
        How many rows the log has, how many each candidate was trained on, and how many were judged on.
    folds : int
        In how many parts; with several, every row was judged by a policy that had not seen it.
    logged : Estimate or None
        The loss, or reward, that was logged on the held-out rows, to compare with.
    confidence : float or None
        That of the certificate; None where none was asked for.
    imitation : Candidate or None
        The imitation of the logging policy, with its own estimate.
    outcome : "loss" or "reward"
        What the log has, and so what estimates are: losses (lower is better) or rewards (higher is better).
    propensities : "logged" or "estimated"
    doubtful_logger : bool
        Whether ``logging_policy`` has other probabilities than the log.
    n_sample : int or None
        Of a packed log, the rows of the sample that candidates competed on; None if they competed on all rows.
    """

    policy: Policy | FlooredPolicy | None
    chosen: Candidate
    table: Table
    calibration: Calibration
    n_train: int
    n_validation: int
    logged: Estimate | None
    n_rows: int
    folds: int = 1
    confidence: float | None = None
    certificate: Certificate | None = None
    origin: Origin = "learnt"
    imitation: Candidate | None = None
    outcome: str = "loss"
    propensities: str = "logged"
    doubtful_logger: bool = False
    n_sample: int | None = None

    @property
    def certified(self) -> bool | None:
        """Whether fresh rows certify that a better policy was found; None where no certificate was asked for."""
        if self.confidence is None:
            return None
        return self.certificate is not None and self.certificate.certified

    @property
    def success(self) -> bool:
        """Whether there is a new policy to use: it is certified, or no certificate was asked for."""
        return bool(self.certified) or self.origin == "learnt"

    @property
    def learnt(self) -> Policy | None:
        """The policy that this fit made; None if there is none, or if it is the logging policy that was passed."""
        return self.policy if isinstance(self.policy, Policy) and self.origin != "logging policy" else None

    @property
    def refitted(self) -> bool:
        """Whether the policy was learnt from more rows than the candidates of the table."""
        return self.learnt is not None and self.learnt.record.n_train != self.n_train

    def __repr__(self) -> str:
        return str(self.sheet())

    def _repr_html_(self) -> str:
        return self.sheet().html()

    def sheet(self) -> Sheet:
        """Return the policy, the candidates and the verdict, to be shown."""
        lines: list[str | Grid] = [
            "no policy" if self.policy is None else str(self.policy),
            f"candidates were trained on {self.n_train:,} rows and judged on {self.n_validation:,}{self._in_folds}; "
            f"{self.calibration}",
            *(["propensities are estimated, not logged"] if self._estimated else []),
            *self._sampled(),
            self.table.grid(),
        ]
        if self.confidence is not None:
            lines.append(self._verdict())
        elif self.logged is not None and self.chosen.validation is not None:
            low, high = self.chosen.validation.interval()
            better = high < self.logged.value if self.outcome == "loss" else low > self.logged.value
            verdict = "is estimated to be better" if better else "is not shown to be better"
            lines.append(f"logged {self.outcome} on the held-out rows {self.logged}: the chosen policy {verdict}")
        return Sheet(*lines)

    def _sampled(self) -> list[str]:
        """Say which rows candidates competed on, and which ones the chosen policy was learnt from."""
        if self.n_sample is None:
            return []
        made = self.learnt if self.certificate is None else self.certificate.policy
        rows = None if made is None else made.record.n_train
        final = "" if rows is None else f"; the chosen policy was learnt from {rows:,} rows"
        return [f"Candidates competed on a sample of {self.n_sample:,} of {self.n_rows:,} rows{final}."]

    def explain(self) -> str:
        """Return in a few lines what was chosen, whether it is certified, the estimated gain, and the warnings."""
        lines = self._certified_lines() if self.confidence is not None else self._estimated_lines()
        lines[1:1] = self._sampled()
        return "\n".join([*lines, *(f"Warning: {warning}." for warning in self.warnings())])

    def _certified_lines(self) -> list[str]:
        count = len(self.table) - 1  # without the imitation
        lines = [
            f"{'Chosen' if self.certified else 'Best'}: {self._name(self.chosen)}, of {counted(count, 'candidate')}."
        ]
        lines.append(self._verdict())
        found = self.certificate
        if found is not None:
            low, high = found.interval
            lines.append(
                f"Gain: {found.gain:.4g}, approximate 95% interval [{low:.4g}, {high:.4g}]; the logged {self.outcome} "
                f"is {found.logged:.4g} on these rows."
                + (" Do not rely on it: it takes for granted what the log contradicts." if found.objections else "")
            )
            if self.certified:
                lines.append(f"Provided that: {'; '.join(found.conditions)}.")
        return [*lines, *self._next_step()]

    def _verdict(self) -> str:
        found, sure = self.certificate, f"{self.confidence or 0.95:.0%}"
        if found is None and self.chosen.validation is not None and self.chosen.validation.units < 2:
            return "Not certified: the log has too few independent units."
        if found is None and NO_TREES in self.chosen.problems:
            return "Not certified: no tree helps to predict the losses of this log. Try other learners."
        if found is None:
            return "Not certified: no candidate did better than the log on held-out rows."
        on = f"on {found.rows:,} fresh rows"
        if found.certified:
            which = "lower" if self.outcome == "loss" else "higher"
            after = "; this is for the policy before refitting" if self.origin == "refitted" else ""
            return (
                f"Certified: its {self.outcome} is {which} than what was logged, by at least {found.gain_at_least:.4g} "
                f"with {sure} confidence ({on}){after}."
            )
        if found.objections:
            return f"Not certified: {'; '.join(found.objections)}."
        return (
            f"Not certified: {found.rows:,} fresh rows do not show that it is better than what was logged. Its gain is "
            f"above {found.gain_at_least:.4g} with {sure} confidence; that must be above 0."
        )

    @property
    def _additive(self) -> bool:
        made = self.chosen.policy or self.learnt
        return made is not None and made.record.settings.get("additive") is True

    def _next_step(self) -> list[str]:
        if self.certified:
            return []
        lines = []
        found = self.certificate
        if found is not None and found.needs_more:
            rows = found.units_needed * found.rows / found.units / max(found.rows / self.n_rows, 1e-9)
            lines.append(f"To certify such a gain {LIKELY} takes a log of about {rounded(rows):,} rows.")
        policy = self.chosen.policy
        if policy is not None and policy.structure.independent and not self._additive:
            lines.append(f"If {self._outcomes} are sums over labels, say so by additive=True: it takes far fewer rows.")
        if self.origin == "logging policy":
            lines.append("The policy is the logging policy.")
        elif self.origin == "imitation":
            lines.append(f"The policy is an imitation of the logging policy{self._imitation_estimate()}.")
        else:
            lines.append("There is no policy: keep what is running.")
        return lines

    def _imitation_estimate(self) -> str:
        estimate = None if self.imitation is None else self.imitation.validation
        if estimate is None or self.logged is None:
            return ""
        return f", with an estimated {self.outcome} of {estimate} where {self.logged.value:.4g} was logged"

    def _estimated_lines(self) -> list[str]:
        chosen, count = self.chosen, len(self.table)
        after = f", then refitted on all {self.n_rows:,} rows" if self.refitted and self.n_sample is None else ""
        among = f"one of {count} candidates" if count > 1 else "the only candidate"
        lines = [f"Chosen: {self._name(chosen)}, {among}{after}; not certified."]
        if self.logged is not None and chosen.validation is not None and chosen.gain is not None:
            gain = chosen.gain.as_reward
            low, high = gain.interval()
            promised = f"; {self._outcomes} are taken to be sums over labels, as you said" if self._additive else ""
            lines += [
                f"Against: a logged {self.outcome} of {self.logged.value:.4g} on {self.n_validation:,} "
                f"held-out rows{self._in_folds}; its own is estimated at {chosen.validation}.",
                f"Gain: {gain.value:.4g}, approximate 95% interval [{low:.4g}, {high:.4g}]: that of the "
                f"winner, so likely too high{promised}.",
            ]
        return lines

    def _name(self, candidate: Candidate) -> str:
        return f"{candidate.learner} (λ {candidate.lam:.3g})"

    def recorded(self, digest: Callable[[], str]) -> Policy | FlooredPolicy | None:
        """Return the policy with a record of how it was chosen, and with the digest of the log that it comes from."""
        if self.learnt is None:
            return self.policy
        found = None if self.certificate is None else self.certificate.to_dict()
        refitted = self.origin == "refitted"
        record = replace(
            self.learnt.record,
            log=digest(),
            candidates=tuple(row | {"outcome": self.outcome} for row in self.rows()),
            certificate=None if refitted else found,
            certificate_before_refit=found if refitted else None,
            explanation=tuple(self.explain().splitlines()),
        )
        return replace(self.learnt, record=record)

    def rows(self) -> list[dict[str, Any]]:
        """Return the table as data that JSON can hold."""
        return [{name: finite(value) for name, value in row.items()} for row in self.table.to_dicts()]

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain data. Unbounded is None."""
        return {
            "origin": self.origin,
            "outcome": self.outcome,
            "learner": self.chosen.learner,
            "certified": self.certified,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "warnings": self.warnings(),
            "candidates": self.rows(),
        }

    def warnings(self) -> list[str]:
        """Return what should make you hesitate, in words."""
        found = []
        if self.origin == "imitation" and self._poor_imitation():
            found.append(
                "the imitation is worse than the logging policy itself, which is not linear in these features: keep "
                "what is running, or pass it as logging_policy="
            )
        if self.doubtful_logger:
            found.append(
                "logging_policy= does not have the logged propensities: it is not the policy that made this log"
            )
        if self._estimated:
            found.append("propensities are estimated, not logged, and no interval accounts for that")
        low, high = self.calibration.bounds
        bounds = f"[{low:.4g}, {high:.4g}]"
        if self.confidence is None:
            found += self._doubts(bounds)
        elif self.certified:
            found += self._problems()
        if self.calibration.bounds_from == "data":
            found.append(f"{self._outcomes} are taken to lie in {bounds}, as in the log; if not, pass loss_bounds=")
        return found

    def _problems(self) -> list[str]:
        return [f"the policy is marked “{problem}”: {MEANING[problem]}" for problem in self.chosen.problems]

    def _doubts(self, bounds: str) -> list[str]:
        """Return what speaks against the chosen candidate."""
        found = self._problems()
        validation, gain = self.chosen.validation, self.chosen.gain
        if validation is None:
            return [*found, f"nothing was held out, so that nothing is known of its {self.outcome}"]
        if validation.effective_n < FEW:
            found.append(
                f"only {validation.effective_n:.0f} effective rows of {validation.n:,} speak for it; "
                "its interval is rough. Log more, or nearer to this policy"
            )
        if gain is not None and gain.missing > MANY:
            found.append(f"{gain.missing:.0%} of its decisions are such as the log does not hold")
        if validation.units < UNITS:
            found.append(
                f"the log has {counted(validation.units, 'independent unit')} only; no interval can be had from so few"
            )
        low, high = self.calibration.bounds
        if not low <= validation.value <= high:
            found.append(f"the estimate is outside of {bounds}, what {self._outcomes} can be: do not trust it")
        return found

    @property
    def _outcomes(self) -> str:
        return PLURAL[self.outcome]

    def _poor_imitation(self) -> bool:
        """Return whether the imitation is estimated to be worse than the log."""
        gain = None if self.imitation is None else self.imitation.gain
        return gain is not None and gain.as_reward.interval()[1] < 0.0

    @property
    def _in_folds(self) -> str:
        return f" in {self.folds} folds" if self.folds > 1 else ""

    @property
    def _estimated(self) -> bool:
        return self.propensities == "estimated"
