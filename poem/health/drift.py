"""Does a log change with time? Drift of what is chosen, of its propensities and of the loss."""

from collections.abc import Iterator
from datetime import UTC, datetime

import numpy as np
from scipy import special

from poem.arrays import BoolArray, FloatArray, IntArray
from poem.certificates import Choices, choices_of
from poem.health.facts import Facts
from poem.health.finding import Finding, p_value, percent
from poem.health.grouped import one_of_each

PERIODS = 10  # of equally many rows
LEAST_ROWS = 200  # below which ten periods say nothing
UNLIKELY = 1e-4  # p-values below which a change is not chance
SHIFT = 0.05  # of the shares of outputs between both halves, from which it matters
LOSS_SHIFT = 0.1  # of the mean loss between both halves, in standard deviations or of the mean itself
EXPECTED = 5.0  # rows that each cell of a χ² test should have
DATES = (1e8, 1e10)  # seconds that are dates between 1973 and 2286

OUT_OF_TIME = "Hold out the latest rows instead of random ones (--out-of-time), to see what a policy is worth later."
LATER = "Evaluate on a later log, to see what a policy is worth later: a packed log holds out random units."


def drift(facts: Facts) -> Iterator[Finding]:
    """Report the time that the log covers, and whether the logging policy or the loss changed.

    Propensities keep estimates right when the logging policy changes. But imitated or held-out behaviour is then a
    mixture of policies, and contexts or losses that drift may drift further. If rows are not independent, one row per
    group and period counts; similar rows of a group in several periods make periods differ less.
    """
    time = facts.log.time
    if time is None:
        yield Finding("time", "span", None, "fit", "no time is named: whether the log changes with it cannot be told")
        return
    low, high = float(time.min()), float(time.max())
    if low == high:
        yield Finding("time", "span", 0.0, "fit", f"all rows have the same time, {_moment(low)}")
        return
    ordered = "; rows are in order" if np.all(time[1:] >= time[:-1]) else "; rows are not in order"
    ordered = ordered if facts.packed is None else ""  # which packing has lost
    yield Finding("time", "span", high - low, "fit", f"{_span(low, high)}{ordered}")
    if len(time) < LEAST_ROWS:
        return
    period = _periods(time)
    rows = np.arange(len(time)) if facts.group is None else one_of_each(facts.group * PERIODS + period)
    if len(rows) < LEAST_ROWS:
        text = "whether the log changes with time cannot be told: rows of a group count as one, and groups are too few"
        yield Finding("time", "policy drift", None, "fit", text)
        return
    yield _policy_drift(facts, rows, period[rows])
    yield _loss_drift(facts, rows, period)


def _advice(facts: Facts) -> str:
    return OUT_OF_TIME if facts.packed is None else LATER


def _counting(facts: Facts) -> str:
    """Describe which rows were compared, if not all."""
    return "" if facts.group is None else ", counting one row of each group and period"


def _moment(value: float) -> str:
    if DATES[0] <= value <= DATES[1]:
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M")
    return f"{value:g}"


def _span(low: float, high: float) -> str:
    dates = DATES[0] <= low <= high <= DATES[1]
    days = f" ({(high - low) / 86400.0:.3g} days)" if dates else ""
    return f"from {_moment(low)} to {_moment(high)}{days}"


def _periods(time: FloatArray) -> IntArray:
    """Return the period of each row: ten periods with equally many rows."""
    rank = np.empty(len(time), dtype=np.int64)
    rank[np.argsort(time, kind="stable")] = np.arange(len(time))
    return rank * PERIODS // len(time)


# ---- what was chosen --------------------------------------------------------------------------------


