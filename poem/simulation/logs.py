"""Labelled data → BanditLog under a logging policy (the paper's supervised-to-bandit conversion)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray
from poem.compute import as_matrix
from poem.data import BanditLog, Offers
from poem.errors import InputError, LogError
from poem.policies import FlooredPolicy, Policy
from poem.structures import Labels, Structure

Loss = Literal["hamming", "zero-one", "f1"] | Callable[[AnyArray, AnyArray], FloatArray]


def simulate(
    X: Any,
    y: Any,
    logging_policy: Policy | FlooredPolicy,
    *,
    replay: int = 4,
    loss: Loss = "hamming",
    rng: Generator | int,
    available: Any = None,
    actions: Any = None,
) -> BanditLog:
    """Simulate the log of a policy on labelled data.

    Parameters
    ----------
    X, y
        Contexts and their true outputs; of available actions, the best one of each context. It need not be available,
        and every choice is then wrong.
    logging_policy : Policy, with or without a floor
    replay : int
        Number of passes over the contexts.
    loss : "hamming", "zero-one", "f1" or function
        The number of wrong labels (0/1 for classes), 1 if anything is wrong, 1 − F1 of the label set, or any
        function of (true codes, chosen codes) that returns one loss per row. It need not be differentiable.
    rng : Generator or int
    available, actions : optional
        What can be chosen in each context, and the features of actions, as in :class:`poem.BanditLog`.
    """
    if replay < 1:
        raise InputError(f"replay must be at least 1; found {replay}.")
    generator = np.random.default_rng(rng)
    matrix, names = as_matrix(X, logging_policy.feature_names if hasattr(X, "__arrow_c_stream__") else None)
    offers = _Offers.of(logging_policy, available, actions, matrix.shape[0])
    structure = logging_policy.structure
    truth, _ = structure.encode(y, offers.labels)
    if len(truth) != matrix.shape[0]:
        raise LogError(f"X has {matrix.shape[0]} rows and y has {len(truth)}. Pass rows that match.")
    samples = [logging_policy.sample(matrix, generator, *offers.given) for _ in range(replay)]
    log_propensity = np.concatenate([logging_policy.log_prob(matrix, sample, *offers.given) for sample in samples])
    context = np.tile(np.arange(matrix.shape[0]), replay)
    outputs = np.concatenate(samples)
    chosen, _ = structure.encode(outputs, offers.labels)
    return BanditLog(
        matrix,
        outputs,
        loss=losses_of(loss, truth[context], chosen, structure),
        log_propensity=log_propensity,
        context=context,
        labels=offers.labels,
        structure=None if structure.described else structure,
        feature_names=names,
        **offers.options,
    )


@dataclass(frozen=True)
class _Offers:
    """What is available: as a policy takes it (``given``), as a log does (``options``), and the labels of both."""

    given: tuple[Any, Any]
    options: dict[str, Any]
    labels: Labels

    @staticmethod
    def of(policy: Policy | FlooredPolicy, available: Any, actions: Any, contexts: int) -> "_Offers":
        """Make features of the raw columns of actions, and name all actions."""
        if available is None and actions is None:
            return _Offers((None, None), {}, policy.labels)
        recipe = policy.action_features if hasattr(actions, "__arrow_c_stream__") else None
        actions = actions if recipe is None else recipe.transform(actions)
        known = None if policy.structure.described and not policy.labels else policy.labels
        _, labels, _ = Offers(available, actions, known=policy.structure).read(known, contexts)
        options = {"available": available, "actions": actions, "action_features": recipe}
        options["identity"] = policy.structure.described and len(policy.labels) > 0
        return _Offers((available, actions), options, labels)


def losses_of(loss: Loss, truth: AnyArray, chosen: AnyArray, structure: Structure) -> FloatArray:
    """Return the loss of chosen outputs against true ones, by name or by a function of both."""
    if callable(loss):
        return np.asarray(loss(truth, chosen), dtype=np.float64)
    if loss not in ("hamming", "zero-one", "f1"):
        raise InputError(f"loss must be 'hamming', 'zero-one', 'f1' or a function; found {loss!r}.")
    if loss == "hamming":
        return structure.loss(truth, chosen)
    if loss == "zero-one":
        return np.asarray(structure.loss(truth, chosen) > 0.0, dtype=np.float64)
    # F1 = 2·|both|/(|truth| + |chosen|), and 1 if both are empty; what is not in both is wrong.
    one, two = (structure.indicators(codes) for codes in (truth, chosen))
    size = np.asarray(one.sum(axis=1) + two.sum(axis=1))
    return np.asarray(abs(one - two).sum(axis=1) / np.maximum(size, 1.0))
