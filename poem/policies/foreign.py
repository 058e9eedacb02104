"""A policy in any form → the probabilities of the logged outputs, and those of all outputs where they are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray
from poem.data import BanditLog
from poem.errors import InputError, MismatchError
from poem.policies.floor import FlooredPolicy
from poem.policies.policy import Policy
from poem.structures import Available
from poem.text import counted

ROUNDING = 1e-6
NO_POLICY = (
    "{name} is None: the fit certified no policy, and there was no logging policy to fall back on. Keep what is "
    "running; result.explain() says what was found."
)
UNSUPPORTED = (
    "{name} gives every logged output the probability 0: the log says nothing about it. Check that it is a policy for "
    "these outputs."
)
LEAST_LOG = -745.0  # below the logarithm of the smallest number: a probability of 0


@dataclass(frozen=True)
class Judged:
    """A policy as a log sees it.

    ``log_prob`` is that of each logged output. A linear ``policy`` also gives marginals, and so does a matrix of the
    ``probabilities`` of each class or label in each context, or a flat array of those of all candidates; without
    either, loss models cannot be used.
    """

    name: str
    log_prob: FloatArray
    policy: Policy | None = None
    probabilities: FloatArray | None = None

    @property
    def has_marginals(self) -> bool:
        """Whether the probabilities of outputs that were not logged are known."""
        return self.policy is not None or self.probabilities is not None

    def marginals_of(self, log: BanditLog) -> FloatArray:
        """Return the probabilities of all outputs in each context of the log; see :attr:`has_marginals`."""
        if self.probabilities is not None:
            return self.probabilities
        if self.policy is None:
            raise MismatchError(f"{self.name} is known by the probabilities of logged outputs only.")
        return self.policy.marginals_of(log)

    def of_rows(self, rows: AnyArray) -> "Judged":
        """Return the same policy for some rows of the log."""
        return replace(self, log_prob=self.log_prob[rows])


def judge_all(policies: Any, log: BanditLog) -> list[Judged]:
    """Return every policy in the form that estimators need; names are the mapping's, or made up."""
    return [_judged(name, policy, log) for name, policy in named_policies(policies)]


def named_policies(policies: Any) -> list[tuple[str, Any]]:
    """Return policies with their names: the mapping's, or made up."""
    if isinstance(policies, Mapping):
        named = list(policies.items())
    elif isinstance(policies, Sequence) and not isinstance(policies, str):
        named = [(f"policy {number}", policy) for number, policy in enumerate(policies, start=1)]
    else:
        named = [("policy", policies)]
    if not named:
        raise InputError("there is no policy to evaluate. Pass one, a list, or a dict of names and policies.")
    for name, _ in named:
        if name == "logged" or not isinstance(name, str):
            raise InputError(f"a policy cannot be named {name!r}. Use any other text.")
    return named


def judge_one(name: str, policy: Any, log: BanditLog, n_jobs: int | None = -1) -> Judged:
    """Return one policy in that form, be there a logged output that it would choose or not."""
    if policy is None:
        raise InputError(NO_POLICY.format(name=name))
    if isinstance(policy, Policy) and policy.forest is None:
        return Judged(name, policy.log_prob_of(log, n_jobs), policy=policy)
    if isinstance(policy, Policy | FlooredPolicy):
        return Judged(name, policy.log_prob_of(log, n_jobs), probabilities=policy.marginals_of(log))
    if hasattr(policy, "predict_proba"):
        return _from_classifier(name, policy, log)
    if hasattr(policy, "log_prob_of"):
        return Judged(name, _checked_logs(name, policy.log_prob_of(log), log))
    return _from_array(name, policy(log) if callable(policy) else policy, log)


def _judged(name: str, policy: Any, log: BanditLog) -> Judged:
    found = judge_one(name, policy, log)
    if not is_supported(found):
        raise MismatchError(UNSUPPORTED.format(name=name))
    return found


def is_supported(policy: Judged) -> bool:
    """Tell whether a policy would choose any logged output."""
    return bool(np.any(policy.log_prob > LEAST_LOG))


def by_context_alone(name: str, policy: Any) -> Any:
    """Return a policy that can be asked about any part of a log, or say why it cannot: rows have no order there."""
    if policy is None:
        raise InputError(NO_POLICY.format(name=name))
    if isinstance(policy, Policy | FlooredPolicy) or callable(policy):
        return policy
    if hasattr(policy, "predict_proba") or hasattr(policy, "log_prob_of"):
        return policy
    raise InputError(
        f"{name} must be a policy, a classifier with predict_proba, or a function of a log: the rows of a packed log "
        f"have no order in which an array could name their probabilities; found {type(policy).__name__}."
    )


def _from_classifier(name: str, policy: Any, log: BanditLog) -> Judged:
    if not log.structure.lists_outputs:
        raise MismatchError(
            f"{name} has predict_proba, which is for classes; this log holds {log.structure.describe()}."
        )
    try:
        probabilities = np.asarray(policy.predict_proba(log.X), dtype=np.float64)
    except ValueError as error:
        raise MismatchError(f"{name} cannot predict for this log: {error}.") from error
    classes = [getattr(value, "item", lambda value=value: value)() for value in getattr(policy, "classes_", log.labels)]
    unknown = [value for value in classes if value not in log.labels]
    if unknown:
        raise MismatchError(f"{name} chooses {unknown[:5]}, which this log does not know; it has {log.labels[:8]}.")
    if probabilities.shape != (log.n_contexts, len(classes)):
        raise MismatchError(
            f"{name}.predict_proba returned {probabilities.shape}; expected one row for each of the {log.n_contexts} "
            f"contexts and one column for each of {len(classes)} classes."
        )
    matrix = np.zeros((log.n_contexts, len(log.labels)))
    matrix[:, [log.labels.index(value) for value in classes]] = probabilities
    if log.available is None:
        return _from_matrix(name, matrix, log)
    return _from_flat(name, _renormalised(name, log.available, matrix), log, log.available)