def _policy_drift(facts: Facts, rows: IntArray, period: IntArray) -> Finding:
    available = facts.log.available
    explained = None if available is None else choices_of(facts.log, available)
    if facts.one_each:
        shift, unlikely, what = _class_shift(facts, rows, period, explained)
    else:
        shift, unlikely, what = _label_shift(facts, rows, period)
    moved, unlikely_p = 0.0, 1.0
    log_p = facts.log.log_propensity
    if explained is not None:  # longer lists have lower propensities, and are no other policy
        log_p = log_p - np.log(np.maximum(explained.of_logged(facts.log), 1e-300))
    if facts.has_propensities and np.ptp(log_p) > 1e-9:
        moved, unlikely_p = _mean_shift(log_p[rows], period)
    if (unlikely < UNLIKELY and shift > SHIFT) or (unlikely_p < UNLIKELY and abs(moved) > 2.0 * SHIFT):
        text = f"the logging policy, or its contexts, changed: {what} between the first and the second half"
        if abs(moved) > 2.0 * SHIFT:
            given = "" if explained is None else ", given what was available"
            text += f", and propensities are {np.exp(moved):.2g} times as large in the second{given}"
        text += f" ({p_value(min(unlikely, unlikely_p))}{_counting(facts)})"
        return Finding("time", "policy drift", shift, "with care", text, _advice(facts))
    text = f"what is chosen shows no clear change: {what} between both halves{_counting(facts)}"
    return Finding("time", "policy drift", shift, "fit", text)


def _class_shift(facts: Facts, rows: IntArray, period: IntArray, explained: Choices | None) -> tuple[float, float, str]:
    """Return (total variation between both halves beyond chance, p-value of a χ² test over all periods, in words).

    Over all rows, or in the part of the contexts where the shift is largest: a policy may change in opposite ways for
    different contexts, so that the shifts cancel overall.
    """
    looks, everywhere = 1 + len(facts.slices), np.ones(len(rows), dtype=bool)

    def shift_of(part: BoolArray) -> tuple[float, float]:
        if explained is None:
            return _shift_of(facts, period[part], facts.code[rows][part])
        return _unexplained_shift(facts, rows[part], period[part], explained)

    shift, unlikely = shift_of(everywhere)
    where = ""
    for part in (half[rows] for half in facts.slices):
        beyond, p = shift_of(part)
        if p * looks < UNLIKELY and beyond > 2.0 * max(shift, SHIFT):
            shift, unlikely, where = beyond, p, " in a part of the contexts"
    beyond_lists = "" if explained is None else " and beyond what the available actions explain"
    moved = f"{percent(shift)} of the choices moved, beyond chance{beyond_lists},{where}"
    return shift, min(1.0, unlikely * looks), moved


