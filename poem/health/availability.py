"""What could be chosen: the size of the lists, and how often each action was available and chosen."""

from collections.abc import Iterator

import numpy as np

from poem.arrays import IntArray
from poem.data import has_kinds
from poem.health.facts import Facts
from poem.health.finding import Finding, Tried, Verdict, listed, percent
from poem.text import counted

MOST_SINGLE = 0.5  # the share of rows without a choice from which most of the log teaches nothing
FEW_ROWS = 10  # fewer rows than that say next to nothing of an action


def availability(facts: Facts) -> Iterator[Finding]:
    """Report how many actions rows could choose among, and which were never chosen."""
    if facts.choices is None:
        return
    low, median, high = np.quantile(facts.choices, [0.0, 0.5, 1.0], method="lower").astype(int)
    text = f"{low:,} to {high:,} available actions per row, median {median:,}; "
    if low == high:
        text = f"{counted(int(low), 'available action')} in every row; "
    text += f"{int((facts.due() > 0.0).sum()):,} different ones"
    yield Finding("availability", "available actions", float(median), "fit", text)
    yield from _features(facts)
    yield from _single(facts)
    yield from _never(facts)


def _features(facts: Facts) -> Iterator[Finding]:
    """Report the features of actions, and those that are the same in all of them; hashed ones may be unused."""
    available, log = facts.log.available, facts.log
    if available is None or available.features is None:
        return
    z, ids = available.features, len(log.structure.known_labels(log.labels))
    width, rows = z.shape[1] - ids, z.shape[0]
    own = f" and one of its own for each of {ids:,} actions" if ids else ""
    text = f"{counted(width, 'feature')} of actions{own}, {z.nnz / max(1, rows):.1f} non-zeros each"
    yield Finding("availability", "features of actions", float(width), "fit", text)
    low, high = (np.asarray(end.toarray()).ravel()[:width] for end in (z.min(axis=0), z.max(axis=0)))
    constant = np.flatnonzero((low == high) & (high != 0.0))
    if len(constant) and rows > 1:
        names = [str(j) if log.action_names is None else log.action_names[j] for j in constant[:5].tolist()]
        text = f"{counted(len(constant), 'feature')} of actions never change: {listed(names, count=len(constant))}"
        yield Finding("availability", "constant features of actions", float(len(constant)), "fit", text)


def _single(facts: Facts) -> Iterator[Finding]:
    """Report the rows in which there was nothing to choose."""
    assert facts.choices is not None
    single = facts.choices == 1.0
    share = float(single.mean())
    if share == 0.0:
        return
    if share == 1.0:
        text = "every row has one available action: there was nothing to choose"
        yield Finding("availability", "single actions", 1.0, "unfit", text, "Log all actions that were available.")
        return
    rows = counted(int(single.sum()), "row")
    text = f"{rows} ({percent(share)}) with one available action: nothing can be learnt there"
    verdict: Verdict = "with care" if share >= MOST_SINGLE else "fit"
    advice = "If other actions could have been chosen, log them as available." if verdict != "fit" else ""
    yield Finding("availability", "single actions", share, verdict, text, advice)


def _never(facts: Facts) -> Iterator[Finding]:
    """Report the actions that were available and never chosen, or hardly ever."""
    assert facts.offered is not None
    log, counts = facts.log, facts.counts
    never = np.flatnonzero((facts.offered > 0.0) & (counts == 0))
    seldom = np.flatnonzero((counts > 0) & (counts < FEW_ROWS))
    # What features say of an action is learnt from others.
    verdict: Verdict = "fit" if has_kinds(log) else "with care"
    if len(never):
        chances = float((facts.offered[never]).sum() / facts.offered.sum())
        text = (
            f"{len(never):,} of {int((facts.offered > 0.0).sum()):,} actions were available and never chosen "
            f"({percent(chances)} of all candidates): {_named(facts, never)}"
        )
        advice = "" if verdict == "fit" else "The log cannot say what they would cost. Choose each now and then."
        yield Finding("availability", "never chosen", float(len(never)), verdict, text, advice)
    if len(seldom):
        text = f"{counted(len(seldom), 'action')} chosen in fewer than {FEW_ROWS} rows: {_named(facts, seldom)}"
        advice = "" if verdict == "fit" else "Next to nothing can be learnt about them."
        yield Finding("availability", "rarely chosen", float(len(seldom)), verdict, text, advice)


def _named(facts: Facts, actions: IntArray) -> str:
    """Return the names of actions, those that were available most often first."""
    assert facts.offered is not None
    order = actions[np.argsort(-facts.offered[actions], kind="stable")]
    return listed([facts.log.labels[code] for code in order[:5]], most=4, count=len(order))


def tried(facts: Facts, most: int) -> tuple[Tried, ...]:
    """Return how often the actions that were available most often were available and chosen."""
    if facts.offered is None or facts.log.available is None:
        return ()
    n, labels = len(facts.log), facts.log.labels
    order = np.argsort(-facts.offered, kind="stable")[:most]
    order = order[facts.offered[order] > 0.0]
    return tuple(
        Tried(
            str(labels[code]),
            int(facts.offered[code]),
            float(facts.offered[code] / n),
            int(facts.counts[code]),
            float(facts.counts[code] / facts.offered[code]),
        )
        for code in order.tolist()
    )
