"""Weights from labelled data: scikit-learn's logistic regressions, or the likelihood of any structure."""

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from poem.arrays import AnyArray, FloatArray, frozen
from poem.compute import is_sparse
from poem.errors import LogError

if TYPE_CHECKING:
    from poem.structures.base import Fixed

Unseen = Literal["rate", "never"]
LARGEST = 1e30  # beyond which liblinear does not end
CERTAIN = 1000.0  # a score at which the other outputs' probability is 0 in float64


def label_weights(X: Any, codes: AnyArray, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
    """Fit one logistic regression per label."""
    from sklearn.linear_model import LogisticRegression

    if X.shape[1] == 0:
        return label_weights(_one_empty_feature(X), codes, unseen, options)[1:]
    largest = float(abs(X.data if is_sparse(X) else X).max(initial=0.0))
    if largest > LARGEST:
        raise LogError(
            f"logistic regressions need features of at most {LARGEST:g} in size; found {largest:g}. Scale such "
            "columns, or leave them out."
        )
    weights = np.zeros((X.shape[1] + 1, codes.shape[1]))
    # The same optimum either way; the dual has one variable per row, the primal one per feature.
    options = options | {"solver": "liblinear", "dual": X.shape[0] <= X.shape[1], "random_state": 0}
    for label in range(codes.shape[1]):
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


def class_weights(X: Any, codes: AnyArray, n_classes: int, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
    """Fit one multinomial regression."""
    from sklearn.linear_model import LogisticRegression

    if X.shape[1] == 0:
        return class_weights(_one_empty_feature(X), codes, n_classes, unseen, options)[1:]
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


def _one_empty_feature(X: Any) -> FloatArray:
    """Return a feature that is 0 in all rows: scikit-learn takes no matrix without features."""
    return np.zeros((X.shape[0], 1))


def likelihood_weights(structure: "Fixed", X: Any, codes: AnyArray, options: dict[str, Any]) -> FloatArray:
    """Maximise Σ log h(yᵢ|xᵢ) − |w|²/(2C) over the weights; the intercept is penalised like any feature."""
    from scipy.optimize import minimize

    shape, y = (X.shape[1] + 1, structure.n_scores), frozen(codes)
    starts = frozen(np.arange(len(codes) + 1))
    C, ones = float(options["C"]), np.ones(len(codes))

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        w = flat.reshape(shape)
        scores = np.asarray(X @ w[:-1] + w[-1])
        slopes = structure.pull_back(scores, y, starts, ones)
        gradient = w / C - np.vstack([np.asarray(X.T @ slopes), slopes.sum(axis=0)])
        value = float((w * w).sum()) / (2.0 * C) - float(structure.log_prob(scores, y, starts).sum())
        return value, gradient.ravel()

    rules = {"maxiter": int(options["max_iter"]), "gtol": float(options["tol"]), "maxfun": 100_000}
    begin: Any = np.zeros(shape[0] * shape[1])
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options=rules)  # type: ignore[call-overload]
    return np.asarray(found.x).reshape(shape)
