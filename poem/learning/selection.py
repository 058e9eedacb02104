"""Candidates × held-out rows → the one to keep, and why the others are not."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special

from poem.certificates import Forecast
from poem.errors import DegenerateError, DegenerateWarning
from poem.estimators import Estimate
from poem.learning.portfolio import Recipe
from poem.optimizers import Trace
from poem.policies import Policy
from poem.text import Grid

AVOIDS_BELOW = 0.01  # mean weight under which a policy avoids the logged outputs
IGNORES_BELOW = 0.01  # total variation under which a policy ignores x
MANY_UNITS = 1e7  # above which their number says nothing
LIKELY = 0.95  # confidence of the bound by which candidates are ranked
WEIGHT_OFF = 0.5  # how far from 1 the held-out mean weight may be, if that is 3 standard errors

AVOIDS, IGNORES, OVERFITS, NO_TREES = "avoids the log", "ignores x", "propensity overfitting", "no trees"
MEANING = {
    AVOIDS: "it gives the logged outputs no probability, so nothing is known of it",
    IGNORES: "it chooses the same way whatever the context is",
    NO_TREES: "no tree helps to predict the losses of this log, so it is the policy of a model without trees",
    OVERFITS: "its mean weight on held-out rows is far from 1, so its estimate cannot be trusted",
}


@dataclass(frozen=True)
class Gain:
    """How far a policy's loss is from what was logged on the same rows: negative is better.

    In a log of rewards, a :class:`Fit` has it ``as_reward``: positive is better, and ``worse``, the sign of what is
    worse, is −1.

    Weights have a mean of 1. Where theirs, ``mean_weight``, is below, rare rows that would have spoken against the
    policy were not drawn, and Student's t knows nothing of them: the missing share costs more than estimated, a
    ``typical`` error of the loss model or, at worst, ``room``.
    """

    value: float
    stderr: float
    freedom: float
    mean_weight: float = 1.0
    weight_stderr: float = 0.0
    typical: float = 0.0
    room: float = 0.0
    worse: float = 1.0

    @property
    def as_reward(self) -> "Gain":
        """The same as a difference of rewards: positive is better."""
        return self if self.worse < 0.0 else replace(self, value=0.0 - self.value, worse=-1.0)

    @property
    def missing(self) -> float:
        """The share of the policy's decisions that the log lacks."""
        return max(0.0, 1.0 - self.mean_weight)

    def at_worst(self, confidence: float) -> float:
        """Return the worst that it is, with some confidence; unbounded where fewer than two effective rows speak."""
        return self._bound(confidence, self.missing * self.room)

    @property
    def likely(self) -> float:
        """The worst that it is in nineteen cases of twenty, if errors are as usual.

        Of what is missing, chance explains one standard error, and the rest costs a typical error. The worst case is
        for what must not happen: to order policies by it would prefer whichever keeps to the log.
        """
        return self._bound(LIKELY, max(0.0, self.missing - self.weight_stderr) * self.typical)

    def _bound(self, confidence: float, missing_costs: float) -> float:
        if not np.isfinite(self.value) or self.freedom < 1.0 - 1e-9:
            return self.worse * np.inf
        reach = float(special.stdtrit(self.freedom, confidence)) * self.stderr
        return self.value + self.worse * reach + self.worse * missing_costs

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the Student-t interval, with what is missing added to its worse end."""
        worst = self.at_worst(0.5 + level / 2.0)
        reach = float(special.stdtrit(self.freedom, 0.5 + level / 2.0)) * self.stderr if np.isfinite(worst) else np.inf
        best = self.value - self.worse * reach
        return (best, worst) if self.worse > 0.0 else (worst, best)


@dataclass(frozen=True)
class Candidate:
    """One policy that was tried.

    ``recipe`` is how it was made, ``lam`` its λ, ``objective`` the training objective, ``mean_weight`` and
    ``clipped_share`` are those of the clipped training weights, ``validation`` is the estimate on held-out rows
    and ``gain`` its difference to what was logged there (None without held-out rows), in the log's own loss or reward,
    ``forecast`` is the certificate that it may expect (None where none is given), ``problems`` are the ways in which
    it is degenerate. With several folds, policy, training figures and trace are those of the first one, and the
    estimate is of all; if all candidates together have more than 64 MiB of weights, ``policy`` is then None
    and the trace has no weights.
    """

    policy: Policy | None = field(repr=False)
    recipe: Recipe
    lam: float
    objective: float
    mean_weight: float
    clipped_share: float
    validation: Estimate | None
    gain: Gain | None
    problems: tuple[str, ...]
    seconds: float
    trace: Trace = field(repr=False)
    forecast: Forecast | None = None

    @property
    def learner(self) -> str:
        """What the way in which it was made is called."""
        return self.recipe.label

    @property
    def c(self) -> float | None:
        """λ/λ*; None where λ* played no part."""
        return self.recipe.c

    @property
    def score(self) -> float:
        """What candidates are compared by: the held-out estimate, or else the objective."""
        return self.objective if self.validation is None else self.validation.value

    def as_outcome(self, outcome: str) -> "Candidate":
        """Return a candidate judged by losses as one judged by the log's own outcome."""
        if outcome == "loss" or self.validation is None:
            return self
        gain = None if self.gain is None else self.gain.as_reward
        return replace(self, validation=self.validation.as_outcome(outcome), gain=gain)


