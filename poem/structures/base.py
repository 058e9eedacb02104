"""The interface of output structures: the seam between weights and estimators, and everything known about y.

Shapes in all methods: m contexts have ``scores`` (m, k), one column per weight column.
The n logged rows are in the order of their contexts: rows ``starts[c]`` to ``starts[c + 1]`` of
``y`` belong to context c, so ``starts`` is (m + 1,) and ``starts[m] == n``.
"""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray, frozen
from poem.structures.fit_labels import Unseen, likelihood_weights
from poem.structures.labels import Labels


class Structure(ABC):
    """A space of outputs y and the exponential family h(y|x) ∝ exp(w·φ(x, y)) over it.

    Final classes are frozen dataclasses of numbers, with the kernels in the same file. Labels, which name the score
    columns, belong to logs and policies; methods that need them take them as an argument.
    """

    name: ClassVar[str]
    lists_outputs: ClassVar[bool] = False  # each score column is one output: marginals are the whole distribution
    inferred: ClassVar[bool] = False  # outputs that look like it are taken for it, without a word
    shared_scores: ClassVar[bool] = False  # a number added to all scores of a context changes nothing

    # ---- what users call y ------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def encode(cls, y: Any, labels: Labels | None = None) -> tuple[AnyArray, Labels]:
        """Return ``(codes, labels)`` of a user's outputs; a new label is an error if ``labels`` are given."""

    @classmethod
    @abstractmethod
    def of(cls, codes: AnyArray, labels: Labels, **sizes: int) -> Self:
        """Return the structure of some codes; ``sizes`` are its other numbers, taken from the codes if not given."""

    @abstractmethod
    def decode(self, codes: AnyArray, labels: Labels) -> AnyArray:
        """Return codes as users' values of y."""

    @abstractmethod
    def check(self, codes: AnyArray) -> None:
        """Raise LogError for codes that are not in the space."""

    @classmethod
    def from_lists(cls, row: IntArray, item: IntArray, shape: tuple[int, int]) -> AnyArray:
        """Return the codes of lists, as files hold them: ``item`` is a label's position, ``row`` whose list it is in.

        ``shape`` is the number of rows and of labels. By default lists are sets, (n, q) of 0/1.
        """
        matrix = np.zeros(shape, dtype=np.uint8)
        matrix[row, item] = 1
        return matrix

    @abstractmethod
    def to_arrow(self, codes: AnyArray, labels: Any) -> Any:
        """Return codes as an Arrow array, built from an Arrow array of the labels."""

    @abstractmethod
    def logged_columns(self, codes: AnyArray) -> Any:
        """Return the score columns that some codes give information on, as an index."""

    @abstractmethod
    def unlogged(self, codes: AnyArray) -> tuple[BoolArray, BoolArray]:
        """Return which columns (k,) are never on in the codes, and which are never off though they could be."""

    @abstractmethod
    def chance_of_any(self, marginals: FloatArray, on: BoolArray, off: BoolArray) -> FloatArray:
        """Return the probability (m,), or a bound on it, that any of some columns is on or any of some others off."""

    @abstractmethod
    def keys(self, codes: AnyArray) -> AnyArray:
        """Return codes as integers (n, j): equal rows are equal outputs."""

    def indicators(self, codes: AnyArray) -> Any:
        """Return which score columns each output selects, (n, k), sparse or dense."""
        return self.spread(np.ones(len(codes)), frozen(codes), frozen(np.arange(len(codes) + 1)))

    # ---- words and files --------------------------------------------------------------------

    @abstractmethod
    def describe(self) -> str:
        """Describe an output, such as "one of 3 classes"."""

    @abstractmethod
    def phrase(self, code: Any, labels: Labels) -> str:
        """Return one output in words."""

    def to_data(self) -> Any:
        """Return plain data for :func:`structure_from_data`, without the number of scores."""
        sizes = {size: getattr(self, size) for size in self.sizes()}
        return {"name": self.name, **sizes} if sizes else self.name

    @classmethod
    def sizes(cls) -> list[str]:
        """Return the names of its numbers besides the first, which is the number of scores."""
        return [field.name for field in fields(cls)][1:]  # type: ignore[arg-type]

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """The number of outputs, which may be huge."""

    # ---- scores -----------------------------------------------------------------------------

    @property
    def n_names(self) -> int:
        """The number of labels that name outputs or their parts: one per score, unless a structure says otherwise."""
        return self.n_scores

    @property
    @abstractmethod
    def n_scores(self) -> int:
        """The number k of score columns per context."""

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
    def every(self, most: int) -> AnyArray | None:
        """Return all outputs, or None if there are more than ``most``."""

    def outputs(self, scores: FloatArray, rng: Generator, count: int) -> tuple[AnyArray, FloatArray, bool]:
        """Return outputs to sum over, (m·j, …) context by context, their weights (m, j), and whether sums are exact.

        Σⱼ weightⱼ·f(yⱼ) is E[f(y)] for y ~ h(·|x), over all outputs if there are at most four times ``count``.
        Otherwise it is an unbiased estimate from ``count`` samples, which take more time each.
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
        """Return E[:meth:`chosen` of ``values`` (m, k) by y] for y ~ h(·|x), (m,)."""
        mean: FloatArray = np.einsum("ck,ck->c", self.marginals(scores), values)
        return mean

    @abstractmethod
    def pull_back_expected(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        """Return the gradient of Σ coef·:meth:`expected` with respect to the scores, (m, k)."""

    @abstractmethod
    def loss(self, truth: AnyArray, y: AnyArray) -> FloatArray:
        """Return the structure's default loss of outputs against true ones, (m,)."""

    @abstractmethod
    def expected_loss(self, scores: FloatArray, truth: AnyArray) -> FloatArray:
        """Return E[loss(truth, y)] for y ~ h(·|x), exactly and without sampling, (m,)."""

    @abstractmethod
    def variation(self, scores: FloatArray) -> float:
        """Return how much h(·|x) varies with x: a lower bound on the mean total variation from its average."""

    @abstractmethod
    def constant_scores(self, y: AnyArray) -> FloatArray:
        """Return the direction of scores (k,) that leads to the one output ``y``."""

    # ---- labelled data ----------------------------------------------------------------------

    def fit_labels(self, X: Any, codes: AnyArray, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
        """Return the weights (d + 1, k) of an l2-penalised maximum-likelihood fit to true outputs."""
        return likelihood_weights(self, X, codes, options)
