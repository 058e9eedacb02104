"""How an objective is minimised: one optimizer a file; none knows of bandits."""

from poem.optimizers.adagrad import AdaGrad
from poem.optimizers.base import Optimizer, Trace
from poem.optimizers.lbfgs import LBFGS

__all__ = ["LBFGS", "AdaGrad", "Optimizer", "Trace"]
