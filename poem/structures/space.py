"""The seam between weights and estimators: scores → log-probabilities and back, for outputs of any kind.

Shapes in all methods: m contexts have ``scores`` (m, k), one column per weight column. Where each context has its own
candidates, scores are flat instead: one per candidate, context after context. The n logged rows are in the order of
their contexts: rows ``starts[c]`` to ``starts[c + 1]`` of ``y`` belong to context c, so ``starts`` is (m + 1,) and
``starts[m] == n``.

``values`` are what a loss model says: like scores, with one more column for the context alone, (m, k + 1). Flat values
have it in them.
"""

from abc import ABC, abstractmethod

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray, IntArray, frozen


class Space(ABC):
    """The exponential family h(y|x) ∝ exp(w·φ(x, y)) over the outputs of some contexts."""

    @abstractmethod
    def log_prob(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        """Return log h(y|x) of each logged row, (n,)."""

    @abstractmethod
    def pull_back(self, scores: FloatArray, y: AnyArray, starts: IntArray, coef: FloatArray) -> FloatArray:
        """Return the gradient of Σᵢ coefᵢ·log h(yᵢ|xᵢ) with respect to the scores, (m, k)."""

    @abstractmethod
    def chosen(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        """Return the sum of its context's scores that each logged output selects, (n,): linear in the scores."""

    @abstractmethod
    def spread(self, coef: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        """Return the transpose of :meth:`chosen` applied to one coefficient per row, (m, k)."""

    @abstractmethod
    def sample(self, scores: FloatArray, rng: Generator) -> AnyArray:
        """Draw one output per context."""

    @abstractmethod
    def outputs(self, scores: FloatArray, rng: Generator, count: int) -> tuple[AnyArray, FloatArray, IntArray, bool]:
        """Return outputs to sum over, context by context, their weights, where contexts start, and if sums are exact.

        Σ weight·f(y) over a context is E[f(y)] for y ~ h(·|x): exact over all outputs, or an unbiased estimate from
        ``count`` samples.
        """

    @abstractmethod
    def argmax(self, scores: FloatArray) -> AnyArray:
        """Return the most probable output of each context (MAP)."""

    @abstractmethod
    def marginals(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each label or class, (m, k)."""

    @abstractmethod
    def pull_back_expected(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        """Return the gradient of Σ coef·:meth:`expected` with respect to the scores, (m, k)."""

    @abstractmethod
    def variation(self, scores: FloatArray) -> float:
        """Return how much h(·|x) varies with x: a lower bound on the mean total variation from its average."""

    # ---- what loss models say ---------------------------------------------------------------

    def expected(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        """Return E[:meth:`chosen` of ``values`` (m, k) by y] for y ~ h(·|x), (m,)."""
        mean: FloatArray = np.einsum("ck,ck->c", self.marginals(scores), values)
        return mean

    def predicted(self, values: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        """Return the value of each logged output, (n,)."""
        return self.chosen(frozen(values[:, :-1]), y, starts) + np.repeat(values[:, -1], np.diff(starts))

    def spread_predicted(self, coef: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        """Return the transpose of :meth:`predicted` applied to one coefficient per row, in the shape of values."""
        return np.column_stack([self.spread(coef, y, starts), np.add.reduceat(coef, starts[:-1])])

    def mean(self, probabilities: FloatArray, values: FloatArray) -> FloatArray:
        """Return the mean value under the probabilities of labels, classes or candidates, (m,)."""
        inner: FloatArray = np.einsum("ck,ck->c", probabilities, values[:, :-1])
        return inner + values[:, -1]

    def repeated(self, probabilities: FloatArray) -> FloatArray:
        """Return the chance to draw one class or candidate twice, (m,)."""
        twice: FloatArray = np.einsum("ck,ck->c", probabilities, probabilities)
        return twice

    def mean_under(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        """Return the mean value for y ~ h(·|x), (m,)."""
        return self.expected(scores, frozen(values[:, :-1])) + values[:, -1]

    def pull_back_mean(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        """Return the gradient of Σ coef·:meth:`mean_under` with respect to the scores."""
        return self.pull_back_expected(scores, frozen(values[:, :-1]), coef)
