"""Policies for the outputs and features of a log: with given weights, uniform, or constant."""

from typing import Any

import numpy as np

from poem.arrays import FloatArray
from poem.compute import Forest
from poem.data import BanditLog
from poem.errors import InputError
from poem.packed import PackedLog
from poem.policies.policy import Policy
from poem.policies.record import Record
from poem.structures import CERTAIN, Fixed


def policy_for(
    log: BanditLog, weights: FloatArray, intercept: bool, record: Record, forest: Forest | None = None
) -> Policy:
    """Return a policy over the outputs and features of a log."""
    labels = log.structure.known_labels(log.labels)
    named = (log.feature_names, record, log.features, log.action_names, log.action_features)
    return Policy(log.structure, weights, intercept, labels, *named, forest)


def uniform_policy(log: BanditLog | PackedLog) -> Policy:
    """Return the policy that gives every output of a log's kind the same probability."""
    log = log.kind if isinstance(log, PackedLog) else log
    weights = np.zeros((log.n_features + 1, log.structure.n_scores))
    return policy_for(log, weights, True, Record(made_by="uniform_policy"))


def constant_policy(log: BanditLog | PackedLog, y: Any) -> Policy:
    """Return the policy that chooses the one output ``y`` wherever it is available."""
    log = log.kind if isinstance(log, PackedLog) else log
    structure = log.structure
    if not isinstance(structure, Fixed):
        raise InputError(f"no output is always there to be chosen: this log holds {structure.describe()}.")
    codes, _ = structure.encode(np.asarray([y]), log.labels)
    structure.check(codes)
    weights = np.zeros((log.n_features + 1, structure.n_scores))
    weights[-1] = CERTAIN * structure.constant_scores(codes[0])
    return policy_for(log, weights, True, Record(made_by="constant_policy"))
