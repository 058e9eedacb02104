"""A raw log, checked column by column and turned into a BanditLog; errors name file, row and column."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from poem.arrays import IntArray
from poem.compute import Matrix
from poem.data import BanditLog
from poem.data.features import Encoding, Features
from poem.errors import InputError, LogError, ReadError
from poem.files import with_codes
from poem.readers.identities import identities_of, names_of
from poem.readers.outputs import coded_outputs
from poem.readers.propensities import check_candidates, log_propensities_of
from poem.readers.raw import RawLog, check_roles, named_error
from poem.readers.times import times_of
from poem.readers.values import losses_of, whole_numbers
from poem.structures import Labels, Wanted

BY_DEFAULT = Encoding()


def log_of(
    raw: RawLog,
    *,
    features: Features | None = None,
    labels: Sequence[Any] | None = None,
    structure: Wanted = None,
    missing: bool = False,
    encoding: Encoding | None = None,
) -> BanditLog:
    """Return the BanditLog of a raw log.

    ``features`` is a recipe to follow (else the file's own, else one is made by ``encoding``), ``labels`` are all
    possible outputs, ``structure`` says what an output is if it is not to be inferred, ``missing`` says that there are
    no propensities.
    """
    if raw.table.num_rows == 0:
        raise ReadError(f"{raw.origin.name} has no rows, only column names. Pass a log with at least one decision.")
    check_roles(raw, missing)
    missing = missing or raw.says_missing()
    raw = raw if labels is None else replace(raw, labels=_plain_labels(labels))
    outputs, space = coded_outputs(raw, structure)
    if raw.roles.candidates is not None and space.lists_outputs:
        check_candidates(raw)
    outcome: dict[str, Any] = {"loss": losses_of(raw)} if raw.roles.loss is not None else {"reward": losses_of(raw)}
    propensity: dict[str, Any] = {"propensity": "missing"} if missing else {"log_propensity": log_propensities_of(raw)}
    about = raw.about
    # A file of features that are already encoded has a recipe of its own; the raw columns are not there.
    recipe = raw.features if features is None or about.encoded else features
    context = raw.table.select(list(raw.roles.context if recipe is None else _needed(raw, recipe)))
    X, context_of, recipe = _contexts(raw, context, recipe, encoding or BY_DEFAULT)
    log = BanditLog(
        X,
        outputs,
        structure=space,
        **outcome,
        **propensity,
        context=context_of,
        group=names_of(raw, "group") if about.encoded else identities_of(raw, "group"),
        logger=names_of(raw, "logger"),
        time=times_of(raw),
        feature_names=about.feature_names if about.encoded else recipe.names(),
        features=about.recipe if about.encoded else recipe,
    )
    return log.with_propensities(log.log_propensity, "estimated") if about.estimated and not missing else log


def _plain_labels(labels: Sequence[Any]) -> Labels:
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
    return [name for name in recipe.columns if name in raw.table.column_names]  # each once


# ---- contexts -----------------------------------------------------------------------------------


def _contexts(
    raw: RawLog, context: Any, recipe: Features | None, encoding: Encoding
) -> tuple[Matrix, IntArray | None, Features]:
    """Return ``(X, which row of X each decision saw, recipe)``."""
    ids, place = _context_ids(raw), raw.origin.place
    context = with_codes(context)
    if ids is not None:
        # The features of a context stand in the first row that saw it.
        _, first, ids = np.unique(ids, return_index=True, return_inverse=True)
        context, place = context.take(first), lambda row: raw.origin.place(int(first[row]))
    try:
        recipe = Features.learn(context, encoding, place=place) if recipe is None else recipe
        return recipe.transform(context, place), ids, recipe
    except LogError as error:
        raise named_error(raw, error) from error


def _context_ids(raw: RawLog) -> IntArray | None:
    """Return a number for each row's context."""
    return None if raw.roles.context_id is None else whole_numbers(raw, raw.roles.context_id)


def contexts_by_row(raw: RawLog, recipe: Features) -> Matrix:
    """Return the features of each row's context."""
    X, context_of, _ = _contexts(raw, raw.table.select(_needed(raw, recipe)), recipe, BY_DEFAULT)
    return X if context_of is None else X[context_of]
