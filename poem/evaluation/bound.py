"""Theorem 1 of the paper: with high probability, no policy of the class is worse than this."""

import numpy as np

from poem.errors import InputError

MIN_ROWS = 16  # the theorem's own condition


def generalization_bound(
    value: float, variance: float, n: int, clip: float, *, log_capacity: float = 0.0, gamma: float = 0.05
) -> float:
    """Return the upper bound on the true risk that holds with probability 1 − gamma for every h in H.

    R(h) ≤ R̂ᴹ(h) + √(18·Var·Q/n) + 15·M·Q/(n − 1), with Q = log(10·N/γ).

    Parameters
    ----------
    value, variance : float
        Mean and variance (with n − 1) of u = loss·min(M, ratio), for a loss scaled to [−1, 0].
    n : int
        The number of rows, 16 at least.
    clip : float
        M.
    log_capacity : float
        log N∞(1/n, F_H, 2n), the log of the covering number of the class; 0 for a single policy.
    gamma : float
        The probability that the bound fails.
    """
    if not n >= MIN_ROWS:
        raise InputError(f"the bound holds for n ≥ {MIN_ROWS}; found n = {n}. Use more rows.")
    if not 0.0 < gamma < 1.0:
        raise InputError(f"gamma must be between 0 and 1; found {gamma}. Use 0.05 for 95% confidence.")
    if not (np.isfinite(clip) and clip > 0.0):
        raise InputError(f"clip must be finite and above 0; found {clip}. The bound needs clipped weights.")
    if not (variance >= 0.0 and log_capacity >= 0.0):
        raise InputError(f"variance and log_capacity must not be negative; found {variance} and {log_capacity}.")
    if not -clip <= value <= 0.0:
        raise InputError(f"value must be in [−M, 0] = [{-clip:g}, 0]; found {value}. Scale the loss to [−1, 0].")
    q = np.log(10.0 / gamma) + log_capacity
    return float(value + np.sqrt(18.0 * variance * q / n) + 15.0 * clip * q / (n - 1))
