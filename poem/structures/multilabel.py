"""Label sets: y is in {0, 1}^q and φ(x, y) = x ⊗ y, so labels are independent given x."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.compute import exp_down, inlined, kernel
from poem.structures.fit_labels import Unseen, label_weights
from poem.structures.labels import Labels
from poem.structures.sets import Sets

FACTORS = 512  # as many factors in [1, 2] can be multiplied before the logarithm without overflow


@dataclass(frozen=True)
class MultiLabel(Sets):
    """Any subset of ``n_labels`` labels; the default loss is the Hamming loss (the number of wrong labels)."""

    n_labels: int
    name: ClassVar[str] = "multilabel"
    inferred: ClassVar[bool] = True
    independent: ClassVar[bool] = True

    @classmethod
    def of(cls, codes: AnyArray, labels: Labels, **sizes: int) -> "MultiLabel":
        return cls(len(labels), **sizes)

    def chance_of_any(self, marginals: FloatArray, on: BoolArray, off: BoolArray) -> FloatArray:
        return np.asarray(1.0 - np.prod(1.0 - np.hstack([marginals[:, on], 1.0 - marginals[:, off]]), axis=1))

    def describe(self) -> str:
        return f"{self.n_labels} yes/no labels"

    @property
    def n_outputs(self) -> int:
        return 1 << self.n_labels

    @property
    def n_scores(self) -> int:
        return self.n_labels

    def log_prob(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        out = np.empty(len(y))
        _log_prob(scores, y, starts, out)
        return out

    def pull_back(self, scores: FloatArray, y: AnyArray, starts: IntArray, coef: FloatArray) -> FloatArray:
        out = np.empty_like(scores)
        _pull_back(scores, y, starts, coef, out)
        return out

    def label_log_prob(self, scores: FloatArray) -> FloatArray:
        return np.stack([-np.logaddexp(0.0, scores), -np.logaddexp(0.0, -scores)])

    def sample(self, scores: FloatArray, rng: Generator) -> AnyArray:
        return (rng.random(scores.shape) < self.marginals(scores)).astype(np.uint8)

    def every(self, most: int) -> AnyArray | None:
        if self.n_labels >= 31 or 1 << self.n_labels > most:
            return None
        return (np.arange(1 << self.n_labels)[:, None] >> np.arange(self.n_labels) & 1).astype(np.uint8)

    def argmax(self, scores: FloatArray) -> AnyArray:
        return (scores >= 0.0).astype(np.uint8)

    def marginals(self, scores: FloatArray) -> FloatArray:
        small = np.exp(-np.abs(scores))
        probabilities: FloatArray = np.where(scores >= 0.0, 1.0, small) / (1.0 + small)
        return probabilities

    def pull_back_expected(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        small = np.exp(-np.abs(scores))
        slopes: FloatArray = coef[:, None] * values * (small / (1.0 + small) ** 2)
        return slopes

    def expected_loss(self, scores: FloatArray, truth: AnyArray) -> FloatArray:
        wrong: FloatArray = self.marginals(np.where(truth, -scores, scores)).sum(axis=1)
        return wrong

    def fit_labels(self, X: Any, codes: AnyArray, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
        return label_weights(X, codes, unseen, options)


@inlined
def _fill_small(scores: FloatArray, small: FloatArray) -> None:
    """Fill ``small`` with e^−|s| in a separate, vectorisable loop."""
    for label in range(scores.shape[0]):
        small[label] = exp_down(-abs(scores[label]))


@kernel
def _log_prob(scores: FloatArray, y: AnyArray, starts: IntArray, out: FloatArray) -> None:
    q = scores.shape[1]
    small, likely = np.empty(q), np.empty(q)
    for c in range(scores.shape[0]):
        if starts[c] == starts[c + 1]:
            continue
        _fill_small(scores[c], small)
        # log(1 + eˢ) = max(s, 0) + log(1 + e^−|s|): one logarithm for many labels. max(s, 0) is taken off label by
        # label, so that a huge score does not round the others away.
        logs = 0.0
        for first in range(0, q, FACTORS):
            product = 1.0
            for label in range(first, min(q, first + FACTORS)):
                likely[label] = max(scores[c, label], 0.0)
                product *= 1.0 + small[label]
            logs += np.log(product)
        for i in range(starts[c], starts[c + 1]):
            off = 0.0
            for label in range(q):
                off += scores[c, label] * y[i, label] - likely[label]
            out[i] = off - logs


@kernel
def _pull_back(scores: FloatArray, y: AnyArray, starts: IntArray, coef: FloatArray, out: FloatArray) -> None:
    q = scores.shape[1]
    on, small = np.empty(q), np.empty(q)
    for c in range(scores.shape[0]):
        total = 0.0
        on[:] = 0.0
        for i in range(starts[c], starts[c + 1]):
            total += coef[i]
            if coef[i] != 0.0:
                for label in range(q):
                    on[label] += coef[i] * y[i, label]
        if total == 0.0:
            out[c, :] = on
            continue
        _fill_small(scores[c], small)
        for label in range(q):
            probability = (1.0 if scores[c, label] >= 0.0 else small[label]) / (1.0 + small[label])
            out[c, label] = on[label] - total * probability
