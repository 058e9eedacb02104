"""Models of the loss: what an output would have cost that was not chosen."""

from poem.models.boosting import Boosting, boosted, without_trees
from poem.models.chosen import Strengths, chosen_strengths, fit_for_estimates, fit_on_part, fit_without_trees
from poem.models.cross_fitted import (
    CrossFitted,
    Enumerated,
    Model,
    cross_fit,
    enumerate_regressor,
    enumerated,
    fit_regressors,
)
from poem.models.fitted import ContextLosses, LossModel, cautious_losses, corrected_losses
from poem.models.logistic import logistic_preference
from poem.models.offered import losses_on
from poem.models.on_shards import preference_on_shards
from poem.models.race import suits_trees

__all__ = [
    "Boosting",
    "ContextLosses",
    "CrossFitted",
    "Enumerated",
    "LossModel",
    "Model",
    "Strengths",
    "boosted",
    "cautious_losses",
    "chosen_strengths",
    "corrected_losses",
    "cross_fit",
    "enumerate_regressor",
    "enumerated",
    "fit_for_estimates",
    "fit_on_part",
    "fit_regressors",
    "fit_without_trees",
    "logistic_preference",
    "losses_on",
    "preference_on_shards",
    "suits_trees",
    "without_trees",
]
