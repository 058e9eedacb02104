"""Policies from labelled data: logging policies, and the full-information skyline ("CRF" in the paper)."""

from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray
from poem.errors import InputError, LogError
from poem.matrix import as_matrix
from poem.outputs import encode
from poem.policy import Policy
from poem.structures import MultiClass, MultiLabel


def supervised(
    X: Any, y: Any, *, C: float = 1.0, labels: Any = None, tol: float = 1e-5, max_iter: int = 10_000
) -> Policy:
    """Fit scikit-learn's logistic regression to true outputs and return it as a policy.

    Parameters
    ----------
    X : (n, d) array, sparse matrix or data frame
    y : (n, q) of 0/1, or (n,) of classes
        One l2-penalised logistic regression for each label (liblinear, dual, the intercept penalised
        like any feature), or one multinomial regression.
    C : float
        The inverse strength of the l2 penalty.
    labels : sequence, optional
        All possible classes; those that do not occur in y get a small probability.
    tol, max_iter
        Passed to scikit-learn.
    """
    if not C > 0.0:
        raise InputError(f"C must be above 0; found {C}.")
    matrix, names = as_matrix(X)
    codes, known = encode(y, None if labels is None else tuple(labels))
    if len(codes) != matrix.shape[0]:
        raise LogError(f"X has {matrix.shape[0]} rows and y has {len(codes)}. Pass rows that match.")
    if len(codes) == 0:
        raise LogError("X and y have no rows. Pass at least one labelled row.")
    fit = _label_weights if codes.ndim == 2 else _class_weights
    weights = fit(matrix, codes, len(known), {"C": C, "tol": tol, "max_iter": max_iter})
    structure = MultiLabel(len(known)) if codes.ndim == 2 else MultiClass(len(known))
    return Policy(structure, weights, True, known, names, {"made_by": "supervised", "C": C, "n_train": len(codes)})


def _label_weights(X: Any, codes: AnyArray, q: int, options: dict[str, Any]) -> FloatArray:
    from sklearn.linear_model import LogisticRegression

    weights = np.zeros((X.shape[1] + 1, q))
    for label in range(q):
        column = codes[:, label]
        positives = int(column.sum())
        if positives in (0, len(column)):
            # Nothing to separate: the smoothed rate, so that a logging policy keeps full support.
            weights[-1, label] = np.log((positives + 0.5) / (len(column) - positives + 0.5))
            continue
        model = LogisticRegression(solver="liblinear", dual=True, intercept_scaling=1.0, random_state=0, **options)
        model.fit(X, column)
        weights[:-1, label], weights[-1, label] = model.coef_[0], model.intercept_[0]
    return weights


def _class_weights(X: Any, codes: AnyArray, n_classes: int, options: dict[str, Any]) -> FloatArray:
    from sklearn.linear_model import LogisticRegression

    weights = np.zeros((X.shape[1] + 1, n_classes))
    present = np.unique(codes)
    missing = np.setdiff1d(np.arange(n_classes), present)
    weights[-1, missing] = np.log(0.5 / len(codes))
    if len(present) == 1:
        return weights
    model = LogisticRegression(**options).fit(X, codes)
    if len(present) == 2:
        weights[:-1, present[1]], weights[-1, present[1]] = model.coef_[0], model.intercept_[0]
    else:
        weights[:-1, present], weights[-1, present] = model.coef_.T, model.intercept_
    return weights
