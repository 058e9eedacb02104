"""The result of an inspection: findings and a verdict with reasons, as text for a terminal or as data."""

import json
import math
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

from poem.text import Grid, Sheet, visible_line

Verdict = Literal["fit", "with care", "unfit"]
Topic = Literal[
    "rows",
    "contexts",
    "features",
    "outputs",
    "availability",
    "loss",
    "propensities",
    "support",
    "duplicates",
    "groups",
    "time",
    "certificates",
    "learning",
]
VERDICTS: tuple[Verdict, ...] = ("fit", "with care", "unfit")  # from the best to the worst
TOPICS: tuple[Topic, ...] = Topic.__args__  # type: ignore[attr-defined]
MARKS = {"fit": "✓", "with care": "!", "unfit": "✗"}
WIDTH = 112  # columns of the report
MOST_ACTIONS, SHOWN_ACTIONS = 100, 10  # in the table of actions: as data, and in print
SPACE = "\u00a0"  # at which no line is broken
SUMMARIES = {
    "fit": "fit for learning: nothing speaks against this log.",
    "with care": "fit for learning, with care:",
    "unfit": "unfit for learning as it is:",
}


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes
    ----------
    topic, name : str
        What it is about, for people and for programs.
    value : float or None
        The number behind it, if there is one.
    verdict : "fit", "with care" or "unfit"
    text : str
        What was found, in words.
    advice : str
        What to do about it; empty if there is nothing to do.
    """

    topic: Topic
    name: str
    value: float | None
    verdict: Verdict
    text: str
    advice: str = ""

    @property
    def reason(self) -> str:
        """The finding and its advice, in whole sentences."""
        found = self.text[:1].upper() + self.text[1:] + "."
        return f"{found} {self.advice}".rstrip()


@dataclass(frozen=True)
class Tried:
    """One action: in how many rows it was available and chosen.

    ``share_available`` is of all rows, ``share_chosen`` of those in which it was available.
    """

    action: str
    available: int
    share_available: float
    chosen: int
    share_chosen: float


@dataclass(frozen=True)
class Health:
    """Whether a log is fit for learning, and why; see :func:`poem.health.inspect`.

    Attributes
    ----------
    name : str
        Where the log comes from.
    findings : tuple of Finding
        The results of all checks, by topic.
    actions : tuple of Tried
        How often actions were available and chosen, those that were available most often first; at most
        MOST_ACTIONS of them. Empty if everything was available in every row.
    """

    name: str
    findings: tuple[Finding, ...]
    actions: tuple[Tried, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """The worst of all findings."""
        return max((finding.verdict for finding in self.findings), key=VERDICTS.index, default="fit")

    @property
    def problems(self) -> list[Finding]:
        """The findings that count against the log, worst first."""
        against = [finding for finding in self.findings if finding.verdict != "fit"]
        return sorted(against, key=lambda finding: -VERDICTS.index(finding.verdict))

    @property
    def reasons(self) -> list[str]:
        """Why the verdict is not better and what to do, worst first."""
        return [finding.reason for finding in self.problems]

    @property
    def fit(self) -> bool:
        """Whether the log is fit for learning, perhaps with care."""
        return self.verdict != "unfit"

    def of(self, name: str) -> Finding | None:
        """Return the finding with this name, if there is one."""
        return next((finding for finding in self.findings if finding.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, with None for numbers that are not finite."""
        findings = [asdict(finding) | {"value": finite(finding.value)} for finding in self.findings]
        found = {"log": self.name, "verdict": self.verdict, "reasons": self.reasons, "findings": findings}
        return found | ({"actions": [asdict(one) for one in self.actions]} if self.actions else {})

    def to_json(self) -> str:
        """Return the same as JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False, indent=2, allow_nan=False)

    def __str__(self) -> str:
        body = [line for topic in TOPICS for line in self._topic_lines(topic)]
        reasons = [
            line
            for finding in self.problems
            for line in _wrapped(f"  {MARKS[finding.verdict]} ", "    ", finding.reason)
        ]
        table = ["", str(self._table())] if self.actions else []
        head = visible_line(f"{self.name}: is this log fit for learning?")
        return "\n".join([head, "", *body, *table, "", self._summary(), *reasons])

    def _repr_html_(self) -> str:
        rows = [(finding.topic, MARKS[finding.verdict], finding.text) for finding in self.findings]
        reasons = (f"{MARKS[finding.verdict]} {finding.reason}" for finding in self.problems)
        table = (self._table(),) if self.actions else ()
        return Sheet(f"{self.name}: {self._summary()}", Grid(("", "", ""), rows, left=3), *table, *reasons).html()

    def _table(self) -> Grid:
        rows = [
            (
                shortened(one.action, 40),
                f"{one.available:,} ({percent(one.share_available)})",
                f"{one.chosen:,} ({percent(one.share_chosen)})",
            )
            for one in self.actions[:SHOWN_ACTIONS]
        ]
        return Grid(("most often available", "in rows", "chosen in (of these)"), rows, left=1)

    def _topic_lines(self, topic: Topic) -> Iterable[str]:
        mine = [finding for finding in self.findings if finding.topic == topic]
        for position, finding in enumerate(mine):
            head = f"{topic if position == 0 else '':<13}{MARKS[finding.verdict]} "
            yield from _wrapped(head, " " * len(head), finding.text)

    def _summary(self) -> str:
        return f"Verdict: {SUMMARIES[self.verdict]}"


def _wrapped(first: str, rest: str, text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


def finite(value: float | None) -> float | None:
    """Return a number for JSON: None if it is not finite."""
    return None if value is None or not math.isfinite(value) else float(value)


# ---- numbers in words -----------------------------------------------------------------------------


def percent(share: float) -> str:
    """Return a share as a percentage with few digits."""
    size = abs(100.0 * share)
    if 0.0 < size < 0.01:
        return f"<{SPACE}0.01%"
    decimals = 2 if 0.0 < size < 1.0 or 99.9 < size < 100.0 else 1 if 1.0 <= size < 10.0 or 99.0 < size < 100.0 else 0
    return f"{100.0 * share:,.{decimals}f}%"


def p_value(p: float) -> str:
    """Return a p-value in words."""
    return f"p{SPACE}<{SPACE}1e-9" if p < 1e-9 else f"p{SPACE}={SPACE}{p:.1g}"


def listed(names: Iterable[Any], most: int = 4, count: int | None = None) -> str:
    """Return the first few names and how many more there are; ``count`` is their number, if not all are given."""
    every = [repr(name) if isinstance(name, str) else str(name) for name in names]
    count = len(every) if count is None else count
    more = f" and {count - most:,} more" if count > most else ""
    return ", ".join(every[:most]) + more


def shortened(text: str, most: int) -> str:
    """Return a text of at most this many characters."""
    return text if len(text) <= most else text[: most - 1].rstrip() + "…"
