"""Which columns of features have values that are missing."""

from collections.abc import Iterator

import numpy as np

from poem.arrays import FloatArray
from poem.compute import Matrix, is_sparse
from poem.data import BanditLog
from poem.data.features import Features, Missing, count_missing
from poem.health.facts import Facts
from poem.health.finding import Finding, listed, percent
from poem.readers import OF_ACTIONS, RawLog, empty_columns, feature_tables
from poem.text import counted

MOST = 4  # columns that are named


def gaps(facts: Facts, raw: RawLog | None) -> Iterator[Finding]:
    """Report the columns in which values are missing, the worst first, and those without any value."""
    known = raw is not None and not raw.about.encoded
    shares = _in_table(raw) if raw is not None and known else _in_log(facts.log)
    left_out = [] if raw is None else [name for name in empty_columns(raw) if name not in _columns(facts.log)]
    some = sorted((name for name in shares if name not in left_out), key=lambda name: -shares[name])
    if some:
        worst = ", ".join(f"{name!r} in {percent(shares[name])}" for name in some[:MOST])
        more = f" and {len(some) - MOST:,} more" if len(some) > MOST else ""
        text = f"values are missing in {counted(len(some), 'column')}: {worst}{more}"
        yield Finding("features", "missing values", float(len(some)), "fit", text)
    if left_out:
        are = "is" if len(left_out) == 1 else "are"
        text = f"{counted(len(left_out), 'column')} {are} empty in all rows and left out: {listed(left_out)}"
        yield Finding("features", "empty columns", float(len(left_out)), "fit", text)


def _columns(log: BanditLog) -> set[str]:
    """Return the columns that features are made of."""
    recipes = (("", log.features), (OF_ACTIONS, log.action_features))
    return {f"{begin}{name}" for begin, recipe in recipes if recipe is not None for name in recipe.columns}


def _in_table(raw: RawLog) -> dict[str, float]:
    """Return the share of rows, or of actions, without a value, for the columns that lack one."""
    shares = {
        f"{begin}{name}": count_missing(table.column(name)) / max(1, table.num_rows)
        for begin, table in feature_tables(raw)
        for name in table.column_names
    }
    return {name: share for name, share in shares.items() if share}


def _in_log(log: BanditLog) -> dict[str, float]:
    """Return the same by the features that say where values are missing."""
    seen = np.bincount(log.context, minlength=log.n_contexts) / len(log)
    found = {} if log.features is None else _told(log.features, log.X, seen)
    offered = log.available
    if offered is None or offered.features is None or log.action_features is None:
        return found
    rows = np.arange(len(offered)) if offered.row is None else offered.row
    used = np.bincount(rows, minlength=offered.features.shape[0]) / max(1, len(rows))
    told = _told(log.action_features, offered.features, used)
    return found | {f"{OF_ACTIONS}{name}": share for name, share in told.items()}


def _told(recipe: Features, matrix: Matrix, weight: FloatArray) -> dict[str, float]:
    """Return the share of rows in which features say that a column has no value."""
    found, end = {}, 0
    for kind in recipe.kinds:
        end += kind.width
        if isinstance(kind, Missing):
            flags = matrix[:, [end - 1]]
            found[kind.column] = float(weight @ (flags.toarray() if is_sparse(flags) else flags).ravel())
    return {name: share for name, share in found.items() if share}
