"""How much of a policy's probability is on outputs that a log does not hold."""

import numpy as np

from poem.data import BanditLog
from poem.policies import Judged
from poem.structures import Fixed


def unsupported_share(policy: Judged, log: BanditLog) -> float | None:
    """Return the policy's mean probability of an output with a class, or a label's value, that was never logged."""
    if not policy.has_marginals:
        return None
    seen = np.bincount(log.context, minlength=log.n_contexts)
    never_on, never_off = log.structure.unlogged(log.y)
    if not (never_on.any() or never_off.any()):
        return 0.0
    marginals = policy.marginals_of(log)
    if log.available is not None:
        share = log.available.chance_of(marginals, never_on)
    else:
        assert isinstance(log.structure, Fixed)
        share = log.structure.chance_of_any(marginals, never_on, never_off)
    return float(share @ seen / seen.sum())
