"""Results over repetitions → means, deviations and the paper's tests."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from poem.arrays import FloatArray
from poem.experiments.run import Result
from poem.experiments.spec import Logging

LEVEL = 0.05

Measure = Literal["expected_loss", "map_loss", "cpu_seconds"]


@dataclass(frozen=True)
class PairedTest:
    """A one-tailed paired t-test of "the first is larger than the second"."""

    difference: float
    t: float
    p: float

    @property
    def significant(self) -> bool:
        """Whether the first is larger at the paper's level of 0.05."""
        return self.p < LEVEL


def paired_test(first: FloatArray, second: FloatArray) -> PairedTest | None:
    """PairedTest whether the first exceeds the second over the same runs; None for fewer than two runs."""
    if len(first) < 2:
        return None
    difference = first - second
    mean, deviation = float(difference.mean()), float(difference.std(ddof=1))
    if deviation == 0.0:
        return PairedTest(mean, 0.0 if mean == 0.0 else float(np.copysign(np.inf, mean)), 1.0 if mean <= 0.0 else 0.0)
    t = mean * np.sqrt(len(difference)) / deviation
    return PairedTest(mean, float(t), float(stats.t.sf(t, len(difference) - 1)))


class Results:
    """The results of one protocol, to be asked for by data set, logging and method."""

    def __init__(self, results: Iterable[Result], seeds: Sequence[int]) -> None:
        self.seeds = list(seeds)
        self._fits: dict[tuple[str, Logging | None, str], dict[int, list[Result]]] = {}
        for result in results:
            if result.seed in self.seeds:
                place = (result.dataset, result.logging, result.method)
                self._fits.setdefault(place, {}).setdefault(result.seed, []).append(result)

    def fits(self, dataset: str, logging: Logging | None, method: str) -> list[list[Result]]:
        """Return, for each run, all fits that one was chosen from."""
        runs = self._fits.get((dataset, logging, method), {})
        return [runs[seed] for seed in self.seeds if seed in runs]

    def chosen(self, dataset: str, logging: Logging | None, method: str) -> list[Result]:
        """Return the chosen fit of each run."""
        return [next(fit for fit in fits if fit.chosen) for fits in self.fits(dataset, logging, method)]

    def values(
        self, dataset: str, logging: Logging | None, method: str, measure: Measure = "expected_loss"
    ) -> FloatArray:
        """Return a measure of the chosen fit of each run."""
        return np.array([getattr(fit, measure) for fit in self.chosen(dataset, logging, method)], dtype=np.float64)
