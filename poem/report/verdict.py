"""Estimates and diagnostics → a verdict in words: what was found, what it rests on, and what to do next."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from poem.evaluation import Evaluation, Line
from poem.report.wording import Decimals, count, counted, percent, rough

Kind = Literal["better", "not shown", "worse", "cannot be told"]
Seen = Literal["same", "different", "unknown"]  # the log of the report, to the one the policy was trained on

POWER = 0.8  # the chance that an A/B test finds the gain, for the size that is proposed
FEW_ENOUGH, MOST_ROWS = 1000, 1e12  # decisions of a test, between which their number is worth a word
ESTIMATORS = {
    "DR": "the doubly robust estimator (DR), which corrects a model of the {name} by the weighted errors that it makes "
    "on the logged rows",
    "SNIPS": "the self-normalised estimator (SNIPS), which weights each logged row by how much more, or less, often "
    "the new policy would choose the same",
}


@dataclass(frozen=True)
class Outcome:
    """What the log's number is called, and which way is better; ``sign`` turns a loss into it."""

    name: Literal["loss", "reward"]

    @property
    def sign(self) -> float:
        """−1 for rewards, which are kept as negative losses."""
        return 1.0 if self.name == "loss" else -1.0

    @property
    def better(self) -> str:
        """How a better number is."""
        return "lower" if self.name == "loss" else "higher"

    @property
    def worse(self) -> str:
        """How a worse number is."""
        return "higher" if self.name == "loss" else "lower"


@dataclass(frozen=True)
class Range:
    """A number and its interval."""

    value: float
    low: float
    high: float

    @property
    def bounded(self) -> bool:
        """Whether all of it is known."""
        return math.isfinite(self.value) and math.isfinite(self.low) and math.isfinite(self.high)

    def times(self, factor: float) -> "Range":
        """Return a multiple; a negative one turns the interval round."""
        low, high = sorted((self.low * factor, self.high * factor))
        return Range(self.value * factor, low, high)


@dataclass(frozen=True)
class Verdict:
    """What the page says first."""

    kind: Kind
    headline: str
    summary: tuple[str, ...]
    warnings: tuple[str, ...]
    next_steps: tuple[str, ...]


def gain_of(line: Line, outcome: Outcome) -> Range:
    """Return how much better a policy is than what it is compared with: above 0 is better, for losses and rewards."""
    return Range(line.difference, line.difference_low, line.difference_high).times(-outcome.sign)


def value_of(line: Line) -> Range:
    """Return the estimated mean outcome."""
    return Range(line.value, line.low, line.high)


def kind_of(gain: Range, trusted: bool) -> Kind:
    """Return what an interval of the gain shows, if it can be trusted."""
    if not trusted or not gain.bounded:
        return "cannot be told"
    if gain.low > 0.0:
        return "better"
    return "worse" if gain.high < 0.0 else "not shown"


@dataclass(frozen=True)
class Case:
    """All that a verdict rests on."""

    evaluation: Evaluation
    outcome: Outcome
    headline: str
    decimals: Decimals
    bounds: tuple[float, float]  # of the logged losses
    seen: Seen
    other_seen: bool = False
    versus: Range | None = None

    @property
    def line(self) -> Line:
        """The estimate that the verdict is about."""
        return self.evaluation["new", self.headline]

    @property
    def gain(self) -> Range:
        """How much better than the log."""
        return gain_of(self.line, self.outcome)

    @property
    def percent(self) -> str:
        """The level as a percentage."""
        return f"{100.0 * self.evaluation.level:g}%"


def reach_verdict(case: Case) -> Verdict:
    """Say it in words."""
    kind = kind_of(case.gain, case.line.verdict != "don't")
    return Verdict(
        kind, _headline(kind, case.seen), _summary(kind, case), _warnings(case), tuple(_next_steps(kind, case))
    )


def _headline(kind: Kind, seen: Seen) -> str:
    if kind == "better" and seen == "same":
        return "The new policy looks better, but on rows that it learnt from"
    return {
        "better": "The new policy is better than what was logged",
        "not shown": "The new policy is not shown to be better",
        "worse": "The new policy is worse than what was logged",
        "cannot be told": "This log cannot tell whether the new policy is better",
    }[kind]


def _summary(kind: Kind, case: Case) -> tuple[str, ...]:
    told = [_means(case), *([] if case.versus is None else [_against_other(case.versus, case)]), _rests_on(case)]
    if kind == "cannot be told":
        return ("The figures here are for the record only: the log holds too little about this policy.", *told)
    return (*told, _agreement(case))


def _means(case: Case) -> str:
    show, name = case.decimals.show, case.outcome.name
    new, old = case.line.value, case.evaluation.logged.value
    means = f"Its average {name} is estimated at {show(new)}, against {show(old)} in the log"
    return f"{means}: {_compared(case.gain, case)}{_relative(case.gain, old)}."


def _compared(gain: Range, case: Case) -> str:
    """Say a gain as a difference of the outcome, with its interval."""
    if not math.isfinite(gain.value):
        return "the difference is not known"
    way = case.outcome.better if gain.value >= 0.0 else case.outcome.worse
    size = case.decimals.show(abs(gain.value))
    if not gain.bounded:
        return f"{way} by {size}, with an unbounded {case.percent} interval"
    ends = case.decimals.interval(gain.low, gain.high, signed=True)
    return f"{way} by {size} ({case.percent} interval of the gain: {ends})"


