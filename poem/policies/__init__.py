"""Policies: poem's own, with and without a floor, and those of others."""

from poem.policies.floor import FlooredPolicy
from poem.policies.foreign import NO_POLICY, Judged, judge_all, judge_one
from poem.policies.logistic import logging_policy, supervised
from poem.policies.policy import Policy, constant_policy, load_policy, uniform_policy

__all__ = [
    "NO_POLICY",
    "FlooredPolicy",
    "Judged",
    "Policy",
    "constant_policy",
    "judge_all",
    "judge_one",
    "load_policy",
    "logging_policy",
    "supervised",
    "uniform_policy",
]
