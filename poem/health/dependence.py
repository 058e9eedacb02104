"""Rows that are not independent: duplicates and groups."""

from collections.abc import Iterator

import numpy as np
from scipy.sparse.linalg import lsqr

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.certificates import unexplained
from poem.compute import compact, is_sparse
from poem.health.facts import Facts, mixed, numbered
from poem.health.finding import Finding, Verdict, percent
from poem.text import counted

MANY_EQUAL = 0.01  # the share of rows above which duplicates are no accident
SURELY = 4.0  # standard errors above what chance explains
FEW_UNITS = 30  # independent units below which no interval is worth much
MANY_REPEAT = 0.5  # the share of rows that repeat a context from which they may well be of one user
LOOKED_AT = 20_000  # rows in which contexts are compared
ALIKE = 0.2  # by how much the variance of a sum over one context must be larger than that of independent rows
STEPS = 30  # of the least squares
LARGE_GROUP = 0.2  # the share of the rows of one group above which it decides alone


def duplicates(facts: Facts) -> Iterator[Finding]:
    """Report how many rows repeat another one in full, and whether chance explains it.

    With few contexts and losses of 0 or 1, equal rows are normal. But of two rows in one context (and at one time), the
    second has the output of the first with probability p. Any excess was copied, or not drawn independently.
    Duplicates make intervals too narrow and land on both sides of a split. Duplicates within a group do neither,
    because a group counts as one unit: repeated decisions are expected there.
    """
    same_place, same_row = _neighbours(facts)
    share = float(np.mean(same_row)) if len(same_row) else 0.0
    many = share > MANY_EQUAL and _beyond_chance(facts, same_place, same_row)
    if not many:
        known = "in its group, which counts as one" if facts.group is not None else "no more than chance explains"
        chance = f", {known}" if share > MANY_EQUAL else ""
        text = f"{percent(share)} of the rows repeat another one in full{chance}"
        yield Finding("duplicates", "duplicates", share, "fit", text)
        return
    text = f"{percent(share)} of the rows repeat another one in full, far more than chance explains"
    advice = "Drop the copies; if decisions were kept for a user or session and not drawn anew, name it as --group."
    yield Finding("duplicates", "duplicates", share, "with care", text, advice)


def _where(facts: Facts) -> list[AnyArray]:
    log = facts.log
    group = [] if log.group is None else [numbered(log.group)]
    return [facts.situation, *([] if log.time is None else [log.time]), *group]


def _neighbours(facts: Facts) -> tuple[AnyArray, BoolArray]:
    """Return rows that follow another one in the same context and time, and rows that repeat one in full."""
    log = facts.log
    place = mixed(_where(facts))
    p = [log.log_propensity] if facts.has_propensities else []
    whole = mixed([place, facts.code, log.loss, *p])
    repeated = np.ones(len(log), dtype=bool)
    repeated[np.unique(whole, return_index=True)[1]] = False
    order = np.argsort(place, kind="stable")
    follows = np.flatnonzero(place[order][1:] == place[order][:-1])
    return np.stack([order[follows], order[follows + 1]]), repeated


def _beyond_chance(facts: Facts, pairs: AnyArray, repeated: BoolArray) -> bool:
    if not facts.has_propensities:
        return facts.log.time is not None  # chance is not known; at one moment copies are likelier than chance
    if facts.group is not None and facts.log.time is None:
        return False  # decisions that were kept cannot be told from copies
    first, second = pairs
    p = np.exp(facts.log.log_propensity[first])
    excess = float(np.sum(facts.code[first] == facts.code[second])) - float(p.sum())
    spread = float(np.sqrt(max(float((p * (1.0 - p)).sum()), 1.0)))
    return excess > SURELY * spread and excess > MANY_EQUAL * len(repeated)


def groups(facts: Facts) -> Iterator[Finding]:
    """Report what intervals count as units: groups, contexts that are stored once, or rows."""
    log, n = facts.log, len(facts.log)
    sizes = np.bincount(facts.units)
    if log.group is None:
        yield from _no_groups(facts, len(sizes))
        return
    largest = float(sizes.max() / n)
    few, large = len(sizes) < FEW_UNITS, largest > LARGE_GROUP
    verdict: Verdict = "with care" if few or large else "fit"
    text = f"{counted(len(sizes), 'group')}, {n / len(sizes):.3g} rows each on average; the largest: {percent(largest)}"
    advice = "Intervals count groups, not rows: with few or very uneven ones they are wide or unreliable."
    yield Finding("groups", "groups", float(len(sizes)), verdict, text, advice if verdict != "fit" else "")


def _no_groups(facts: Facts, units: int) -> Iterator[Finding]:
    n = len(facts.log)
    if units < n:
        text = f"no groups are named: intervals take the {units:,} contexts, not the rows, to be independent"
        verdict: Verdict = "with care" if units < FEW_UNITS else "fit"
        advice = "With so few contexts intervals are unreliable; name the users or sessions as --group."
        yield Finding("groups", "groups", float(units), verdict, text, advice if verdict != "fit" else "")
        return
    repeat = 1.0 - facts.n_contexts / n
    if repeat > MANY_REPEAT and _alike(facts):
        text = (
            f"{percent(repeat)} of the rows repeat a context and no group is named: intervals take every row to be "
            "independent, but rows of one context are more alike than their features explain"
        )
        advice = (
            "If rows of one context are of the same user or session, name it (group=, --group): intervals are too "
            "narrow otherwise."
        )
        yield Finding("groups", "groups", None, "with care", text, advice)
        return
    text = "no groups are named: intervals take every row to be independent (--group if users or sessions repeat)"
    yield Finding("groups", "groups", None, "fit", text)


def _alike(facts: Facts) -> bool:
    """Return whether losses in one context correlate, beyond a linear function of outputs and features.

    For independent residuals r, Σ rᵢrⱼ over all pairs of a context has mean 0 and variance Σ rᵢ²rⱼ².
    """
    until = int(np.searchsorted(np.cumsum(np.bincount(facts.context)), LOOKED_AT)) + 1
    rows = np.flatnonzero(facts.context < until)[:LOOKED_AT]  # contexts are numbered by their hash: at random
    context = facts.context[rows]
    left = _residual(facts, rows)
    first, second = np.bincount(context, left), np.bincount(context, left * left)
    fourth = np.bincount(context, left**4)
    pairs = float((first * first - second).sum())
    spread = float(np.sqrt(2.0 * max(float((second * second - fourth).sum()), 0.0)))
    return spread > 0.0 and pairs > SURELY * spread and pairs > ALIKE * float(second.sum())


def _residual(facts: Facts, rows: IntArray) -> FloatArray:
    """Return the residual loss from a model with all features, and with some features per output."""
    log = facts.log
    loss = log.loss[rows] - log.loss[rows].mean()
    _, X = compact(log.X[log.context[rows]])
    if not is_sparse(X):
        X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    left = loss - X @ lsqr(X, loss, damp=1.0, iter_lim=STEPS)[0]
    return unexplained(X, numbered(facts.code[rows]), left)
