"""Policies whose features are not those of a log: each brings its own reading of the same rows."""

from typing import Any

from poem.compute import Matrix
from poem.data import BanditLog
from poem.policies.floor import FlooredPolicy
from poem.policies.policy import Policy
from poem.policies.reading import check_recipe, log_for, recipe_of
from poem.readers import RawLog, log_of


class _Classifier:
    """A policy over outputs that can be listed, with the features that it needs."""

    def __init__(self, policy: Policy | FlooredPolicy, X: Matrix) -> None:
        self.classes_, self._policy, self._own = policy.labels, policy, X

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of all classes in each context of the log."""
        return self._policy.marginals(self._own)


class _Chooser:
    """The same for outputs that cannot be listed, such as label sets."""

    def __init__(self, policy: Policy | FlooredPolicy, own: BanditLog) -> None:
        self._policy, self._own = policy, own

    def log_prob_of(self, log: BanditLog) -> Any:
        """Return the log-probabilities of the logged outputs."""
        return self._policy.log_prob_of(self._own)


def same_reading(policy: Policy | FlooredPolicy, other: Policy | FlooredPolicy) -> bool:
    """Tell whether two policies take the same features and outputs, so that one reading of a log serves both."""
    same = ("structure", "labels", "features", "feature_names", "action_features", "action_names")
    return all(getattr(policy, name) == getattr(other, name) for name in same)


def on_log(other: Policy | FlooredPolicy, raw: RawLog, log: BanditLog, *, name: str = "the other policy") -> Any:
    """Return a policy of other features in a form that can be judged on a log that was read for another one.

    Parameters
    ----------
    other : Policy, with or without a floor
    raw : RawLog
        The table that the log was made of; the policy's own features are made of it.
    log : BanditLog
    name : str
        What the policy is called in messages.
    """
    if log.available is not None:
        own = log_for(other, raw, missing=True, name=name)
        # Of the same candidates in the same order; all classes are available to a policy that knows no others.
        return _Classifier(other, own.X) if own.available is None else other.marginals_of(own)
    if not log.structure.lists_outputs:
        return _Chooser(other, log_for(other, raw, missing=True, name=name))
    own = log_of(raw, features=recipe_of(other), labels=log.labels, missing=True)
    check_recipe(other, own.features, raw.origin.name, name)
    return _Classifier(other, own.X)
