"""Loss models × policies: what a model predicts for the logged outputs, and on average under a policy."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import FloatArray, IntArray, frozen
from poem.compute import Threads, design_of, is_sparse
from poem.data import BanditLog, folds_of
from poem.errors import InputError
from poem.models import CrossFitted, LossModel, cross_fit
from poem.policies import Judged

BLOCK_SCORES = 1 << 20  # scores of all models that a thread holds at a time


@dataclass(frozen=True)
class Enumerated:
    """A regressor's predictions for every class in every context, by fold: (folds, contexts, k)."""

    losses: FloatArray
    fold: IntArray

    def of_rows(self, rows: IntArray) -> "Enumerated":
        """Return the model for some rows of the log."""
        return Enumerated(self.losses, self.fold[rows])


Model = CrossFitted | Enumerated


def model_for(log: BanditLog, model: Any, folds: int, seed: int, threads: Threads) -> Model:
    """Fit the loss model that was asked for, fold by fold; one that was fitted before is taken as it is."""
    if isinstance(model, CrossFitted | Enumerated):
        if len(model.fold) != len(log):
            raise InputError(f"the model was fitted for {len(model.fold)} rows; this log has {len(log)}.")
        return model
    if isinstance(model, str):
        if model != "linear":
            raise InputError(f"model must be 'linear', a scikit-learn regressor or None; found {model!r}.")
        return cross_fit(log, folds, seed=seed, threads=threads)
    if isinstance(model, type) or not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InputError(f"model must be 'linear', a scikit-learn regressor or None; found {model!r}.")
    if not log.structure.lists_outputs:
        raise InputError("a regressor as a loss model needs outputs that can be listed; use model='linear' for labels.")
    return _enumerated(log, model, folds, seed)


def _enumerated(log: BanditLog, regressor: Any, folds: int, seed: int) -> Enumerated:
    from sklearn.base import clone

    fold, k = folds_of(log, folds, seed), len(log.labels)
    losses = np.empty((folds, log.n_contexts, k))
    for part in range(folds):
        rows = np.flatnonzero(fold != part)
        fitted = clone(regressor).fit(_with_class(log.X[log.context[rows]], log.y[rows], k), log.loss[rows])
        for label in range(k):
            features = _with_class(log.X, np.full(log.n_contexts, label), k)
            losses[part, :, label] = fitted.predict(features)
    return Enumerated(losses, fold)


def _with_class(X: Any, y: IntArray, k: int) -> Any:
    """Return contexts with the chosen class as k more columns."""
    if is_sparse(X):
        chosen = sp.csr_array((np.ones(len(y)), (np.arange(len(y)), y)), shape=(len(y), k))
        joined = sp.csr_array(sp.hstack([X, chosen], format="csr"))
        # Trees want narrow indices.
        joined.indices, joined.indptr = joined.indices.astype(np.int32), joined.indptr.astype(np.int32)
        return joined
    return np.hstack([X, np.eye(k)[y]])


def expectations(policy: Judged, log: BanditLog, model: Model, threads: Threads) -> tuple[FloatArray, FloatArray]:
    """Return (predicted, expected) for each row, each from the model that has not seen the row's fold."""
    if isinstance(model, Enumerated):
        probabilities = _all_marginals(policy, log)
        expected = np.einsum("fck,ck->fc", model.losses, probabilities)
        return model.losses[model.fold, log.context, log.y], expected[model.fold, log.context]
    return _linear_expectations(policy, log, model, threads)


def _all_marginals(policy: Judged, log: BanditLog) -> FloatArray:
    if policy.probabilities is not None:
        return policy.probabilities
    assert policy.policy is not None
    return policy.policy.marginals(log.X)


def _linear_expectations(
    policy: Judged, log: BanditLog, model: CrossFitted, threads: Threads
) -> tuple[FloatArray, FloatArray]:
    """For each fold, one product with the weights of the policy and of the fold's model side by side."""
    predicted, expected = np.empty(len(log)), np.empty(len(log))
    order, _ = log.rows_by_context()
    for number, fitted in enumerate(model.models):
        rows = order[model.fold[order] == number]
        if len(rows):
            predicted[rows], expected[rows] = _of_fold(policy, log, rows, fitted, threads)
    return predicted, expected


def _of_fold(
    policy: Judged, log: BanditLog, rows: IntArray, model: LossModel, threads: Threads
) -> tuple[FloatArray, FloatArray]:
    """Return (predicted, expected) of some rows, which are in the order of their contexts."""
    structure = log.structure
    k, own = structure.n_scores, policy.policy is not None
    counts = np.bincount(log.context[rows], minlength=log.n_contexts)
    contexts = np.flatnonzero(counts)
    counts = counts[contexts]
    starts = np.append(0, np.cumsum(counts))
    weights = np.hstack([_with_intercept(policy), model.weights]) if own else model.weights
    design = design_of(log.X, True, contexts)
    wide = design.widen(weights)
    predicted, expected = np.empty(len(rows)), np.empty(len(rows))

    def one(block: tuple[int, int]) -> None:
        first, last = block
        scores = design.block(first, last).scores(wide, weights.shape[1])
        if own:
            marginals = structure.marginals(scores[:, :k])
        else:
            assert policy.probabilities is not None
            marginals = policy.probabilities[contexts[first:last]]
        losses, alone = frozen(scores[:, -k - 1 : -1]), scores[:, -1] + model.centre
        mine = slice(int(starts[first]), int(starts[last]))
        borders = frozen(starts[first : last + 1] - starts[first])
        expected[mine] = np.repeat(np.einsum("ck,ck->c", losses, marginals) + alone, counts[first:last])
        chosen = structure.chosen(losses, frozen(log.y[rows[mine]]), borders)
        predicted[mine] = chosen + np.repeat(alone, counts[first:last])

    threads.map(one, _blocks(len(contexts), weights.shape[1]))
    return predicted, expected


def _with_intercept(policy: Judged) -> FloatArray:
    assert policy.policy is not None
    weights = policy.policy.weights
    return weights if policy.policy.intercept else np.vstack([weights, np.zeros((1, weights.shape[1]))])


def _blocks(n_contexts: int, columns: int) -> list[tuple[int, int]]:
    height = max(1, BLOCK_SCORES // columns)
    return [(first, min(first + height, n_contexts)) for first in range(0, n_contexts, height)]


def unsupported_share(policy: Judged, log: BanditLog) -> float | None:
    """Return the policy's mean probability of an output with a class, or a label's value, that was never logged."""
    if not policy.has_marginals:
        return None
    seen = np.bincount(log.context, minlength=log.n_contexts)
    never_on, never_off = log.structure.unlogged(log.y)
    if not (never_on.any() or never_off.any()):
        return 0.0
    share = log.structure.chance_of_any(_all_marginals(policy, log), never_on, never_off)
    return float(share @ seen / seen.sum())