def _shift_of(facts: Facts, period: IntArray, code: IntArray) -> tuple[float, float]:
    """Return the total variation beyond chance and the p-value for some rows."""
    k = len(facts.counts)
    table = np.bincount(period * k + code, minlength=PERIODS * k).reshape(PERIODS, k).astype(np.float64)
    counts = table.sum(axis=0)
    common = counts >= EXPECTED * PERIODS
    pooled = np.column_stack([table[:, common], table[:, ~common].sum(axis=1)])
    first, second = table[: PERIODS // 2].sum(axis=0), table[PERIODS // 2 :].sum(axis=0)
    # Under no drift a share s differs by √(2/π · s(1−s)(1/n₁ + 1/n₂)) on average.
    if not (first.any() and second.any()):
        return 0.0, 1.0
    total = 0.5 * float(np.abs(first / first.sum() - second / second.sum()).sum())
    share = counts / counts.sum()
    chance = np.sqrt(2.0 / np.pi * share * (1.0 - share) * (1.0 / first.sum() + 1.0 / second.sum()))
    return max(0.0, total - 0.5 * float(chance.sum())), _independence(pooled)


def _unexplained_shift(facts: Facts, rows: IntArray, period: IntArray, explained: Choices) -> tuple[float, float]:
    """Return the same where rows have available actions of their own.

    An action that comes and goes moves the shares of all others. So the choices of both halves are compared with what
    one policy for the whole log would choose from their lists.
    """
    late, k, context = period >= PERIODS // 2, len(facts.counts), facts.log.context
    if late.all() or not late.any():
        return 0.0, 1.0
    moved, variance, total = np.zeros((3, k))
    for sign, mine in ((-1.0, rows[~late]), (1.0, rows[late])):
        expected = explained.expected(np.bincount(context[mine], minlength=facts.log.n_contexts), k)
        moved += sign * (np.bincount(facts.code[mine], minlength=k) - expected) / len(mine)
        variance += expected / len(mine) ** 2
        total += expected
    chance = 0.5 * float(np.sqrt(2.0 / np.pi * variance).sum())
    shift = max(0.0, 0.5 * float(np.abs(moved).sum()) - chance)
    common = total >= EXPECTED * PERIODS
    if common.sum() < 2:
        return shift, 1.0
    squares = float((moved[common] ** 2 / variance[common]).sum())
    return shift, float(special.chdtrc(int(common.sum()), squares))


def _label_shift(facts: Facts, rows: IntArray, period: IntArray) -> tuple[float, float, str]:
    """Return the same for the label whose share moved most clearly; the p-value is corrected for all labels."""
    sizes = np.bincount(period, minlength=PERIODS)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    indicators = facts.log.structure.indicators(facts.log.y[rows[np.argsort(period, kind="stable")]])
    chosen = np.add.reduceat(indicators, starts, axis=0).astype(np.int64)
    unlikely = [_independence(np.column_stack([column, sizes - column]).astype(float)) for column in chosen.T]
    label = int(np.argmin(unlikely))
    half = PERIODS // 2
    shares = [chosen[part, label].sum() / sizes[part].sum() for part in (slice(0, half), slice(half, None))]
    moved = f"went from {percent(shares[0])} to {percent(shares[1])}"
    what = f"label {facts.log.labels[label]!r}, which moved most clearly, {moved}"
    return abs(float(shares[1] - shares[0])), min(1.0, unlikely[label] * len(unlikely)), what


def _independence(table: FloatArray) -> float:
    """Return the p-value of the χ² test that all rows of a table have the same shares."""
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    columns = np.all(expected >= EXPECTED, axis=0)
    if columns.sum() < 2:
        return 1.0
    squares = ((table - expected)[:, columns] ** 2 / expected[:, columns]).sum()
    return float(special.chdtrc((len(table) - 1) * (int(columns.sum()) - 1), squares))


# ---- means ------------------------------------------------------------------------------------------


def _mean_shift(values: FloatArray, period: IntArray) -> tuple[float, float]:
    """Return (shift of the mean from the first to the second half, p-value that it is the same in all periods)."""
    counts = np.bincount(period)
    means = np.bincount(period, values) / counts
    variances = np.bincount(period, (values - means[period]) ** 2) / counts
    late = period >= PERIODS // 2
    moved = float(values[late].mean() - values[~late].mean())
    # Pooled: where a period's own variance is 0 by chance (no click at all) it would count for ever.
    pooled = float(variances @ counts / counts.sum())
    if pooled <= 1e-18:
        return moved, 1.0 if abs(moved) <= 1e-9 else 0.0
    squares = float((counts * (means - values.mean()) ** 2).sum() / pooled)
    return moved, float(special.chdtrc(PERIODS - 1, squares))


def _loss_drift(facts: Facts, rows: IntArray, period: IntArray) -> Finding:
    word = facts.log.outcome
    values = facts.log.loss if word == "loss" else 0.0 - facts.log.loss
    unlikely = _mean_shift(values[rows], period[rows])[1]
    late = period >= PERIODS // 2
    first, second = float(values[~late].mean()), float(values[late].mean())
    moved, words = second - first, f"{first:.4g} in the first half, {second:.4g} in the second"
    matters = abs(moved) > LOSS_SHIFT * min(float(values.std()), max(abs(float(values.mean())), 1e-12))
    if unlikely < UNLIKELY and matters:
        sure = f"{p_value(unlikely)} over {PERIODS} periods{_counting(facts)}"
        text = f"the mean {word} changes with time: {words} ({sure})"
        return Finding("time", f"{word} drift", moved, "with care", text, _advice(facts))
    return Finding("time", f"{word} drift", moved, "fit", f"the mean {word} shows no clear change: {words}")
