"""Read logs and contexts the way a policy's own log was read: its columns, its features, its outputs."""

import os
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from poem.compute import Matrix, as_matrix, is_sparse
from poem.data import BanditLog, Catalogue
from poem.data.features import Encoding, Features, Numeric
from poem.errors import InputError, MismatchError
from poem.packed import PackedLog
from poem.policies.floor import FlooredPolicy
from poem.policies.policy import Policy
from poem.policies.provenance import without_floor
from poem.readers import (
    Choices,
    Columns,
    Likeness,
    RawLog,
    Roles,
    choices_by_row,
    contexts_by_row,
    log_of,
    read_contexts,
    read_raw,
    roles_from,
)

SHOWN = 200  # characters of a recipe in a message
MANY_ROWS = 20  # of which some must have a feature that a policy knows


def read_log_for(
    policy: Policy | FlooredPolicy,
    source: str | os.PathLike[str] | Any,
    columns: Columns | None = None,
    **reading: Any,
) -> BanditLog:
    """Read a log the way the policy's own log was read, so that the policy can be judged on it.

    Parameters
    ----------
    policy : Policy, with or without a floor
    source : path or data frame
    columns : Columns, optional
        Which column is what, where that differs from what the policy remembers; ``propensity="missing"`` says that
        propensities were not logged.
    **reading
        ``format``, ``side``, ``delimiter``, ``actions_vary``, ``actions`` and ``progress``, as of
        :func:`poem.read_log`.
    """
    asked = with_action_id(policy, columns or Columns())
    missing = asked.propensity == "missing"
    asked = replace(asked, propensity=None) if missing else asked
    raw = read_raw(source, asked, **how_to_read(policy), **reading)
    return log_for(policy, raw, missing=missing)


def log_for(
    policy: Policy | FlooredPolicy,
    raw: RawLog,
    *,
    missing: bool = False,
    encoding: Encoding | None = None,
    name: str = "the policy",
) -> BanditLog:
    """Return a log with the features and outputs of a policy; refuse features that were made in another way.

    ``encoding`` says how columns become features, for a policy that knows no recipe of its own.
    """
    check_lists(policy, raw, name)
    log = log_of(
        raw,
        features=recipe_of(policy),
        labels=policy.labels,
        structure=policy.structure,
        missing=missing,
        encoding=encoding,
        action_features=action_recipe_of(policy),
    )
    check_recipes(policy, raw, log, name)
    check_features(policy, raw, log, name)
    return log


@dataclass(frozen=True)
class OfPolicy(Likeness):
    """How a log is read to be like that of a policy: what :func:`log_for` does with a log in memory."""

    policy: Policy | FlooredPolicy | None = field(default=None, kw_only=True)

    @staticmethod
    def of(policy: Policy | FlooredPolicy) -> "OfPolicy":
        """Return what a policy knows of its own log."""
        return OfPolicy(
            labels=policy.labels,
            structure=policy.structure,
            features=recipe_of(policy),
            action_features=action_recipe_of(policy),
            roles=columns_of(policy),
            action_id=with_action_id(policy, Columns()).action_id,
            policy=policy,
        )

    def check(self, raw: RawLog, log: BanditLog) -> None:
        assert self.policy is not None
        check_lists(self.policy, raw)
        check_recipes(self.policy, raw, log)

    def check_known(self, raw: RawLog, log: BanditLog) -> None:
        assert self.policy is not None
        check_features(self.policy, raw, log)


def check_recipes(policy: Policy | FlooredPolicy, raw: RawLog, log: BanditLog, name: str = "the policy") -> None:
    """Refuse a log whose features were made in another way."""
    check_recipe(policy, log.features, raw.origin.name, name)
    check_recipe(policy, log.action_features, raw.origin.name, name, of_actions=True)


def check_features(policy: Policy | FlooredPolicy, raw: RawLog, log: BanditLog, name: str = "the policy") -> None:
    """Refuse a log in which no feature that the policy knows occurs."""
    check_known(policy, log.X, raw.origin.name, name)
    if log.available is not None:
        check_known(policy, log.available.features, raw.origin.name, name, of_actions=True)


def check_lists(policy: Policy | FlooredPolicy, raw: RawLog, name: str = "the policy") -> None:
    """Refuse data that do not say what is available, if the policy's own log did."""
    known = columns_of(policy)
    if known is not None and known.candidates is not None and not raw.has_candidates:
        raise MismatchError(
            f"{name} was learnt from a log that says what was available (column {known.candidates!r}); "
            f"{raw.origin.name} does not. Name the column with --candidates (Columns(candidates=…)), or add one "
            "with all that is available."
        )


def check_known(
    policy: Policy | FlooredPolicy, matrix: Any, source: str, name: str = "the policy", *, of_actions: bool = False
) -> None:
    """Refuse many rows in which no feature that the policy knows occurs: they come from other columns."""
    if matrix is None or not is_sparse(matrix) or matrix.shape[0] < MANY_ROWS or matrix.shape[1] == 0 or matrix.nnz:
        return
    raise MismatchError(
        f"{source}: none of the {matrix.shape[1]:,} features of {'actions' if of_actions else 'contexts'} that {name} "
        "knows occurs in any row. Check that columns, namespaces and features have the names of the policy's own log."
    )


def read_contexts_for(
    policy: Policy | FlooredPolicy, source: Any, columns: Columns | None = None, **reading: Any
) -> RawLog:
    """Read contexts to decide on, and what is available in them, the way the policy's own log was read.

    Parameters
    ----------
    policy : Policy, with or without a floor
    source : path or data frame
    columns : Columns, optional
        The columns of candidates and ids, where they differ from what the policy remembers.
    **reading
        ``format``, ``delimiter``, ``actions`` and ``progress``, as of :func:`poem.read_log`.
    """
    asked = with_action_id(policy, columns or Columns())
    return read_contexts(source, asked, **how_to_read(policy), **reading)


