"""Candidates and outputs of a raw log as codes, and the features of actions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, IntArray
from poem.compute import Matrix
from poem.data import Catalogue, Offers
from poem.data.features import Encoding, Features
from poem.errors import LogError, ReadError
from poem.files import Table, is_list, with_codes
from poem.readers.candidates import Listed, fields_of, is_described, listed
from poem.readers.catalogue import catalogue_ids
from poem.readers.outputs import distinct_values
from poem.readers.raw import RawLog, named_error
from poem.structures import Available, Coded, Labels, Structure, Wanted, kind_of, structure_from_data
from poem.text import counted


@dataclass(frozen=True)
class Contexts:
    """The contexts of a log: the row of the table that holds each one, and which one each row saw.

    ``rows`` is None if each row has a context of its own.
    """

    size: int
    rows: IntArray | None = None
    number: IntArray | None = None

    def seen(self) -> IntArray:
        """Return which context each row saw."""
        return np.arange(self.size) if self.number is None else self.number


@dataclass(frozen=True)
class Choices:
    """What was available in each context.

    Attributes
    ----------
    available : Available
        Codes of candidates; with features, if the file holds encoded ones.
    labels : tuple
        All actions.
    actions : matrix or Catalogue, optional
        The features of candidates or of actions.
    recipe : Features, optional
        How they were made.
    structure : Structure, optional
        What actions must fit: that of a policy.
    identity : bool
    """

    available: Available
    labels: Labels
    actions: Any = None
    recipe: Features | None = None
    structure: Structure | None = None
    identity: bool = False

    def arguments(self) -> dict[str, Any]:
        """Return it in the words of BanditLog."""
        return {
            "labels": self.labels,
            "available": self.available,
            "actions": self.actions,
            "structure": self.structure,
            "identity": self.identity,
            "action_features": self.recipe,
        }

    def whole(self) -> Available:
        """Return candidates with their features, which must fit the structure."""
        offers = Offers(self.available, self.actions, self.identity, self.structure)
        return offers.read(self.labels, self.available.n_contexts)[0]

    @property
    def is_everything(self) -> bool:
        """Whether these are classes, all of which are available everywhere."""
        found = self.available
        described = found.features is not None or self.actions is not None
        return not described and len(found) == found.n_contexts * len(self.labels)


def choices_of(
    raw: RawLog,
    contexts: Contexts,
    wanted: Wanted | dict[str, Any],
    recipe: Features | None,
    encoding: Encoding,
) -> Choices:
    """Return what was available in each context.

    ``wanted`` is what an output is, if that is known: classes have no features, and candidates must fit. ``recipe``
    says how the columns of actions become features; if it is None, one is made by ``encoding``.
    """
    described = are_described(raw, wanted)
    if wanted is not None and _is_of_candidates(wanted) and not described:
        raise ReadError(
            f"{raw.origin.name}, column {raw.roles.candidates!r} says what could be chosen, not what features that "
            "has. Pass a catalogue of actions (--actions, actions=)."
        )
    found = listed(raw, contexts.rows)
    codes, labels = _labelled(raw, found, extend=described)
    available = Available(np.append(0, np.cumsum(found.counts)), codes)
    try:
        available.check(labels, found.place)
        if not described:
            return Choices(available, labels)
        if raw.about.encoded:
            return _encoded(raw, found, available, labels)
        return _with_features(raw, found, available, labels, wanted, recipe, encoding)
    except LogError as error:
        raise named_error(raw, error) from error


def are_described(raw: RawLog, wanted: Any) -> bool:
    """Tell whether actions are known by their features; ``wanted`` is what an output is, if that is known."""
    return is_described(raw) and (wanted is None or _is_of_candidates(wanted))


def coded_choices(raw: RawLog, offers: Choices, contexts: Contexts) -> Coded:
    """Return the logged outputs, each of which must be among the candidates of its context."""
    name = one_output(raw)
    codes, values = distinct_values(raw, raw.table.column(name), name)
    if np.any(codes < 0):
        row = int(np.argmin(codes))
        raise ReadError(f"{raw.origin.place(row)}, column {name!r}: the output is empty. Drop such rows.")
    number_of = {_spelled(label): code for code, label in enumerate(offers.labels)}
    chosen = np.array([number_of.get(_spelled(value), -1) for value in values], dtype=np.int32)[codes]
    refuse_strangers(raw, offers.available.positions(contexts.seen(), chosen) < 0)
    return Coded(chosen, offers.labels)


def one_output(raw: RawLog) -> str:
    """Return the column of outputs; candidates are for single ones."""
    names = raw.roles.output
    if len(names) > 1 or is_list(raw.table.schema.field(names[0]).type):
        raise ReadError(
            f"{raw.origin.name}: candidates are for single outputs, and the outputs are label sets. Leave the column "
            "of candidates out (--ignore, ignore=)."
        )
    return names[0]


def refuse_strangers(raw: RawLog, strange: AnyArray) -> None:
    """Raise if an output is not among the candidates of its row."""
    rows = np.flatnonzero(strange)
    if len(rows):
        name = raw.roles.output[0]
        found = raw.table.column(name)[int(rows[0])].as_py()
        raise ReadError(
            f"{raw.origin.place(int(rows[0]))}, column {name!r}: the output {found!r} is not among the row's "
            f"candidates ({counted(len(rows), 'such row')}). Drop such rows or fix the logging.{_hint(raw)}"
        )


def _hint(raw: RawLog) -> str:
    fields = [field.name for field in fields_of(raw)]
    if not fields or raw.actions.id in fields:
        return ""
    return (
        f" The candidates have no field {raw.actions.id!r}, so they are known by their positions, counted from 1; name "
        "the field that holds their ids (--action-id, action_id=)."
    )


def refuse_without_candidates(raw: RawLog, wanted: Any) -> None:
    """Raise if outputs are to be candidates with features, and the table has none."""
    if wanted is not None and _is_of_candidates(wanted):
        raise ReadError(
            f"{raw.origin.name} does not say which actions could be chosen, nor what their features are. Name the "
            "column of candidates (--candidates, candidates=), or pass a catalogue (--actions, actions=)."
        )


def _is_of_candidates(wanted: Any) -> bool:
    return bool(kind_of(None, wanted["name"] if isinstance(wanted, dict) else wanted)[0].described)


# ---- labels ---------------------------------------------------------------------------------------


def _labelled(raw: RawLog, found: Listed, extend: bool) -> tuple[AnyArray, Labels]:
    """Return the code of each candidate, and all labels; with ``extend``, actions that are not known come last."""
    codes, values, spelled = named_actions(raw, found)
    labels = all_labels(raw.labels, spelled, logged_actions(raw), extend)
    number_of = {_spelled(label): code for code, label in enumerate(labels)}
    unknown = [_spelled(value) not in number_of for value in values]
    if any(unknown):
        _refuse_unknown(raw, found, codes, unknown, values)
    return np.array([number_of[_spelled(value)] for value in values], dtype=np.int32)[codes], labels


def named_actions(raw: RawLog, found: Listed) -> tuple[IntArray, list[Any], dict[str, Any]]:
    """Return candidates as codes of distinct ids, these ids, and the ids of all actions by their spelling."""
    codes, values = distinct_values(raw, found.ids, raw.roles.candidates or raw.actions.id)
    spelled = {_spelled(value): value for value in values}
    if raw.actions.catalogue is not None:
        spelled |= {_spelled(value): value for value in _whole(catalogue_ids(raw.actions))}
    return codes, values, spelled


def logged_actions(raw: RawLog) -> dict[str, Any]:
    """Return the distinct logged outputs by their spelling."""
    if len(raw.roles.output) != 1:
        return {}
    name = raw.roles.output[0]
    return {_spelled(value): value for value in distinct_values(raw, raw.table.column(name), name)[1]}


def all_labels(known: Labels | None, ids: dict[str, Any], logged: dict[str, Any], extend: bool) -> Labels:
    """Return all actions, spelled as the logged outputs are: 3 and "3" mean the same.

    If labels are known, these are all; with ``extend``, actions that are not among them come last.
    """
    if known is None or (extend and not known):
        return _sorted([logged.get(text, value) for text, value in ids.items()])
    spelled = set(map(_spelled, known))
    return (*known, *_sorted([value for text, value in ids.items() if extend and text not in spelled]))


def _spelled(value: Any) -> str:
    """Return an id as text; 3, 3.0 and "3" mean the same."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _whole(values: Sequence[Any]) -> list[Any]:
    """Return whole numbers that are stored as floats as whole numbers."""
    if all(isinstance(value, float) and value.is_integer() for value in values):
        return [int(value) for value in values]
    return list(values)


