"""The interface of output structures: everything known about y."""

from abc import ABC, abstractmethod
from dataclasses import fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray, frozen
from poem.errors import MismatchError
from poem.structures.fit_labels import Unseen, likelihood_weights
from poem.structures.labels import Labels
from poem.structures.space import Space


class Structure(ABC):
    """A kind of output y: how it is called, checked, written and read, and which :class:`Space` its scores live in.

    Final classes are frozen dataclasses of numbers. Labels, which name outputs or their parts, belong to logs and
    policies; methods that need them take them as an argument.
    """

    name: ClassVar[str]
    lists_outputs: ClassVar[bool] = False  # each score column is one output: marginals are the whole distribution
    inferred: ClassVar[bool] = False  # outputs that look like it are taken for it, without a word
    shared_scores: ClassVar[bool] = False  # a number added to all scores of a context changes nothing
    one_each: ClassVar[bool] = False  # an output is one label
    described: ClassVar[bool] = False  # outputs have features of their own
    independent: ClassVar[bool] = False  # labels are chosen independently of each other, given the scores

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
    def keys(self, codes: AnyArray) -> AnyArray:
        """Return codes as integers (n, j): equal rows are equal outputs."""

    @abstractmethod
    def indicators(self, codes: AnyArray) -> Any:
        """Return which labels each output selects, (n, labels), sparse or dense."""

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
    @abstractmethod
    def n_scores(self) -> int:
        """The number k of weight columns."""

    @property
    def n_names(self) -> int:
        """The number of labels that name outputs or their parts: one per score, unless a structure says otherwise."""
        return self.n_scores

    def known_labels(self, labels: Labels) -> Labels:
        """Return those labels of a log that a policy over these outputs depends on."""
        return labels

    def grown(self) -> "Structure":
        """Return the same with one more feature of actions; for structures that are ``described``."""
        raise TypeError(f"{self.name} have no features")

    def check_described(self, labels: Labels, names: tuple[str, ...] | None, width: int | None) -> None:
        """Raise ValueError unless the features of outputs, and those with one of their own, are as many as here.

        ``names`` are those of the features, and ``width`` is how many a recipe makes.
        """
        if names is not None or width is not None:
            raise ValueError(f"features of outputs, which {self.name} has none of")

    def label_log_prob(self, scores: FloatArray) -> FloatArray:
        """Return the log-probabilities of each label being off and on, (2, m, k); where labels are ``independent``."""
        raise TypeError(f"labels of {self.name} are not independent")

    @abstractmethod
    def space(self, borders: IntArray | None) -> Space:
        """Return what the scores of some contexts mean.

        ``borders`` say where the candidates of each context begin, if each has its own; None is all outputs everywhere.
        """

    @abstractmethod
    def loss(self, truth: AnyArray, y: AnyArray) -> FloatArray:
        """Return the structure's default loss of outputs against true ones, (m,)."""


class Fixed(Structure, Space):
    """A structure whose outputs are the same in every context: it is its own space, with the kernels in its file."""

    def space(self, borders: IntArray | None) -> Space:
        if borders is not None:
            raise MismatchError(f"there are no candidates to choose from: outputs are {self.describe()}.")
        return self

    def indicators(self, codes: AnyArray) -> Any:
        return self.spread(np.ones(len(codes)), frozen(codes), frozen(np.arange(len(codes) + 1)))

    @abstractmethod
    def chance_of_any(self, marginals: FloatArray, on: BoolArray, off: BoolArray) -> FloatArray:
        """Return the probability (m,), or a bound on it, that any of some columns is on or any of some others off."""

    @abstractmethod
    def every(self, most: int) -> AnyArray | None:
        """Return all outputs, or None if there are more than ``most``."""

    def outputs(self, scores: FloatArray, rng: Generator, count: int) -> tuple[AnyArray, FloatArray, IntArray, bool]:
        # All outputs if there are at most four times ``count``: samples take more time each.
        m, every = len(scores), self.every(4 * count)
        j = count if every is None else len(every)
        starts: IntArray = frozen(np.arange(0, m * j + 1, j, dtype=np.int64))
        if every is None:
            return self.sample(np.repeat(scores, count, axis=0), rng), np.full(m * j, 1.0 / count), starts, False
        y = np.tile(every, (m,) + (1,) * (every.ndim - 1))
        return y, np.exp(self.log_prob(scores, y, starts)), starts, True

    @abstractmethod
    def expected_loss(self, scores: FloatArray, truth: AnyArray) -> FloatArray:
        """Return E[loss(truth, y)] for y ~ h(·|x), exactly and without sampling, (m,)."""

    @abstractmethod
    def constant_scores(self, y: AnyArray) -> FloatArray:
        """Return the direction of scores (k,) that leads to the one output ``y``."""

    # ---- labelled data ----------------------------------------------------------------------

    def fit_labels(self, X: Any, codes: AnyArray, unseen: Unseen, options: dict[str, Any]) -> FloatArray:
        """Return the weights (d + 1, k) of an l2-penalised maximum-likelihood fit to true outputs."""
        return likelihood_weights(self, X, codes, options)
