"""Labelled data → BanditLog under a logging policy (the paper's supervised-to-bandit conversion)."""

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray
from poem.errors import InputError, LogError
from poem.log import BanditLog
from poem.matrix import as_matrix
from poem.outputs import encode
from poem.policy import Policy

Loss = Literal["own", "zero-one"] | Callable[[AnyArray, AnyArray], FloatArray]


def simulate(
    X: Any, y: Any, logging_policy: Policy, *, replay: int = 4, loss: Loss = "own", rng: Generator | int
) -> BanditLog:
    """Let a policy act on labelled data and log what it did.

    Parameters
    ----------
    X, y
        Contexts and their true outputs.
    logging_policy : Policy
    replay : int
        How often each context is seen.
    loss : "own", "zero-one" or function
        ``"own"`` is the structure's loss (Hamming for labels, 0/1 for classes), ``"zero-one"`` that
        of the whole output, or any function of (true codes, chosen codes) that returns one loss a row.
    rng : Generator or int
    """
    if replay < 1:
        raise InputError(f"replay must be at least 1; found {replay}.")
    generator = np.random.default_rng(rng)
    matrix, names = as_matrix(X, logging_policy.feature_names if hasattr(X, "__arrow_c_stream__") else None)
    truth, _ = encode(y, logging_policy.labels)
    if len(truth) != matrix.shape[0]:
        raise LogError(f"X has {matrix.shape[0]} rows and y has {len(truth)}. Pass rows that match.")
    samples = [logging_policy.sample(matrix, generator) for _ in range(replay)]
    log_propensity = np.concatenate([logging_policy.log_prob(matrix, sample) for sample in samples])
    context = np.tile(np.arange(matrix.shape[0]), replay)
    outputs = np.concatenate(samples)
    chosen, _ = encode(outputs, logging_policy.labels)
    return BanditLog(
        matrix,
        outputs,
        loss=_losses(loss, logging_policy, truth[context], chosen),
        log_propensity=log_propensity,
        context=context,
        labels=logging_policy.labels,
        feature_names=names,
    )


def _losses(loss: Loss, policy: Policy, truth: AnyArray, chosen: AnyArray) -> FloatArray:
    if loss == "own":
        return policy.structure.loss(truth, chosen)
    if loss == "zero-one":
        wrong = truth != chosen
        return np.asarray(wrong.any(axis=1) if wrong.ndim == 2 else wrong, dtype=np.float64)
    if callable(loss):
        return np.asarray(loss(truth, chosen), dtype=np.float64)
    raise InputError(f"loss must be 'own', 'zero-one' or a function; found {loss!r}.")
