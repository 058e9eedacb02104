"""Policy × log × estimator → Estimate."""

import numpy as np

from poem.calibrate import clip_for
from poem.errors import InputError
from poem.estimators import SNIPS, Estimate, Estimator
from poem.log import BanditLog
from poem.policy import Policy


def estimate(policy: Policy, log: BanditLog, estimator: Estimator | None = None) -> Estimate:
    """Estimate the mean loss that a policy would have had on a log it was not trained on.

    Self-normalised without clipping by default. IPS is taken around the worst logged loss, so that what
    the log does not cover counts as bad, not as good. Rows of one group, or of one context if there are
    no groups, are not taken to be independent.
    """
    if not isinstance(policy, Policy) or not isinstance(log, BanditLog):
        raise InputError(f"estimate takes (policy, log); found {type(policy).__name__} and {type(log).__name__}.")
    if estimator is not None and not isinstance(estimator, Estimator):
        raise InputError(f"estimator must be one such as poem.IPS(); found {estimator!r}.")
    chosen = SNIPS(clip=None) if estimator is None else estimator
    chosen = chosen.with_clip(clip_for(log, chosen)[0])
    log_ratio = policy.log_prob_of(log) - log.log_propensity
    worst = float(np.max(log.loss))
    around_worst = chosen.estimate(log_ratio, log.loss - worst, log.units())
    return around_worst.rescaled(worst - 1.0, worst)
