"""What users say of available actions and their features, turned into ragged candidates."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, IntArray
from poem.compute import Matrix, as_matrix, is_sparse, row_mean_square
from poem.data.lists import lists_of
from poem.errors import LogError
from poem.structures import (
    Available,
    Candidates,
    Coded,
    Labels,
    MultiClass,
    Structure,
    Wanted,
    encoded,
    kind_of,
    plain_labels,
)
from poem.text import counted

ACTIONS = "features of actions"  # what messages call them

if TYPE_CHECKING:
    from poem.data.features import Features
    from poem.data.log import BanditLog


@dataclass(frozen=True)
class Catalogue:
    """Features of actions that are the same in all contexts.

    Attributes
    ----------
    ids : sequence
        The actions, each once.
    features : matrix or data frame
        One row per action.
    """

    ids: Sequence[Any]
    features: Any

    def __post_init__(self) -> None:
        rows = self.features.shape[0] if hasattr(self.features, "shape") else len(self.features)
        if rows != len(self.labels()):
            raise LogError(f"the catalogue has {len(self.ids)} actions and {rows} rows of features.")

    def labels(self) -> Labels:
        """Return the actions as labels."""
        known = plain_labels(self.ids)
        doubled = [one for one, count in Counter(known).items() if count > 1]
        if doubled:
            raise LogError(f"the catalogue has the action {doubled[0]!r} twice. Name each one once.")
        return known


@dataclass(frozen=True)
class Offers:
    """Available actions as users give them, before they are checked.

    ``known`` is a structure that actions must fit: that of a policy.
    """

    available: Any
    actions: Any = None
    identity: bool = False
    known: Structure | None = None

    def read(self, labels: Labels | None, contexts: int) -> tuple[Available, Labels, Structure]:
        """Return the candidates of each context, all labels, and the structure of the outputs."""
        if self.known is not None:
            check_one_each(self.known)
        if isinstance(self.available, Available) and self.available.features is not None:
            return self._ready(self.available, labels)
        if isinstance(self.actions, Catalogue):
            return self._from_catalogue(self.actions, labels, contexts)
        remedy = None if self.actions is not None else "Name all actions with labels=."
        starts, codes, labels = lists_of(self.available, labels, contexts, remedy)
        if self.actions is None:
            found = Available(starts, codes)
            found.check(labels)
            return found, labels, MultiClass(len(labels))
        matrix, _ = as_matrix(self.actions, what=ACTIONS)
        if matrix.shape[0] != len(codes):
            raise LogError(
                f"actions must have one row per candidate ({len(codes):,}), or be a poem.Catalogue; "
                f"found {matrix.shape[0]:,} rows."
            )
        return self._described(starts, codes, labels, matrix, codes)

    def _ready(self, found: Available, labels: Labels | None) -> tuple[Available, Labels, Structure]:
        """Return candidates that have their features already, those of ids among them."""
        assert found.features is not None
        if labels is None or self.actions is not None or self.identity:
            raise LogError(
                "candidates that have features need labels=, but neither actions= nor identity=. Leave them out."
            )
        found.check(labels)
        return found, labels, self._structure(labels, found.features.shape[1], self._n_ids(labels))

    def _from_catalogue(
        self, catalogue: Catalogue, labels: Labels | None, contexts: int
    ) -> tuple[Available, Labels, Structure]:
        ids, known = catalogue.labels(), labels or ()
        new = set(ids) - set(known)
        every = (*known, *(one for one in ids if one in new))
        starts, codes, _ = lists_of(self.available, every, contexts, remedy="Add it to the catalogue.")
        matrix, _ = as_matrix(catalogue.features, what=ACTIONS)
        place = {one: row for row, one in enumerate(ids)}
        row_of = np.array([place.get(one, -1) for one in every])
        missing = np.flatnonzero(row_of[codes] < 0)
        if len(missing):
            raise LogError(f"the candidate {every[codes[missing[0]]]!r} is not in the catalogue. Add it there.")
        ordered = np.flatnonzero(row_of >= 0)  # rows in the order of the labels
        number = np.cumsum(row_of >= 0) - 1
        return self._described(starts, codes, every, matrix[row_of[ordered]], ordered, number[codes])

    def _described(
        self,
        starts: IntArray,
        codes: AnyArray,
        labels: Labels,
        matrix: Matrix,
        owner: AnyArray,
        row: AnyArray | None = None,
    ) -> tuple[Available, Labels, Structure]:
        """Return candidates with features; ``owner`` is the action of each row, and ``row`` that of each candidate."""
        n_ids, features = self._n_ids(labels), _csr(matrix)
        if features.shape[1] + n_ids == 0:
            raise LogError("the actions have no features. Name at least one, or add identity=True.")
        if n_ids:
            features = _with_identity(features, owner, n_ids)
        found = Available(starts, codes, features, row)
        found.check(labels)
        return found, labels, self._structure(labels, features.shape[1], n_ids)

    def _n_ids(self, labels: Labels) -> int:
        if self.known is not None:
            return len(self.known.known_labels(labels)) if self.known.described else 0
        return len(labels) if self.identity else 0

    def _structure(self, labels: Labels, width: int, n_ids: int) -> Structure:
        found = Candidates(len(labels), width, n_ids)
        if self.known is not None and self.known != found:
            raise LogError(
                f"the actions have {width - n_ids} features; the policy was made for "
                f"{self.known.n_scores - n_ids}. Pass the same columns as in training."
            )
        return found


@dataclass(frozen=True)
class Outputs:
    """Encoded outputs: codes, labels, structure, and what was available, with the names of its features."""

    codes: AnyArray
    labels: Labels
    structure: Structure
    available: Available | None = None
    names: tuple[str, ...] | None = None

    @staticmethod
    def of(y: Any, labels: Sequence[Any] | None, wanted: Wanted, offers: Offers, contexts: int) -> "Outputs":
        """Encode a user's outputs."""
        known = None if labels is None else plain_labels(labels)
        if offers.available is None:
            if offers.actions is not None or offers.identity:
                raise LogError("actions= and identity= describe candidates. Pass available= as well.")
            return Outputs(*encoded(y, known, wanted))
        if wanted is not None:
            check_one_each(kind_of(y, wanted)[0])
        if isinstance(wanted, Structure) and wanted.described:
            offers = replace(offers, known=wanted)
        available, known, structure = offers.read(known, contexts)
        codes = y.codes if isinstance(y, Coded) else structure.encode(y, known)[0]
        structure.check(codes)
        ids = structure.known_labels(known) if structure.described else ()
        return Outputs(codes, known, structure, available, _names(offers.actions, ids))

    def named_by(self, recipe: "Features | None") -> tuple[str, ...] | None:
        """Return the names of the features of actions, by the recipe that made them if there is one."""
        if recipe is None:
            return self.names
        names = recipe.names()
        ids = self.structure.known_labels(self.labels) if self.structure.described else ()
        return None if names is None else (*names, *(f"id={label}" for label in ids))

    def check(self, context: IntArray) -> None:
        """Raise LogError if a logged output was not available."""
        if self.available is None:
            return
        bad = np.flatnonzero(self.available.positions(context, self.codes) < 0)
        if len(bad):
            raise LogError(
                f"the output {self.labels[self.codes[bad[0]]]!r} of row {bad[0]} is not among the candidates of its "
                f"context ({counted(len(bad), 'such row')}). Log what was available when the decision was "
                "made, or drop them."
            )


