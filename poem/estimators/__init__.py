"""What a policy would have cost: one estimator per file."""

from poem.estimators.base import (
    LARGEST_LOG_RATIO,
    Estimate,
    Estimator,
    Rows,
    Weighted,
    Whole,
    estimate_of,
)
from poem.estimators.betting import Bets, Capital, downside, goal_bound, growth, log_capital, lower_bound
from poem.estimators.direct import DirectMethod
from poem.estimators.doubly_robust import DoublyRobust
from poem.estimators.implicit_exploration import ImplicitExploration
from poem.estimators.intervals import (
    FLOORED,
    METHODS,
    ONLY_FOR,
    Method,
    Replicates,
    bca,
    bca_interval,
    bernstein,
    bootstrap,
    check_level,
    clopper_pearson,
    least_mean,
    normal,
    student,
)
from poem.estimators.ips import IPS
from poem.estimators.moment_totals import Moments
from poem.estimators.moments import MomentSums, Reference, Scheme, replicates_of
from poem.estimators.objective import MeanObjective, Objective, Point
from poem.estimators.self_normalised_dr import SelfNormalisedDR
from poem.estimators.shrinkage import ShrinkageDR
from poem.estimators.smoothing import LogSmoothing
from poem.estimators.snips import SNIPS
from poem.estimators.sums import Sums, Terms, UnitSums, effective_number, standard_error
from poem.estimators.switch import SwitchDR

__all__ = [
    "FLOORED",
    "IPS",
    "LARGEST_LOG_RATIO",
    "METHODS",
    "ONLY_FOR",
    "SNIPS",
    "Bets",
    "Capital",
    "DirectMethod",
    "DoublyRobust",
    "Estimate",
    "Estimator",
    "ImplicitExploration",
    "LogSmoothing",
    "MeanObjective",
    "Method",
    "MomentSums",
    "Moments",
    "Objective",
    "Point",
    "Reference",
    "Replicates",
    "Rows",
    "Scheme",
    "SelfNormalisedDR",
    "ShrinkageDR",
    "Sums",
    "SwitchDR",
    "Terms",
    "UnitSums",
    "Weighted",
    "Whole",
    "bca",
    "bca_interval",
    "bernstein",
    "bootstrap",
    "check_level",
    "clopper_pearson",
    "downside",
    "effective_number",
    "estimate_of",
    "goal_bound",
    "growth",
    "least_mean",
    "log_capital",
    "lower_bound",
    "normal",
    "replicates_of",
    "standard_error",
    "student",
]
