"""Trees that are added to a loss model, round by round, where it errs.

A model says X·B of the columns of a context (classes, labels, and one for the context alone). Trees over the contexts
add to these columns, so that what is not linear in x is found as well. Where actions have features, trees over pairs
of a context and an action add to the loss of the pair. LightGBM grows them on the slopes of the same likelihood or
squared error that the linear model minimises. How many rounds there are is decided on held-out rows.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np

from poem.arrays import FloatArray, frozen
from poem.compute import Threads
from poem.data import BanditLog, Layout, Piece, logged_pairs, pair_width, sample_of, with_seen_contexts
from poem.models.fitted import LossModel
from poem.models.linear import Products, fit_linear
from poem.models.trees import forest_of
from poem.models.truth import SURE, HiddenTruth, fit_truth

RATE = 0.1
FASTEST = 3.0  # times that rate, where there are many contexts
LEAST_ROWS = 5  # in a leaf
LEAST_CURVE, LEAST_SLOPE = 1e-3, 0.1
MANY_CONTEXTS = 15_000  # from which on several threads grow a tree (they wait at every leaf), in larger steps
BINS, COARSE_BINS = 255, 63  # of a feature; the latter for many contexts
WEAK = 0.1  # the strength of a constant
ENOUGH_UNITS = 200_000  # that trees are grown on


@dataclass(frozen=True)
class Boosting:
    """How trees are grown: on which kind of model, from which linear part, with how many leaves and rounds.

    ``strength`` is that of the linear part; None is a constant. ``ahead`` says that no other model predicts held-out
    losses better.
    """

    truth: bool
    strength: float | None
    leaves: int
    depth: int
    rounds: int
    ahead: bool = False
    rate: float = RATE

    def hastened(self, contexts: int) -> "Boosting":
        """Return the same for many contexts, which allow for larger steps: fewer of them then go further."""
        speed = float(np.clip(np.sqrt(contexts / MANY_CONTEXTS), 1.0, FASTEST))
        return replace(self, rate=RATE * speed, rounds=int(np.ceil(self.rounds * (1.0 + 1.0 / speed) / 2.0)))


class Slopes(ABC):
    """The logged losses of a log, and how they depend on the columns of its contexts.

    ``start`` holds the columns of a linear model, (contexts, columns), which trees are added to.
    """

    columns: int
    X: Any
    start: FloatArray

    def __init__(self, layout: Layout, bounds: tuple[float, float], threads: Threads) -> None:
        self.layout, self.threads, (self.low, high) = layout, threads, bounds
        self.span = (high - self.low) or 1.0

    def _begin(self, model: LossModel) -> None:
        """Begin with what a model says of the columns of all contexts."""
        layout = self.layout
        self.X = layout.X if len(layout.contexts) == layout.n_contexts else layout.X[layout.contexts]
        self.start = np.asarray(self.X @ model.weights[:-1]) + model.weights[-1]

    @abstractmethod
    def at(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return slopes and curvatures of the loss in the columns of each context."""

    @abstractmethod
    def missed(self, columns: FloatArray) -> float:
        """Return the sum of squared errors of the predicted losses, as shares of their range."""

    @cached_property
    def target(self) -> FloatArray:
        """The logged losses as shares of their range."""
        return np.asarray((self.layout.loss - self.low) / self.span)

    @cached_property
    def pieces(self) -> list[tuple[slice, Piece]]:
        """The pieces of the layout, and which contexts they hold."""
        return [(shard.places(piece), piece) for shard in self.layout.shards for piece in shard.pieces]


