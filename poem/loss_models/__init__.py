"""Models of the loss: what an output would have cost that was not chosen."""

from poem.loss_models.chosen import Strengths, chosen_strengths, fit_chosen
from poem.loss_models.cross_fitted import CrossFitted, cross_fit
from poem.loss_models.fitted import ContextLosses, LossModel
from poem.loss_models.linear import mean_square
from poem.loss_models.logistic import fit_logistic

__all__ = [
    "ContextLosses",
    "CrossFitted",
    "LossModel",
    "Strengths",
    "chosen_strengths",
    "cross_fit",
    "fit_chosen",
    "fit_logistic",
    "mean_square",
]
