"""What one pass over some rows of a raw log finds out, for all that must be the same in each block of it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from poem.data.features import Encoding, TableSummary, value_columns
from poem.errors import LogError, ReadError
from poem.files import Table, decoded, flattened, is_list, is_text, lengths
from poem.readers.checked import of_contexts
from poem.readers.format import FIXED_ACTIONS
from poem.readers.offer_facts import OfferFacts, with_offers
from poem.readers.offered import refuse_without_candidates
from poem.readers.outputs import coded_outputs, distinct_values
from poem.readers.raw import RawLog, Whole, named_error
from poem.readers.times import moments_of
from poem.readers.values import whole_numbers
from poem.structures import Labels, Structure

FEW = 1000  # rows whose outputs tell what the structure is


@dataclass(frozen=True)
class OutputFacts:
    """The distinct outputs of some rows, and how many labels a list of them has at least and at most."""

    values: frozenset[Any]
    least: int = 1
    most: int = 1

    @staticmethod
    def of(raw: RawLog) -> "OutputFacts | None":
        """Return what a raw log says; None if its outputs are several columns."""
        if len(raw.roles.output) != 1:
            return None
        name = raw.roles.output[0]
        column = raw.table.column(name)
        if not is_list(column.type):
            return OutputFacts(frozenset(distinct_values(raw, column, name)[1]))
        counts = lengths(column)
        values = frozenset(distinct_values(raw, flattened(column), name)[1])
        return OutputFacts(values, int(counts.min()), int(counts.max())) if len(counts) else None

    def merged(self, later: "OutputFacts") -> "OutputFacts":
        """Return the facts of these rows and of later ones."""
        return OutputFacts(self.values | later.values, min(self.least, later.least), max(self.most, later.most))

    def are_vectors(self) -> bool:
        """Tell whether lists are 0 or 1 for each label, and not sets; see :func:`poem.readers.outputs.outputs_of`."""
        return self.least == self.most > 1 and all(value in (0, 1) for value in self.values)

    def labels(self, vectors: bool) -> Labels:
        """Return all outputs in order; numbers are floats if one of them is none else."""
        if vectors:
            return tuple(range(self.most))
        floating = any(isinstance(value, float) for value in self.values)
        return tuple(sorted(map(float, self.values) if floating else self.values))


@dataclass(frozen=True)
class TimeFacts:
    """How many rows have a time, and whether texts have zones."""

    there: int
    zones: frozenset[str | None]

    @staticmethod
    def of(raw: RawLog) -> "TimeFacts | None":
        """Return what a raw log says; None if it has no times."""
        if raw.roles.time is None:
            return None
        column = decoded(raw.table.column(raw.roles.time))
        there = len(column) - column.null_count
        moments = moments_of(column) if there and is_text(column.type) else None
        return TimeFacts(there, frozenset() if moments is None else frozenset([moments.type.tz]))

    def merged(self, later: "TimeFacts") -> "TimeFacts":
        """Return the facts of these rows and of later ones."""
        return TimeFacts(self.there + later.there, self.zones | later.zones)


@dataclass(frozen=True)
class Facts:
    """What some rows of a raw log say of the whole.

    Attributes
    ----------
    schema : pyarrow.Schema
        The columns of the plain table.
    rows : int
    context : TableSummary, optional
        None if the recipe is known.
    outputs : OutputFacts, optional
        None if there are candidates, or if the labels are known and rows hold no lists.
    offers : OfferFacts, optional
        None if there are no candidates, or poem wrote them.
    times : TimeFacts, optional
    least : tuple of int
        The smallest number of a context in each block.
    head : pyarrow.Table
        The outputs of the first rows.
    """

    schema: Any
    rows: int
    context: TableSummary | None
    outputs: OutputFacts | None
    offers: OfferFacts | None
    times: TimeFacts | None
    least: tuple[int, ...]
    head: Table

    @staticmethod
    def of(raw: RawLog, schema: Any, encoding: Encoding, *, known: bool, labelled: bool) -> "Facts":
        """Return what a block says, which need not hold all columns of its schema.

        ``known`` says that the recipe of contexts is, ``labelled`` that all labels are.
        """
        table, roles = raw.table, raw.roles
        return Facts(
            schema=_unified(schema, table.schema).with_metadata(table.schema.metadata),
            rows=table.num_rows,
            context=None if known else _summary(raw, schema, encoding),
            outputs=None if raw.has_candidates or (labelled and not _may_be_vectors(raw)) else OutputFacts.of(raw),
            offers=OfferFacts.of(raw, encoding) if raw.has_candidates and not raw.about.encoded else None,
            times=TimeFacts.of(raw),
            least=() if roles.context_id is None or not table.num_rows else (_least(raw, roles.context_id),),
            head=table.select(list(roles.output)).slice(0, FEW),
        )

    def merged(self, later: "Facts") -> "Facts":
        """Return the facts of these rows and of those that follow them in the same file."""
        return replace(
            self if self.rows else later,
            schema=_unified(self.schema, later.schema),
            rows=self.rows + later.rows,
            context=self.context and later.context and self.context.merged(later.context),
            outputs=self.outputs and later.outputs and self.outputs.merged(later.outputs),
            offers=self.offers and later.offers and self.offers.merged(later.offers),
            times=self.times and later.times and self.times.merged(later.times),
            least=self.least + later.least,
        )

    def has_actions_of(self, other: "Facts") -> bool:
        """Tell whether actions that are known by their index are the same in other rows."""
        one, two = ((facts.schema.metadata or {}).get(FIXED_ACTIONS) for facts in (self, other))
        return bool(one == two)

    def check_times(self, raw: RawLog) -> None:
        """Raise if some times have a zone and others have none."""
        if self.times is not None and len(self.times.zones) > 1:
            raise ReadError(
                f"{raw.origin.name}, column {raw.roles.time!r} has times with a zone and times without one. Use "
                "numbers, dates or ISO 8601 such as 2026-11-16T08:30:00Z, all with a zone or all without one."
            )


def _may_be_vectors(raw: RawLog) -> bool:
    names = raw.roles.output
    return not raw.about.encoded and len(names) == 1 and is_list(raw.table.column(names[0]).type)


def _unified(one: Any, two: Any) -> Any:
    import pyarrow as pa

    return pa.unify_schemas([one, two], promote_options="permissive")


def _summary(raw: RawLog, schema: Any, encoding: Encoding) -> TableSummary:
    """Return what a block says of its columns of features; values beside positions need not have been read."""
    pairs = value_columns(schema.empty_table().select(list(raw.roles.context)))
    there = set(raw.table.column_names)
    try:
        context = raw.table.select([name for name in raw.roles.context if name in there])
        return TableSummary.of(context, of_contexts(raw, context, encoding), raw.origin.place, pairs)
    except LogError as error:
        raise named_error(raw, error) from error


def _least(raw: RawLog, name: str) -> int:
    return int(np.min(whole_numbers(raw, name)))


def with_outputs(common: RawLog, facts: Facts, encoding: Encoding) -> tuple[RawLog, Structure]:
    """Return what all blocks have in common, with all labels, and what an output is."""
    if common.has_candidates:
        return with_offers(common, facts.offers, encoding)
    found = facts.outputs
    vectors = found is not None and found.are_vectors() and not common.about.encoded
    labels = found.labels(vectors) if common.labels is None and found is not None else common.labels
    common = replace(common, labels=labels, whole=Whole(vectors=vectors))
    refuse_without_candidates(common, common.structure)
    outputs, structure = coded_outputs(replace(common, table=facts.head))
    return replace(common, labels=outputs.labels, structure=structure), structure