def _sorted(values: list[Any]) -> Labels:
    """Return labels in order; those of several types as strings."""
    texts = {isinstance(value, str) for value in values}
    return tuple(sorted(values if len(texts) < 2 else map(str, values)))


def _refuse_unknown(raw: RawLog, found: Listed, codes: IntArray, unknown: list[bool], values: list[Any]) -> None:
    at = int(np.flatnonzero(np.array(unknown, dtype=bool)[codes])[0])
    known = raw.labels or ()
    raise ReadError(
        f"{found.place_of(at)}: the action {values[codes[at]]!r} is not one of the {len(known)} that are known "
        f"({', '.join(map(str, known[:8]))}{', …' if len(known) > 8 else ''}). Actions that are described by features "
        "may be new; classes may not. Drop such rows, or name all outputs (labels=)."
    )


# ---- features -------------------------------------------------------------------------------------


def _with_features(
    raw: RawLog,
    found: Listed,
    available: Available,
    labels: Labels,
    wanted: Any,
    recipe: Features | None,
    encoding: Encoding,
) -> Choices:
    recipe = raw.actions.features if recipe is None else recipe
    table, place = columns_of(raw, found)
    if recipe is None:
        recipe = Features.learn(table, encoding.only(table.column_names), place=place)
    matrix: Matrix = recipe.transform(table, place)
    structure = wanted if isinstance(wanted, Structure) else None
    actions: Any = matrix
    if found.columns is None:
        number_of = {_spelled(label): label for label in labels}
        actions = Catalogue([number_of[_spelled(one)] for one in _whole(catalogue_ids(raw.actions))], matrix)
    return Choices(available, labels, actions, recipe, structure, structure is None and raw.actions.identity)


