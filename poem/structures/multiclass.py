"""One class of many: y is a class number and φ(x, y) = x ⊗ e_y, the softmax model."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.compute import exp_down, inlined, kernel
from poem.structures.base import Fixed
from poem.structures.classes import Classes
from poem.structures.fit_labels import Unseen, class_weights
from poem.structures.labels import Labels
from poem.structures.offered import Offered
from poem.structures.space import Space


@dataclass(frozen=True)
class MultiClass(Classes, Fixed):
    """Exactly one of ``n_classes`` classes; the default loss is 0/1."""

    n_classes: int
    name: ClassVar[str] = "multiclass"
    inferred: ClassVar[bool] = True
    lists_outputs: ClassVar[bool] = True
    shared_scores: ClassVar[bool] = True

    @classmethod
    def of(cls, codes: AnyArray, labels: Labels, **sizes: int) -> "MultiClass":
        return cls(len(labels), **sizes)

    def logged_columns(self, codes: AnyArray) -> Any:
        return np.unique(codes)

    def chance_of_any(self, marginals: FloatArray, on: BoolArray, off: BoolArray) -> FloatArray:
        return np.asarray(marginals[:, np.flatnonzero(on)].sum(axis=1))

    def space(self, borders: IntArray | None) -> Space:
        return self if borders is None else Offered(borders)

    def describe(self) -> str:
        return f"one of {self.n_classes} classes"

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    @property
    def n_scores(self) -> int:
        return self.n_classes

    def log_prob(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        out = np.empty(len(y))
        _log_prob(scores, y, starts, out)
        return out

    def pull_back(self, scores: FloatArray, y: AnyArray, starts: IntArray, coef: FloatArray) -> FloatArray:
        out = np.empty_like(scores)
        _pull_back(scores, y, starts, coef, out)
        return out

    def chosen(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        out = np.empty(len(y))
        _chosen(scores, y, starts, out)
        return out

    def spread(self, coef: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        out = np.zeros((len(starts) - 1, self.n_classes))
        _spread(coef, y, starts, out)
        return out

    def sample(self, scores: FloatArray, rng: Generator) -> AnyArray:
        cumulative = np.cumsum(self.marginals(scores), axis=1)
        draws = rng.random(len(scores)) * cumulative[:, -1]
        return np.asarray(np.argmax(draws[:, None] < cumulative, axis=1), dtype=np.int32)

    def every(self, most: int) -> AnyArray | None:
        return np.arange(self.n_classes, dtype=np.int32) if self.n_classes <= most else None

    def argmax(self, scores: FloatArray) -> AnyArray:
        return np.asarray(np.argmax(scores, axis=1), dtype=np.int32)

    def marginals(self, scores: FloatArray) -> FloatArray:
        unscaled = np.exp(scores - scores.max(axis=1, keepdims=True))
        probabilities: FloatArray = unscaled / unscaled.sum(axis=1, keepdims=True)
        return probabilities

    def pull_back_expected(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        probabilities = self.marginals(scores)
        mean = np.einsum("ck,ck->c", probabilities, values)
        slopes: FloatArray = coef[:, None] * probabilities * (values - mean[:, None])
        return slopes

    def expected_loss(self, scores: FloatArray, truth: AnyArray) -> FloatArray:
        # The sum of the others, not 1 − p: exact for policies that are nearly certain.
        others = self.marginals(scores)
        others[np.arange(len(scores)), truth] = 0.0
        wrong: FloatArray = others.sum(axis=1)
        return wrong

    def variation(self, scores: FloatArray) -> float:
        marginals = self.marginals(scores)
        return float(np.abs(marginals - marginals.mean(axis=0)).sum(axis=1).mean() / 2.0)

    def constant_scores(self, y: AnyArray) -> FloatArray:
        scores = np.zeros(self.n_classes)
        scores[int(y)] = 1.0
        return scores

    def fit_labels(self, X: Any, codes: AnyArray, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
        return class_weights(X, codes, self.n_classes, unseen, options)


@inlined
def _fill_unscaled(scores: FloatArray, highest: float, out: FloatArray) -> float:
    """Fill ``out`` with e^(s − highest) in a separate, vectorisable loop, and return the sum."""
    for k in range(scores.shape[0]):
        out[k] = exp_down(scores[k] - highest)
    return float(out.sum())


@kernel
def _log_prob(scores: FloatArray, y: AnyArray, starts: IntArray, out: FloatArray) -> None:
    unscaled = np.empty(scores.shape[1])
    for c in range(scores.shape[0]):
        if starts[c] == starts[c + 1]:
            continue
        highest = scores[c].max()
        log_total = np.log(_fill_unscaled(scores[c], highest, unscaled))
        for i in range(starts[c], starts[c + 1]):
            out[i] = (scores[c, y[i]] - highest) - log_total


@kernel
def _pull_back(scores: FloatArray, y: AnyArray, starts: IntArray, coef: FloatArray, out: FloatArray) -> None:
    unscaled = np.empty(scores.shape[1])
    for c in range(scores.shape[0]):
        coefficients = 0.0
        for i in range(starts[c], starts[c + 1]):
            coefficients += coef[i]
        if coefficients == 0.0:
            out[c, :] = 0.0
        else:
            scale = -coefficients / _fill_unscaled(scores[c], scores[c].max(), unscaled)
            for k in range(scores.shape[1]):
                out[c, k] = scale * unscaled[k]
        for i in range(starts[c], starts[c + 1]):
            out[c, y[i]] += coef[i]


@kernel
def _chosen(scores: FloatArray, y: AnyArray, starts: IntArray, out: FloatArray) -> None:
    for c in range(scores.shape[0]):
        for i in range(starts[c], starts[c + 1]):
            out[i] = scores[c, y[i]]


@kernel
def _spread(coef: FloatArray, y: AnyArray, starts: IntArray, out: FloatArray) -> None:
    for c in range(out.shape[0]):
        for i in range(starts[c], starts[c + 1]):
            out[c, y[i]] += coef[i]
