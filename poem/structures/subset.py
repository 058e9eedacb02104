"""Exactly k of q items: y is a set of fixed size and φ(x, y) = x ⊗ y, the conditional Bernoulli model.

h(y|x) ∝ exp(Σ of the scores in y) over the sets of size k. For any number τ it is the distribution of independent
yes/no decisions with p = σ(s − τ), given that k of them are yes. τ is set so that Σ p is about k; then k is the
most likely number, and sums over all sets (elementary symmetric polynomials, by dynamic programming) neither overflow
nor vanish.
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb
from operator import index
from typing import Any, ClassVar

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.compute import exp_down, inlined, kernel
from poem.errors import InputError, LogError
from poem.structures.fit_labels import Unseen, label_weights
from poem.structures.labels import Labels
from poem.structures.sets import Sets
from poem.text import counted

STEPS = 60  # at the most, to τ
NEAR = 0.1  # how far Σ p may be from the size: any τ is right, and one near by is as good as the best
BEYOND = 40.0  # how far below the scores τ lies if all items are chosen: e^−40 is nothing beside 1


@dataclass(frozen=True)
class Subset(Sets):
    """Exactly ``size`` of ``n_items`` items, such as 3 offers of 12; the default loss counts the items that differ."""

    n_items: int
    size: int
    name: ClassVar[str] = "subset"
    shared_scores: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for name in ("n_items", "size"):
            value = getattr(self, name)
            if isinstance(value, bool) or not hasattr(value, "__index__"):
                raise InputError(f"{name} must be a whole number; found {value!r}.")
            object.__setattr__(self, name, index(value))
        if not 1 <= self.size <= self.n_items:
            raise InputError(f"a subset has 1 to {self.n_items} of {self.n_items} items; found size {self.size}.")

    @classmethod
    def of(cls, codes: AnyArray, labels: Labels, **sizes: int) -> "Subset":
        """Return the structure of sets; the size defaults to the commonest one."""
        if codes.ndim != 2:
            raise LogError("a subset is a list of items, or several 0/1 columns; here each row has a single value.")
        common = int(np.bincount(codes.sum(axis=1, dtype=np.int64), minlength=2)[1:].argmax()) + 1
        return cls(len(labels), **({"size": common} | sizes))

    @classmethod
    def from_lists(cls, row: IntArray, item: IntArray, shape: tuple[int, int]) -> AnyArray:
        counts = np.bincount(row * shape[1] + item, minlength=1)
        if counts.max() > 1:
            twice = int(counts.argmax()) // shape[1]
            raise LogError(f"an item stands twice in the list of row {twice}; a subset has each item once at the most.")
        return super().from_lists(row, item, shape)

    @property
    def n_scores(self) -> int:
        return self.n_items

    @property
    def n_outputs(self) -> int:
        return comb(self.n_items, self.size)

    def describe(self) -> str:
        return f"exactly {self.size} of {self.n_items} items"

    def check(self, codes: AnyArray) -> None:
        super().check(codes)
        sizes = codes.sum(axis=1, dtype=np.int64)
        odd = np.flatnonzero(sizes != self.size)
        if len(odd):
            raise LogError(
                f"each row must hold {self.describe()}; row {odd[0]} has {sizes[odd[0]]} "
                f"({counted(len(odd), 'such row')}). Drop them, or take sets of any size, which is the default without "
                "a structure."
            )

    def unlogged(self, codes: AnyArray) -> tuple[BoolArray, BoolArray]:
        on, off = super().unlogged(codes)
        return on, off & (self.size < self.n_items)

    def chance_of_any(self, marginals: FloatArray, on: BoolArray, off: BoolArray) -> FloatArray:
        total: FloatArray = marginals[:, on].sum(axis=1) + (1.0 - marginals[:, off]).sum(axis=1)
        return np.minimum(total, 1.0)  # no less than the probability of any of them

    def log_prob(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        out = np.empty(len(y))
        _log_prob(scores, y, starts, self.size, out)
        return out

    def pull_back(self, scores: FloatArray, y: AnyArray, starts: IntArray, coef: FloatArray) -> FloatArray:
        out = self.spread(coef, y, starts)
        total = np.bincount(np.repeat(np.arange(len(scores)), np.diff(starts)), coef, minlength=len(scores))
        out -= total[:, None] * self.marginals(scores)
        return out

    def sample(self, scores: FloatArray, rng: Generator) -> AnyArray:
        out = np.zeros(scores.shape, dtype=np.uint8)
        _sample(scores, rng.random(scores.shape), self.size, out)
        return out

    def every(self, most: int) -> AnyArray | None:
        if self.n_outputs > most:
            return None
        sets = np.array(list(combinations(range(self.n_items), self.size)))
        every = np.zeros((len(sets), self.n_items), dtype=np.uint8)
        every[np.arange(len(sets))[:, None], sets] = 1
        return every

    def argmax(self, scores: FloatArray) -> AnyArray:
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self.size]
        chosen = np.zeros(scores.shape, dtype=np.uint8)
        chosen[np.arange(len(scores))[:, None], best] = 1
        return chosen

    def marginals(self, scores: FloatArray) -> FloatArray:
        return self._marginals(scores)[0]

    def _marginals(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the probabilities that each item is in the set and that it is not."""
        on, off = np.empty(scores.shape), np.empty(scores.shape)
        _fill_marginals(scores, self.size, on, off)
        return on, off

    def pull_back_expected(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        out = np.empty(scores.shape)
        _pull_back_expected(scores, values, coef, self.size, out)
        return out

    def expected_loss(self, scores: FloatArray, truth: AnyArray) -> FloatArray:
        on, off = self._marginals(scores)
        wrong: FloatArray = np.where(truth, off, on).sum(axis=1)
        return wrong

    def fit_labels(self, X: Any, codes: AnyArray, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
        """Fit sets of this size by their likelihood, and true sets of other sizes by one regression per item."""
        if np.all(codes.sum(axis=1, dtype=np.int64) == self.size):
            return super().fit_labels(X, codes, unseen, options)
        return label_weights(X, codes, unseen, options)


@inlined
def _centre(scores: FloatArray, size: int) -> float:
    """Return τ with Σ σ(s − τ) near the size: Newton steps, and halving where they leave the interval."""
    q = scores.shape[0]
    if size == q:
        return float(scores.min() - BEYOND)
    low, high = scores.min() - np.log(q / (q - size)), scores.max() + np.log(q / size)
    centre = 0.5 * (low + high)
    for _ in range(STEPS):
        total, slope = 0.0, 0.0
        for j in range(q):
            small = exp_down(-abs(scores[j] - centre))
            p = (1.0 if scores[j] >= centre else small) / (1.0 + small)
            total += p
            slope += p * (1.0 - p)
        if abs(total - size) < NEAR:
            break
        if total > size:
            low = centre
        else:
            high = centre
        centre += (total - size) / max(slope, 1e-300)
        if not low < centre < high:
            centre = 0.5 * (low + high)
    return float(centre)


@inlined
def _fill_forward(scores: FloatArray, centre: float, on: FloatArray, off: FloatArray, table: FloatArray) -> None:
    """Fill σ(s − τ) and its complement, and the probability that t of the first j items are on: (q + 1, size + 1)."""
    table[0, :] = 0.0
    table[0, 0] = 1.0
    for j in range(scores.shape[0]):
        small = exp_down(-abs(scores[j] - centre))
        larger, smaller = 1.0 / (1.0 + small), small / (1.0 + small)
        on[j], off[j] = (larger, smaller) if scores[j] >= centre else (smaller, larger)
        table[j + 1, 0] = table[j, 0] * off[j]
        for t in range(1, table.shape[1]):
            table[j + 1, t] = table[j, t] * off[j] + table[j, t - 1] * on[j]


@inlined
def _fill_backward(on: FloatArray, off: FloatArray, table: FloatArray) -> None:
    """Fill the probability that t of the items from position j to the end are on."""
    q = on.shape[0]
    table[q, :] = 0.0
    table[q, 0] = 1.0
    for j in range(q - 1, -1, -1):
        table[j, 0] = table[j + 1, 0] * off[j]
        for t in range(1, table.shape[1]):
            table[j, t] = table[j + 1, t] * off[j] + table[j + 1, t - 1] * on[j]


@kernel
def _log_prob(scores: FloatArray, y: AnyArray, starts: IntArray, size: int, out: FloatArray) -> None:
    q = scores.shape[1]
    on, off, table = np.empty(q), np.empty(q), np.empty((q + 1, size + 1))
    for c in range(scores.shape[0]):
        if starts[c] == starts[c + 1]:
            continue
        centre = _centre(scores[c], size)
        _fill_forward(scores[c], centre, on, off, table)
        log_z = np.log(table[q, size])
        for j in range(q):
            d = scores[c, j] - centre
            log_z += max(d, 0.0) + np.log1p(exp_down(-abs(d)))
        for i in range(starts[c], starts[c + 1]):
            total = 0.0
            for j in range(q):
                total += (scores[c, j] - centre) * y[i, j]
            out[i] = min(total - log_z, 0.0)


@kernel
def _fill_marginals(scores: FloatArray, size: int, with_it: FloatArray, without: FloatArray) -> None:
    q = scores.shape[1]
    on, off = np.empty(q), np.empty(q)
    forward, backward = np.empty((q + 1, size + 1)), np.empty((q + 1, size + 1))
    for c in range(scores.shape[0]):
        _fill_forward(scores[c], _centre(scores[c], size), on, off, forward)
        _fill_backward(on, off, backward)
        for j in range(q):
            others, all_others = 0.0, forward[j, size] * backward[j + 1, 0]
            for t in range(size):
                others += forward[j, t] * backward[j + 1, size - 1 - t]
                all_others += forward[j, t] * backward[j + 1, size - t]
            # The two sums are normalised by themselves: what is small stays exact.
            yes, no = on[j] * others, off[j] * all_others
            with_it[c, j], without[c, j] = yes / (yes + no), no / (yes + no)


@kernel
def _pull_back_expected(scores: FloatArray, values: FloatArray, coef: FloatArray, size: int, out: FloatArray) -> None:
    """Fill coef·Cov(y, v·y); besides the probabilities, both tables carry the mean of v·y over their items."""
    q = scores.shape[1]
    on, off, v = np.empty(q), np.empty(q), np.empty(q)
    forward, backward = np.empty((q + 1, size + 1)), np.empty((q + 1, size + 1))
    before, after = np.zeros((q + 1, size + 1)), np.zeros((q + 1, size + 1))
    for c in range(scores.shape[0]):
        _fill_forward(scores[c], _centre(scores[c], size), on, off, forward)
        _fill_backward(on, off, backward)
        mean_value = values[c].mean()
        for j in range(q):
            v[j] = values[c, j] - mean_value  # the same for all sets: it has no slope
        for j in range(q):
            before[j + 1, 0] = 0.0
            for t in range(1, size + 1):
                taken = before[j, t - 1] + v[j] * forward[j, t - 1]
                before[j + 1, t] = before[j, t] * off[j] + on[j] * taken
        for j in range(q - 1, -1, -1):
            after[j, 0] = 0.0
            for t in range(1, size + 1):
                taken = after[j + 1, t - 1] + v[j] * backward[j + 1, t - 1]
                after[j, t] = after[j + 1, t] * off[j] + on[j] * taken
        total = forward[q, size]
        mean = before[q, size] / total
        for j in range(q):
            chance, product = 0.0, 0.0
            for t in range(size):
                r = size - 1 - t
                both = forward[j, t] * backward[j + 1, r]
                chance += both
                product += v[j] * both + before[j, t] * backward[j + 1, r] + forward[j, t] * after[j + 1, r]
            out[c, j] = coef[c] * on[j] * (product - chance * mean) / total


@kernel
def _sample(scores: FloatArray, draws: FloatArray, size: int, out: AnyArray) -> None:
    """Decide item by item, from the last to the first, given how many are still wanted."""
    q = scores.shape[1]
    on, off, table = np.empty(q), np.empty(q), np.empty((q + 1, size + 1))
    for c in range(scores.shape[0]):
        _fill_forward(scores[c], _centre(scores[c], size), on, off, table)
        left = size
        for j in range(q - 1, -1, -1):
            if left == 0:
                break
            yes, no = on[j] * table[j, left - 1], off[j] * table[j, left]
            if left > j or draws[c, j] * (yes + no) < yes:
                out[c, j] = 1
                left -= 1
