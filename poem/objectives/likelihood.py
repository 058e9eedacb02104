"""The logging policy's own behaviour, as a policy: what a log's decisions alone say of who made them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from poem.arrays import FloatArray
from poem.compute import Threads
from poem.data import Layout
from poem.estimators import MeanObjective, Rows, Terms
from poem.objectives.risk import Risk
from poem.optimizers import LBFGS


@dataclass(frozen=True)
class Divergence(MeanObjective):
    """The mean of log p − log h(y|x): how far a policy is from the one that made the log (Kullback and Leibler).

    As an objective it is a likelihood, and losses play no part in it.
    """

    name: ClassVar[str] = "divergence"

    def ratios(self, log_ratio: FloatArray) -> FloatArray:
        """Return the logarithms themselves: of thousands of labels, their exponentials would vanish."""
        return log_ratio

    def weighted(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        return -ratio

    def weighted_slopes(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        return np.full(len(ratio), -1.0)

    def terms(self, rows: Rows) -> Terms:
        return Terms(-rows.log_ratio)


@dataclass(frozen=True)
class LogError(Divergence):
    """Half the mean squared difference of log h(y|x) and log p.

    Propensities say far more of a logging policy than its decisions do: one that is linear is found exactly.
    """

    name: ClassVar[str] = "log error"

    def weighted(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        return 0.5 * ratio**2

    def weighted_slopes(self, ratio: FloatArray, loss: FloatArray) -> FloatArray:
        return ratio

    def terms(self, rows: Rows) -> Terms:
        return Terms(0.5 * rows.log_ratio**2)


def imitation(layout: Layout, threads: Threads, C: float = 1.0) -> FloatArray:
    """Return the weights that make the logged outputs most likely, with scikit-learn's l2 of strength 1/C."""
    risk = Risk(layout, layout.loss, Divergence(), l2=1.0 / (C * len(layout)), threads=threads)
    return LBFGS(max_iterations=100, ftol=1e-5).minimize(risk).weights


def propensity_model(layout: Layout, threads: Threads) -> FloatArray:
    """Return the weights of a policy whose probabilities are near the logged propensities."""
    risk = Risk(layout, layout.loss, LogError(), l2=1e-3 / len(layout), threads=threads)
    return LBFGS(max_iterations=300, ftol=1e-9).minimize(risk).weights
