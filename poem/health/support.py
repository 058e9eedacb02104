"""Where was nothing else tried? Rows with a propensity of 1 or nearly 1, and their region of the contexts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from poem.arrays import BoolArray, FloatArray, IntArray
from poem.compute import compact, is_sparse
from poem.data import BanditLog
from poem.health.facts import Facts
from poem.health.finding import Finding, percent

SURE = 0.99  # a propensity from which a choice counts as no choice
CERTAIN = -1e-9  # log p above which p is 1
SOME_CERTAIN = 0.01  # the share of rows with a propensity of 1 …
SOME_SURE = 0.2  # … or of nearly 1 that is worth a caution
SAMPLE = 5000  # rows among which the region is looked for
COLUMNS = 100  # of X that are looked at
CLEAR = 0.6  # how well (F1) features must tell the region before it is described by them
BETTER = 0.05  # by how much a second condition must improve on one


def support(facts: Facts) -> Iterator[Finding]:
    """Report how many rows were no real choice, and where: nothing else was tried there."""
    if not facts.has_propensities:
        return
    log_p, choice = facts.log.log_propensity, _choice(facts)
    certain, sure = (log_p > CERTAIN) & choice, (log_p >= np.log(SURE)) & choice
    share = float(sure.mean())
    if not choice.any():
        return  # what the lists alone decide is said to be so elsewhere
    if certain[choice].all():
        text = "every propensity is 1: the logging policy was deterministic and never tried anything else"
        advice = "Log with some randomness: no amount of such data says what another output would have cost."
        yield Finding("support", "determinism", 1.0, "unfit", text, advice)
    elif certain.mean() >= SOME_CERTAIN or share >= SOME_SURE:
        yield _unexplored(facts, certain, sure)
    else:
        text = (
            f"{percent(share)} of the rows have a propensity of {SURE} or more" if share else "every row was a choice"
        )
        text += "" if choice.all() else ", but for those with one available action"
        yield Finding("support", "determinism", share, "fit", f"{text} (largest {np.exp(log_p[choice].max()):.3g})")


def _choice(facts: Facts) -> BoolArray:
    """Return which rows had more than one available action."""
    return np.ones(len(facts.log), dtype=bool) if facts.choices is None else facts.choices > 1.0


def _unexplored(facts: Facts, certain: BoolArray, sure: BoolArray) -> Finding:
    share, exact = float(sure.mean()), float(certain.mean())
    counts = np.bincount(facts.code[sure], minlength=len(facts.counts))
    most = int(np.argmax(counts))
    exactly = f" ({percent(exact)} of exactly 1)" if 0.0 < exact < share else ""
    what = f"a propensity of {SURE} or more{exactly}" if exact < share else "a propensity of 1"
    chosen = f"{facts.name_of(most)} was chosen in {percent(counts[most] / counts.sum())} of these rows"
    text = f"{percent(share)} of the rows have {what}: {chosen}{_where(facts.log, sure)}"
    tried = "Nothing else" if exact == share else "Next to nothing else"
    advice = (
        f"{tried} was tried there: a policy that decides otherwise there cannot be judged. Keep to what was logged "
        "there, or explore there as well."
    )
    return Finding("support", "determinism", share, "with care", text, advice)


# ---- the region -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Condition:
    """A threshold on a feature, and how well one side of it matches the wanted rows (F1)."""

    column: int
    threshold: float
    above: bool
    score: float

    def holds(self, values: FloatArray) -> BoolArray:
        """Return on which rows the condition holds."""
        return np.asarray(values > self.threshold if self.above else values <= self.threshold)


def _where(log: BanditLog, sure: BoolArray) -> str:
    """Describe the rows by one or two features, if these separate them from the others."""
    rows = np.arange(len(log))
    if len(rows) > SAMPLE:
        rows = np.sort(np.random.default_rng(0).permutation(len(rows))[:SAMPLE])
    wanted = sure[rows]
    if not 0 < int(wanted.sum()) < len(wanted) or log.n_features == 0:
        return ""
    columns, values = _columns(log, rows, wanted)
    found = _region(values, wanted)
    if not found or found[-1].score < CLEAR:
        return "; no one or two features tell where"
    inside = np.logical_and.reduce([one.holds(values[:, one.column]) for one in found])
    words = " and ".join(_words(log, int(columns[one.column]), one, values[:, one.column]) for one in found)
    return (
        f". Where: {words}, which holds in {percent(float(inside[wanted].mean()))} of them and in "
        f"{percent(float(inside[~wanted].mean()))} of the other rows"
    )


def _columns(log: BanditLog, rows: IntArray, wanted: BoolArray) -> tuple[IntArray, FloatArray]:
    """Return the columns of X whose means, or shares of non-zeros, differ most between the rows, and their values."""
    X = log.X[log.context[rows]]
    if not is_sparse(X):
        gap = np.abs(X[wanted].mean(axis=0) - X[~wanted].mean(axis=0)) / np.maximum(X.std(axis=0), 1e-300)
        columns = np.argsort(-gap, kind="stable")[:COLUMNS]
        return columns, X[:, columns]
    occurring, X = compact(X)
    inside, outside = (np.bincount(X[part].indices, minlength=len(occurring)) for part in (wanted, ~wanted))
    gap = np.abs(inside / wanted.sum() - outside / (~wanted).sum())
    best = np.argsort(-gap, kind="stable")[:COLUMNS]
    return occurring[best], X[:, best].toarray()


def _region(values: FloatArray, wanted: BoolArray) -> Sequence[_Condition]:
    """Return the best condition, and a second one among the rows where it holds if that helps."""
    total = int(wanted.sum())
    firsts = sorted(_conditions(values, wanted, total), key=lambda one: -one.score)
    if not firsts:
        return ()
    best: Sequence[_Condition] = firsts[:1]
    for first in firsts[:5]:
        inside = first.holds(values[:, first.column])
        second = max(_conditions(values[inside], wanted[inside], total), key=lambda one: one.score, default=None)
        if second is not None and second.score > max(best[-1].score, firsts[0].score + BETTER):
            best = (first, second)
    return best


def _conditions(values: FloatArray, wanted: BoolArray, total: int) -> Iterator[_Condition]:
    """Yield the best threshold of each column, by the F1 of its better side."""
    n, here = len(wanted), int(wanted.sum())
    below = np.arange(1, n)
    for column, numbers in enumerate(values.T):
        order = np.argsort(numbers, kind="stable")
        ordered = numbers[order]
        cuts = np.flatnonzero(ordered[1:] > ordered[:-1])
        if not len(cuts):
            continue
        hits = np.cumsum(wanted[order])[cuts]
        low = 2.0 * hits / (below[cuts] + total)
        high = 2.0 * (here - hits) / (n - below[cuts] + total)
        above = bool(high.max() > low.max())
        at = int(np.argmax(high if above else low))
        threshold = 0.5 * (ordered[cuts[at]] + ordered[cuts[at] + 1])
        yield _Condition(column, float(threshold), above, float(max(high.max(), low.max())))


def _words(log: BanditLog, column: int, condition: _Condition, values: FloatArray) -> str:
    name = f"feature {column}" if log.feature_names is None else repr(log.feature_names[column])
    if np.all((values == 0.0) | (values == 1.0)):
        return f"{name} = {int(condition.above)}"
    return f"{name} {'>' if condition.above else '≤'} {condition.threshold:.3g}"
