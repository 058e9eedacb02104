"""What one pass over some rows of a raw log says of the actions that could be chosen."""

from dataclasses import dataclass, replace
from typing import Any

from poem.data.features import Encoding, Features, TableSummary
from poem.errors import LogError
from poem.readers.candidates import is_described, listed
from poem.readers.offered import all_labels, are_described, columns_of, logged_actions, named_actions, one_output
from poem.readers.raw import RawLog, Whole, named_error
from poem.structures import Labels, Structure, structure_from_data


@dataclass(frozen=True)
class OfferFacts:
    """The actions of some rows.

    Attributes
    ----------
    ids, logged : dict
        Actions that could be chosen, and those that were, by their spelling.
    rows, count : int
        How many rows there are, and how many candidates they have.
    columns : TableSummary, optional
        Of the columns that describe candidates; None if they are those of a catalogue, or the recipe is known.
    """

    ids: dict[str, Any]
    logged: dict[str, Any]
    rows: int
    count: int
    columns: TableSummary | None

    @staticmethod
    def of(raw: RawLog, encoding: Encoding) -> "OfferFacts":
        """Return what a block says."""
        one_output(raw)
        # All rows have the whole catalogue if there is no column of candidates: one is enough to see.
        some = raw if raw.roles.candidates is not None else replace(raw, table=raw.table.slice(0, 1))
        found = listed(some)
        codes, _, ids = named_actions(some, found)
        count = len(codes) if some is raw else len(codes) * raw.table.num_rows
        columns = None
        if found.columns is not None and is_described(raw) and raw.actions.features is None:
            try:
                table, place = columns_of(raw, found)
                columns = TableSummary.of(table, encoding.only(table.column_names), place)
            except LogError as error:
                raise named_error(raw, error) from error
        return OfferFacts(ids, logged_actions(raw), raw.table.num_rows, count, columns)

    def merged(self, later: "OfferFacts") -> "OfferFacts":
        """Return the facts of these rows and of later ones."""
        return OfferFacts(
            ids=self.ids | later.ids,
            logged=self.logged | later.logged,
            rows=self.rows + later.rows,
            count=self.count + later.count,
            columns=self.columns and later.columns and self.columns.merged(later.columns),
        )

    def labels(self, known: Labels | None, extend: bool) -> Labels:
        """Return all actions; numbers are floats if one of them is none else."""
        return all_labels(known, _alike(self.ids), _alike(self.logged), extend)

    def recipe(self, common: RawLog, encoding: Encoding) -> Features:
        """Return how the columns of actions become features."""
        if self.columns is not None:
            return Features.by(self.columns)
        assert common.actions.catalogue is not None
        catalogue = common.actions.catalogue.drop_columns([common.actions.id])
        return Features.learn(catalogue, encoding.only(catalogue.column_names), place=common.actions.origin.place)


def with_offers(common: RawLog, facts: OfferFacts | None, encoding: Encoding) -> tuple[RawLog, Structure]:
    """Return what all blocks of a log with candidates have in common, and what an output is."""
    described = are_described(common, common.structure)
    labels = (common.labels or ()) if facts is None else facts.labels(common.labels, described)
    everything = facts is not None and not described and facts.count == facts.rows * len(labels)
    common = replace(common, labels=labels, whole=Whole(everything=everything))
    if not described:
        return common, structure_from_data("multiclass", len(labels))
    if facts is not None and common.actions.features is None:
        try:
            recipe = facts.recipe(common, encoding)
        except LogError as error:
            raise named_error(common, error) from error
        common = replace(common, actions=replace(common.actions, features=recipe))
    if isinstance(common.structure, Structure):
        return common, common.structure
    assert common.actions.features is not None
    n_ids = len(labels) if common.actions.identity else 0
    sizes = {"n_features": common.actions.features.width + n_ids, "n_ids": n_ids}
    given = common.structure if isinstance(common.structure, dict) else {"name": "candidates", **sizes}
    return common, structure_from_data(given, len(labels))


def _alike(values: dict[str, Any]) -> dict[str, Any]:
    floating = any(isinstance(value, float) for value in values.values())
    return {text: float(value) if floating else value for text, value in values.items()}
