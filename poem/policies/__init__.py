"""Policies: poem's own, with and without a floor, and those of others."""

from poem.policies.deciding import decide, explores_little, new_seed, with_floor
from poem.policies.floor import FlooredPolicy
from poem.policies.foreign import (
    NO_POLICY,
    UNSUPPORTED,
    Judged,
    by_context_alone,
    is_supported,
    judge_all,
    judge_one,
    named_policies,
)
from poem.policies.loading import load_policy
from poem.policies.logistic import logging_policy, supervised
from poem.policies.making import constant_policy, policy_for, uniform_policy
from poem.policies.other_features import on_log, same_reading
from poem.policies.policy import Policy
from poem.policies.provenance import made_log, was_trained_on, without_floor
from poem.policies.reading import (
    action_recipe_of,
    check_recipe,
    choices_for,
    columns_of,
    contexts_for,
    how_to_read,
    log_for,
    read_contexts_for,
    read_log_for,
    recipe_of,
    shortened,
    with_action_id,
    with_columns,
    with_packed,
)
from poem.policies.record import Record, TraceRecord
from poem.policies.unlike import check_all_packed, check_packed, check_packed_for

__all__ = [
    "NO_POLICY",
    "UNSUPPORTED",
    "FlooredPolicy",
    "Judged",
    "Policy",
    "Record",
    "TraceRecord",
    "action_recipe_of",
    "by_context_alone",
    "check_all_packed",
    "check_packed",
    "check_packed_for",
    "check_recipe",
    "choices_for",
    "columns_of",
    "constant_policy",
    "contexts_for",
    "decide",
    "explores_little",
    "how_to_read",
    "is_supported",
    "judge_all",
    "judge_one",
    "load_policy",
    "log_for",
    "logging_policy",
    "made_log",
    "named_policies",
    "new_seed",
    "on_log",
    "policy_for",
    "read_contexts_for",
    "read_log_for",
    "recipe_of",
    "same_reading",
    "shortened",
    "supervised",
    "uniform_policy",
    "was_trained_on",
    "with_action_id",
    "with_columns",
    "with_floor",
    "with_packed",
    "without_floor",
]
