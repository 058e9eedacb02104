"""What a policy would have cost: one estimator a file."""

from poem.estimators.base import Estimate, Estimator, Rows, Weighted
from poem.estimators.direct import DirectMethod
from poem.estimators.doubly_robust import DoublyRobust
from poem.estimators.implicit_exploration import ImplicitExploration
from poem.estimators.ips import IPS
from poem.estimators.objective import MeanObjective, Objective
from poem.estimators.self_normalised_dr import SelfNormalisedDR
from poem.estimators.shrinkage import ShrinkageDR
from poem.estimators.smoothing import LogSmoothing
from poem.estimators.snips import SNIPS
from poem.estimators.switch import SwitchDR

__all__ = [
    "IPS",
    "SNIPS",
    "DirectMethod",
    "DoublyRobust",
    "Estimate",
    "Estimator",
    "ImplicitExploration",
    "LogSmoothing",
    "MeanObjective",
    "Objective",
    "Rows",
    "SelfNormalisedDR",
    "ShrinkageDR",
    "SwitchDR",
    "Weighted",
]
