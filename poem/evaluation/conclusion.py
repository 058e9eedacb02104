"""Is the policy better? The answer of an evaluation, by the estimator that decides."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poem.errors import InputError
from poem.estimators import ONLY_FOR

if TYPE_CHECKING:
    from poem.evaluation.table import Evaluation, Line

DECIDING = ("DR", "SNIPS")  # whose difference decides, unless the interval is for another one
SEEN = "cannot be told: the policy was trained on this very log, and its estimates are too good. Pass another log."


@dataclass(frozen=True)
class Conclusion:
    """Whether a policy is better than what it was compared with.

    Attributes
    ----------
    better : bool
        Whether it is, at the level of confidence, and the estimates can be believed.
    text : str
        The same in words.
    estimator : str or None
        The estimator that decided; None if none could.
    """

    better: bool
    text: str
    estimator: str | None = None

    def __str__(self) -> str:
        return f"Answer: {self.text}"


def conclude(evaluation: "Evaluation", policy: str | None = None, *, seen: bool = False) -> Conclusion:
    """Return whether a policy is better than what it was evaluated against.

    Parameters
    ----------
    evaluation : Evaluation
    policy : str, optional
        Its name; the first one by default.
    seen : bool
        Whether the policy was trained on this very log: then nothing can be told. An evaluation that recognises its log
        says so by itself.
    """
    line = deciding_line(evaluation, policy)
    if seen or line.policy in evaluation.trained_on_log:
        return Conclusion(False, SEEN)
    than = "what was logged" if evaluation.against == "logged" else "the other one"
    doubted = [name for name in evaluation.diagnostics if _doubted(evaluation, name)]
    if doubted:
        return Conclusion(False, f"not shown to be better than {than}: do not believe the estimates of {doubted[0]}.")
    below, above = bool(line.difference_high < 0.0), bool(line.difference_low > 0.0)
    better, worse = (below, above) if evaluation.outcome == "loss" else (above, below)
    word = "better" if better else "worse" if worse else "not shown to be better"
    word = f"estimated to be {word}" if evaluation.interval not in ONLY_FOR and not word.startswith("not") else word
    sure = f"by {line.estimator} with {evaluation.level:.0%} confidence"
    return Conclusion(better, f"{word} than {than}, {sure}.", line.estimator)


def deciding_line(evaluation: "Evaluation", policy: str | None = None) -> "Line":
    """Return the line that decides on a policy; see :func:`deciding`."""
    name = next(iter(evaluation.diagnostics)) if policy is None else policy
    lines = {line.estimator: line for line in evaluation.lines if line.policy == name}
    if not lines:
        raise InputError(f"there is no policy {name!r}; there are {list(evaluation.diagnostics)}.")
    return lines[deciding(lines, evaluation.interval)]


def deciding(estimators: Iterable[str], interval: str) -> str:
    """Return which of the estimators decides: the interval's own, else DR, else SNIPS, else the first."""
    names = list(estimators)
    own = (ONLY_FOR[interval],) if interval in ONLY_FOR else ()
    return next((one for one in (*own, *DECIDING) if one in names), names[0])


def _doubted(evaluation: "Evaluation", policy: str) -> bool:
    """Tell whether not to believe an interval; one that holds for any number of rows needs right propensities only."""
    diagnostics = evaluation.diagnostics[policy]
    verdict = diagnostics["mean weight"].verdict if evaluation.interval in ONLY_FOR else diagnostics.verdict
    return verdict == "don't"
