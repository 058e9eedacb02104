"""What optimizers minimise: the risk of a policy, and its distance from the log."""

from poem.objectives.likelihood import imitation, propensity_model
from poem.objectives.risk import Risk
from poem.objectives.sharded import ShardedRisk, ShardObjective

__all__ = ["Risk", "ShardObjective", "ShardedRisk", "imitation", "propensity_model"]
