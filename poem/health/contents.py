"""What is in a log: rows, contexts, features, outputs and losses."""

from collections.abc import Iterator

import numpy as np

from poem.arrays import IntArray
from poem.certificates import extremes, heavy_tail
from poem.compute import is_sparse
from poem.evaluation import MIN_ROWS
from poem.health.facts import Facts
from poem.health.finding import Finding, Verdict, listed, percent, shortened
from poem.health.suspects import suspects
from poem.readers import RawLog
from poem.text import counted

FEW_ROWS = 10  # fewer rows than that say next to nothing of an output
COMMON = 0.01  # the share of rows from which a loss is worth naming
SAMPLED = "{rows:,} rows of units drawn at random are inspected, and what is under learning is for all rows"


def rows(facts: Facts, total: int) -> Iterator[Finding]:
    """Report the number of rows; with fewer than MIN_ROWS the theory says nothing and poem.fit refuses."""
    if facts.packed is not None and facts.share < 1.0:
        text = f"{facts.n_rows:,} rows, {facts.packed.n_units:,} independent; {SAMPLED.format(rows=len(facts.log))}"
        yield Finding("rows", "rows", float(facts.n_rows), "fit", text)
        return
    n = len(facts.log)
    left_out = "" if n == total else f"; {total - n:,} of {total:,} are left out of what follows"
    verdict: Verdict = "fit" if n >= MIN_ROWS else "unfit"
    text = f"{counted(n, 'row')}{' that can be used' if left_out else ''}{left_out}"
    yield Finding("rows", "rows", float(n), verdict, text, f"Learning needs at least {MIN_ROWS} rows. Collect more.")


def contexts(facts: Facts) -> Iterator[Finding]:
    """Report the number of distinct contexts. Learning needs several; repeats are fine."""
    n, distinct = len(facts.log), facts.n_contexts
    if distinct == 1 and facts.log.structure.described:
        text = "all rows have one and the same context: they differ in what was available"
        yield Finding("contexts", "contexts", 1.0, "fit", text)
        return
    if distinct == 1:
        text = "all rows have one and the same context: a policy can learn which output is best, not for whom"
        advice = "If there should be features, check which columns are the context (--context)."
        yield Finding("contexts", "contexts", 1.0, "with care", text, advice)
        return
    repeat = f"{percent(1.0 - distinct / n)} of the rows repeat one" if distinct < n else "none is seen twice"
    yield Finding("contexts", "contexts", float(distinct), "fit", f"{distinct:,} different contexts; {repeat}")


# ---- features -------------------------------------------------------------------------------------


def features(facts: Facts, raw: RawLog | None) -> Iterator[Finding]:
    """Report the features, those that are constant, and those that identify rows or say when they were."""
    log = facts.log
    kind = f"sparse, {log.X.nnz / max(1, log.n_contexts):.1f} non-zeros per context" if is_sparse(log.X) else "dense"
    recipe = "" if log.features is None else f"; {shortened(str(log.features), 150)}"
    yield Finding(
        "features", "features", float(log.n_features), "fit", f"{counted(log.n_features, 'feature')} ({kind}){recipe}"
    )
    yield from suspects(facts, raw)


# ---- outputs --------------------------------------------------------------------------------------


def outputs(facts: Facts) -> Iterator[Finding]:
    """Report how often each output was chosen. Nothing can be learnt about outputs that were hardly tried."""
    kinds = int(np.count_nonzero(facts.counts))
    if kinds == 1:
        text = (
            f"every row has the same output, {facts.name_of(int(np.argmax(facts.counts)))}: nothing to compare it with"
        )
        yield Finding("outputs", "outputs", 1.0, "unfit", text, "Log with some randomness.")
        return
    yield from _classes(facts) if facts.one_each else _label_sets(facts, kinds)


def _classes(facts: Facts) -> Iterator[Finding]:
    counts, labels, n = facts.counts, facts.log.labels, len(facts.log)
    most, least = int(np.argmax(counts)), int(np.argmin(np.where(counts > 0, counts, n + 1)))
    what = facts.log.structure.describe()
    what = what if facts.choices is None else f"one of what is available in each row, {len(labels):,} actions in all"
    text = (
        f"{what}; the commonest {labels[most]!r} in {percent(counts[most] / n)} of the rows, "
        f"the rarest logged one {labels[least]!r} in {percent(counts[least] / n)}"
    )
    yield Finding("outputs", "outputs", float(len(labels)), "fit", text)
    if facts.choices is None:  # else what counts is how often they were chosen where they were available
        yield from _rare(facts, counts, "class")


