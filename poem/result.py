"""What a fit found, and what it says of itself."""

from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

from poem.calibrate import Calibration
from poem.estimators import Estimate
from poem.log import BanditLog
from poem.policy import Policy
from poem.select import MEANING, Candidate, Table, rank

MANY = 0.1  # of a policy's decisions that the log lacks
UNITS = 5  # independent units below which nothing can be said
FEW = 50.0  # effective rows below which an estimate hangs on a few


@dataclass(frozen=True)
class Fit:
    """What :func:`poem.fit` found.

    Attributes
    ----------
    policy : Policy
        The one to use.
    chosen : Candidate
        Its row of the table. Where ``refitted``, the table's policies were learnt without the held-out
        rows, and ``policy`` is the same recipe on all rows.
    table : Table
        Every candidate that was tried.
    calibration : Calibration
        Loss scale, clip and λ*, and where they come from.
    n_train, n_validation : int
        How many rows each candidate was trained on, and how many were judged on.
    folds : int
        In how many parts; with several, every row was judged by a policy that had not seen it.
    logged : Estimate or None
        The loss that was logged on the held-out rows, to compare with.
    confidence : float or None
        How sure the choice had to be that the policy is better than what was logged; None for the paper's rule.
    sure : bool or None
        Whether the policy is better with that confidence; None where that was not asked.
    fell_back : bool
        Nothing was better with that confidence: the policy is the logging policy's own behaviour.
    imitated : bool
        What it falls back on is an imitation of the logging policy, not the policy itself.
    refitted : bool
    outcome : "loss" or "reward"
        What the log called it, for :meth:`explain`; all figures are losses.
    """

    policy: Policy
    chosen: Candidate
    table: Table
    calibration: Calibration
    n_train: int
    n_validation: int
    logged: Estimate | None
    folds: int = 1
    confidence: float | None = None
    sure: bool | None = None
    fell_back: bool = False
    imitated: bool = False
    refitted: bool = False
    outcome: str = "loss"

    def __repr__(self) -> str:
        lines = [
            str(self.policy),
            f"trained on {self.n_train:,} rows, selected on {self.n_validation:,}{self._in_folds}; {self.calibration}",
            *(["propensities are estimated, not logged"] if self._estimated else []),
            str(self.table),
        ]
        if self.refitted:
            lines.append(f"the chosen recipe was then followed on all {self.n_rows:,} rows")
        if self.fell_back:
            lines.append(self._fallback())
        elif self.logged is not None and self.chosen.validation is not None:
            better = self.sure
            if better is None:
                better = self.chosen.validation.interval()[1] < self.logged.value
            verdict = "is estimated to be better" if better else "is not shown to be better"
            lines.append(f"logged loss on the held-out rows {self.logged}: the chosen policy {verdict}")
        return "\n".join(lines)

    def explain(self) -> str:
        """Return in a few lines what was chosen, against what, the estimated gain, and the warnings."""
        chosen, count = self.chosen, len(self.table) - (self.sure is not None)  # without what is fallen back on
        after = f", then refitted on all {self.n_rows:,} rows" if self.refitted else ""
        among = f"one of {count} candidates" if count > 1 else "the only candidate"
        lines = [f"Chosen: {chosen.learner} (λ {chosen.lam:.3g}), {among}{after}."]
        if self.fell_back:
            lines[0] = f"Chosen: none of {count} candidates. {self._fallback()}."
        if self.logged is not None and chosen.validation is not None and chosen.gain is not None:
            low, high = chosen.gain.interval()
            lines += [
                f"Against: a logged {self.outcome} of {self._shown(self.logged.value):.4g} on {self.n_validation:,} "
                f"held-out rows{self._in_folds}; its own is estimated at {self._estimate(chosen.validation)}.",
                f"Gain: {-chosen.gain.value:.4g}, 95 % interval [{-high:.4g}, {-low:.4g}]{self._surely()}.",
            ]
        rival = self._rival()
        if rival is not None and rival.validation is not None:
            lines.append(f"Next: {rival.learner} (λ {rival.lam:.3g}), estimated at {self._estimate(rival.validation)}.")
        return "\n".join([*lines, *(f"Warning: {warning}." for warning in self.warnings())])

    def _surely(self) -> str:
        """Say what the choice rests on: a one-sided bound, which may be above 0 where the two-sided interval is not."""
        if not self.sure or self.confidence is None or self.chosen.gain is None:
            return ""
        return f"; above {-self.chosen.gain.upper(self.confidence):.4g} with {self.confidence:.0%} confidence"

    def recorded(self, log: BanditLog) -> Policy:
        """Return the policy with a record of how it was chosen, and of the log that it was learnt from."""
        rows = [{name: _finite(value) for name, value in row.items()} for row in self.table.to_dicts()]
        record = {"candidates": rows, "explanation": self.explain().splitlines(), "log": log.fingerprint()}
        return replace(self.policy, training={**self.policy.training, **record})

    def warnings(self) -> list[str]:
        """Return what should make one hesitate, in words."""
        found = []
        if self.confidence is not None and self.sure is False and not self.fell_back:
            found.append(
                f"it is not shown to be better than the log with {self.confidence:.0%} confidence; it was chosen "
                "because nearly all that was logged failed, so that nothing speaks for the logging policy either"
            )
        if self._poor_imitation():
            found.append(
                "the imitation is worse than the logging policy itself, which is not linear in these features: keep "
                "what is running, or pass it as logging_policy="
            )
        found += [f"the policy is marked “{problem}”: {MEANING[problem]}" for problem in self.chosen.problems]
        if self._estimated:
            found.append("propensities are estimated, not logged, and no interval accounts for that")
        validation = self.chosen.validation
        if validation is None:
            found.append("nothing was held out, so that nothing is known of its loss")
        elif not self.fell_back and validation.effective_n < FEW:
            found.append(
                f"only {validation.effective_n:.0f} effective rows of {validation.n:,} speak for it; "
                "its interval is rough. Log more, or nearer to this policy"
            )
        missing = 0.0 if self.chosen.gain is None or self.fell_back else self.chosen.gain.missing
        if missing > MANY:
            found.append(f"{missing:.0%} of its decisions are such as the log does not hold")
        if validation is not None and validation.units < UNITS:
            found.append(f"the log has {validation.units} independent units only; no interval can be had from so few")
        low, high = self.calibration.bounds
        bounds = self._ends(low, high)
        if validation is not None and not low <= validation.value <= high:
            found.append(f"the estimate is outside of {bounds}, what {self._outcomes} can be: do not trust it")
        if self.calibration.bounds_from == "data":
            advice = "say so if not (loss_bounds=, --loss-bounds)"
            found.append(f"{self._outcomes} are taken to lie in {bounds}, as in the log; {advice}")
        return found

    @property
    def _outcomes(self) -> str:
        return "losses" if self.outcome == "loss" else "rewards"

    def _shown(self, loss: float) -> float:
        return loss if self.outcome == "loss" else 0.0 - loss

    def _ends(self, low: float, high: float) -> str:
        low, high = sorted((self._shown(low), self._shown(high)))
        return f"[{low:.4g}, {high:.4g}]"

    def _estimate(self, estimate: Estimate) -> str:
        return f"{self._shown(estimate.value):.4g} {self._ends(*estimate.interval())}"

    def _poor_imitation(self) -> bool:
        """Return whether what was fallen back on is surely worse than the log."""
        gain = self.chosen.gain
        return self.fell_back and self.imitated and gain is not None and gain.interval()[0] > 0.0

    @property
    def n_rows(self) -> int:
        """The number of rows of the log."""
        return self.n_validation if self.folds > 1 else self.n_train + self.n_validation

    @property
    def _in_folds(self) -> str:
        return f" in {self.folds} folds" if self.folds > 1 else ""

    @property
    def _estimated(self) -> bool:
        return self.policy.training.get("propensities") == "estimated"

    def _fallback(self) -> str:
        sure = f"{self.confidence or 0.95:.0%}"
        what = "is a linear imitation of the logging policy" if self.imitated else "is the logging policy"
        return f"Nothing is better than the log with {sure} confidence; the policy {what}"

    def _rival(self) -> Candidate | None:
        """Return the best candidate made by another learner than the chosen one."""
        others = [
            candidate
            for candidate in self.table
            if candidate.recipe.learner.name != self.chosen.recipe.learner.name
            and candidate.gain is not None
            and not candidate.problems
        ]
        return min(others, key=rank, default=None)


def _finite(value: Any) -> Any:
    """Return what JSON can hold: None for what is unbounded."""
    return None if isinstance(value, float) and not isfinite(value) else value
