"""Numbers of 64 bits that look random: one step of splitmix64, for hashes and for draws that follow from them."""

import numpy as np

from poem.compute.kernels import exact_kernel

GOLDEN = 0x9E3779B97F4A7C15  # what splitmix64 counts by


@exact_kernel
def mixed(number: np.uint64) -> np.uint64:
    """Return a number whose bits all depend on all bits of another; different ones stay different."""
    number = (number ^ (number >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    number = (number ^ (number >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return number ^ (number >> np.uint64(31))