def _label_sets(facts: Facts, kinds: int) -> Iterator[Finding]:
    n, labels = len(facts.log), facts.log.labels
    chosen = facts.log.structure.indicators(facts.log.y).sum(axis=0).astype(np.int64)
    most, least = int(np.argmax(chosen)), int(np.argmin(np.where(chosen > 0, chosen, n + 1)))
    text = (
        f"{facts.log.structure.describe()}, {chosen.sum() / n:.2g} on average, {kinds:,} different sets; the "
        f"commonest label {labels[most]!r} in {percent(chosen[most] / n)} of the rows, the rarest logged one "
        f"{labels[least]!r} in {percent(chosen[least] / n)}"
    )
    yield Finding("outputs", "outputs", float(len(labels)), "fit", text)
    yield from _rare(facts, chosen, "label")
    always = [labels[j] for j in np.flatnonzero(chosen == n)]
    if always:
        text = f"{counted(len(always), 'label')} in every single row: {listed(always)}"
        advice = "Nothing is known of leaving them out; let policies keep them."
        yield Finding("outputs", "always logged", float(len(always)), "with care", text, advice)


def _rare(facts: Facts, number: IntArray, what: str) -> Iterator[Finding]:
    labels = facts.log.labels
    never = [labels[j] for j in np.flatnonzero(number == 0)]
    seldom = [labels[j] for j in np.flatnonzero((number > 0) & (number < FEW_ROWS))]
    if never:
        text = f"{len(never):,} of {len(labels):,} outputs known but never logged: {listed(never)}"
        advice = "The log cannot say what they would cost. Leave them out, or log some rows of them."
        yield Finding("outputs", "never logged", float(len(never)), "with care", text, advice)
    if seldom:
        text = f"{counted(len(seldom), what)} with fewer than {FEW_ROWS} rows: {listed(seldom)}"
        advice = "Next to nothing can be learnt about them."
        yield Finding("outputs", "rarely logged", float(len(seldom)), "with care", text, advice)


# ---- losses ---------------------------------------------------------------------------------------


def loss(facts: Facts) -> Iterator[Finding]:
    """Report the losses or rewards: whether they vary, and whether a few huge ones dominate."""
    word = facts.log.outcome
    values = facts.log.loss if word == "loss" else 0.0 - facts.log.loss
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) == 1:
        text = f"every row has the same {word}, {distinct[0]:g}: no output can be told to be better than another"
        yield Finding("loss", word, float(distinct[0]), "unfit", text, f"Check that the right column is the {word}.")
        return
    common = int(np.argmax(counts))
    share = counts[common] / len(values)
    usual = f"{percent(share)} of the rows have {distinct[common]:.4g}"
    usual = usual if share >= COMMON else f"{len(distinct):,} different values"
    text = f"{word}: mean {values.mean():.4g}, from {distinct[0]:.4g} to {distinct[-1]:.4g}; {usual}"
    yield Finding("loss", word, float(values.mean()), "fit", text)
    yield from _extremes(facts, word)


def _extremes(facts: Facts, word: str) -> Iterator[Finding]:
    """Report rows far from all others and heavy tails: losses may be worse than the log shows."""
    loss, sign = facts.log.loss, 1.0 if word == "loss" else -1.0
    few = extremes(loss)
    if few is not None:
        count = int(few.rows.sum())
        row = int(np.argmax(np.where(few.rows, np.abs(loss - np.median(loss)), -1.0)))
        beyond = "above" if (few.side == "upper") == (word == "loss") else "below"
        share = f"{percent(count / len(loss))} of the rows make up {percent(few.share)}"
        text = (
            f"{counted(count, 'row')} {'has' if count == 1 else 'have'} a {word} {beyond} {sign * few.limit:.3g} "
            f"(the farthest: {sign * loss[row]:.4g}, {facts.place(row)}): {share} of "
            f"{'the mean' if few.of_mean else 'the variance'}"
        )
        advice = f"If they are mistakes, fix them. If not, {_bounds(word)}: others may be rarer and worse still."
        yield Finding("loss", "outliers", few.share, "with care", text, advice)
        return
    tail = heavy_tail(loss)
    if tail.heavy:
        size = "large" if (tail.side == "upper") == (word == "loss") else "small"
        shape = f"a heavy tail (Pareto shape {tail.k:.2g})"
        text = f"{size} {_plural(word)} have {shape}: the log does not show how far they go"
        cap = f"{'cap' if size == 'large' else 'cut off'} the {word} at {sign * tail.cap:.3g}"
        advice = f"{_bounds(word).capitalize()}, or {cap}, which changes the mean distance from the median by 5%."
        yield Finding("loss", "heavy tail", tail.k, "with care", text, advice)


def _plural(word: str) -> str:
    return "losses" if word == "loss" else f"{word}s"


def _bounds(word: str) -> str:
    return f"say what bounds {_plural(word)} have (loss_bounds=, --loss-bounds)"
