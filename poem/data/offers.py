"""What users say of available actions and their features, turned into ragged candidates."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, IntArray
from poem.compute import Matrix, as_matrix, is_sparse, row_mean_square
from poem.errors import LogError
from poem.files import coded, flattened, is_list, lengths
from poem.structures import Available, Candidates, Coded, Labels, MultiClass, Structure, Wanted, encoded, kind_of

if TYPE_CHECKING:
    from poem.data.features import Features
    from poem.data.log import BanditLog

FORMS = (
    "available must be a mask of contexts × labels, one list of actions per context, or the number of candidates of "
    "each context; found {found}."
)


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

    def labels(self) -> Labels:
        """Return the actions as labels."""
        known = tuple(one.item() if isinstance(one, np.generic) else one for one in self.ids)
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
        given = labels is not None
        starts, codes, labels = _lists_of(self.available, labels, contexts, extend=self.actions is not None)
        if self.actions is None:
            found = Available(starts, codes)
            found.check(labels)
            return found, labels, MultiClass(len(labels))
        matrix, row = self._features(starts, codes, labels if given else None)
        return self._described(starts, codes, labels, matrix, row)

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
        starts, codes, _ = _lists_of(self.available, every, contexts, extend=False)
        matrix, _ = as_matrix(catalogue.features)
        if matrix.shape[0] != len(ids):
            raise LogError(f"the catalogue has {len(ids)} actions and {matrix.shape[0]} rows of features.")
        place = {one: row for row, one in enumerate(ids)}
        row_of = np.array([place.get(one, -1) for one in every])
        missing = np.flatnonzero(row_of[codes] < 0)
        if len(missing):
            raise LogError(f"the candidate {every[codes[missing[0]]]!r} is not in the catalogue. Add it there.")
        ordered = np.flatnonzero(row_of >= 0)  # rows in the order of the labels
        number = np.cumsum(row_of >= 0) - 1
        return self._described(starts, codes, every, matrix[row_of[ordered]], number[codes], ordered)

    def _described(
        self,
        starts: IntArray,
        codes: AnyArray,
        labels: Labels,
        matrix: Matrix,
        row: AnyArray | None,
        owner: AnyArray | None = None,
    ) -> tuple[Available, Labels, Structure]:
        """Return candidates with features; ``owner`` is the action of each row, if rows are of actions."""
        n_ids, features = self._n_ids(labels), _csr(matrix)
        if features.shape[1] + n_ids == 0:
            raise LogError("the actions have no features. Name at least one, or add identity=True.")
        if n_ids:
            own = codes if row is None else np.arange(features.shape[0]) if owner is None else owner
            features = _with_identity(features, own, n_ids)
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

    def _features(self, starts: IntArray, codes: AnyArray, labels: Labels | None) -> tuple[Matrix, AnyArray | None]:
        """Return the rows of features, and which one each candidate has; None is its own."""
        matrix, _ = as_matrix(self.actions)
        rows, n = matrix.shape[0], len(codes)
        if labels is not None and rows <= len(labels) and rows != n:
            missing = np.flatnonzero(codes >= rows)
            if len(missing):
                context = int(np.searchsorted(starts, missing[0], side="right")) - 1
                raise LogError(
                    f"the candidate {labels[codes[missing[0]]]!r} of context {context} has no features: there are "
                    f"{rows} rows of actions for {len(labels)} labels. Pass one row for each label."
                )
            return matrix, codes
        if rows != n:
            raise LogError(
                f"actions must have one row per candidate ({n:,}), or one per label with labels= given; found {rows:,}."
            )
        return matrix, None


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
        known = None if labels is None else tuple(labels)
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
                f"context ({len(bad):,} such rows). Log what was available when the decision was made, or drop them."
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


def _with_identity(matrix: Matrix, own: AnyArray, n_ids: int) -> Matrix:
    """Return features with one more 0/1 column for each of the first labels; ``own`` is the action of each row."""
    known = np.flatnonzero(own < n_ids)
    ids = sp.csr_array((np.ones(len(known)), (known, own[known])), shape=(matrix.shape[0], n_ids))
    return sp.csr_array(sp.hstack([matrix, ids], format="csr"))


def _lists_of(available: Any, labels: Labels | None, contexts: int, extend: bool) -> tuple[IntArray, AnyArray, Labels]:
    """Return ``(starts, codes, labels)`` of any of the forms."""
    if isinstance(available, Available):
        return _of_available(available, labels, contexts)
    if is_sparse(available) or (isinstance(available, np.ndarray) and available.ndim == 2):
        return _of_mask(available, labels, contexts)
    if isinstance(available, np.ndarray) and available.ndim == 1 and available.dtype.kind in "iu":
        return _of_counts(available, labels, contexts)
    return _of_lists(available, labels, contexts, extend)


def _of_available(found: Available, labels: Labels | None, contexts: int) -> tuple[IntArray, AnyArray, Labels]:
    if labels is None or found.n_contexts != contexts:
        raise LogError(f"available has {found.n_contexts} of the {contexts} contexts. Pass its labels= with it.")
    return found.starts, found.action, labels


def _of_mask(mask: Any, labels: Labels | None, contexts: int) -> tuple[IntArray, AnyArray, Labels]:
    if labels is None:
        raise LogError("a mask of available actions has one column per label. Pass labels= in that order.")
    if mask.shape != (contexts, len(labels)):
        raise LogError(
            f"a mask of available actions must have one row for each of the {contexts} contexts and one column for "
            f"each of the {len(labels)} labels; found shape {mask.shape}."
        )
    values = mask.data if is_sparse(mask) else np.asarray(mask)
    if not np.isin(values, (0, 1)).all():
        raise LogError("a mask of available actions holds 0 and 1, or true and false; found other values.")
    found = sp.csr_array(mask != 0)
    found.sort_indices()
    return found.indptr.astype(np.int64), found.indices.astype(np.int32), labels


def _of_counts(counts: AnyArray, labels: Labels | None, contexts: int) -> tuple[IntArray, AnyArray, Labels]:
    if len(counts) != contexts:
        raise LogError(f"available must have one number for each of the {contexts} contexts; found {len(counts)}.")
    if contexts and counts.min() < 1:
        raise LogError(f"context {int(np.argmin(counts))} has no candidates. Each decision needs at least one.")
    most = int(counts.max()) if contexts else 0
    starts = np.append(0, np.cumsum(counts.astype(np.int64)))
    positions = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
    known = tuple(range(most)) if labels is None or len(labels) < most else labels
    return starts, positions.astype(np.int32), known


def _of_lists(available: Any, labels: Labels | None, contexts: int, extend: bool) -> tuple[IntArray, AnyArray, Labels]:
    column = _list_column(available)
    counts = lengths(column)
    if len(counts) != contexts:
        raise LogError(f"available must have one list for each of the {contexts} contexts; found {len(counts)}.")
    starts = np.append(0, np.cumsum(counts))
    codes, distinct = coded(flattened(column))
    if np.any(codes < 0):
        context = int(np.searchsorted(starts, np.flatnonzero(codes < 0)[0], side="right")) - 1
        raise LogError(f"an action in the list of context {context} is missing. Name each one, or leave it out.")
    number, known = _numbered(distinct.to_pylist(), labels, extend, codes, starts)
    return starts, number[codes].astype(np.int32), known


def _list_column(available: Any) -> Any:
    import pyarrow as pa

    try:
        if isinstance(available, pa.Array | pa.ChunkedArray):
            column = available
        else:
            column = pa.array([list(one) for one in available])
    except (TypeError, ValueError, pa.ArrowException) as error:
        raise LogError(FORMS.format(found=f"{type(available).__name__} ({error})")) from error
    column = column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])
    if not is_list(column.type):
        raise LogError(FORMS.format(found=f"{column.type}"))
    return column


def _numbered(
    values: Sequence[Any], labels: Labels | None, extend: bool, codes: IntArray, starts: IntArray
) -> tuple[IntArray, Labels]:
    """Return the position of each distinct action in the labels; new ones come last, if that is allowed."""
    try:
        known = tuple(sorted(values)) if labels is None else labels
        number_of = {label: code for code, label in enumerate(known)}
        new = sorted(value for value in values if value not in number_of)
    except TypeError as error:
        raise LogError(f"actions mix types that cannot be ordered ({error}). Convert them to strings.") from error
    if new and not extend:
        place = int(np.flatnonzero(codes == values.index(new[0]))[0])
        context = int(np.searchsorted(starts, place, side="right")) - 1
        raise LogError(
            f"the list of context {context} has the action {new[0]!r}, which is not one of the {len(known)} known ones "
            f"({list(known)[:8]}). Name all actions with labels=."
        )
    number_of |= {value: len(known) + place for place, value in enumerate(new)}
    return np.array([number_of[value] for value in values], dtype=np.int64), (*known, *new)
