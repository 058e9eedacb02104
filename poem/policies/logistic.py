"""Policies from labelled data: logging policies, and the full-information skyline ("CRF" in the paper)."""

from typing import Any

import numpy as np
from numpy.random import Generator

from poem.compute import as_matrix
from poem.errors import InputError, LogError
from poem.policies.policy import Policy
from poem.policies.record import Record
from poem.structures import Fixed, Unseen, Wanted, encoded

TOL, MAX_ITER = 1e-5, 10_000


def supervised(
    X: Any,
    y: Any,
    *,
    C: float = 1.0,
    labels: Any = None,
    structure: Wanted = None,
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
    structure : Structure, its class or its name, optional
        What an output is, such as ``poem.Subset(12, 3)``. By default, a vector holds classes and a matrix
        yes/no labels.
    unseen : "rate" or "never"
        What becomes of a class, or of a label's value, that does not occur in y: a small probability, so that
        a logging policy keeps full support, or none.
    tol, max_iter
        Passed to scikit-learn.
    """
    return _fitted(_Labelled(X, y, labels, structure), slice(None), C, unseen, tol, max_iter)


def logging_policy(
    X: Any,
    y: Any,
    *,
    fraction: float = 0.05,
    temperature: float = 1.0,
    C: float = 1.0,
    labels: Any = None,
    structure: Wanted = None,
    unseen: Unseen = "rate",
    rng: Generator | int,
) -> Policy:
    """Fit a policy to log with on a part of labelled data: the paper's h0 and its two knobs.

    Parameters
    ----------
    X, y, C, labels, structure, unseen
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
    data = _Labelled(X, y, labels, structure)
    n = len(data.codes)
    rows = np.random.default_rng(rng).permutation(n)[: int(np.ceil(fraction * n - 1e-9))]
    return _fitted(data, rows, C, unseen).at_temperature(temperature)


class _Labelled:
    """Checked contexts and true outputs."""

    def __init__(self, X: Any, y: Any, labels: Any, structure: Wanted) -> None:
        self.matrix, self.names = as_matrix(X)
        names = None if labels is None else tuple(labels)
        self.codes, self.known, self.structure = encoded(y, names, structure, inside=False)
        if len(self.codes) != self.matrix.shape[0]:
            raise LogError(f"X has {self.matrix.shape[0]} rows and y has {len(self.codes)}. Pass rows that match.")
        if len(self.codes) == 0:
            raise LogError("X and y have no rows. Pass at least one labelled row.")


def _fitted(data: _Labelled, rows: Any, C: float, unseen: Unseen, tol: float = TOL, max_iter: int = MAX_ITER) -> Policy:
    if not C > 0.0:
        raise InputError(f"C must be above 0; found {C}.")
    if unseen not in ("rate", "never"):
        raise InputError(f"unseen must be 'rate' or 'never'; found {unseen!r}.")
    codes, options = data.codes[rows], {"C": C, "tol": tol, "max_iter": max_iter}
    if not isinstance(data.structure, Fixed):
        raise InputError(f"labelled data need outputs that are the same everywhere, not {data.structure.describe()}.")
    weights = data.structure.fit_labels(data.matrix[rows], codes, unseen, options)
    record = Record(made_by="supervised", n_train=len(codes), settings={"C": C})
    return Policy(data.structure, weights, True, data.known, data.names, record)
