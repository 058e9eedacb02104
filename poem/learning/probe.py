"""Some contexts of a log, to see whether a policy minds them."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np

from poem.compute import Forest, Matrix
from poem.data import BanditLog, grown_offers
from poem.policies import Policy
from poem.structures import Available, Structure

PROBED_CONTEXTS = 500


class Probe:
    """Some contexts, and what is available there; what trees say of them is computed once."""

    def __init__(self, log: BanditLog) -> None:
        some = np.arange(0, log.n_contexts, max(1, log.n_contexts // PROBED_CONTEXTS))
        self.contexts: Any = log.X[some]
        self.available = None if log.available is None else log.available.of(some)
        self._extended: dict[Forest, tuple[Matrix, Available | None]] = {}
        self._extending = threading.Lock()

    def seen_by(self, policy: Policy) -> tuple[Policy, Any, Available | None]:
        """Return a policy and the contexts as it sees them."""
        if policy.forest is None:
            return policy, self.contexts, self.available
        with self._extending:
            if policy.forest not in self._extended:
                self._extended[policy.forest] = self._grown(policy.forest, policy.structure)
        structure = policy.structure.grown() if policy.structure.described else policy.structure
        plain = replace(policy, structure=structure, forest=None, feature_names=None, features=None)
        return plain, *self._extended[policy.forest]

    def _grown(self, forest: Forest, structure: Structure) -> tuple[Matrix, Available | None]:
        """Return the contexts and what is available there with the features that trees add."""
        if not structure.described:
            return forest.extended(self.contexts), self.available
        assert self.available is not None
        return self.contexts, grown_offers(self.contexts, self.available, forest)
