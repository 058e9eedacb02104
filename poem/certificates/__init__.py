"""Certificates of a policy's gain: bets on paired terms, and reasons to refuse one."""

from poem.certificates.adaptive import Adaptation, adapts, earliest_rows, unexplained
from poem.certificates.additive import (
    Additive,
    additive_differences,
    additive_terms,
    changes,
    corrected_by_label,
    deviations,
    excesses,
)
from poem.certificates.certificate import LIKELY, Certificate, Evidence, Forecast, finite, forecast
from poem.certificates.choices import Choices, choices_of
from poem.certificates.doubts import doubts
from poem.certificates.forms import Form
from poem.certificates.interactions import Deviations, interacting
from poem.certificates.inverse_means import Means, Pairs, as_normal, inverse_means
from poem.certificates.logger import LoggerModel, can_have_steps, known_logger, logger_model
from poem.certificates.paired import CAPS, PAIRED, Control, can_control, paired_terms, ratios
from poem.certificates.sorting import UNORDERED, alternate, drawn_because
from poem.certificates.tails import LEAST_TAIL, extremes, heavy_tail, pareto_k, shape_of_largest, tail_size

__all__ = [
    "CAPS",
    "LEAST_TAIL",
    "LIKELY",
    "PAIRED",
    "UNORDERED",
    "Adaptation",
    "Additive",
    "Certificate",
    "Choices",
    "Control",
    "Deviations",
    "Evidence",
    "Forecast",
    "Form",
    "LoggerModel",
    "Means",
    "Pairs",
    "adapts",
    "additive_differences",
    "additive_terms",
    "alternate",
    "as_normal",
    "can_control",
    "can_have_steps",
    "changes",
    "choices_of",
    "corrected_by_label",
    "deviations",
    "doubts",
    "drawn_because",
    "earliest_rows",
    "excesses",
    "extremes",
    "finite",
    "forecast",
    "heavy_tail",
    "interacting",
    "inverse_means",
    "known_logger",
    "logger_model",
    "paired_terms",
    "pareto_k",
    "ratios",
    "shape_of_largest",
    "tail_size",
    "unexplained",
]
