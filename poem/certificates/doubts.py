"""What in a log contradicts the conditions of a certificate: each doubt is a reason to refuse one.

A certificate takes for granted that propensities are right, that units are independent, and that rows are in the order
of time. None of this can be proven from a log, but some of it can be refuted.
"""

from collections.abc import Iterator

import numpy as np
from scipy import special

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray
from poem.certificates.adaptive import MOST_ROWS, adapts
from poem.certificates.inverse_means import Pairs, inverse_means
from poem.compute import compact
from poem.data import BanditLog, with_seen_contexts
from poem.packed import context_hashes

SURELY = 4.0  # standard errors above what chance explains
MANY = 0.01  # share of the rows that decisions which were kept concern at least
WRONG = 0.01  # how often right propensities may be called wrong
BACKWARDS = 0.001  # how often rows in the order of time may be called reversed
MOST_OUTPUTS = 50  # whose propensities are tested one by one
MOST_FEATURES = 16  # that cut the contexts into halves
LEAST_LOGGED = 20  # rows of an output in a half that say something about its propensities
LEAST_EXCESS = 0.1  # of outputs that come back, relative to what propensities say
MOST_LOG = 50.0  # the logarithm of a weight, at the most
FEW_RUNS = 3  # of equal outputs, times their number, in a log that is sorted by them

KEPT = "If they were kept for a user or session, pass it as group=; if rows are copies, drop these"


