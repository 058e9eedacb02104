"""poem learns better decisions from logs of past ones."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from poem.version import VERSION

if TYPE_CHECKING:
    from poem.backends import Dask, Threads
    from poem.certificates import Certificate
    from poem.data import BanditLog, Catalogue
    from poem.data.features import Encoding, Features
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
    from poem.evaluation import (
        Calibration,
        Evaluation,
        Gate,
        Resampling,
        balanced,
        estimate,
        estimate_propensities,
        evaluate,
        generalization_bound,
        watch,
    )
    from poem.health import Health, inspect
    from poem.learning import Fit, Learner, Selection, certify, fit
    from poem.learning.sklearn_learner import CRMLearner
    from poem.optimizers import LBFGS, AdaGrad
    from poem.packed import PackedLog, open_log, pack_log
    from poem.policies import (
        FlooredPolicy,
        Policy,
        Record,
        constant_policy,
        decide,
        load_policy,
        logging_policy,
        read_log_for,
        supervised,
        uniform_policy,
    )
    from poem.readers import Columns, read_log, write_log
    from poem.report import write_report
    from poem.simulation import Dataset, load_dataset, simulate
    from poem.structures import Available, Candidates, MultiClass, MultiLabel, Subset

__version__ = VERSION

__all__ = [
    "IPS",
    "LBFGS",
    "SNIPS",
    "AdaGrad",
    "Available",
    "BanditLog",
    "CRMLearner",
    "Calibration",
    "Candidates",
    "Catalogue",
    "Certificate",
    "Columns",
    "Dask",
    "Dataset",
    "DirectMethod",
    "DoublyRobust",
    "Encoding",
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
    "PackedLog",
    "PoemError",
    "Policy",
    "Record",
    "Resampling",
    "Selection",
    "SelfNormalisedDR",
    "ShrinkageDR",
    "Subset",
    "SwitchDR",
    "Threads",
    "balanced",
    "certify",
    "constant_policy",
    "decide",
    "estimate",
    "estimate_propensities",
    "evaluate",
    "fit",
    "generalization_bound",
    "inspect",
    "load_dataset",
    "load_policy",
    "logging_policy",
    "open_log",
    "pack_log",
    "read_log",
    "read_log_for",
    "simulate",
    "supervised",
    "uniform_policy",
    "watch",
    "write_log",
    "write_report",
]

# Each name is imported when it is first asked for: `poem --help` needs none of them.
_MODULES = {
    "backends": ("Dask", "Threads"),
    "certificates": ("Certificate",),
    "data": ("BanditLog", "Catalogue"),
    "data.features": ("Encoding", "Features"),
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
    "evaluation": (
        "Calibration",
        "Evaluation",
        "Gate",
        "Resampling",
        "balanced",
        "estimate",
        "estimate_propensities",
        "evaluate",
        "generalization_bound",
        "watch",
    ),
    "health": ("Health", "inspect"),
    "learning.sklearn_learner": ("CRMLearner",),
    "learning": ("Fit", "Learner", "Selection", "certify", "fit"),
    "optimizers": ("LBFGS", "AdaGrad"),
    "packed": ("PackedLog", "open_log", "pack_log"),
    "policies": (
        "FlooredPolicy",
        "Policy",
        "Record",
        "constant_policy",
        "decide",
        "load_policy",
        "logging_policy",
        "read_log_for",
        "supervised",
        "uniform_policy",
    ),
    "readers": ("Columns", "read_log", "write_log"),
    "report": ("write_report",),
    "simulation": ("Dataset", "load_dataset", "simulate"),
    "structures": ("Available", "Candidates", "MultiClass", "MultiLabel", "Subset"),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'poem' has no attribute {name!r}")
    value = getattr(import_module(f"poem.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
