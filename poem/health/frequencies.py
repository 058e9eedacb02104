"""Do outputs occur as often as their propensities say, in contexts that were seen many times?

An output that was chosen in a context was possible there. So this check can tell unavailable outputs from propensities
that are too high, which :mod:`poem.health.propensities` cannot. It also works for label sets, which are too many for
the other checks.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import special

from poem.arrays import IntArray
from poem.health.facts import Facts, mixed, numbered
from poem.health.finding import Finding, percent
from poem.health.grouped import one_of_each
from poem.text import counted

EXPECTED = 5.0  # rows that a cell of context and output should have for a χ² test
UNLIKELY = 1e-6  # p-values of the χ² test below which it is not chance
SAME = 0.01  # how far apart, relatively, equal propensities may be …
CHANGING = 0.02  # … and in what share of the rows of repeated contexts they may differ all the same
RMS_MATERIAL, RMS_WRONG = 0.1, 0.5  # relative errors of propensities in repeated contexts

CHECK = (
    "Check that each propensity is the probability of the logged output at the moment of the decision, after all "
    "filters and exploration, and that no rows were dropped or sampled by what was chosen."
)


def repeated_contexts(facts: Facts) -> Iterator[Finding]:
    """Compare the frequency of outputs with their propensities in contexts that were seen often (a χ² test).

    In n rows of one context, Σ 1/p over the rows of an output has mean n and variance n·(1/p − 1). Only cells with at
    least five expected rows count. The expected number depends on p alone, not on the draws, as long as the propensity
    is the same each time. If the logging policy changes, or knows more than the context, the comparison fails: rows
    with a very small p are missing, and with them their weight. If rows are not independent, one row per group counts:
    a group may have kept one decision through many contexts, so that these contexts all say the same. Where rows have
    available actions of their own, a context is the same if these are.
    """
    rows = np.arange(len(facts.log)) if facts.group is None else one_of_each(facts.group)
    seen = np.bincount(facts.situation[rows], minlength=int(facts.situation.max()) + 1)
    often = rows[seen[facts.situation[rows]] > EXPECTED]
    if not len(often):
        if facts.group is not None and np.bincount(facts.situation).max() > EXPECTED:
            text = "contexts do not repeat often enough in different groups to compare frequencies with propensities"
            yield Finding("propensities", "frequencies", None, "fit", text)
        return
    cells = _Cells.of(facts, often, seen)
    if cells.changing > CHANGING:
        text = f"{percent(cells.changing)} of the propensities differ from earlier ones for the same context and "
        text += "output: the logging policy changed, or knew more than the context"
        yield Finding("propensities", "changing", cells.changing, "fit", text)
    elif cells.count:
        yield _frequencies(cells, "" if facts.group is None else ", in one row of each group")


@dataclass(frozen=True)
class _Cells:
    """Cells of context and output: how many can be compared, Pearson's χ², and the expected numbers of rows.

    A row that is not in one cell of a context is in another, so (N − np)²/np of a cell with share p has mean 1 − p.
    These means sum to ``freedom``; if all outputs of a context are present, to their number minus one. If some are
    missing, χ² varies a little less than with that many degrees of freedom, which causes no false alarm. ``changing``
    is the share of rows whose propensity differs from that of their cell.
    """

    count: int
    squares: float
    freedom: float
    rows: float
    changing: float

    @staticmethod
    def of(facts: Facts, often: IntArray, seen: IntArray) -> "_Cells":
        context, inverse = facts.situation[often], facts.inverse[often]
        cell = numbered(mixed([context, facts.code[often]]))
        first, second, n = np.bincount(cell, inverse), np.bincount(cell, inverse * inverse), np.zeros(cell.max() + 1)
        n[cell] = seen[context]
        mean = first / np.bincount(cell)
        odds = second / first - 1.0  # 1/p − 1
        due = n / (odds + 1.0)
        good = (due >= EXPECTED) & (n - due >= EXPECTED)
        p = due[good] / n[good]
        squares = p * (first[good] - n[good]) ** 2 / n[good]
        changing = float(np.mean(np.abs(inverse / mean[cell] - 1.0) > SAME))
        return _Cells(int(good.sum()), float(squares.sum()), float((1.0 - p).sum()), float(due[good].sum()), changing)

    @property
    def p_value(self) -> float:
        """How often right propensities look at least this wrong."""
        return float(special.chdtrc(self.freedom, self.squares))


def _frequencies(cells: _Cells, whose: str) -> Finding:
    compared = f"{counted(cells.count, 'comparison')}{whose}"
    rms = float(np.sqrt(max(0.0, cells.squares - cells.freedom) / cells.rows))
    if cells.p_value >= UNLIKELY or rms <= RMS_MATERIAL:
        text = f"in contexts that repeat, outputs are as frequent as they say ({compared})"
        return Finding("propensities", "frequencies", rms, "fit", text)
    text = (
        f"in contexts that repeat, outputs are not as frequent as their propensities say: off by {percent(rms)} in "
        f"{compared}"
    )
    return Finding("propensities", "frequencies", rms, "unfit" if rms > RMS_WRONG else "with care", text, CHECK)
