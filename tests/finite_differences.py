"""The slow, sure way to a gradient, for the laws to compare with."""

import numpy as np


def numeric_gradient(function, at, step):
    """Return central differences of a scalar function of an array."""
    gradient = np.empty_like(at)
    for index in np.ndindex(at.shape):
        up, down = at.copy(), at.copy()
        up[index] += step
        down[index] -= step
        gradient[index] = (function(up) - function(down)) / (2 * step)
    return gradient
