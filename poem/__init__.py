"""poem learns better decisions from logs of past ones."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from poem.version import VERSION

if TYPE_CHECKING:
    from poem.bound import generalization_bound
    from poem.calibrate import Calibration
    from poem.certificate import Certificate
    from poem.certification import certify
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
    from poem.features import Features
    from poem.fit import Fit, fit
    from poem.floor import FlooredPolicy
    from poem.gate import Gate
    from poem.health import Health, inspect
    from poem.learner import CRMLearner
    from poem.learners import Learner
    from poem.log import BanditLog
    from poem.optimizers import LBFGS, AdaGrad
    from poem.policy import Policy, constant_policy, load_policy, uniform_policy
    from poem.propensities import balanced, estimate_propensities
    from poem.readers import read_log, write_log
    from poem.report import write_report
    from poem.simulate import simulate
    from poem.structures import MultiClass, MultiLabel
    from poem.supervised import logging_policy, supervised

__version__ = VERSION

__all__ = [
    "IPS",
    "LBFGS",
    "SNIPS",
    "AdaGrad",
    "BanditLog",
    "CRMLearner",
    "Calibration",
    "Certificate",
    "Dataset",
    "DirectMethod",
    "DoublyRobust",
    "Estimate",
    "Evaluation",
    "Features",
    "Fit",
    "FlooredPolicy",
    "Gate",
    "Health",
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
    "certify",
    "constant_policy",
    "estimate",
    "estimate_propensities",
    "evaluate",
    "fit",
    "generalization_bound",
    "inspect",
    "load_dataset",
    "load_policy",
    "logging_policy",
    "read_log",
    "simulate",
    "supervised",
    "uniform_policy",
    "write_log",
    "write_report",
]

# Each name is imported when it is first asked for: `poem --help` needs none of them.
_MODULES = {
    "bound": ("generalization_bound",),
    "calibrate": ("Calibration",),
    "certificate": ("Certificate",),
    "certification": ("certify",),
    "datasets": ("Dataset", "load_dataset"),
    "errors": ("PoemError",),
    "estimators": (
        "IPS",
        "SNIPS",
        "DirectMethod",
        "DoublyRobust",
        "Estimate",
        "ImplicitExploration",
        "LogSmoothing",
        "SelfNormalisedDR",
        "ShrinkageDR",
        "SwitchDR",
    ),
    "evaluate": ("estimate", "evaluate"),
    "evaluation": ("Evaluation",),
    "features": ("Features",),
    "fit": ("Fit", "fit"),
    "floor": ("FlooredPolicy",),
    "gate": ("Gate",),
    "health": ("Health", "inspect"),
    "learner": ("CRMLearner",),
    "learners": ("Learner",),
    "log": ("BanditLog",),
    "optimizers": ("LBFGS", "AdaGrad"),
    "policy": ("Policy", "constant_policy", "load_policy", "uniform_policy"),
    "propensities": ("balanced", "estimate_propensities"),
    "readers": ("read_log", "write_log"),
    "report": ("write_report",),
    "simulate": ("simulate",),
    "structures": ("MultiClass", "MultiLabel"),
    "supervised": ("logging_policy", "supervised"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


class _Package(ModuleType):
    """The package itself: ``poem.fit`` is the function, although it is also the name of the module it lives in."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in _HOMES and isinstance(value, ModuleType):
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'poem' has no attribute {name!r}")
    value = getattr(import_module(f"poem.{_HOMES[name]}"), name)
    setattr(sys.modules[__name__], name, value)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
