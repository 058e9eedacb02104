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
from poem.evaluation.opinion import Opinion
from poem.models import ContextLosses, CrossFitted, Enumerated, Model, cross_fit, enumerate_regressor
from poem.policies import Judged, Policy

# Of a piece: what the loss model says, its mean under the policy, and the chance that this chooses one output twice.
Told = tuple[FloatArray, FloatArray, FloatArray | None]
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
    repeats : bool
        Whether rows say how likely a policy is to choose one output twice.
    """

    def __init__(
        self, layout: Layout, loss: FloatArray, losses: ContextLosses | None = None, repeats: bool = False
    ) -> None:
        self.layout, self.loss, self.losses, self._repeats = layout, loss, losses, repeats
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
            if self._repeats:
                return self._under(piece, piece.space.marginals(scores), values)
            return values, piece.space.mean_under(scores, values), None

        return self._rows(found, *self._expected(told, threads))

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
            return self._under(piece, probabilities[here], values)

        return self._rows(log_prob, *self._expected(told, threads))

    def _under(self, piece: Piece, probabilities: FloatArray, values: FloatArray) -> Told:
        """Return what is told of a piece under a policy with these probabilities."""
        repeated = piece.space.repeated(probabilities) if self._repeats else None
        return values, piece.space.mean(probabilities, values), repeated

    def _expected(self, told: Callable[[Shard, Piece], Told], threads: Threads) -> tuple[FloatArray, FloatArray | None]:
        """Return the loss model's mean of each row, and the chance of the same output twice if it is asked for.

        What the model predicts for the logged outputs is found on the way, the first time.
        """
        known, expected = self._predicted, np.empty(len(self.layout))
        predicted = np.empty(len(self.layout)) if known is None else known
        repeated = np.empty(len(self.layout)) if self._repeats else None
        for shard in self.layout.shards:

            def one(piece: Piece, shard: Shard = shard) -> None:
                values, mean, twice = told(shard, piece)
                expected[piece.rows] = np.repeat(mean, np.diff(piece.starts))
                if repeated is not None and twice is not None:
                    repeated[piece.rows] = np.repeat(twice, np.diff(piece.starts))
                if known is None:
                    predicted[piece.rows] = piece.space.predicted(values, piece.y, piece.starts)

            threads.map(one, shard.pieces)
        self._predicted = predicted
        return expected, repeated

    def _rows(
        self, log_prob: FloatArray, expected: FloatArray | None = None, repeated: FloatArray | None = None
    ) -> Rows:
        p = self.layout.log_propensity
        return Rows(log_prob - p, self.loss, p, self._predicted, expected, repeated=repeated)


class JudgedLog:
    """A whole log to judge policies on: each of its rows by the loss model that has not seen it.

    ``bounds`` are the lowest and the highest loss; losses are taken around the highest. ``opinions`` are those of the
    policies that have been judged, by name, if they have a share in the loss model.
    """

    def __init__(self, log: BanditLog, bounds: tuple[float, float], model: Model | None, threads: Threads) -> None:
        self.log, self.model, self._threads = log, model, threads
        low, self.worst = bounds
        self._span = (self.worst - low) or max(1.0, abs(self.worst))  # 1 would be lost beside a large loss
        self.loss: FloatArray = log.loss - self.worst
        self.opinions: dict[str, Opinion] = {}
        self._folds = 0  # of a loss model that policies have a share in
        if isinstance(model, CrossFitted) and model.shared and log.structure.one_each:
            self._folds = len(model.models)

    def rows(self, policy: Judged, opinion: Opinion | None = None) -> Rows:
        """Return the rows under a policy, in the log's order; with a loss model if there is one and it can be used.

        ``opinion`` is the policy's, if other rows have said it; otherwise these do.
        """
        log_propensity = self.log.log_propensity
        plain = Rows(policy.log_prob - log_propensity, self.loss, log_propensity)
        if self.model is None or not policy.has_marginals:
            return plain
        told = self._told(policy, plain, self.model)
        if not self._folds:
            return told
        found = Opinion.of(told, self.model.fold, self._folds, self._span) if opinion is None else opinion
        self.opinions[policy.name] = found
        return found.heard(told, self.model.fold, self._span)

    def _told(self, policy: Judged, plain: Rows, model: Model) -> Rows:
        """Return rows with what the models say that have not seen them."""
        columns = np.empty((3 if self._folds else 2, len(self.log)))
        order, _ = self.log.rows_by_context()
        for fold in np.unique(model.fold).tolist():  # one at a time: memory never holds a second log
            place = order[(model.fold == fold)[order]]
            rows = self._under(policy, place, self._unseen(place, fold, model))
            columns[:2, place] = np.multiply(rows.model, self._span)
            if rows.repeated is not None:
                columns[2, place] = rows.repeated
        predicted, expected, *repeated = columns
        return replace(plain, predicted=predicted, expected=expected, repeated=repeated[0] if repeated else None)

    def _unseen(self, place: IntArray, fold: int, model: Model) -> UnseenRows:
        """Lay out the rows that a fold's model has not seen, which are in the order of their contexts."""
        layout = Layout(self.log.take(place), self.log.structure, True)
        losses = model.on(layout, fold, (self.worst - self._span, self.worst), self._threads)
        return UnseenRows(layout, (layout.loss - self.worst) / self._span, losses, self._folds > 0)

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
