"""Decide for a table of contexts: the table comes back with the decisions beside its own columns."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray
from poem.compute import Matrix
from poem.errors import InputError
from poem.policies.floor import FlooredPolicy
from poem.policies.policy import Policy
from poem.policies.reading import choices_for, columns_of, contexts_for, read_contexts_for
from poem.readers import INDEXES, Choices, RawLog, labels_column, row_lists
from poem.structures import Offered

LEAST_LOG = -745.0  # below the logarithm of the smallest number: a probability of 0
NEARLY_SURE = 0.99  # a propensity from which an output is hardly ever another


def decide(
    policy: Policy | FlooredPolicy,
    contexts: Any,
    *,
    sample: bool = False,
    seed: int | None = None,
    floor: float | None = None,
    actions: Any = None,
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
    actions : path or data frame, optional
        A catalogue of actions beside the contexts; see :func:`poem.read_log`.
    name : str
        What the policy is called in messages.

    Returns
    -------
    pyarrow.Table
        The contexts' own columns, the decision and its probability. Columns have the names of the policy's own log, so
        that sampled decisions become the next log once losses or rewards are added. If the contexts say what is
        available, there are also its ranking and probabilities, the most probable one first; or, beside sampled
        decisions, their distribution in the order of the column of candidates.
    """
    if not sample and (seed is not None or floor is not None):
        raise InputError("seed= and floor= are for decisions that are drawn. Add sample=True.")
    policy = policy if floor is None else with_floor(policy, floor, name)
    raw = contexts if isinstance(contexts, RawLog) else read_contexts_for(policy, contexts, actions=actions)
    X, choices = contexts_for(policy, raw, name=name), choices_for(policy, raw, name=name)
    if choices is not None:
        return _chosen(raw, policy, X, choices, new_seed() if sample and seed is None else seed if sample else None)
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
    return _beside(table, {decision: column, probability: pa.array(np.exp(log_prob))})


def _chosen(raw: RawLog, policy: Policy | FlooredPolicy, X: Matrix, choices: Choices, seed: int | None) -> Any:
    """Return the same for contexts that say what is available; decisions are drawn if there is a seed."""
    import pyarrow as pa

    available = choices.whole()
    chance = policy.marginals(X, available)
    with np.errstate(divide="ignore"):
        scores, space = np.maximum(np.log(chance), LEAST_LOG), Offered(available.starts)
    found = space.argmax(scores) if seed is None else space.sample(scores, np.random.default_rng(seed))
    place = available.starts[:-1] + found
    ids = labels_column(choices.labels).take(pa.array(available.action))
    decision, probability = _names(policy, seed is not None)
    columns = {decision: ids.take(pa.array(place))}
    if seed is None:
        order = np.lexsort((-chance, np.repeat(np.arange(available.n_contexts), available.counts())))
        columns[probability] = pa.array(chance[place])
        columns["ranking"] = row_lists(available.starts, ids.take(pa.array(order)), None)
        columns["probabilities"] = row_lists(available.starts, chance[order], None)
    else:
        if raw.roles.candidates is not None:
            columns[_distribution(policy)] = row_lists(available.starts, chance, None)
        columns[probability] = pa.array(chance[place])
    return _beside(_contexts_alone(raw, policy, set(columns)), columns)


def _beside(table: Any, columns: dict[str, Any]) -> Any:
    """Return a table with more columns; one without columns of its own does not know how many rows it had."""
    import pyarrow as pa

    return pa.Table.from_arrays([*table.columns, *columns.values()], names=[*table.column_names, *columns])


def _distribution(policy: Policy | FlooredPolicy) -> str:
    roles = columns_of(policy)
    return roles.distribution if roles is not None and roles.distribution is not None else "distribution"


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
