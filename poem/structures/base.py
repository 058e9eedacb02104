"""What an output structure must offer: the seam between weights and estimators.

Shapes, once for all methods: m contexts have ``scores`` (m, k), one column for each weight column.
The n logged rows stand in the order of their contexts: rows ``starts[c]`` to ``starts[c + 1]`` of
``y`` belong to context c, so ``starts`` is (m + 1,) and ``starts[m] == n``.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray, IntArray


class Structure(ABC):
    """A space of outputs y and the exponential family h(y|x) ∝ exp(w·φ(x, y)) over it.

    Final classes are frozen dataclasses with the kernels in the same file.
    """

    name: ClassVar[str]
    y_dimensions: ClassVar[int]  # 1 for one number a row, 2 for a matrix

    @property
    @abstractmethod
    def n_scores(self) -> int:
        """The number k of score columns that a context has."""

    @abstractmethod
    def log_prob(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        """Return log h(y|x) of each logged row, (n,)."""

    @abstractmethod
    def pull_back(self, scores: FloatArray, y: AnyArray, starts: IntArray, coef: FloatArray) -> FloatArray:
        """Return the gradient of Σᵢ coefᵢ·log h(yᵢ|xᵢ) with respect to the scores, (m, k)."""

    @abstractmethod
    def chosen(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        """Return what each logged output collects of its context's scores, (n,): linear in the scores."""

    @abstractmethod
    def spread(self, coef: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        """Return the transpose of :meth:`chosen` applied to one coefficient a row, (m, k)."""

    @abstractmethod
    def sample(self, scores: FloatArray, rng: Generator) -> AnyArray:
        """Draw one output for each context."""

    @abstractmethod
    def every(self, most: int) -> AnyArray | None:
        """Return every output there is, None if there are more than ``most``."""

    def outputs(self, scores: FloatArray, rng: Generator, count: int) -> tuple[AnyArray, FloatArray, bool]:
        """Return outputs to sum over, (m·j, …) context by context, their weights (m, j), and whether sums are exact.

        Σⱼ weightⱼ·f(yⱼ) is E[f(y)] for y ~ h(·|x), over all outputs if there are at most four times ``count``; else it
        is an unbiased estimate by ``count`` samples, which take more time each.
        """
        m, every = len(scores), self.every(4 * count)
        if every is None:
            samples = self.sample(np.repeat(scores, count, axis=0), rng)
            return samples, np.full((m, count), 1.0 / count), False
        j = len(every)
        y = np.tile(every, (m,) + (1,) * (every.ndim - 1))
        log_prob = self.log_prob(scores, y, np.arange(0, m * j + 1, j, dtype=np.int64))
        return y, np.exp(log_prob).reshape(m, j), True

    @abstractmethod
    def argmax(self, scores: FloatArray) -> AnyArray:
        """Return the most probable output of each context (MAP)."""

    @abstractmethod
    def marginals(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each label or class, (m, k)."""

    def expected(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        """Return E[what y collects of ``values`` (m, k)] for y ~ h(·|x), as :meth:`chosen` collects it, (m,)."""
        mean: FloatArray = np.einsum("ck,ck->c", self.marginals(scores), values)
        return mean

    @abstractmethod
    def pull_back_expected(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        """Return the gradient of Σ coef·:meth:`expected` with respect to the scores, (m, k)."""

    @abstractmethod
    def loss(self, truth: AnyArray, y: AnyArray) -> FloatArray:
        """Return the structure's own loss of outputs against true ones, (m,)."""

    @abstractmethod
    def expected_loss(self, scores: FloatArray, truth: AnyArray) -> FloatArray:
        """Return E[loss(truth, y)] for y ~ h(·|x), exactly and without sampling, (m,)."""

    @abstractmethod
    def variation(self, scores: FloatArray) -> float:
        """Return how far h(·|x) moves with x: mean total variation from its average, at least."""

    @abstractmethod
    def constant_scores(self, y: AnyArray) -> FloatArray:
        """Return the direction of scores (k,) that leads to the one output ``y``."""
