"""Optimizers, one per file. They know nothing about bandits."""

from poem.optimizers.adagrad import AdaGrad
from poem.optimizers.base import Optimizer, Trace, unmoved
from poem.optimizers.lbfgs import LBFGS

__all__ = ["LBFGS", "AdaGrad", "Optimizer", "Trace", "unmoved"]
