"""poem learns better decisions from logs of past ones."""

from typing import TYPE_CHECKING, Any

from poem.bound import generalization_bound
from poem.calibrate import Calibration
from poem.datasets import Dataset, load_dataset
from poem.errors import PoemError
from poem.estimators import (
    IPS,
    SNIPS,
    DirectMethod,
    DoublyRobust,
    Estimate,
    ImplicitExploration,
    LogSmoothing,
    SelfNormalisedDR,
    ShrinkageDR,
    SwitchDR,
)
from poem.evaluate import estimate, evaluate
from poem.evaluation import Evaluation
from poem.fit import Fit, fit
from poem.floor import FlooredPolicy
from poem.learners import Learner
from poem.log import BanditLog
from poem.optimizers import LBFGS, AdaGrad
from poem.policy import Policy, constant_policy, load_policy, uniform_policy
from poem.propensities import balanced, estimate_propensities
from poem.simulate import simulate
from poem.structures import MultiClass, MultiLabel
from poem.supervised import logging_policy, supervised
from poem.version import VERSION

if TYPE_CHECKING:
    from poem.learner import CRMLearner

__version__ = VERSION

__all__ = [
    "IPS",
    "LBFGS",
    "SNIPS",
    "AdaGrad",
    "BanditLog",
    "CRMLearner",
    "Calibration",
    "Dataset",
    "DirectMethod",
    "DoublyRobust",
    "Estimate",
    "Evaluation",
    "Fit",
    "FlooredPolicy",
    "ImplicitExploration",
    "Learner",
    "LogSmoothing",
    "MultiClass",
    "MultiLabel",
    "PoemError",
    "Policy",
    "SelfNormalisedDR",
    "ShrinkageDR",
    "SwitchDR",
    "balanced",
    "constant_policy",
    "estimate",
    "estimate_propensities",
    "evaluate",
    "fit",
    "generalization_bound",
    "load_dataset",
    "load_policy",
    "logging_policy",
    "simulate",
    "supervised",
    "uniform_policy",
]


def __getattr__(name: str) -> Any:
    """Import the scikit-learn face only when it is asked for: it doubles the time of ``import poem``."""
    if name == "CRMLearner":
        from poem.learner import CRMLearner

        return CRMLearner
    raise AttributeError(f"module 'poem' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
