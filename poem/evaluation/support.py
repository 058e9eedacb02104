"""What a log holds of what a policy chooses: probability on outputs that were never logged, and rows of each action."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import AnyArray, BoolArray, FloatArray
from poem.data import BanditLog, has_kinds
from poem.policies import Judged
from poem.structures import Available, Fixed, Structure

MOST_ACTIONS = 20  # of which support is told


@dataclass(frozen=True)
class ActionSupport:
    """One available action: the policy's mean probability of it, and how often it was available and logged."""

    action: str
    probability: float
    available: int
    logged: int


@dataclass(frozen=True)
class Support:
    """What is known of a policy's outputs in a log.

    Attributes
    ----------
    never_logged : float
        The mean probability of an output with a class, or a label's value, that was never logged.
    described : bool
        Whether outputs have features of their own, so that others say something about those never logged.
    actions : tuple of ActionSupport
        The most probable actions, where rows have available actions of their own.
    """

    never_logged: float
    described: bool = False
    actions: tuple[ActionSupport, ...] = ()


def support_of(policy: Judged, log: BanditLog) -> Support | None:
    """Return what a log holds of a policy's outputs; None if only the probabilities of logged outputs are known."""
    if not policy.has_marginals:
        return None
    return support_sums(policy, log, Unlogged.of(log.structure, log.y)).support(log)


@dataclass(frozen=True)
class Unlogged:
    """The classes that were never logged; or the labels that were never on, and those that were never off."""

    on: BoolArray
    off: BoolArray

    @classmethod
    def of(cls, structure: Structure, y: AnyArray) -> "Unlogged":
        """Look at logged outputs."""
        return cls(*structure.unlogged(y))

    def and_in(self, other: "Unlogged") -> "Unlogged":
        """Return what was logged neither here nor there."""
        return Unlogged(self.on & other.on, self.off & other.off)

    @property
    def any(self) -> bool:
        """Whether there is anything that was not logged."""
        return bool(self.on.any() or self.off.any())


@dataclass(frozen=True)
class SupportSums:
    """What support is made of, summed over the rows of a log or of a part of it.

    ``never`` is the probability of outputs that were never logged. Where contexts have candidates of their own,
    ``actions`` are (3, k): the probability of each action, and in how many rows it was available and logged.
    """

    rows: float
    never: float
    actions: FloatArray | None = None

    def __add__(self, other: "SupportSums") -> "SupportSums":
        both = None if self.actions is None or other.actions is None else self.actions + other.actions
        return SupportSums(self.rows + other.rows, self.never + other.never, both)

    def support(self, kind: BanditLog) -> Support:
        """Return the support; ``kind`` is a log with the same labels."""
        if self.actions is None:
            return Support(self.never / self.rows)
        probability, offered, logged = self.actions[0] / self.rows, self.actions[1], self.actions[2]
        order = np.argsort(-probability, kind="stable")[:MOST_ACTIONS]
        actions = (
            ActionSupport(str(kind.labels[code]), float(probability[code]), int(offered[code]), int(logged[code]))
            for code in order.tolist()
            if offered[code] > 0
        )
        return Support(float(probability[logged == 0].sum()), has_kinds(kind), tuple(actions))


def support_sums(policy: Judged, log: BanditLog, unlogged: Unlogged) -> SupportSums:
    """Return the sums of some rows; ``unlogged`` is what was logged in no row of the whole log."""
    seen = np.bincount(log.context, minlength=log.n_contexts).astype(np.float64)
    if log.available is not None:
        actions = _of_actions(policy.marginals_of(log), log, log.available, seen)
        return SupportSums(len(log), 0.0, actions)
    if not unlogged.any:
        return SupportSums(len(log), 0.0)
    assert isinstance(log.structure, Fixed)
    share = log.structure.chance_of_any(policy.marginals_of(log), unlogged.on, unlogged.off)
    return SupportSums(len(log), float(share @ seen))


def _of_actions(marginals: FloatArray, log: BanditLog, available: Available, seen: FloatArray) -> FloatArray:
    k, each = len(log.labels), np.repeat(seen, available.counts())
    probability = np.bincount(available.action, marginals * each, minlength=k)
    return np.stack([probability, np.bincount(available.action, each, minlength=k), np.bincount(log.y, minlength=k)])
