"""Some contexts of a log, to see whether a policy minds them."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np

from poem.compute import Forest, Matrix
from poem.data import BanditLog
from poem.policies import Policy
from poem.structures import Available

PROBED_CONTEXTS = 500


class Probe:
    """Some contexts, and what is available there; what trees say of them is computed once."""

    def __init__(self, log: BanditLog) -> None:
        some = np.arange(0, log.n_contexts, max(1, log.n_contexts // PROBED_CONTEXTS))
        self.contexts: Any = log.X[some]
        self.available = None if log.available is None else log.available.of(some)
        self._extended: dict[Forest, Matrix] = {}
        self._extending = threading.Lock()

    def seen_by(self, policy: Policy) -> tuple[Policy, Any, Available | None]:
        """Return a policy and the contexts as it sees them."""
        if policy.forest is None:
            return policy, self.contexts, self.available
        with self._extending:
            if policy.forest not in self._extended:
                self._extended[policy.forest] = policy.forest.extended(self.contexts)
        plain = replace(policy, forest=None, feature_names=None, features=None)
        return plain, self._extended[policy.forest], self.available
