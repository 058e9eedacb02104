"""What can be said of a raw log whose features have gaps: which values are missing, and of which columns all are."""

from collections.abc import Iterator

from poem.data.features import Features, is_empty
from poem.files import Table
from poem.readers.candidates import candidate_columns
from poem.readers.ignored import BY_NAME
from poem.readers.raw import RawLog
from poem.text import counted

MOST = 4  # columns that a note names
OF_ACTIONS = f"{BY_NAME}."  # what the columns of actions are called by


def feature_tables(raw: RawLog, of_actions: bool = True) -> Iterator[tuple[str, Table]]:
    """Yield the raw columns of contexts, of candidates and of a catalogue, each with what their names begin with."""
    if raw.about.encoded:
        return
    yield "", raw.table.select(list(raw.roles.context))
    if not of_actions:
        return
    candidates, catalogue = candidate_columns(raw), raw.actions.catalogue
    if candidates is not None:
        yield OF_ACTIONS, candidates
    if catalogue is not None:
        yield OF_ACTIONS, catalogue.drop_columns([raw.actions.id])


def empty_columns(raw: RawLog) -> list[str]:
    """Return the columns of contexts and actions in which no row has a value: they are no features."""
    return [
        f"{begin}{name}"
        for begin, table in feature_tables(raw)
        for name in table.column_names
        if is_empty(table.column(name))
    ]


def note_on_gaps(raw: RawLog, features: Features | None, action_features: Features | None) -> str | None:
    """Say which values are missing that recipes have no feature for, and what stands in for them; None if none are."""
    found = []
    for begin, table in feature_tables(raw, of_actions=action_features is not None):
        recipe, table, what = (action_features, table, "action") if begin else (features, raw.table, "row")
        gaps = {} if recipe is None else recipe.unexpected_gaps(table)
        found += [f"{begin + name!r} in {counted(count, what)}" for name, count in gaps.items()]
    if not found:
        return None
    more = f" and {len(found) - MOST:,} more" if len(found) > MOST else ""
    return (
        f"values are missing for which the policy has no feature: {', '.join(found[:MOST])}{more}. The column's usual "
        "number stands in for a number; a category counts as unknown"
    )