def columns_of(raw: RawLog, found: Listed) -> tuple[Table, Callable[[int], str]]:
    """Return the raw columns of actions, or of candidates if these have any of their own, and how rows are named."""
    import pyarrow as pa

    catalogue = raw.actions.catalogue
    if catalogue is None:
        assert found.columns is not None
        return with_codes(found.columns), found.place_of
    catalogue = with_codes(catalogue.drop_columns([raw.actions.id]))
    if found.columns is None:
        return catalogue, raw.actions.origin.place
    table, rows = with_codes(found.columns), pa.array(found.row)
    for name in catalogue.column_names:
        if name in table.column_names:
            raise LogError(
                f"candidates and {raw.actions.origin.name} both have {name!r}. Leave one of them out, or rename it."
            )
        table = table.append_column(name, catalogue.column(name).take(rows))
    return table, found.place_of


def _encoded(raw: RawLog, found: Listed, available: Available, labels: Labels) -> Choices:
    """Return candidates whose features are encoded already: in their own row, or in that of a table they share."""
    recipe, shared = raw.actions.features, raw.actions.rows
    if recipe is None or found.columns is None:
        raise ReadError(f"{raw.origin.name} has broken metadata of poem: no recipe of actions. Write it again.")
    table = found.columns if shared is None else shared
    row = None if shared is None else np.asarray(found.columns.column("row").to_numpy())
    features = sp.csr_array(recipe.transform(table, found.place_of))
    if row is not None and not 0 <= row.min() <= row.max() < features.shape[0]:
        raise ReadError(f"{raw.origin.name} has candidates of rows that it does not have. Write it again.")
    whole = Available(available.starts, available.action, features, row)
    known = raw.structure
    structure = structure_from_data(known, len(labels)) if isinstance(known, dict) else None
    return Choices(whole, labels, None, raw.actions.recipe, structure)
