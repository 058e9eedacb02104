"""What a log holds of what a policy chooses: probability on outputs that were never logged, and rows of each action."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray
from poem.data import BanditLog, has_kinds
from poem.policies import Judged
from poem.structures import Available, Fixed

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
    seen = np.bincount(log.context, minlength=log.n_contexts).astype(np.float64)
    if log.available is not None:
        return _of_actions(policy.marginals_of(log), log, log.available, seen)
    never_on, never_off = log.structure.unlogged(log.y)
    if not (never_on.any() or never_off.any()):
        return Support(0.0)
    assert isinstance(log.structure, Fixed)
    share = log.structure.chance_of_any(policy.marginals_of(log), never_on, never_off)
    return Support(float(share @ seen / seen.sum()))


def _of_actions(marginals: FloatArray, log: BanditLog, available: Available, seen: FloatArray) -> Support:
    k, each = len(log.labels), np.repeat(seen, available.counts())
    probability = np.bincount(available.action, marginals * each, minlength=k) / seen.sum()
    offered, logged = np.bincount(available.action, each, minlength=k), np.bincount(log.y, minlength=k)
    order = np.argsort(-probability, kind="stable")[:MOST_ACTIONS]
    actions = (
        ActionSupport(str(log.labels[code]), float(probability[code]), int(offered[code]), int(logged[code]))
        for code in order.tolist()
        if offered[code] > 0
    )
    return Support(float(probability[logged == 0].sum()), has_kinds(log), tuple(actions))
