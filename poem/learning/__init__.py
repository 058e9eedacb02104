"""From a log to a policy: candidates, held-out rows, selection, the certificate."""

from poem.learning.certification import certify
from poem.learning.fitting import MULTIPLIERS, fit, warm_up
from poem.learning.options import Selection
from poem.learning.portfolio import Learner
from poem.learning.result import Fit

__all__ = ["MULTIPLIERS", "Fit", "Learner", "Selection", "certify", "fit", "warm_up"]
