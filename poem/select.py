"""Candidates × held-out rows → the one to keep, and why the others are not."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from poem.errors import DegenerateError, DegenerateWarning
from poem.estimators import Estimate
from poem.optimizers import Trace
from poem.policy import Policy

AVOIDS_BELOW = 0.01  # mean weight under which a policy avoids the logged outputs
IGNORES_BELOW = 0.01  # total variation under which a policy ignores x
WEIGHT_OFF = 0.5  # how far from 1 the held-out mean weight may be, if that is 3 standard errors

AVOIDS, IGNORES, OVERFITS = "avoids the log", "ignores x", "propensity overfitting"
MEANING = {
    AVOIDS: "it gives the logged outputs no probability, so nothing is known of it",
    IGNORES: "it chooses the same way whatever the context is",
    OVERFITS: "its mean weight on held-out rows is far from 1, so its estimate cannot be trusted",
}


@dataclass(frozen=True)
class Candidate:
    """One policy that was tried.

    ``c`` is lam/λ* (None where λ* played no part), ``objective`` the training objective,
    ``mean_weight`` and ``clipped_share`` are those of the clipped training weights, ``validation``
    the estimate on held-out rows in the log's own loss (None without held-out rows), ``problems``
    the ways in which it is degenerate.
    """

    policy: Policy = field(repr=False)
    lam: float
    c: float | None
    objective: float
    mean_weight: float
    clipped_share: float
    validation: Estimate | None
    problems: tuple[str, ...]
    seconds: float
    trace: Trace = field(repr=False)

    @property
    def score(self) -> float:
        """What candidates are compared by: the held-out estimate, or else the objective."""
        return self.objective if self.validation is None else self.validation.value


class Table(Sequence[Candidate]):
    """All candidates in the order of λ; prints as a table, ``to_dicts()`` for data frames."""

    def __init__(self, candidates: Sequence[Candidate], chosen: Candidate) -> None:
        self._candidates, self._chosen = tuple(candidates), chosen

    def __len__(self) -> int:
        return len(self._candidates)

    def __getitem__(self, position: Any) -> Any:
        return self._candidates[position]

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._candidates)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one plain dict for each candidate."""
        return [_row(candidate) | {"chosen": candidate is self._chosen} for candidate in self]

    def __repr__(self) -> str:
        head = ("", "λ", "c", "objective", "mean weight", "clipped", "held-out loss", "seconds", "problems")
        rows = [head, *(_cells(candidate, candidate is self._chosen) for candidate in self)]
        widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
        )


def _row(candidate: Candidate) -> dict[str, Any]:
    validation = candidate.validation
    low, high = (None, None) if validation is None else validation.interval()
    return {
        "lam": candidate.lam,
        "c": candidate.c,
        "objective": candidate.objective,
        "mean_weight": candidate.mean_weight,
        "clipped_share": candidate.clipped_share,
        "validation": None if validation is None else validation.value,
        "validation_low": low,
        "validation_high": high,
        "validation_weight": None if validation is None else validation.mean_weight,
        "seconds": candidate.seconds,
        "steps": candidate.trace.steps,
        "problems": ", ".join(candidate.problems),
    }


def _cells(candidate: Candidate, chosen: bool) -> tuple[str, ...]:
    return (
        "→" if chosen else "",
        f"{candidate.lam:.3g}",
        "" if candidate.c is None else f"{candidate.c:.0e}",
        f"{candidate.objective:.4f}",
        f"{candidate.mean_weight:.3f}",
        f"{candidate.clipped_share:.1%}",
        "" if candidate.validation is None else str(candidate.validation),
        f"{candidate.seconds:.2f}",
        ", ".join(candidate.problems),
    )


def find_problems(policy: Policy, contexts: Any, mean_weight: float, validation: Estimate | None) -> tuple[str, ...]:
    """Name the ways in which a policy is degenerate; ``contexts`` are some rows of X."""
    found = []
    if mean_weight < AVOIDS_BELOW:
        found.append(AVOIDS)
    if policy.variation(contexts) < IGNORES_BELOW:
        found.append(IGNORES)
    if validation is not None:
        allowed = max(WEIGHT_OFF, 3.0 * validation.weight_stderr)
        if abs(validation.mean_weight - 1.0) > allowed:
            found.append(OVERFITS)
    return tuple(found)


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
        stacklevel=3,
    )
    return chosen


def _lowest(candidates: Sequence[Candidate]) -> Candidate:
    # min returns the first of equals: the smallest λ, as in a strict-improvement search.
    return min(candidates, key=lambda candidate: np.inf if np.isnan(candidate.score) else candidate.score)
