"""What optimizers minimise: the risk of a policy, and its distance from the log."""

from poem.objectives.likelihood import imitation, propensity_model
from poem.objectives.risk import Risk

__all__ = ["Risk", "imitation", "propensity_model"]
