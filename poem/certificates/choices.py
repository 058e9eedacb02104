"""How far contexts and lists of available actions explain what was chosen, by one policy for the whole log.

The chance of an action depends on what else is available. A linear policy that is fitted to the logged propensities
knows both. Without propensities, or where actions and features are too many, Luce's model stands in: each action has
one weight u, and action a of a list is chosen with probability u_a / Σ u over the list.
"""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.compute import Threads
from poem.data import BanditLog, Layout
from poem.objectives import propensity_model
from poem.policies import Record, policy_for
from poem.structures import Available

MOST_ROWS = 20_000  # that the policy is fitted to
MOST_WEIGHTS = 1_000_000  # of that policy
ROUNDS = 30  # of the fit of Luce's model, each of which makes the choices likelier
LEAST = 1e-9  # the weight of an action that was never chosen, where the mean weight of the others is 1


@dataclass(frozen=True)
class Choices:
    """The chance of each candidate, given its context and the list that it is in.

    Attributes
    ----------
    available : Available
    chance : (N,) float
        Of each candidate.
    """

    available: Available
    chance: FloatArray

    def of_logged(self, log: BanditLog) -> FloatArray:
        """Return the chance of each row's own output."""
        places = self.available.starts[log.context] + self.available.positions(log.context, log.y)
        return np.asarray(self.chance[places])

    def expected(self, seen: IntArray, n_actions: int) -> FloatArray:
        """Return how often each action is chosen on average, if contexts are ``seen`` that often."""
        weights = self.chance * np.repeat(seen, self.available.counts())
        return np.asarray(np.bincount(self.available.action, weights, minlength=n_actions), dtype=np.float64)


def choices_of(log: BanditLog, available: Available) -> Choices:
    """Fit the one policy that explains the choices of a log best."""
    if log.propensities == "missing" or (log.n_features + 1) * log.structure.n_scores > MOST_WEIGHTS:
        return Choices(available, _by_luce(log, available))
    rows = np.unique(np.linspace(0, len(log) - 1, min(len(log), MOST_ROWS)).astype(np.int64))
    layout = Layout(log.take(rows), log.structure, True)
    policy = policy_for(log, propensity_model(layout, Threads()), True, Record(made_by="choices_of"))
    return Choices(available, policy.marginals_of(log))


def _by_luce(log: BanditLog, available: Available) -> FloatArray:
    """Fit Luce's model by the rounds of Hunter (2004); return the chance of each candidate."""
    k, counts = len(log.labels), available.counts()
    seen = np.bincount(log.context, minlength=available.n_contexts).astype(np.float64)
    chosen = np.bincount(log.y, minlength=k).astype(np.float64)
    weight = np.maximum(chosen / max(chosen.mean(), 1.0), LEAST)
    for _ in range(ROUNDS):
        totals = _totals(weight, available)
        missed = np.bincount(available.action, np.repeat(seen / totals, counts), minlength=k)
        weight = np.divide(chosen, missed, out=np.full(k, LEAST), where=missed > 0.0)
        weight = np.maximum(weight / weight[chosen > 0.0].mean(), LEAST)
    return np.asarray(weight[available.action] / np.repeat(_totals(weight, available), counts))


def _totals(weight: FloatArray, available: Available) -> FloatArray:
    return np.asarray(np.add.reduceat(weight[available.action], available.starts[:-1]))