def doubts(log: BanditLog, in_order: bool) -> tuple[str, ...]:
    """Say what contradicts the conditions of a certificate; ``in_order`` if it rests on the order of rows."""
    n = len(log)
    first, some = (
        log if n <= MOST_ROWS else with_seen_contexts(log.take(rows))
        for rows in (np.arange(min(n, MOST_ROWS)), np.arange(0, n, -(-n // MOST_ROWS)))
    )
    # Rows that are not independent would also make propensities look wrong.
    found = tuple(_kept_decisions(first)) or tuple(_wrong_propensities(some))
    return found + (tuple(_backwards(first)) if in_order else ())


def _kept_decisions(log: BanditLog) -> Iterator[str]:
    """Doubt that units are independent: outputs of other units come back too often.

    Of two rows in the same context, the second has the output of the first with probability p if it was drawn anew. Any
    excess was kept for a user or session, or copied.
    """
    if log.available is not None:
        return  # what is available may differ between equal contexts
    yield from _in_equal_contexts(log) or _in_turn(log)


def _in_equal_contexts(log: BanditLog) -> tuple[str, ...]:
    first, second = _neighbours(log)
    p = np.exp(log.log_propensity[first])
    y = log.y.reshape(len(log), -1)
    same = (y[first] == y[second]).all(axis=1)
    excess = float(same.sum() - p.sum())
    if excess <= max(SURELY * np.sqrt(max(float((p * (1.0 - p)).sum()), 1.0)), MANY * len(log)):
        return ()
    return (
        f"decisions come back: {int(same.sum()):,} rows have the output of another row in the same context, and "
        f"about {p.sum():,.0f} would if decisions were drawn anew. {KEPT}",
    )


def _in_turn(log: BanditLog) -> tuple[str, ...]:
    """Compare each row with the one before: 1[same output]/p has a mean of at most 1, whatever the contexts are.

    Pairs of rows that are far apart tell what wrong propensities alone would do. Rows that are sorted by outputs have a
    few runs of equal ones, and say nothing.
    """
    y, n = log.y.reshape(len(log), -1), len(log)
    order = np.arange(n) if log.time is None else np.argsort(log.time, kind="stable")
    apart = np.diff(log.units()[order], prepend=-1) != 0
    near, far = (_weights_of_same(log, y, order, shift)[apart] for shift in (1, max(n // 2, 1)))
    runs = int(np.count_nonzero((y[order[1:]] != y[order[:-1]]).any(axis=1))) + 1
    if len(near) < LEAST_LOGGED or runs <= FEW_RUNS * len(np.unique(y, axis=0)):
        return ()
    spread = float(np.sqrt(max(float(((near - 1.0) ** 2).sum()), float((near * (near - 1.0))[near > 0.0].sum()))))
    excess = float(near.mean() - max(1.0, far.mean()))
    if excess <= max(SURELY * spread / len(near), LEAST_EXCESS):
        return ()
    return (
        f"decisions come back: rows have the output of the row before {near.mean():.2f} times as often as propensities "
        f"say. {KEPT}",
    )


def _weights_of_same(log: BanditLog, y: AnyArray, order: IntArray, shift: int) -> FloatArray:
    """Return 1[y = y of the row some places before]/p, in order; the first rows are compared with the last."""
    same = (y[order] == y[np.roll(order, shift)]).all(axis=1)
    return np.where(same, _weights(log)[order], 0.0)


def _weights(log: BanditLog) -> FloatArray:
    """Return 1/p, capped so that sums of squares are finite."""
    return np.exp(np.minimum(-log.log_propensity, MOST_LOG))


def _neighbours(log: BanditLog) -> tuple[IntArray, IntArray]:
    """Return pairs of rows in equal contexts, of different units, in random order: rows may be sorted by outputs."""
    place = context_hashes(log)[log.context]
    order = np.lexsort((np.random.default_rng(11).permutation(len(log)), place))
    first, second, units = order[:-1], order[1:], log.units()
    apart = (place[first] == place[second]) & (units[first] != units[second])
    return first[apart], second[apart]


def _wrong_propensities(log: BanditLog) -> Iterator[str]:
    """Doubt propensities that are too small: whatever the logging policy is, 1[y = a]/p has a mean of at most 1.

    That is so for each output a, and in each part of the contexts. The parts are all of them, and the halves that a
    feature cuts them into.
    """
    if log.propensities != "logged" or not log.structure.one_each or log.available is not None:
        return
    outputs, code = np.unique(log.y, return_inverse=True)
    if len(outputs) > MOST_OUTPUTS:
        return
    tests = list(_excesses(log, code.astype(np.int64)))
    z, mean, a, where = max(tests)
    if special.ndtr(-z) * len(tests) >= WRONG:
        return
    name = f"{log.labels[int(outputs[a])]!r}{where}"
    yield (
        f"the propensities cannot be right: 1/p, summed over the rows with output {name}, "
        f"is {mean:.3g} times the number of rows there, and at most 1 for right ones (but for chance, with probability "
        f"{WRONG:.0%}). Check that each propensity is that of the logged output; if decisions were kept for a user or "
        "session, pass it as group="
    )


def _excesses(log: BanditLog, code: IntArray) -> Iterator[tuple[float, float, int, str]]:
    """Yield by how many standard errors the mean of 1[y = a]/p is above 1, the mean, the output a, and where."""
    weights, due = _weights(log), np.ones(int(code.max()) + 1)
    units = log.units()
    pairs = Pairs.of(units, code) if int(units.max()) + 1 < len(log) else None
    for where, part in _halves(log):
        found = inverse_means(weights, code, due, part, pairs)
        counts = np.bincount(code[part], minlength=len(due))
        for a, mean, z in zip(found.outputs.tolist(), found.mean.tolist(), found.z.tolist(), strict=True):
            yield (z if counts[a] >= LEAST_LOGGED else -np.inf), mean, a, where


def _halves(log: BanditLog) -> Iterator[tuple[str, BoolArray]]:
    """Yield parts of the rows, in words and as masks: all of them, and both halves by each of the first features."""
    yield "", np.ones(len(log), dtype=bool)
    columns, X = compact(log.X)
    for place, column in enumerate(columns[:MOST_FEATURES]):
        values = np.asarray(X[:, [place]].sum(axis=1)).ravel()[log.context]
        high = values > np.median(values)
        if high.any():
            name = f"feature {column}" if log.feature_names is None else repr(log.feature_names[column])
            yield f" where {name} is high", high
            yield f" where {name} is low", ~high


def _backwards(log: BanditLog) -> Iterator[str]:
    """Doubt the order of rows: a logging policy that seems to know later rewards, and not earlier ones."""
    if log.time is not None:
        return
    if adapts(log.take(np.arange(len(log))[::-1])).p_value < BACKWARDS:
        yield (
            "the rows seem to be newest first: propensities follow the rewards of later rows. Put the oldest first, or "
            "pass time="
        )
