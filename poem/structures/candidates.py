"""One of the candidates of a context, each described by features z: the logit of a candidate is z·(xᵀW)."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from poem.arrays import AnyArray, IntArray
from poem.errors import InputError, MismatchError
from poem.structures.classes import Classes
from poem.structures.labels import Labels
from poem.structures.offered import Offered
from poem.structures.space import Space
from poem.text import counted


@dataclass(frozen=True)
class Candidates(Classes):
    """One of the actions that are available in a context.

    Attributes
    ----------
    n_actions : int
        The number of actions that a log names. Policies differ only in how they see actions, so it is not compared.
    n_features : int
        The number of features of an action: the columns of the weights.
    n_ids : int
        How many of these, the last ones, are 1 for one action each: the first ones among the labels.
    """

    n_actions: int = field(compare=False)
    n_features: int
    n_ids: int = 0
    name: ClassVar[str] = "candidates"
    shared_scores: ClassVar[bool] = True
    described: ClassVar[bool] = True

    def __post_init__(self) -> None:
        sizes = (self.n_actions, self.n_features, self.n_ids)
        if not all(isinstance(size, int | np.integer) for size in sizes) or not 0 <= self.n_ids <= self.n_features:
            raise InputError(f"the sizes of candidates are whole numbers, and ids are features; found {self}.")
        if self.n_features == 0:
            raise InputError("the actions have no features. Name at least one, or add identity=True.")

    @classmethod
    def of(cls, codes: AnyArray, labels: Labels, **sizes: int) -> "Candidates":
        if "n_features" not in sizes:
            raise InputError("candidates are described by their features. Pass available= and actions=.")
        return cls(len(labels), **sizes)

    def space(self, borders: IntArray | None) -> Space:
        if borders is None:
            raise MismatchError(
                "this policy chooses among the candidates of each context. Pass available= and actions=."
            )
        return Offered(borders)

    def known_labels(self, labels: Labels) -> Labels:
        return labels[: self.n_ids]

    def grown(self) -> "Candidates":
        return Candidates(self.n_actions, self.n_features + 1, self.n_ids)

    def check_described(self, labels: Labels, names: tuple[str, ...] | None, width: int | None) -> None:
        if self.n_ids != len(labels):
            raise ValueError(f"{len(labels)} labels for {self.n_ids} ids")
        if names is not None and len(names) != self.n_features:
            raise ValueError(f"{len(names)} names for {self.n_features} features of actions")
        if width is not None and width + self.n_ids != self.n_features:
            raise ValueError(f"a recipe of {width} features of actions for {self.n_features - self.n_ids}")

    def logged_columns(self, codes: AnyArray) -> Any:
        return slice(None)

    def describe(self) -> str:
        return f"one of the available actions, each described by {counted(self.n_features, 'feature')}"

    @property
    def n_outputs(self) -> int:
        return self.n_actions

    @property
    def n_names(self) -> int:
        return self.n_actions

    @property
    def n_scores(self) -> int:
        return self.n_features
