"""What policies would have cost: estimates, intervals, diagnostics, and a gate for live logs."""

from poem.evaluation.bound import MIN_ROWS, generalization_bound
from poem.evaluation.calibration import (
    PLURAL,
    Calibration,
    Clips,
    LossBounds,
    calibrate,
    check_learnable,
    check_varied,
    loss_range,
)
from poem.evaluation.comparison import Resampling, estimate, evaluate
from poem.evaluation.conclusion import Conclusion, conclude, deciding_line
from poem.evaluation.diagnostics import Finding
from poem.evaluation.estimated_propensities import balanced, estimate_propensities
from poem.evaluation.gate import Gate, Look
from poem.evaluation.judging import JudgedLog, UnseenRows, model_for
from poem.evaluation.table import Evaluation, Line
from poem.evaluation.watching import Watch, in_time_order, watch

__all__ = [
    "MIN_ROWS",
    "PLURAL",
    "Calibration",
    "Clips",
    "Conclusion",
    "Evaluation",
    "Finding",
    "Gate",
    "JudgedLog",
    "Line",
    "Look",
    "LossBounds",
    "Resampling",
    "UnseenRows",
    "Watch",
    "balanced",
    "calibrate",
    "check_learnable",
    "check_varied",
    "conclude",
    "deciding_line",
    "estimate",
    "estimate_propensities",
    "evaluate",
    "generalization_bound",
    "in_time_order",
    "loss_range",
    "model_for",
    "watch",
]