def _renormalised(name: str, available: Available, matrix: FloatArray) -> FloatArray:
    """Return the probabilities of the candidates; a classifier does not know what is available."""
    owner = np.repeat(np.arange(available.n_contexts), available.counts())
    flat = matrix[owner, available.action]
    totals = np.add.reduceat(flat, available.starts[:-1])
    if np.any(totals <= 0.0):
        context = int(np.argmin(totals))
        raise MismatchError(f"{name} gives all that is available in context {context} the probability 0.")
    return np.asarray(flat / totals[owner])


def _from_flat(name: str, values: FloatArray, log: BanditLog, available: Available) -> Judged:
    """Take one probability per candidate, in the order of the lists."""
    _check_probabilities(name, values)
    totals = np.add.reduceat(values, available.starts[:-1])
    off = np.abs(totals - 1.0)
    if np.any(off > ROUNDING):
        context = int(np.argmax(off))
        raise InputError(
            f"{name}: the probabilities of the candidates of a context must add up to 1; those of context {context} "
            f"add up to {totals[context]:.6g}."
        )
    chosen = available.starts[log.context] + available.positions(log.context, log.y)
    with np.errstate(divide="ignore"):
        return Judged(name, np.maximum(np.log(values[chosen]), 2 * LEAST_LOG), probabilities=values)


def _from_array(name: str, policy: Any, log: BanditLog) -> Judged:
    try:
        values = np.asarray(policy, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} must be a policy, a classifier with predict_proba, a function of the log, or an array of the "
            f"probabilities of the logged outputs; found {type(policy).__name__}."
        ) from error
    if values.ndim == 2:
        return _from_matrix(name, values, log)
    if log.available is not None and values.shape == (len(log.available),):
        return _from_flat(name, values, log, log.available)
    if values.shape != (len(log),):
        raise MismatchError(
            f"{name} must have one probability for each of the {len(log)} rows"
            f"{'' if log.available is None else f', or for each of the {len(log.available)} candidates'}; found shape "
            f"{values.shape}."
        )
    _check_probabilities(name, values)
    with np.errstate(divide="ignore"):
        return Judged(name, np.maximum(np.log(values), 2 * LEAST_LOG))


def _from_matrix(name: str, values: AnyArray, log: BanditLog) -> Judged:
    if not log.structure.lists_outputs or values.shape[1] != len(log.labels):
        raise MismatchError(
            f"{name} is a matrix of shape {values.shape}; class probabilities need a log of classes and one "
            f"column for each of its {len(log.labels)} labels."
        )
    _check_probabilities(name, values)
    totals = values.sum(axis=1)
    if np.any(np.abs(totals - 1.0) > ROUNDING):
        row = int(np.argmax(np.abs(totals - 1.0)))
        raise InputError(f"{name}: probabilities must add up to 1; row {row} adds up to {totals[row]:.6g}.")
    by_context = _by_context(name, values, log)
    if log.available is not None:
        owner = np.repeat(np.arange(log.n_contexts), log.available.counts())
        return _from_flat(name, by_context[owner, log.available.action], log, log.available)
    with np.errstate(divide="ignore"):
        log_prob = np.maximum(np.log(by_context[log.context, log.y]), 2 * LEAST_LOG)
    return Judged(name, log_prob, probabilities=by_context)


def _by_context(name: str, values: AnyArray, log: BanditLog) -> FloatArray:
    """Return probabilities by context; those of rows must agree where rows share a context."""
    rows = values.shape[0] == len(log)
    if not rows and values.shape[0] != log.n_contexts:
        raise MismatchError(
            f"{name} has {counted(values.shape[0], 'row')}; the log has {counted(len(log), 'row')} in "
            f"{counted(log.n_contexts, 'context')}."
        )
    if not rows:
        return values
    by_context = np.full((log.n_contexts, values.shape[1]), 1.0 / values.shape[1])
    by_context[log.context] = values
    off = np.abs(by_context[log.context] - values).max(axis=1)
    if np.any(off > ROUNDING):
        row = int(np.argmax(off))
        raise MismatchError(
            f"{name} gives row {row} other probabilities than another row of the same context, so it knows more than "
            "the log's X. Pass the probabilities of the logged outputs alone, one for each row."
        )
    return by_context


def _check_probabilities(name: str, values: FloatArray) -> None:
    bad = ~((values >= 0.0) & (values <= 1.0 + ROUNDING))
    if bad.any():
        place = tuple(int(axis[0]) for axis in np.nonzero(bad))
        raise InputError(
            f"{name}: probabilities must be in [0, 1]; row {place[0]} has {values[place]} "
            f"({counted(int(bad.sum()), 'such value')}). Pass probabilities, not scores or logarithms."
        )


def _checked_logs(name: str, values: Any, log: BanditLog) -> FloatArray:
    logs = np.asarray(values, dtype=np.float64)
    if logs.shape != (len(log),) or np.isnan(logs).any() or np.any(logs > ROUNDING):
        raise MismatchError(f"{name}.log_prob_of must return {len(log)} logarithms of probabilities, at most 0.")
    return np.clip(logs, 2 * LEAST_LOG, 0.0)
