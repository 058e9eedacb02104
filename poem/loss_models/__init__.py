"""Models of the loss: what an output would have cost that was not chosen."""

from poem.loss_models.chosen import Strengths, chosen_strengths, fit_for_estimates
from poem.loss_models.cross_fitted import CrossFitted, cross_fit
from poem.loss_models.fitted import CautiousLosses, ContextLosses, LossModel
from poem.loss_models.logistic import logistic_preference

__all__ = [
    "CautiousLosses",
    "ContextLosses",
    "CrossFitted",
    "LossModel",
    "Strengths",
    "chosen_strengths",
    "cross_fit",
    "fit_for_estimates",
    "logistic_preference",
]
