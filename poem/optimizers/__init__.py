"""Optimizers, one per file. They know nothing about bandits."""

from poem.optimizers.adagrad import AdaGrad
from poem.optimizers.base import Keeper, Optimizer, Trace, unmoved
from poem.optimizers.keeping import FileKeeper
from poem.optimizers.lbfgs import LBFGS

__all__ = ["LBFGS", "AdaGrad", "FileKeeper", "Keeper", "Optimizer", "Trace", "unmoved"]