def _relative(gain: Range, old: float) -> str:
    if old == 0.0 or not gain.bounded:
        return ""
    share = gain.times(1.0 / abs(old))
    ends = f"{percent(share.low, signed=True)} to {percent(share.high, signed=True)}"
    return f", a gain of {percent(share.value, signed=True)} ({ends})"


def _rests_on(case: Case) -> str:
    logged, found = case.evaluation.logged, case.evaluation.diagnostics["new"]
    units = "all independent" if logged.units == logged.n else f"in {counted(logged.units, 'independent unit')}"
    effective = rough(found["effective units"].value)
    how = ESTIMATORS[case.headline].format(name=case.outcome.name)
    return (
        f"This rests on {counted(logged.n, 'logged row')}, {units}, which say as much about the new policy as "
        f"{effective} of its own would, and on {how}."
    )


def _agreement(case: Case) -> str:
    gains = [gain_of(line, case.outcome) for line in case.evaluation.lines if line.policy == "new"]
    up, surely = sum(gain.value > 0.0 for gain in gains), sum(gain.low > 0.0 for gain in gains)
    down = sum(gain.high < 0.0 for gain in gains)
    told = f"Of {len(gains)} estimators, {up} put it above the log and {surely} of them with {case.percent} confidence"
    return f"{told}; {down} put it below with that confidence." if down else f"{told}."


def _against_other(versus: Range, case: Case) -> str:
    kind = kind_of(versus, case.line.verdict != "don't" and case.evaluation.diagnostics["other"].verdict != "don't")
    word = {
        "better": "It is better than the other policy",
        "not shown": "It is not shown to be better than the other policy",
        "worse": "It is worse than the other policy",
        "cannot be told": "Whether it is better than the other policy cannot be told",
    }[kind]
    return f"{word}: {_compared(versus, case)}, on the same rows."


def _warnings(case: Case) -> tuple[str, ...]:
    found = []
    if case.seen == "same":
        found.append(
            "The policy was trained on this very log, so that all estimates here are optimistic: it has seen the rows "
            "it is judged by. Make the report on rows that were not used in training."
        )
    if case.seen == "unknown":
        found.append(
            "The policy does not say which log it was trained on. If it was this one, or a part of it, all estimates "
            "here are optimistic."
        )
    if case.evaluation.propensities == "estimated":
        found.append("The propensities are estimated, not logged, and no interval here accounts for that.")
    if case.other_seen:
        found.append("The other policy was trained on this very log, which flatters it.")
    if not case.bounds[0] <= case.outcome.sign * case.line.value <= case.bounds[1]:
        found.append(f"The estimate is beyond every {case.outcome.name} that was logged: do not take it literally.")
    return (*found, *(_sentence(reason) for reason in case.evaluation.diagnostics["new"].reasons))


def _sentence(reason: str) -> str:
    return f"{reason[:1].upper()}{reason[1:]}."


# ---- what to do next ------------------------------------------------------------------------


def _next_steps(kind: Kind, case: Case) -> list[str]:
    if case.seen == "same":
        return ["Judge it on rows that it has not seen, for example on a later week, before anything else."]
    return {"better": _if_better, "not shown": _if_not_shown, "worse": _if_worse, "cannot be told": _if_unknown}[kind](
        case
    )


def _if_better(case: Case) -> list[str]:
    steps = [
        f"Run an A/B test of the new policy against what is running. {_size_of_test(case)}",
        "Let it keep exploring while it runs, policy.with_floor(0.01), and log its propensities, so that the next "
        "policy can be learnt from its log.",
    ]
    if case.line.verdict == "caution":
        steps.insert(0, "Read the warnings first: they say what could make the estimate wrong.")
    return steps


def _if_not_shown(case: Case) -> list[str]:
    gain = case.gain
    steps = ["Keep what is running for now; nothing here says that the change would pay."]
    if gain.value > 0.0:
        times = ((gain.value - gain.low) / gain.value) ** 2
        if times * case.evaluation.logged.n < MOST_ROWS:
            steps.append(
                f"If a gain of this size matters, log more: about {rough(times)} times as many rows would show it, "
                "if it is real."
            )
    return [*steps, "Or learn again: from more rows, or with features that say more."]


def _if_worse(case: Case) -> list[str]:
    return [
        "Keep what is running.",
        "Look at what changes below: outputs that rise although their logged "
        f"{case.outcome.name} is {case.outcome.worse} than average show what went wrong.",
    ]


def _if_unknown(case: Case) -> list[str]:
    return [
        "Do not decide by these figures.",
        "Log more, and with more randomness, or with a policy nearer to the new one: what counts is how often the log "
        "holds what the new policy would choose.",
        "Or judge a policy that stays nearer to the log, such as this one with a floor of the policy that is running: "
        "policy.with_floor(0.5, other=running).",
    ]


def _size_of_test(case: Case) -> str:
    size = rows_of_test(case)
    if size > MOST_ROWS:
        return ""
    if size < FEW_ENOUGH:
        return f"Fewer than {count(FEW_ENOUGH)} decisions on each side would confirm a gain of this size."
    return f"About {rough(size)} decisions on each side would confirm a gain of this size."


def rows_of_test(case: Case) -> float:
    """Return how many decisions each side of an A/B test needs to find the estimated gain."""
    logged, gain = case.evaluation.logged, case.gain.value
    if not gain:
        return math.inf
    deviation = logged.stderr * math.sqrt(logged.n)  # a row's, with what rows of one unit share
    reach = special.ndtri(0.5 + case.evaluation.level / 2.0) + special.ndtri(POWER)
    with np.errstate(over="ignore"):  # a gain may be as small as numbers are
        return float(2.0 * np.square(reach * deviation / gain))