class Table(Sequence[Candidate]):
    """All candidates in the order they were tried; prints as a table, ``to_dicts()`` for data frames.

    ``confidence`` is that of the certificate; without one, nothing is foreseen of it. ``outcome`` is what candidates
    are judged by, "loss" or "reward". The objective is what training minimised, on losses: lower is better in any log.
    """

    def __init__(
        self,
        candidates: Sequence[Candidate],
        chosen: Candidate,
        confidence: float | None = None,
        outcome: str = "loss",
    ) -> None:
        self._candidates, self._chosen, self._confidence = tuple(candidates), chosen, confidence
        self._outcome = outcome

    def __len__(self) -> int:
        return len(self._candidates)

    def __getitem__(self, position: Any) -> Any:
        return self._candidates[position]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._candidates)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one plain dict for each candidate."""
        return [self._row(candidate) | {"chosen": candidate is self._chosen} for candidate in self]

    def __repr__(self) -> str:
        return str(self.grid())

    def _repr_html_(self) -> str:
        return self.grid().html()

    def grid(self) -> Grid:
        """Return the candidates as a table of text."""
        rows = ("held-out rows",) if self._in_rungs else ()
        bound = () if self._confidence is None else ("gain, likely at least", "units to certify")
        objective = "objective" if self._outcome == "loss" else "objective (minimised)"
        judged = f"held-out {self._outcome}"
        head = ("", "learner", "λ", "c", objective, "mean weight", "clipped", judged, *rows, *bound)
        return Grid((*head, "seconds", "problems"), [self._cells(candidate) for candidate in self], left=2)

    def _row(self, candidate: Candidate) -> dict[str, Any]:
        validation, gain = candidate.validation, candidate.gain
        likely, needed = self._prospects(candidate)
        low, high = (None, None) if validation is None else validation.interval()
        return {
            "learner": candidate.learner,
            "lam": candidate.lam,
            "c": candidate.c,
            "objective": candidate.objective,
            "mean_weight": None if candidate.recipe.weightless else candidate.mean_weight,
            "clipped_share": candidate.clipped_share,
            "validation": None if validation is None else validation.value,
            "validation_low": low,
            "validation_high": high,
            "validation_rows": None if validation is None else validation.n,
            "validation_weight": None if validation is None else validation.mean_weight,
            "gain": None if gain is None else gain.as_reward.value,
            "gain_likely": likely,
            "units_to_certify": needed,
            "seconds": candidate.seconds,
            "steps": candidate.trace.steps,
            "problems": ", ".join(candidate.problems),
        }

    def _cells(self, candidate: Candidate) -> tuple[str, ...]:
        return (
            "→" if candidate is self._chosen else "",
            candidate.learner,
            f"{candidate.lam:.3g}",
            "" if candidate.c is None else f"{candidate.c:.0e}",
            f"{candidate.objective:.4f}",
            "" if candidate.recipe.weightless else f"{candidate.mean_weight:.3f}",
            f"{candidate.clipped_share:.1%}",
            "" if candidate.validation is None else str(candidate.validation),
            *((f"{_judged_on(candidate):,}",) if self._in_rungs else ()),
            *(() if self._confidence is None else _shown(*self._prospects(candidate))),
            f"{candidate.seconds:.2f}",
            ", ".join(candidate.problems),
        )

    @property
    def _in_rungs(self) -> bool:
        """Whether some candidates were dropped early, on fewer rows than others were judged on."""
        return len({_judged_on(candidate) for candidate in self}) > 1

    def _prospects(self, candidate: Candidate) -> tuple[float | None, float | None]:
        """Return the likely gain, and how many units a certificate may take."""
        gain, forecast = candidate.gain, candidate.forecast
        if self._confidence is None or gain is None or forecast is None:
            return None, None
        return gain.as_reward.likely, forecast.units_needed(1.0 - self._confidence)


def _judged_on(candidate: Candidate) -> int:
    return 0 if candidate.validation is None else candidate.validation.n


def _shown(gain: float | None, units: float | None) -> tuple[str, str]:
    """Return a likely gain and the units to certify it as text."""
    if gain is None or units is None:
        return "", ""
    return f"{gain:.4g}", f"{np.ceil(units):,.0f}" if units < MANY_UNITS else f"over {MANY_UNITS:,.0f}"


def find_problems(policy: Policy, contexts: Any, available: Any, mean_weight: float) -> tuple[str, ...]:
    """Name the ways in which a policy is degenerate; ``contexts`` are some rows of X, with what is available there."""
    found = []
    if mean_weight < AVOIDS_BELOW:
        found.append(AVOIDS)
    if policy.variation(contexts, available) < IGNORES_BELOW:
        found.append(IGNORES)
    return tuple(found)


def overfits(validation: Estimate) -> bool:
    """Return whether the mean weight on held-out rows is far from 1."""
    return abs(validation.mean_weight - 1.0) > max(WEIGHT_OFF, 3.0 * validation.weight_stderr)


def choose(candidates: Sequence[Candidate], guard: bool = True) -> Candidate:
    """Return the candidate with the lowest score; with ``guard``, a healthy one if there is any."""
    if not guard:
        return _lowest(candidates)
    usable = [candidate for candidate in candidates if AVOIDS not in candidate.problems]
    if not usable:
        most = max(candidate.mean_weight for candidate in candidates)
        raise DegenerateError(
            f"each of the {len(candidates)} candidates avoids the logged outputs (mean weight at most {most:.2g}): "
            "with so large a λ, choosing nothing that was logged looks best. Use a smaller lam, lam='auto', or "
            "loss_bounds that no loss exceeds; guard=False returns such a policy all the same."
        )
    healthy = [candidate for candidate in usable if not candidate.problems]
    if healthy:
        return _lowest(healthy)
    chosen = _lowest(usable)
    reasons = "; ".join(f"“{problem}” ({MEANING[problem]})" for problem in chosen.problems)
    warnings.warn(
        f"no candidate is free of problems; the best one is marked {reasons}. Do not deploy it without an A/B test; "
        "more data, another logging policy or other features may help.",
        DegenerateWarning,
        stacklevel=5,
    )
    return chosen


def choose_likely(candidates: Sequence[Candidate]) -> Candidate:
    """Return the candidate with the lowest likely bound, a healthy one if there is any."""
    ordered = ordered_by_likely(candidates)
    return ordered[0] if ordered else choose(candidates)


def ordered_by_likely(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the healthy candidates whose bound is known, the lowest first."""
    return sorted((one for one in candidates if not one.problems and np.isfinite(rank(one))), key=rank)


def rank(candidate: Candidate) -> float:
    """Return what orders candidates that can be certified, the lowest first."""
    return np.inf if candidate.gain is None else candidate.gain.likely


def _lowest(candidates: Sequence[Candidate]) -> Candidate:
    # min returns the first of equals: the smallest λ, as in a strict-improvement search.
    return min(candidates, key=lambda candidate: np.inf if np.isnan(candidate.score) else candidate.score)
