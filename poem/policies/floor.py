"""A policy that keeps exploring: a share of its decisions is another policy's, so that its own log stays usable."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray
from poem.errors import InputError, MismatchError
from poem.readers import Likeness

NOTHING = object()


@dataclass(frozen=True, eq=False)
class FlooredPolicy:
    """h'(y|x) = (1 − share)·h(y|x) + share·g(y|x), exactly: what ``policy.with_floor(share)`` returns.

    Attributes
    ----------
    policy : Policy
        h, which makes most decisions.
    share : float
        How many decisions are the other's.
    other : Policy
        g: the uniform policy, or the one that logged so far.
    """

    policy: Any
    share: float
    other: Any

    def __post_init__(self) -> None:
        if not isinstance(self.share, int | float | np.number) or not 0.0 < self.share < 1.0:
            raise InputError(f"the floor must be a share between 0 and 1; found {self.share!r}. Use 0.01 for 1%.")
        alike = ("structure", "labels", "n_features", "feature_names", "features", "action_names", "action_features")
        theirs = [[getattr(policy, name, NOTHING) for name in alike] for policy in (self.policy, self.other)]
        if isinstance(self.other, FlooredPolicy) or theirs[0] != theirs[1]:
            raise MismatchError(
                "the floor must be a plain policy (the .policy of one with a floor) for the same outputs and features; "
                f"found {self.other!r} for {self.policy!r}."
            )

    def __repr__(self) -> str:
        return f"{self.policy!r} with a floor: {self.share:.3g} of its decisions are those of {self.other!r}"

    @property
    def structure(self) -> Any:
        """What y is."""
        return self.policy.structure

    @property
    def labels(self) -> Any:
        """The classes, or the names of the label columns."""
        return self.policy.labels

    @property
    def features(self) -> Any:
        """How raw columns become features."""
        return self.policy.features

    @property
    def feature_names(self) -> Any:
        """The names of the features, if they have any."""
        return self.policy.feature_names

    @property
    def action_names(self) -> Any:
        """The names of the features of actions, if they have any."""
        return self.policy.action_names

    @property
    def action_features(self) -> Any:
        """How raw columns of actions become their features."""
        return self.policy.action_features

    @property
    def n_features(self) -> int:
        """The number of features that X must have."""
        return int(self.policy.n_features)

    def predict(self, X: Any, available: Any = None, actions: Any = None) -> AnyArray:
        """Return the most probable output of the policy itself; the floor is for :meth:`sample`."""
        found: AnyArray = self.policy.predict(X, available, actions)
        return found

    def sample(self, X: Any, rng: Generator | int, available: Any = None, actions: Any = None) -> AnyArray:
        """Draw one output for each context; log its probability with :meth:`log_prob`."""
        generator = np.random.default_rng(rng)
        mostly, rarely = (one.sample(X, generator, available, actions) for one in (self.policy, self.other))
        explores = generator.random(len(mostly)) < self.share
        return np.asarray(np.where(explores.reshape(-1, *(1 for _ in mostly.shape[1:])), rarely, mostly))

    def marginals(self, X: Any, available: Any = None, actions: Any = None) -> FloatArray:
        """Return the probability of each label or class in each context, (m, k); of candidates, flat."""
        both = (one.marginals(X, available, actions) for one in (self.policy, self.other))
        return np.asarray(self._mean(*both))

    def marginals_of(self, log: Any) -> FloatArray:
        """Return the same for the contexts of a log."""
        return np.asarray(self._mean(self.policy.marginals_of(log), self.other.marginals_of(log)))

    def log_prob(self, X: Any, y: Any, available: Any = None, actions: Any = None) -> FloatArray:
        """Return log h'(y|x) of one output for each row of X."""
        return self._log_mean(*(one.log_prob(X, y, available, actions) for one in (self.policy, self.other)))

    def log_prob_of(self, log: Any, n_jobs: int | None = -1) -> FloatArray:
        """Return log h'(y|x) of every row of a log."""
        return self._log_mean(self.policy.log_prob_of(log, n_jobs), self.other.log_prob_of(log, n_jobs))

    def expected_loss(self, X: Any, truth: Any) -> float:
        """Return the mean expected loss against true outputs: Hamming for labels, 0/1 for classes."""
        return float(self._mean(self.policy.expected_loss(X, truth), self.other.expected_loss(X, truth)))

    def map_loss(self, X: Any, truth: Any, available: Any = None, actions: Any = None) -> float:
        """Return the mean loss of :meth:`predict` against true outputs."""
        return float(self.policy.map_loss(X, truth, available, actions))

    def likeness(self) -> Likeness:
        """Return how a log is read to be like the policy's own, for :func:`poem.pack_log`."""
        found: Likeness = self.policy.likeness()
        return found

    def save(self, path: Any) -> Path:
        """Write both policies and the share to one file; :func:`poem.load_policy` reads it."""
        return Path(self.policy.save(path, floor=self))

    def _mean(self, mostly: Any, rarely: Any) -> Any:
        return (1.0 - self.share) * mostly + self.share * rarely

    def _log_mean(self, mostly: FloatArray, rarely: FloatArray) -> FloatArray:
        mixed: FloatArray = np.logaddexp(np.log1p(-self.share) + mostly, np.log(self.share) + rarely)
        return np.minimum(mixed, 0.0)
