"""What policies would have cost: estimates, intervals, diagnostics, and a gate for live logs."""

from poem.evaluation.bound import MIN_ROWS, generalization_bound
from poem.evaluation.calibration import (
    Calibration,
    Clips,
    LossBounds,
    as_losses,
    calibrate,
    check_learnable,
    check_varied,
    loss_range,
)
from poem.evaluation.comparison import estimate, evaluate
from poem.evaluation.diagnostics import Finding
from poem.evaluation.estimated_propensities import balanced, estimate_propensities
from poem.evaluation.gate import Gate, Look
from poem.evaluation.judging import JudgedLog, UnseenRows, model_for
from poem.evaluation.table import Evaluation, Line

__all__ = [
    "MIN_ROWS",
    "Calibration",
    "Clips",
    "Evaluation",
    "Finding",
    "Gate",
    "JudgedLog",
    "Line",
    "Look",
    "LossBounds",
    "UnseenRows",
    "as_losses",
    "balanced",
    "calibrate",
    "check_learnable",
    "check_varied",
    "estimate",
    "estimate_propensities",
    "evaluate",
    "generalization_bound",
    "loss_range",
    "model_for",
]