class TruthSlopes(Slopes):
    """One class is right, or none: the likelihood of :class:`HiddenTruth`."""

    def __init__(self, log: BanditLog, model: LossModel, bounds: tuple[float, float], threads: Threads) -> None:
        hidden = HiddenTruth(log, bounds, threads)
        super().__init__(hidden.layout, bounds, threads)
        self._begin(model)
        self.columns = hidden.shape[1]
        self._unknown = hidden.unknown

    def at(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        slopes, curves = np.empty((2, *columns.shape), dtype=np.float32)  # as LightGBM takes them
        target, coef = self.target, np.empty(len(self.layout))

        def one(work: tuple[slice, Piece]) -> None:
            here, piece = work
            scores = frozen(columns[here])
            wrong = _wrong(piece, scores)
            coef[piece.rows] = (target[piece.rows] - wrong) / wrong
            slopes[here] = piece.space.pull_back(scores, piece.y, piece.starts, frozen(coef[piece.rows]))
            chance = piece.space.marginals(scores)
            heavy = np.add.reduceat(np.maximum(np.abs(coef[piece.rows]), LEAST_SLOPE), piece.starts[:-1])
            curves[here] = np.maximum(chance * (1.0 - chance), LEAST_CURVE) * heavy[:, None]

        self.threads.map(one, self.pieces)
        slopes[:, self._unknown] = 0.0
        return slopes, curves

    def missed(self, columns: FloatArray) -> float:
        target = self.target

        def one(work: tuple[slice, Piece]) -> float:
            here, piece = work
            return float(np.sum((target[piece.rows] - _wrong(piece, frozen(columns[here]))) ** 2))

        return sum(self.threads.map(one, self.pieces))


def _wrong(piece: Piece, scores: FloatArray) -> FloatArray:
    """Return the chance that the logged class is wrong."""
    wrong: FloatArray = np.maximum(-np.expm1(piece.space.log_prob(scores, piece.y, piece.starts)), SURE)
    return wrong


class SumSlopes(Slopes):
    """The loss is the sum of the columns that an output selects, and of the one for the context alone."""

    def __init__(self, log: BanditLog, model: LossModel, bounds: tuple[float, float], threads: Threads) -> None:
        super().__init__(Layout(log.with_all_available(), log.structure, True), bounds, threads)
        self._begin(model)
        self.columns = log.structure.n_scores + 1
        self._offset = model.centre

    def at(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        slopes, curves = np.empty((2, *columns.shape), dtype=np.float32)  # as LightGBM takes them

        def one(work: tuple[slice, Piece]) -> None:
            here, piece = work
            slopes[here] = piece.space.spread_predicted(
                frozen(self._errors(piece, columns[here])), piece.y, piece.starts
            )
            # All columns of a row step at once, so that each goes its share of the way.
            active = piece.space.predicted(np.ones_like(columns[here]), piece.y, piece.starts)
            curves[here] = np.maximum(piece.space.spread_predicted(frozen(active), piece.y, piece.starts), LEAST_CURVE)

        self.threads.map(one, self.pieces)
        return slopes, curves

    def missed(self, columns: FloatArray) -> float:
        def one(work: tuple[slice, Piece]) -> float:
            here, piece = work
            return float(np.sum((self._errors(piece, columns[here]) / self.span) ** 2))

        return sum(self.threads.map(one, self.pieces))

    def _errors(self, piece: Piece, values: FloatArray) -> FloatArray:
        predicted = piece.space.predicted(frozen(values), piece.y, piece.starts) + self._offset
        return np.asarray(predicted - self.layout.loss[piece.rows])


class PairSlopes(Slopes):
    """The loss is a sum for the pair of a context and the chosen action: one column, and one number per row."""

    columns = 1

    def __init__(self, log: BanditLog, model: LossModel, bounds: tuple[float, float], threads: Threads) -> None:
        products = Products(log, log.structure, threads)
        layout = products.layout
        super().__init__(layout, bounds, threads)
        self.X = logged_pairs(log, layout.context, layout.y)
        self.start = products.forward(model.weights) + model.centre

    def at(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (columns - self.layout.loss).astype(np.float32), np.ones(len(columns), dtype=np.float32)

    def missed(self, columns: FloatArray) -> float:
        return float(np.sum(((columns - self.layout.loss) / self.span) ** 2))


# ---- growing ----------------------------------------------------------------------------------


def boosted(log: BanditLog, how: Boosting, bounds: tuple[float, float], threads: Threads) -> LossModel:
    """Fit the linear part and add the trees, on a sample if there are very many units."""
    log = with_seen_contexts(sample_of(log, ENOUGH_UNITS, 0))
    model = base_of(log, how, bounds, threads)
    slopes = slopes_of(log, how, model, bounds, threads)
    grown = grow(slopes, how.hastened(len(slopes.start)))
    return replace(model, forest=forest_of(grown, slopes.X.shape[1], slopes.columns))


def without_trees(model: LossModel, log: BanditLog) -> LossModel:
    """Return the same model with a forest that has no trees."""
    sizes = (pair_width(log), 1) if log.structure.described else (log.n_features, model.weights.shape[1])
    return replace(model, forest=forest_of(None, *sizes))


def base_of(log: BanditLog, how: Boosting, bounds: tuple[float, float], threads: Threads) -> LossModel:
    """Fit the linear part."""
    if how.strength is None and log.structure.described:
        shape = (log.n_features + 1, log.structure.n_scores + 1)
        return LossModel(np.zeros(shape), float(log.loss.mean()))
    plain = log if how.strength is not None else log.with_contexts(np.zeros((log.n_contexts, 0)))
    strength = WEAK if how.strength is None else how.strength
    model = fit_truth(plain, strength, bounds, threads) if how.truth else fit_linear(plain, strength, threads)
    if how.strength is not None:
        return model
    return replace(model, weights=np.vstack([np.zeros((log.n_features, model.weights.shape[1])), model.weights]))


def slopes_of(log: BanditLog, how: Boosting, model: LossModel, bounds: tuple[float, float], threads: Threads) -> Slopes:
    """Return what trees are grown on."""
    kind = PairSlopes if log.structure.described else TruthSlopes if how.truth else SumSlopes
    return kind(log, model, bounds, threads)


class Binned:
    """Contexts with their features in bins, and those of a judge: whoever grows trees on them begins anywhere."""

    def __init__(self, slopes: Slopes, judge: Slopes | None = None) -> None:
        self._lightgbm, contexts = lightgbm(), len(slopes.start)
        self._binning = {
            "verbosity": -1,
            "feature_pre_filter": False,
            "min_data_in_bin": 1,
            "max_bin": BINS if contexts < MANY_CONTEXTS else COARSE_BINS,
            "num_threads": _threads(slopes),
        }
        self._data = self._binned(slopes)
        self._judged: Any = None if judge is None else self._binned(judge, self._data)
        self._beginning = threading.Lock()
        # Whether any feature tells contexts apart.
        self.differ = any(self._data.feature_num_bin(feature) >= 2 for feature in range(slopes.X.shape[1]))

    def _binned(self, slopes: Slopes, like: Any = None) -> Any:
        return self._lightgbm.Dataset(slopes.X, np.zeros(len(slopes.start)), like, params=self._binning).construct()

    def booster(self, slopes: Slopes, how: Boosting, judge: Slopes | None) -> Any:
        """Return a booster that has not begun yet; it copies where it begins, so that others can begin elsewhere."""
        with self._beginning:
            self._data.set_init_score(slopes.start)
            booster = self._lightgbm.Booster(self._binning | _settings(slopes, how), self._data)
            if judge is not None:
                self._judged.set_init_score(judge.start)
                booster.add_valid(self._judged, "held")
        return booster


def grow(
    slopes: Slopes,
    how: Boosting,
    judge: Slopes | None = None,
    goes_on: Callable[[FloatArray], bool] | None = None,
    binned: Binned | None = None,
) -> Any:
    """Return a booster, or None if there is nothing to grow trees on.

    With a judge, the columns of its contexts decide after each round whether growing ``goes_on``. ``binned`` are the
    contexts of both, if they were binned before.
    """
    binned = binned or Binned(slopes, judge)
    if not binned.differ:
        return None
    booster = binned.booster(slopes, how, judge)
    for _ in range(how.rounds):
        if booster.update(fobj=lambda columns, _: slopes.at(_in_rows(columns))):
            break
        if goes_on is not None:
            ((*_, more, _),) = booster.eval_valid(lambda columns, _: ("more", float(goes_on(_in_rows(columns))), True))
            if not more:
                break
    return booster


def lightgbm() -> Any:
    """Import LightGBM with threads that sleep while they wait.

    By default they spin. On a busy machine that takes many times longer, and starves everything else.
    """
    waits = "OMP_WAIT_POLICY"
    if waits in os.environ:
        return import_module("lightgbm")
    os.environ[waits] = "PASSIVE"  # which is read once, when the library is loaded
    try:
        return import_module("lightgbm")
    finally:
        del os.environ[waits]


def _threads(slopes: Slopes) -> int:
    return slopes.threads.count if len(slopes.start) >= MANY_CONTEXTS else 1


def _in_rows(columns: FloatArray) -> FloatArray:
    return np.ascontiguousarray(columns)


def _settings(slopes: Slopes, how: Boosting) -> dict[str, Any]:
    return {
        "objective": "none",
        "num_class": slopes.columns,
        "num_leaves": how.leaves,
        "max_depth": how.depth,
        "learning_rate": how.rate,
        "lambda_l2": 1.0,
        "min_data_in_leaf": LEAST_ROWS,
        "min_sum_hessian_in_leaf": LEAST_CURVE if how.truth else 2.0 * LEAST_ROWS,
        "use_missing": False,
        "num_threads": _threads(slopes),
        "deterministic": True,  # whatever the number of threads
        "force_row_wise": True,
        "verbosity": -1,
        "seed": 0,
    }
