"""Policy × log × estimator → Estimate."""

import numpy as np

from poem.calibrate import clip_for
from poem.estimators import SNIPS, Estimate, Estimator
from poem.log import BanditLog
from poem.policy import Policy


def estimate(policy: Policy, log: BanditLog, estimator: Estimator | None = None) -> Estimate:
    """Estimate the mean loss that a policy would have had on a log it was not trained on.

    Self-normalised without clipping by default. Plain IPS is taken around the worst logged loss, so
    that what the log does not cover counts as bad, not as good.
    """
    chosen = SNIPS(clip=None) if estimator is None else estimator
    chosen = chosen.with_clip(clip_for(log, chosen)[0])
    log_ratio = policy.log_prob_of(log) - log.log_propensity
    worst = float(np.max(log.loss))
    around_worst = chosen.estimate(log_ratio, log.loss - worst)
    return around_worst.rescaled(worst - 1.0, worst)
