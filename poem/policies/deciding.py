"""Decide for a table of contexts: the table comes back with the decisions beside its own columns."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray
from poem.errors import InputError
from poem.policies.floor import FlooredPolicy
from poem.policies.policy import Policy
from poem.policies.reading import columns_of, contexts_for
from poem.readers import INDEXES, RawLog, labels_column, read_contexts

NEARLY_SURE = 0.99  # a propensity from which an output is hardly ever another


def decide(
    policy: Policy | FlooredPolicy,
    contexts: Any,
    *,
    sample: bool = False,
    seed: int | None = None,
    floor: float | None = None,
    name: str = "the policy",
) -> Any:
    """Decide for each row of a table of contexts.

    Parameters
    ----------
    policy : Policy, with or without a floor
    contexts : path, data frame or RawLog
        The raw columns that the policy's own log had.
    sample : bool
        Draw each output; otherwise take the most probable one.
    seed : int, optional
        Of what is drawn; a new one by default.
    floor : float, optional
        Decide uniformly in this share of the cases.
    name : str
        What the policy is called in messages.

    Returns
    -------
    pyarrow.Table
        The contexts' own columns, the decision and its probability. Columns have the names of the policy's own log, so
        that sampled decisions become the next log once losses or rewards are added.
    """
    if not sample and (seed is not None or floor is not None):
        raise InputError("seed= and floor= are for decisions that are drawn. Add sample=True.")
    policy = policy if floor is None else with_floor(policy, floor, name)
    raw = contexts if isinstance(contexts, RawLog) else read_contexts(contexts, recipe=policy.features)
    X = contexts_for(policy, raw, name=name)
    outputs = policy.sample(X, new_seed() if seed is None else seed) if sample else policy.predict(X)
    return _decided(raw, policy, outputs, policy.log_prob(X, outputs), sample)


def with_floor(policy: Policy | FlooredPolicy, share: float, name: str = "the policy") -> FlooredPolicy:
    """Return a policy that decides uniformly in a share of the cases; a floor that is there is not replaced."""
    if isinstance(policy, FlooredPolicy):
        raise InputError(f"{name} has a floor already, which is kept. Leave floor= out.")
    return policy.with_floor(share)


def new_seed() -> int:
    """Return a seed that was not used before."""
    return int(np.random.SeedSequence().generate_state(1)[0])


def explores_little(decisions: Any) -> bool:
    """Tell whether most sampled decisions were nearly certain, so that little can be learnt from their log.

    Parameters
    ----------
    decisions : pyarrow.Table
        As returned by :func:`decide`: the last column holds propensities.
    """
    return bool((decisions.column(decisions.num_columns - 1).to_numpy() > NEARLY_SURE).mean() > 0.5)


def _decided(
    raw: RawLog, policy: Policy | FlooredPolicy, outputs: AnyArray, log_prob: FloatArray, sampled: bool
) -> Any:
    """Return the contexts' own columns with the decisions beside them, an Arrow table."""
    import pyarrow as pa

    decision, probability = _names(policy, sampled)
    table = _contexts_alone(raw, policy, {decision, probability})
    codes, labels = policy.structure.encode(outputs, policy.labels)
    column = policy.structure.to_arrow(codes, labels_column(labels))
    return table.append_column(decision, column).append_column(probability, pa.array(np.exp(log_prob)))


def _names(policy: Policy | FlooredPolicy, sampled: bool) -> tuple[str, str]:
    """Return the columns of decisions and probabilities: those of the policy's own log, so that the next is alike."""
    roles = columns_of(policy)
    decision = roles.output[0] if roles is not None and len(roles.output) == 1 else "output"
    logged = roles.propensity if roles is not None and roles.unit == "probability" else None
    if sampled:
        return decision, logged or "propensity"
    return decision, "probability" if logged != "probability" else "map_probability"  # what is not drawn is no log


def _contexts_alone(raw: RawLog, policy: Policy | FlooredPolicy, new: set[str]) -> Any:
    """Return the table without earlier decisions and their outcomes: they would be taken for features."""
    needed = set(() if policy.features is None else policy.features.columns)
    clash = sorted(needed & new)
    if clash:
        raise InputError(f"the policy has a feature called {clash[0]!r}, as a column of the decisions. Rename it.")
    old = set(INDEXES) | new
    for roles in (raw.roles, columns_of(policy)):
        if roles is not None:
            named = (roles.loss, roles.reward, roles.propensity, roles.distribution)
            old |= {*roles.output, *(name or "" for name in named)}
    table = _with_own_features(raw)
    kept = [name for name in table.column_names if name in needed or name not in old]
    return table.select(kept).replace_schema_metadata(None)


def _with_own_features(raw: RawLog) -> Any:
    """Return the table with the features of its context in each row; poem writes them into the first such row only."""
    name = raw.roles.context_id
    if name is None:
        return raw.table
    _, first, number = np.unique(raw.table.column(name).to_numpy(), return_index=True, return_inverse=True)
    shared = raw.table.select(list(raw.roles.context)).take(first[number])
    table = raw.table.drop_columns([name])
    for column in shared.column_names:
        table = table.set_column(table.column_names.index(column), column, shared.column(column))
    return table
