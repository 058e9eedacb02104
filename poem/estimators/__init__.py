"""What a policy would have cost: one estimator a file."""

from poem.estimators.base import Estimate, Estimator
from poem.estimators.ips import IPS
from poem.estimators.snips import SNIPS

__all__ = ["IPS", "SNIPS", "Estimate", "Estimator"]
