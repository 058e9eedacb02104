"""Ways to learn, as combinations of the same parts: estimator × start × λ × l2 × optimizer."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from poem.errors import InputError
from poem.estimators import IPS, SNIPS, DirectMethod, DoublyRobust, ImplicitExploration, LogSmoothing, Objective
from poem.learning.names import LEARNERS
from poem.optimizers import LBFGS, Optimizer

MULTIPLIERS = tuple(10.0**power for power in range(-6, 1))  # the paper's c

Lam = float | Sequence[float] | Literal["auto"]
Start = Literal["zero", "direct", "logging", "tilted", "given", "trees", "leaves"]

FROM = {
    "zero": "",
    "direct": ", from direct",
    "logging": ", from the logging policy",
    "tilted": ", from the tilted logging policy",
    "given": ", from the start",
    "trees": ", from trees",
    "leaves": " on trees",
}
SCALED = ("direct", "logging", "tilted", "trees", "leaves")
GROWN = ("trees", "leaves")


@dataclass(frozen=True)
class Learner:
    """One way to learn, and the strengths to try.

    Attributes
    ----------
    name : str
    estimator : Objective or None
        The risk to minimise; None takes the start as it is.
    start : "zero", "direct", "logging", "tilted", "trees", "leaves" or "given"
        w = 0; the loss model's own policy, which prefers what has a low loss; the imitated logging policy; the
        logging policy tilted towards low losses, h ∝ g·exp(sharpness·preference), which hardly chooses what g never
        chooses; or what :func:`poem.fit` was given as ``start``. "trees" is the policy of a loss model with trees,
        and "leaves" the same with the trees' leaves as features: these trees are grown on one half of the units, and
        the objective is computed on the other one.
    sharpness : tuple of float
        How certain the start is: the standard deviations that the scores of a loss model are scaled to, or
        what the weights of "logging" are multiplied by.
    lam : "auto", float or sequence of float
        λ of the variance penalty; ``"auto"`` is c·λ* for each c of ``multipliers``.
    multipliers : tuple of float
    l2, pull : float, tuple of float
        Strengths of the l2 penalty, which pulls to the start; ``pull`` is in mean squared norms of the contexts.
    optimizer : Optimizer
    cautious : bool
        Take what the logging policy never chooses in a region to have the worst loss there. A tree over the contexts
        finds such regions, in logs of classes with at most 256 dense features.
    additive : bool
        Correct the loss model label by label, by what was logged. It takes ``Selection(additive=True)``.
    """

    name: str
    estimator: Objective | None = field(default_factory=IPS)
    start: Start = "zero"
    sharpness: tuple[float, ...] = (8.0,)
    lam: Lam = "auto"
    multipliers: tuple[float, ...] = MULTIPLIERS
    l2: float = 0.0
    pull: tuple[float, ...] = (0.0,)
    optimizer: Optimizer = field(default_factory=LBFGS)
    cautious: bool = False
    additive: bool = False

    def __post_init__(self) -> None:
        for name, value, kind, example in (
            ("estimator", self.estimator, Objective | None, "poem.IPS()"),
            ("optimizer", self.optimizer, Optimizer, "poem.LBFGS()"),
        ):
            if not isinstance(value, kind):
                raise InputError(f"{name} of a learner must be such as {example}; found {value!r}.")
        if self.start not in FROM:
            raise InputError(f"start of a learner must be one of {', '.join(FROM)}; found {self.start!r}.")
        if self.additive and self.start in GROWN:
            raise InputError(f"an additive learner must begin elsewhere than at {self.start!r}, such as at 'direct'.")
        self._grid()
        for name in ("sharpness", "multipliers", "pull", "l2"):
            try:
                values = np.atleast_1d(np.asarray(getattr(self, name), dtype=np.float64))
            except (TypeError, ValueError):
                values = np.empty(0)
            if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)) or np.any(values < 0.0):
                raise InputError(f"{name} of a learner must hold numbers of at least 0; found {getattr(self, name)!r}.")
            object.__setattr__(self, name, tuple(values.tolist()) if name != "l2" else float(values[0]))

    def recipes(self) -> list["Recipe"]:
        """Return every candidate that this learner proposes, by λ in ascending order."""
        sharpness = self.sharpness if self.start in SCALED else (1.0,)
        if self.estimator is None:
            return [Recipe(self, scale, 0.0, None, 0.0) for scale in sharpness]
        return [
            Recipe(self, scale, lam, c, pull) for lam, c in self._grid() for scale in sharpness for pull in self.pull
        ]

    def _grid(self) -> list[tuple[float, float | None]]:
        """Return (λ, c) pairs in ascending order; where c is given, λ is c·λ*."""
        if isinstance(self.lam, str):
            if self.lam != "auto":
                raise InputError(f"lam must be 'auto', a number or several numbers; found {self.lam!r}.")
            return [(0.0, c) for c in self.multipliers]
        try:
            values = np.atleast_1d(np.asarray(self.lam, dtype=np.float64))
        except (TypeError, ValueError) as error:
            raise InputError(f"lam must be 'auto', a number or several numbers; found {self.lam!r}.") from error
        if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)) or np.any(values < 0.0):
            raise InputError(f"lam must be finite and not negative; found {self.lam!r}.")
        return [(float(value), None) for value in np.sort(values)]


@dataclass(frozen=True)
class Recipe:
    """One candidate: a learner with one value of each strength; ``c`` is a multiple of λ*, and goes before ``lam``."""

    learner: Learner
    sharpness: float
    lam: float
    c: float | None
    pull: float

    @property
    def needs_model(self) -> bool:
        """Whether it rests on a loss model."""
        learner = self.learner
        return learner.start in ("direct", "tilted", *GROWN) or (
            learner.estimator is not None and learner.estimator.needs_model
        )

    @property
    def weightless(self) -> bool:
        """Whether logged losses do not count while it is learnt, so that their weights say nothing."""
        return isinstance(self.learner.estimator, DirectMethod)

    def lam_for(self, lam_star: float) -> float:
        """Return λ for a log with some λ*."""
        return self.lam if self.c is None else self.c * lam_star

    def settings(self) -> dict[str, Any]:
        """Return what a record shows of it, beside learner, start and λ, as plain data."""
        learner, estimator = self.learner, self.learner.estimator
        return {
            "estimator": None if estimator is None else estimator.name,
            "clip": getattr(estimator, "clip", None),
            "l2": learner.l2,
            "optimizer": learner.optimizer.settings(),
            "pull": self.pull,
            "sharpness": self.sharpness,
        }

    @property
    def label(self) -> str:
        """What it is called in tables."""
        learner = self.learner
        parts = [learner.name + (FROM[learner.start] if learner.estimator is not None else "")]
        if learner.start in SCALED and len(learner.sharpness) > 1:
            parts.append(f"sharpness {self.sharpness:g}")
        if self.pull:
            parts.append(f"pull {self.pull:.0e}")
        return ", ".join(parts)


# ---- the catalogue --------------------------------------------------------------------------

LOGGING = Learner("logging policy", None, "logging", sharpness=(1.0,))
GIVEN = Learner("start", None, "given")
QUICK = LBFGS(max_iterations=100)
PULLS = (6e-5, 6e-4)
DR = Learner(
    LEARNERS["dr"],
    DoublyRobust("auto"),
    "direct",
    sharpness=(8.0, 16.0),
    multipliers=(1e-2,),
    pull=PULLS,
    optimizer=QUICK,
)

NAMED = {
    "ips": Learner(LEARNERS["ips"], IPS(), lam=0.0),
    "poem": Learner(LEARNERS["poem"], IPS()),
    "norm-poem": Learner(LEARNERS["norm-poem"], SNIPS()),
    "direct": Learner(LEARNERS["direct"], None, "direct", sharpness=(2.0, 4.0, 8.0, 16.0, 32.0)),
    "dr": DR,
    "ix": Learner(LEARNERS["ix"], ImplicitExploration(), "direct", multipliers=(1e-2,), pull=PULLS, optimizer=QUICK),
    "ls": Learner(LEARNERS["ls"], LogSmoothing(), "direct", multipliers=(1e-2,), pull=PULLS, optimizer=QUICK),
    "trees": Learner(LEARNERS["trees"], None, "trees", sharpness=(2.0, 4.0, 8.0, 16.0, 32.0)),
    "leaves": replace(DR, name=LEARNERS["leaves"], start="leaves"),
}

AUTO = (
    NAMED["direct"],
    DR,
    Learner(LEARNERS["poem"], IPS(), "direct", multipliers=(1e-2,), pull=PULLS, optimizer=QUICK),
    Learner(LEARNERS["norm-poem"], SNIPS(), "direct", multipliers=(1e-2,), pull=PULLS, optimizer=QUICK),
    Learner("logging policy, sharpened", None, "logging", sharpness=(2.0, 4.0, 8.0)),
    Learner("logging policy, tilted", None, "tilted", sharpness=(0.5, 1.0, 2.0, 4.0)),
)

# For logs whose losses trees predict better than lines do.
BOOSTED = (NAMED["trees"], NAMED["leaves"])

# For logs with regions in which some outputs are never chosen: not to be led there, it begins near the log.
CAUTIOUS = tuple(
    Learner("cautious DR-CRM", DoublyRobust("auto"), start, (1.0,), multipliers=(1e-2,), optimizer=QUICK, cautious=True)
    for start in ("zero", "logging")
)

# For losses that are sums over labels: the corrections of single labels are far less noisy than those of whole sets.
ADDITIVE = Learner(
    "additive DR-CRM",
    DirectMethod(),
    "direct",
    sharpness=(8.0, 16.0),
    multipliers=(1e-2,),
    pull=PULLS,
    optimizer=QUICK,
    additive=True,
)


def learners_for(wanted: Any, started: bool) -> tuple[Learner, ...]:
    """Return the learners that were asked for; ``started`` says that a start was given."""
    many = [wanted] if isinstance(wanted, str | Learner) else wanted
    if not isinstance(many, Sequence) or not many:
        raise InputError(f"learners must be 'auto', names or poem.Learner objects; found {wanted!r}.")
    found = tuple(learner for one in many for learner in _learners(one, started))
    if any(learner.start == "given" for learner in found) and not started:
        raise InputError('a learner begins from "given", but no start= was passed. Pass a policy as start=.')
    if started and not any(learner.start == "given" for learner in found):
        raise InputError("start= was passed, but none of these learners begins from it. Leave it out, or add 'auto'.")
    return found


def _learners(one: Any, started: bool) -> tuple[Learner, ...]:
    if isinstance(one, Learner):
        return (one,)
    if isinstance(one, str) and one == "auto":
        return AUTO + ((GIVEN, *_from_given()) if started else ())
    if not isinstance(one, str) or one not in NAMED:
        raise InputError(f"there is no learner {one!r}; choose from auto, {', '.join(NAMED)}.")
    learner = NAMED[one]
    return (replace(learner, start="given") if started and learner.estimator is not None else learner,)


def _from_given() -> tuple[Learner, ...]:
    """Return the learners of the portfolio that can begin anywhere, begun from the given start."""
    return tuple(replace(learner, start="given") for learner in AUTO if learner.estimator and learner.start == "direct")
