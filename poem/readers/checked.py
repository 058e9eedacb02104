"""A raw log, checked column by column and turned into a BanditLog; errors name file, row and column."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poem.compute import Matrix
from poem.data import BanditLog
from poem.data.features import Encoding, Features
from poem.errors import InputError, LogError, ReadError
from poem.files import with_codes
from poem.readers.candidates import action_columns
from poem.readers.identities import identities_of, names_of
from poem.readers.offered import (
    Choices,
    Contexts,
    choices_of,
    coded_choices,
    one_output,
    refuse_without_candidates,
)
from poem.readers.outputs import coded_outputs
from poem.readers.propensities import log_propensities_of
from poem.readers.raw import RawLog, check_roles, named_error
from poem.readers.times import times_of
from poem.readers.values import losses_of, whole_numbers
from poem.structures import Coded, Labels, Structure, Wanted

BY_DEFAULT = Encoding()


def log_of(
    raw: RawLog,
    *,
    features: Features | None = None,
    labels: Sequence[Any] | None = None,
    structure: Wanted = None,
    missing: bool = False,
    encoding: Encoding | None = None,
    action_features: Features | None = None,
) -> BanditLog:
    """Return the BanditLog of a raw log.

    ``features`` is a recipe to follow (else the file's own, else one is made by ``encoding``), ``labels`` are all
    possible outputs, ``structure`` says what an output is if it is not to be inferred, ``missing`` says that there are
    no propensities. ``action_features`` is a recipe for the columns of actions.
    """
    if raw.table.num_rows == 0:
        raise ReadError(f"{raw.origin.name} has no rows, only column names. Pass a log with at least one decision.")
    check_roles(raw, missing)
    missing = missing or raw.says_missing()
    raw = raw if labels is None else replace(raw, labels=plain_labels(labels))
    seen, encoding = _seen(raw), encoding or BY_DEFAULT
    outputs, space = _outputs(raw, seen, structure, action_features, encoding)
    outcome: dict[str, Any] = {"loss": losses_of(raw)} if raw.roles.loss is not None else {"reward": losses_of(raw)}
    propensity: dict[str, Any] = {"propensity": "missing"} if missing else {"log_propensity": log_propensities_of(raw)}
    about = raw.about
    # A file of features that are already encoded has a recipe of its own; the raw columns are not there.
    recipe = raw.features if features is None or about.encoded else features
    context = raw.table.select(list(raw.roles.context if recipe is None else _needed(raw, recipe)))
    X, recipe = _contexts(raw, context, seen, recipe, encoding)
    log = BanditLog(
        X,
        outputs,
        **space,
        **outcome,
        **propensity,
        context=seen.number,
        group=names_of(raw, "group") if about.encoded else identities_of(raw, "group"),
        logger=names_of(raw, "logger"),
        time=times_of(raw),
        feature_names=about.feature_names if about.encoded else recipe.names(),
        features=about.recipe if about.encoded else recipe,
    )
    return log.with_propensities(log.log_propensity, "estimated") if about.estimated and not missing else log


def plain_labels(labels: Sequence[Any]) -> Labels:
    """Return labels as Python's own strings and numbers, which a policy file can hold."""
    try:
        plain = tuple(label.item() if isinstance(label, np.generic) else label for label in labels)
    except TypeError as error:
        raise InputError(f"labels must be a list of all outputs; found {type(labels).__name__}.") from error
    odd = [label for label in plain if not isinstance(label, str | int | float)]
    if odd:
        raise InputError(f"labels must be strings or numbers; found {odd[0]!r}. Convert them.")
    return plain


def _needed(raw: RawLog, recipe: Features) -> list[str]:
    """Return the columns of a recipe that are there; the recipe says what to do about others."""
    known = set(raw.table.column_names)
    return [name for name in recipe.columns if name in known]  # each once


# ---- contexts -----------------------------------------------------------------------------------


def _seen(raw: RawLog) -> Contexts:
    """Return which rows hold contexts: the features of a context stand in the first row that saw it."""
    if raw.roles.context_id is None:
        return Contexts(raw.table.num_rows)
    _, first, number = np.unique(whole_numbers(raw, raw.roles.context_id), return_index=True, return_inverse=True)
    return Contexts(len(first), first, number)


def _contexts(
    raw: RawLog, context: Any, seen: Contexts, recipe: Features | None, encoding: Encoding
) -> tuple[Matrix, Features]:
    """Return the features of each context, and how they are made."""
    place, rows = raw.origin.place, seen.rows
    context = with_codes(context)
    if rows is not None:
        context, place = context.take(rows), lambda row: raw.origin.place(int(rows[row]))
    if not context.num_columns and not (recipe and recipe.columns):  # a table without columns forgets its rows
        return np.zeros((seen.size, 0)), Features(())
    try:
        if recipe is None:
            recipe = Features.learn(context, of_contexts(raw, context, encoding), place=place)
        return recipe.transform(context, place), recipe
    except LogError as error:
        raise named_error(raw, error) from error


def of_contexts(raw: RawLog, context: Any, encoding: Encoding) -> Encoding:
    """Return the encoding without what it says of columns that only actions have."""
    others = set(action_columns(raw)) - set(context.column_names)
    return encoding.only([name for name in encoding.by_column() if name not in others])


def contexts_by_row(raw: RawLog, recipe: Features) -> Matrix:
    """Return the features of each row's context."""
    seen = _seen(raw)
    X, _ = _contexts(raw, raw.table.select(_needed(raw, recipe)), seen, recipe, BY_DEFAULT)
    return X if seen.number is None else X[seen.number]


# ---- outputs --------------------------------------------------------------------------------------


def _outputs(
    raw: RawLog, seen: Contexts, structure: Wanted, recipe: Features | None, encoding: Encoding
) -> tuple[Coded, dict[str, Any]]:
    """Return the outputs, and what they are in the words of BanditLog."""
    wanted = raw.structure if structure is None else structure
    if not raw.has_candidates:
        refuse_without_candidates(raw, wanted)
        outputs, space = coded_outputs(raw, structure)
        return outputs, {"structure": space}
    one_output(raw)
    choices = choices_of(raw, seen, wanted, recipe, encoding)
    outputs = coded_choices(raw, choices, seen)
    everything = choices.is_everything if raw.whole is None else raw.whole.everything
    if everything and not raw.about.encoded:
        return outputs, {}
    return outputs, choices.arguments()


def choices_by_row(raw: RawLog, structure: Structure, labels: Labels, recipe: Features | None) -> Choices | None:
    """Return what can be chosen in each row, for a policy; None if the table does not say."""
    if not raw.has_candidates:
        refuse_without_candidates(raw, structure)
        return None
    seen = _seen(raw)
    found = choices_of(replace(raw, labels=labels), seen, structure, recipe, BY_DEFAULT)
    return found if seen.number is None else replace(found, available=found.available.of(seen.number))


def recipe_or_encoding(given: Features | Encoding | None) -> tuple[Features | None, Encoding]:
    """Return the recipe that was given, or how to learn one."""
    if not isinstance(given, Features | Encoding | None):
        raise InputError(f"features must be a poem.Features or a poem.Encoding; found {type(given).__name__}.")
    return (None, given) if isinstance(given, Encoding) else (given, BY_DEFAULT)
