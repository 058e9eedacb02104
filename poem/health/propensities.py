"""Are the propensities right? Their distribution, and identities that only right propensities satisfy.

Whatever the contexts are, 1[y = a]/p has mean 1 over the rows of a log if p is the probability with which y was chosen
and the output a could be chosen everywhere; the mean of 1/p is then the number of outputs. If a was impossible in some
contexts, or hardly ever tried, the mean of 1[y = a]/p is below 1. If the log says where a was available, the mean is
the share of these rows. It is never above 1, in any part of the contexts,
unless propensities are wrong. So a mean that is too high is evidence against the propensities, and one that is too low
shows a lack of support.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray
from poem.certificates import Means, Pairs, as_normal, inverse_means
from poem.health.facts import Facts
from poem.health.finding import Finding, Verdict, percent
from poem.health.frequencies import CHECK, repeated_contexts
from poem.text import counted

ALARMS = 1e-3  # how often right propensities may look wrong, all outputs and slices together
LEAST_Z = 4.0  # standard errors below which nothing is called wrong, however few checks there are
MATERIAL = 0.05  # smaller deviations are rounding of logged numbers: real, but harmless
WRONG = 0.5  # deviations from which no estimate can be right
MANY_SETS = 100  # the commonest label sets that are checked one by one …
ROWS_OF_SET = 30  # … if they have as many rows


def propensities(facts: Facts) -> Iterator[Finding]:
    """Report the distribution of the propensities, and whether they can be right."""
    if not facts.has_propensities:
        return
    yield from _range(facts)
    if facts.log.propensities == "estimated":
        text = "the propensities are estimated, not logged"
        advice = (
            "No interval accounts for what the logging policy knew and the contexts do not hold; log them next time."
        )
        yield Finding("propensities", "estimated", None, "with care", text, advice)
    if facts.log.logger is not None:
        loggers, counts = np.unique(facts.log.logger, return_counts=True)
        text = f"{counted(len(loggers), 'logger')}, the largest with {percent(counts.max() / counts.sum())} of the rows"
        yield Finding("propensities", "loggers", float(len(loggers)), "fit", text)
    if facts.counts.max() < len(facts.log):  # one output alone is said to be so elsewhere
        yield from _identities(facts)
        yield from repeated_contexts(facts)


def _range(facts: Facts) -> Iterator[Finding]:
    log_p = facts.log.log_propensity
    low, p10, median, p90, high = np.exp(np.quantile(log_p, [0.0, 0.1, 0.5, 0.9, 1.0]))
    if np.ptp(log_p) < 1e-9:
        text = f"all the same, {median:.4g}: outputs were drawn alike in every row"
        yield Finding("propensities", "range", float(median), "fit", text)
        return
    text = f"from {low:.3g} to {high:.3g}; median {median:.3g}, four fifths between {p10:.3g} and {p90:.3g}"
    yield Finding("propensities", "range", float(median), "fit", text)


# ---- the mean of 1[y = a]/p -------------------------------------------------------------------------


def threshold(checks: int) -> float:
    """Return the critical number of standard errors for this many means (Bonferroni)."""
    return max(LEAST_Z, float(-special.ndtri(ALARMS / max(1, checks))))


@dataclass(frozen=True)
class Checked:
    """The outputs that are checked one by one: all classes, or the commonest label sets.

    ``code`` says which of them each row has, ``inverse`` is 1/p (0 in rows of other outputs), ``due`` what the mean of
    1[y = a]/p should be, and ``names`` their codes in the log. ``pairs`` say which rows belong together, if any do.
    """

    code: IntArray
    inverse: FloatArray
    due: FloatArray
    names: IntArray
    pairs: Pairs | None = None

    @staticmethod
    def of(facts: Facts) -> "Checked":
        """Choose the outputs."""
        checked = Checked._chosen(facts)
        return checked if facts.group is None else replace(checked, pairs=Pairs.of(facts.group, checked.code))

    @staticmethod
    def _chosen(facts: Facts) -> "Checked":
        if facts.one_each:
            due = facts.due()
            return Checked(facts.code, facts.inverse, due, np.arange(len(due)))
        common = np.argsort(-facts.counts, kind="stable")[:MANY_SETS]
        common = common[facts.counts[common] >= ROWS_OF_SET]
        number = np.full(len(facts.counts), -1, dtype=np.int64)
        number[common] = np.arange(len(common))
        code = number[facts.code]
        return Checked(np.maximum(code, 0), np.where(code >= 0, facts.inverse, 0.0), np.ones(len(common)), common)


@dataclass(frozen=True)
class TooHigh:
    """The output whose mean of 1[y = a]/p is most clearly above 1, the number of such outputs, and where."""

    output: int
    mean: float
    z: float
    partly: bool
    count: int = 1


def _identities(facts: Facts) -> Iterator[Finding]:
    """Check the mean of 1[y = a]/p for all outputs, over all rows and over parts of them, and the mean of 1/p."""
    checked = Checked.of(facts)
    if not len(checked.names):
        text = "label sets are too many, and too rare each, to check their propensities one by one"
        yield Finding("propensities", "mean of 1/p", None, "fit", text)
        return
    overall = inverse_means(checked.inverse, checked.code, checked.due, pairs=checked.pairs)
    # Label sets were chosen for being frequent: as many looks as there are sets.
    limit = threshold(len(facts.counts) * (1 + len(facts.slices)))
    high = _too_high(facts, checked, overall, limit)
    yield _total(facts, len(checked.names)) if high is None else _wrong(facts, checked, high)
    if facts.n_outputs is not None:
        yield from _too_low(facts, checked, overall, limit)


def _too_high(facts: Facts, checked: Checked, overall: Means, limit: float) -> TooHigh | None:
    """Return what is too high, over all rows or in a part of the contexts.

    What was not available, if the log does not say so, can only lower it.
    """
    wrong: dict[int, TooHigh] = {}
    for part in (None, *facts.slices):
        found = overall
        if part is not None:
            due = np.ones(len(checked.due)) if facts.log.available is None else facts.due(part)
            found = inverse_means(checked.inverse, checked.code, due, part, checked.pairs)
        for at in np.flatnonzero((found.z > limit) & (found.mean > found.due * (1.0 + MATERIAL))):
            output, z = int(found.outputs[at]), float(found.z[at])
            if output not in wrong or z > wrong[output].z:
                wrong[output] = TooHigh(output, float(found.mean[at] / found.due[at]), z, part is not None)
    worst = max(wrong.values(), key=lambda one: one.z, default=None)
    return None if worst is None else replace(worst, count=len(wrong))


def _wrong(facts: Facts, checked: Checked, high: TooHigh) -> Finding:
    where = " in a part of the contexts" if high.partly else ""
    name = facts.name_of(int(checked.names[high.output]))
    where_available = "" if facts.offered is None else " where it was available"
    text = (
        f"1/p, summed over the rows of an output and divided by all rows{where_available}, should be 1, and is too "
        f"high for {high.count:,} of "
        f"{len(checked.names):,} {'outputs' if facts.one_each else 'label sets'}: {name} has {high.mean:.3g}{where}, "
        f"{high.z:.0f} standard errors too much. Its propensities are too low"
    )
    if np.ptp(facts.log.log_propensity) < 1e-9:
        text += ", as they are all the same while outputs are not equally frequent"
    verdict: Verdict = "unfit" if high.mean > 1.0 + WRONG else "with care"
    return Finding("propensities", "mean of 1/p", high.mean, verdict, text, CHECK)


def _total(facts: Facts, checked: int) -> Finding:
    """Report the mean of 1/p: the number of outputs, if all of them were possible everywhere."""
    if facts.n_outputs is None:
        text = (
            f"the mean of 1/p is not above 1 for any of the {checked} commonest label sets: nothing speaks against them"
        )
        return Finding("propensities", "mean of 1/p", None, "fit", text)
    due = float(facts.n_outputs) if facts.offered is None else float(facts.due().sum())
    mean, z = _mean_inverse(facts, due)
    there = f"there are {due:.4g} outputs" if facts.offered is None else f"{due:.4g} actions are available on average"
    text = f"the mean of 1/p is {mean:.4g}; {there}"
    if z > LEAST_Z and mean > due * (1.0 + MATERIAL):
        verdict: Verdict = "unfit" if mean > due * (1.0 + WRONG) else "with care"
        text += f": {z:.0f} standard errors too high, so that propensities are too low"
        return Finding("propensities", "mean of 1/p", mean, verdict, text, CHECK)
    return Finding("propensities", "mean of 1/p", mean, "fit", f"{text}, and none of them has too high a share in it")


def _mean_inverse(facts: Facts, due: float) -> tuple[float, float]:
    """Return the mean of 1/p, and its distance from the expected value in standard errors."""
    inverse, n = facts.inverse, len(facts.inverse)
    mean = float(inverse.mean())
    variance = max(float(inverse.var()), due * float(inverse @ inverse) / float(inverse.sum()) - due * due, 1e-12) / n
    if facts.group is None:
        return mean, float((mean - due) / np.sqrt(variance))
    pairs, every = Pairs.of(facts.group, np.zeros(n, dtype=np.int64)), np.ones(n)
    variance = max(variance, float(pairs.variance(inverse, every, np.array([mean]), np.array([due]))[0]))
    return mean, float(as_normal(np.array([mean - due]) / np.sqrt(variance), pairs.sizes(every))[0])


def _too_low(facts: Facts, checked: Checked, means: Means, limit: float) -> Iterator[Finding]:
    """Report how many outputs were possible, and which were hardly ever tried in some contexts.

    E[1/p | x] is the number of outputs that the logging policy may choose in x.
    """
    low = np.flatnonzero((means.z < -limit) & (means.mean < means.due * (1.0 - MATERIAL)))
    due = float(checked.due.sum())
    mean, z = _mean_inverse(facts, due)
    fewer = z < -LEAST_Z and mean < due * (1.0 - MATERIAL)
    if not len(low) and not fewer:
        return
    parts = []
    if fewer:
        what = "outputs" if facts.offered is None else "available actions"
        parts.append(f"on average about {mean:.3g} of {due:.3g} {what} were possible (the mean of 1/p)")
    if len(low):
        worst = low[np.argmin(means.mean[low] / means.due[low])]
        name = facts.name_of(int(checked.names[means.outputs[worst]]))
        parts.append(
            f"{len(low):,} of {len(checked.names):,} outputs were not possible, or hardly ever tried, in some "
            f"contexts: {name} is missing in about {percent(1.0 - means.mean[worst] / means.due[worst])} of them"
        )
    advice = "Explore more, or check that the propensities are not too high."
    if facts.offered is None:
        advice = (
            "If outputs are not always available, log what is, and never let a policy choose others; if they are, "
            "explore more, or check that the propensities are not too high."
        )
    yield Finding("support", "weight of outputs", float(len(low)), "with care", "; ".join(parts), advice)