def check_one_each(structure: Structure | type[Structure]) -> None:
    """Refuse candidates for outputs that are not one of them."""
    if not structure.one_each:
        raise LogError(f"available= is for outputs of which one is chosen, not for {structure.name}. Leave it out.")


def mean_square(log: "BanditLog") -> float:
    """Return the mean squared norm of φ(x, y), with the constants: what l2 strengths are measured in."""
    contexts = row_mean_square(log.X)
    return contexts if log.available is None else contexts * log.available.mean_square()


def has_kinds(log: "BanditLog") -> bool:
    """Tell whether actions have features that others share, so that a log says something of actions it lacks."""
    return log.structure.described and log.structure.n_scores > len(log.structure.known_labels(log.labels))


def _names(actions: Any, ids: Labels) -> tuple[str, ...] | None:
    """Return the names of the features of actions, if they have any; ``ids`` have one of their own each."""
    actions = actions.features if isinstance(actions, Catalogue) else actions
    names = getattr(actions, "column_names", None)
    names = getattr(actions, "columns", None) if names is None else names
    if names is None:
        return None
    return (*map(str, names), *(f"id={label}" for label in ids))


def _csr(matrix: Matrix) -> Matrix:
    return matrix if is_sparse(matrix) else sp.csr_array(matrix)


def _with_identity(matrix: Matrix, owner: AnyArray, n_ids: int) -> Matrix:
    """Return features with one more 0/1 column for each of the first labels; ``owner`` is the action of each row."""
    known = np.flatnonzero(owner < n_ids)
    ids = sp.csr_array((np.ones(len(known)), (known, owner[known])), shape=(matrix.shape[0], n_ids))
    return sp.csr_array(sp.hstack([matrix, ids], format="csr"))
