"""Times taken side by side: each round runs every contender once, so that noise hits all alike."""

import time
from collections.abc import Callable

import numpy as np


def side_by_side(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each contender in each round, after one round to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):
        for name, run in contenders.items():
            begin = time.perf_counter()
            run()
            if number:
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def ratio(seconds: dict[str, list[float]], one: str, other: str) -> float:
    """Return the median over rounds of one/other."""
    return float(np.median(np.array(seconds[one]) / np.array(seconds[other])))