def how_to_read(policy: Policy | FlooredPolicy) -> dict[str, Any]:
    """Return what a policy knows of its own log, in the words of :func:`poem.readers.read_raw`."""
    return {
        "defaults": columns_of(policy),
        "recipe": policy.features,
        "described": policy.structure.described,
    }


def contexts_for(policy: Policy | FlooredPolicy, raw: RawLog, *, name: str = "the policy") -> Matrix:
    """Return the features of each row, by the policy's recipe or by what the file says of itself; (rows, d)."""
    if raw.table.num_rows == 0:
        raise InputError(f"{raw.origin.name} has no rows. Pass at least one context.")
    if raw.about.encoded and raw.features is not None:
        check_recipe(policy, raw.about.recipe, raw.origin.name, name)
        return contexts_by_row(raw, raw.features)
    recipe = recipe_of(policy)
    if recipe is not None and not recipe.columns:  # a table without columns forgets its rows
        return np.zeros((raw.table.num_rows, 0))
    if recipe is not None:
        matrix = recipe.transform(raw.table, raw.origin.place)
        check_known(policy, matrix, raw.origin.name, name)
        return matrix
    return as_matrix(raw.table.select(list(raw.roles.context)))[0]


def choices_for(policy: Policy | FlooredPolicy, raw: RawLog, *, name: str = "the policy") -> Choices | None:
    """Return what can be chosen in each row, as the policy sees it; None if the table does not say."""
    if not policy.structure.one_each:
        return None
    check_lists(policy, raw, name)
    found = choices_by_row(raw, policy.structure, policy.labels, action_recipe_of(policy))
    if found is not None:
        check_recipe(policy, found.recipe, raw.origin.name, name, of_actions=True)
        features = found.actions.features if isinstance(found.actions, Catalogue) else found.actions
        check_known(policy, features, raw.origin.name, name, of_actions=True)
    if found is not None and found.structure not in (None, policy.structure):
        raise MismatchError(
            f"{raw.origin.name} holds {found.structure.describe()}; {name} was made for {policy.structure.describe()}."
        )
    return found


def action_recipe_of(policy: Policy | FlooredPolicy) -> Features | None:
    """Return how raw columns become features of actions; they may be known by their names only."""
    if policy.action_features is not None or policy.action_names is None:
        found: Features | None = policy.action_features
        return found
    names = policy.action_names[: len(policy.action_names) - len(policy.labels)]
    return Features(tuple(Numeric(name) for name in names))


def recipe_of(policy: Policy | FlooredPolicy) -> Features | None:
    """Return how raw columns become a policy's features; one that was learnt in Python may know their names only."""
    if policy.features is not None or policy.feature_names is None:
        found: Features | None = policy.features
        return found
    return Features(tuple(Numeric(name) for name in policy.feature_names))


def check_recipe(
    policy: Policy | FlooredPolicy,
    found: Features | None,
    source: str,
    name: str = "the policy",
    *,
    of_actions: bool = False,
) -> None:
    """Refuse data whose features were made in another way, even if there are as many of them."""
    known = policy.action_features if of_actions else policy.features
    if known is not None and found is not None and found != known:
        raise MismatchError(
            f"{source} holds features{' of actions' if of_actions else ''} that were made in another way than those of "
            f"{name}: {shortened(found)} against {shortened(known)}. Pass a log of raw columns."
        )


def shortened(text: object, width: int = SHOWN) -> str:
    """Return a text, cut off where it is long."""
    full = str(text)
    return full if len(full) <= width else f"{full[:width]}…"


# ---- columns --------------------------------------------------------------------------------


def columns_of(policy: Policy | FlooredPolicy) -> Roles | None:
    """Return the columns of the log that a policy was learnt from, if its record says so."""
    content = without_floor(policy).record.columns
    if content is None:
        return None
    try:
        return replace(roles_from({role: name for role, name in content.items() if role != "action_id"}), context=())
    except TypeError:  # written by another version
        return None


def with_action_id(policy: Policy | FlooredPolicy, columns: Columns) -> Columns:
    """Return columns with the field of ids that the policy remembers, if none is named."""
    known = (without_floor(policy).record.columns or {}).get("action_id")
    return replace(columns, action_id=known) if columns.action_id is None and isinstance(known, str) else columns


def with_columns(policy: Policy, raw: RawLog, log: BanditLog | None = None) -> Policy:
    """Return a policy that remembers its whole log and the columns of it, so that the next log is read alike.

    Parameters
    ----------
    policy : Policy
    raw : RawLog
        Which column is what.
    log : BanditLog, optional
        All rows: the policy must not be judged on any, if it was trained on a part of them.
    """
    known = policy.record.log if log is None else log.fingerprint()
    roles = replace(raw.roles, candidates=None) if log is not None and log.available is None else raw.roles
    columns = asdict(roles) | ({} if raw.actions.id == "id" else {"action_id": raw.actions.id})
    return replace(policy, record=replace(policy.record, columns=columns, log=known))


def with_packed(policy: Policy, log: PackedLog) -> Policy:
    """Return a policy that remembers the columns that its log was packed from, so that the next log is read alike."""
    columns = policy.record.columns if log.manifest.columns is None else log.manifest.columns
    return replace(policy, record=replace(policy.record, columns=columns))
