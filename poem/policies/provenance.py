"""Where a policy comes from: the log that it was trained on, and the log that it made."""

import numpy as np

from poem.data import BanditLog
from poem.packed import PackedLog, share_units
from poem.policies.floor import FlooredPolicy
from poem.policies.policy import Policy

SAME = 1e-3  # difference of log-probabilities up to which rounded propensities are those of a policy


def without_floor(policy: Policy | FlooredPolicy) -> Policy:
    """Return a policy without its floor."""
    return policy if isinstance(policy, Policy) else policy.policy


def was_trained_on(policy: Policy | FlooredPolicy, log: BanditLog | PackedLog | str) -> bool | None:
    """Tell whether a policy was trained on this very log; its estimates there are too good.

    Parameters
    ----------
    policy : Policy, with or without a floor
    log : BanditLog, PackedLog or str
        The log, or its fingerprint. A part of a packed folder is recognised if the policy was trained on some of its
        units.

    Returns
    -------
    bool or None
        None if the policy does not say which log it was trained on.
    """
    known = without_floor(policy).record.log
    if known is None:
        return None
    asked = log if isinstance(log, str) else log.fingerprint()
    return any(share_units(one, two) for one in known.split() for two in asked.split())


def made_log(policy: Policy | FlooredPolicy, log: BanditLog) -> bool | None:
    """Tell whether a policy made a log: its probabilities are the logged propensities.

    Returns
    -------
    bool or None
        None if that cannot be told: propensities are not logged, or several loggers made the log.
    """
    if log.propensities != "logged":
        return None
    if np.allclose(policy.log_prob_of(log), log.log_propensity, atol=SAME):
        return True
    return False if log.logger is None else None
