"""Policies from labelled data: logging policies, and the full-information skyline ("CRF" in the paper)."""

from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray
from poem.compute import as_matrix
from poem.errors import InputError, LogError
from poem.policies.policy import CERTAIN, Policy
from poem.structures import MultiClass, MultiLabel, encode

Unseen = Literal["rate", "never"]

TOL, MAX_ITER = 1e-5, 10_000


def supervised(
    X: Any,
    y: Any,
    *,
    C: float = 1.0,
    labels: Any = None,
    unseen: Unseen = "rate",
    tol: float = TOL,
    max_iter: int = MAX_ITER,
) -> Policy:
    """Fit scikit-learn's logistic regression to true outputs and return it as a policy.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or data frame
    y : (n, q) of 0/1, or (n,) of classes
        One l2-penalised logistic regression for each label (liblinear, the intercept penalised like
        any feature), or one multinomial regression.
    C : float
        The inverse strength of the l2 penalty.
    labels : sequence, optional
        All possible classes.
    unseen : "rate" or "never"
        What becomes of a class, or of a label's value, that does not occur in y: a small probability, so that
        a logging policy keeps full support, or none.
    tol, max_iter
        Passed to scikit-learn.
    """
    return _fitted(_Labelled(X, y, labels), slice(None), C, unseen, tol, max_iter)


def logging_policy(
    X: Any,
    y: Any,
    *,
    fraction: float = 0.05,
    temperature: float = 1.0,
    C: float = 1.0,
    labels: Any = None,
    unseen: Unseen = "rate",
    rng: Generator | int,
) -> Policy:
    """Fit a policy to log with on a part of labelled data: the paper's h0 and its two knobs.

    Parameters
    ----------
    X, y, C, labels, unseen
        As for :func:`supervised`.
    fraction : float
        The share of the rows, drawn at random, that it is fitted on: the more, the better it is.
    temperature : float
        What its weights are multiplied by: above 1 it explores less, below 1 more.
    rng : Generator or int
        With the same seed, the rows of a smaller fraction are among those of a larger one.
    """
    if not 0.0 < fraction <= 1.0:
        raise InputError(f"fraction must be above 0 and at most 1; found {fraction}.")
    data = _Labelled(X, y, labels)
    n = len(data.codes)
    rows = np.random.default_rng(rng).permutation(n)[: int(np.ceil(fraction * n - 1e-9))]
    return _fitted(data, rows, C, unseen).at_temperature(temperature)


class _Labelled:
    """Checked contexts and true outputs."""

    def __init__(self, X: Any, y: Any, labels: Any) -> None:
        self.matrix, self.names = as_matrix(X)
        self.codes, self.known = encode(y, None if labels is None else tuple(labels))
        if len(self.codes) != self.matrix.shape[0]:
            raise LogError(f"X has {self.matrix.shape[0]} rows and y has {len(self.codes)}. Pass rows that match.")
        if len(self.codes) == 0:
            raise LogError("X and y have no rows. Pass at least one labelled row.")


def _fitted(data: _Labelled, rows: Any, C: float, unseen: Unseen, tol: float = TOL, max_iter: int = MAX_ITER) -> Policy:
    if not C > 0.0:
        raise InputError(f"C must be above 0; found {C}.")
    if unseen not in ("rate", "never"):
        raise InputError(f"unseen must be 'rate' or 'never'; found {unseen!r}.")
    codes, k = data.codes[rows], len(data.known)
    fit = _label_weights if codes.ndim == 2 else _class_weights
    weights = fit(data.matrix[rows], codes, k, unseen, {"C": C, "tol": tol, "max_iter": max_iter})
    structure = MultiLabel(k) if codes.ndim == 2 else MultiClass(k)
    training = {"made_by": "supervised", "C": C, "n_train": len(codes)}
    return Policy(structure, weights, True, data.known, data.names, training)


def _label_weights(X: Any, codes: AnyArray, q: int, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
    from sklearn.linear_model import LogisticRegression

    weights = np.zeros((X.shape[1] + 1, q))
    # The same optimum either way; the dual has one variable a row, the primal one a feature.
    options = options | {"solver": "liblinear", "dual": X.shape[0] <= X.shape[1], "random_state": 0}
    for label in range(q):
        column = codes[:, label]
        positives = int(column.sum())
        if positives in (0, len(column)):
            smoothed = np.log((positives + 0.5) / (len(column) - positives + 0.5))
            weights[-1, label] = smoothed if unseen == "rate" else np.copysign(CERTAIN, smoothed)
            continue
        model = LogisticRegression(intercept_scaling=1.0, **options)
        model.fit(X, column)
        weights[:-1, label], weights[-1, label] = model.coef_[0], model.intercept_[0]
    return weights


def _class_weights(X: Any, codes: AnyArray, n_classes: int, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
    from sklearn.linear_model import LogisticRegression

    weights = np.zeros((X.shape[1] + 1, n_classes))
    present = np.unique(codes)
    missing = np.setdiff1d(np.arange(n_classes), present)
    weights[-1, missing] = np.log(0.5 / len(codes)) if unseen == "rate" else -CERTAIN
    if len(present) == 1:
        return weights
    model = LogisticRegression(**options).fit(X, codes)
    if len(present) == 2:
        weights[:-1, present[1]], weights[-1, present[1]] = model.coef_[0], model.intercept_[0]
    else:
        weights[:-1, present], weights[-1, present] = model.coef_.T, model.intercept_
    return weights
