"""Policy × rows × loss model → what estimators read: one way for held-out rows of a fit and for logs that judge."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.compute import Threads
from poem.data import BanditLog, Layout, Piece, Shard
from poem.errors import InputError
from poem.estimators import Rows
from poem.models import ContextLosses, CrossFitted, Enumerated, Model, cross_fit, enumerate_regressor
from poem.policies import Judged, Policy

Told = tuple[FloatArray, FloatArray]  # of a piece: the mean under the policy, and what the loss model says
MODELS = "model must be 'auto', 'linear', a scikit-learn regressor or None; found {model!r}."


class UnseenRows:
    """Rows that a loss model has not seen, laid out once to judge any number of policies.

    Parameters
    ----------
    layout : Layout
    loss : (n,)
        On the scale of the losses' model, in the layout's order; at most 0.
    losses : ContextLosses, optional
        What the loss model says of the layout's contexts.
    """

    def __init__(self, layout: Layout, loss: FloatArray, losses: ContextLosses | None = None) -> None:
        self.layout, self.loss, self.losses = layout, loss, losses
        self._predicted: FloatArray | None = None

    def under_weights(self, weights: FloatArray, threads: Threads, log_prob: FloatArray | None = None) -> Rows:
        """Return the rows under a policy with these weights, in the layout's order; scores are computed once.

        ``log_prob`` is that of each row, if it is known already.
        """
        layout = self.layout
        if self.losses is None:
            return self._rows(layout.log_prob(weights, threads) if log_prob is None else log_prob)
        both, found = self.losses.beside(weights), np.empty(len(layout)) if log_prob is None else log_prob

        def told(shard: Shard, piece: Piece) -> Told:
            scores, values = both.of_piece(shard, piece)
            if log_prob is None:
                found[piece.rows] = piece.space.log_prob(scores, piece.y, piece.starts)
            return piece.space.mean_under(scores, values), values

        return self._rows(found, self._expected(told, threads))

    def under_probabilities(self, log_prob: FloatArray, probabilities: FloatArray, threads: Threads) -> Rows:
        """Return the rows under a policy with these probabilities in each context of the log.

        They are (n_contexts, k), or, where contexts have candidates of their own, those of the candidates, flat.
        """
        losses = self.losses
        if losses is None:
            return self._rows(log_prob)

        def told(shard: Shard, piece: Piece) -> Told:
            values, available = losses.of_piece(shard, piece), self.layout.available
            here = self.layout.contexts[shard.places(piece)]
            if available is not None:
                here = available.places(here)
            return piece.space.mean(probabilities[here], values), values

        return self._rows(log_prob, self._expected(told, threads))

    def _expected(self, told: Callable[[Shard, Piece], Told], threads: Threads) -> FloatArray:
        """Return the loss model's mean of each row.

        What the model predicts for the logged outputs is found on the way, the first time.
        """
        known, expected = self._predicted, np.empty(len(self.layout))
        predicted = np.empty(len(self.layout)) if known is None else known
        for shard in self.layout.shards:

            def one(piece: Piece, shard: Shard = shard) -> None:
                mean, values = told(shard, piece)
                expected[piece.rows] = np.repeat(mean, np.diff(piece.starts))
                if known is None:
                    predicted[piece.rows] = piece.space.predicted(values, piece.y, piece.starts)

            threads.map(one, shard.pieces)
        self._predicted = predicted
        return expected

    def _rows(self, log_prob: FloatArray, expected: FloatArray | None = None) -> Rows:
        log_propensity = self.layout.log_propensity
        return Rows(log_prob - log_propensity, self.loss, log_propensity, self._predicted, expected)


class JudgedLog:
    """A whole log to judge policies on: each of its rows by the loss model that has not seen it.

    ``bounds`` are the lowest and the highest loss; losses are taken around the highest.
    """

    def __init__(self, log: BanditLog, bounds: tuple[float, float], model: Model | None, threads: Threads) -> None:
        self.log, self.model, self._threads = log, model, threads
        low, self.worst = bounds
        self._span = (self.worst - low) or max(1.0, abs(self.worst))  # 1 would be lost beside a large loss
        self.loss: FloatArray = log.loss - self.worst

    def rows(self, policy: Judged) -> Rows:
        """Return the rows under a policy, in the log's order; with a loss model if there is one and it can be used."""
        log_propensity = self.log.log_propensity
        plain = Rows(policy.log_prob - log_propensity, self.loss, log_propensity)
        if self.model is None or not policy.has_marginals:
            return plain
        predicted, expected = np.empty((2, len(self.log)))
        order, _ = self.log.rows_by_context()
        for fold in np.unique(self.model.fold).tolist():  # one at a time: memory never holds a second log
            place = order[(self.model.fold == fold)[order]]
            predicted[place], expected[place] = self._of_fold(policy, place, fold, self.model)
        return replace(plain, predicted=predicted, expected=expected)

    def _of_fold(self, policy: Judged, place: IntArray, fold: int, model: Model) -> tuple[FloatArray, FloatArray]:
        """Return the (predicted, expected) losses of the rows that a fold's model has not seen."""
        predicted, expected = self._under(policy, place, self._unseen(place, fold, model)).model
        return self._span * predicted, self._span * expected

    def _unseen(self, place: IntArray, fold: int, model: Model) -> UnseenRows:
        """Lay out the rows that a fold's model has not seen, which are in the order of their contexts."""
        layout = Layout(self.log.take(place), self.log.structure, True)
        losses = model.on(layout, fold, (self.worst - self._span, self.worst), self._threads)
        return UnseenRows(layout, (layout.loss - self.worst) / self._span, losses)

    def _under(self, policy: Judged, place: IntArray, unseen: UnseenRows) -> Rows:
        log_prob = policy.log_prob[place]
        if policy.policy is not None:
            return unseen.under_weights(_with_intercept(policy.policy), self._threads, log_prob)
        assert policy.probabilities is not None
        return unseen.under_probabilities(log_prob, policy.probabilities, self._threads)


def _with_intercept(policy: Policy) -> FloatArray:
    """Return the weights of a policy with an intercept, which is 0 if it has none."""
    weights = policy.weights
    return weights if policy.intercept else np.vstack([weights, np.zeros((1, weights.shape[1]))])


def model_for(
    log: BanditLog, model: Any, folds: int, bounds: tuple[float, float], seed: int, threads: Threads
) -> Model:
    """Fit the loss model that was asked for, fold by fold; one that was fitted before is taken as it is."""
    if isinstance(model, CrossFitted | Enumerated):
        if len(model.fold) != len(log):
            raise InputError(f"the model was fitted for {len(model.fold)} rows; this log has {len(log)}.")
        return model
    if isinstance(model, str) and model in ("auto", "linear"):
        return cross_fit(log, folds, bounds=bounds if model == "auto" else None, seed=seed, threads=threads)
    if isinstance(model, str | type) or not (hasattr(model, "fit") and hasattr(model, "predict")):
        raise InputError(MODELS.format(model=model))
    if not log.structure.one_each:
        raise InputError("a regressor as a loss model needs outputs that can be listed; use model='linear' for labels.")
    return enumerate_regressor(log, model, folds, seed)
