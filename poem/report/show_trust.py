"""What says whether to believe it: does the log hold enough, and are propensities and model right."""

from typing import Any

from poem.report import plots
from poem.report.changes import FEW_ROWS
from poem.report.content import Content
from poem.report.wording import count, counted, percent, rough, short, significant

MOST_PAIRS = 60  # outputs in the check of the weights
CHECKS = {
    "effective units": "How many units of its own the weighted log is worth. From 100 on, intervals are reliable.",
    "independent units": "Users, sessions or contexts in the log. Rows of one unit count once.",
    "largest weight share": "How much of all weight one unit carries. The less, the less depends on luck.",
    "mean weight": "Should be 1. If not, the propensities are wrong, or the log lacks what the policy does.",
    "clipped mass": "Weight that clipped IPS leaves out. Much of it makes clipped estimates too cautious.",
    "Pareto k": "How heavy the tail of the weights is. Above 0.7 no number of rows makes the estimate safe.",
    "moved by the clip": "How far the estimate depends on the largest 1% of the weights.",
    "events": "Units whose outcomes decide: how often a rare one occurred. From 25 on, intervals are reliable.",
    "provably unsupported": "What the policy does where the log had no choice: nothing can be known about it.",
    "weights cut": "Rows whose weight is too large to compute with. So small a propensity is hardly right.",
    "never logged": "How much of what the policy does was never tried in the log.",
}
SHARES = ("largest weight share", "clipped mass", "moved by the clip", "provably unsupported", "never logged")


def support(content: Content) -> dict[str, Any]:
    """Return the checks of the weights, and two pictures of them."""
    checks = [
        {"name": one.name, "value": _value(one.name, one.value), "verdict": one.verdict, "meaning": CHECKS[one.name]}
        for one in content.findings
    ]
    found, name = content.weights, content.outcome.name
    bins = [(one.low, one.high, one.rows, one.weight) for one in found.bins]
    clips = f"The estimated {name} for every clip of the weights."
    return {
        "checks": checks,
        "weights": plots.weights(bins, "The weights on a logarithmic axis: share of the rows, and of all weight."),
        "clips": plots.clip_curve(found.clip_curve, found.clip, content.logged, f"estimated {name}", clips),
    }


def _value(name: str, value: float) -> str:
    if name in SHARES:
        return percent(value)
    if name in ("independent units", "weights cut"):
        return count(value)
    return rough(value) if name in ("effective units", "events") else significant(value)


def foundations(content: Content) -> dict[str, Any]:
    """Return the pictures of propensities and of the loss model, and how many outputs are off."""
    if content.changes.kinds:
        return _by_kind(content)
    # Of an action that was hardly ever logged, the weighted log says nothing yet.
    checked = [one for one in content.changes.outputs if not (content.facts.available and one.few)]
    outputs = sorted(checked, key=lambda one: -max(one.new, one.weighted))
    pairs = [plots.Pair(one.label, one.new, one.weighted, one.weighted_error) for one in outputs[:MOST_PAIRS]]
    description = "Share of each output under the new policy, against that in the weighted log."
    names = "share under the new policy", "share in the weighted log"
    return {
        "propensities": plots.agreement(pairs, *names, description, plots.axis_percent) if pairs else None,
        "what": f"action with {FEW_ROWS} logged rows or more" if content.facts.available else "output",
        "off": sum(abs(one.weighted - one.new) > 3.0 * one.weighted_error + 1e-9 for one in outputs),
        "outputs": len(outputs),
        "most": MOST_PAIRS,
        "model": _model(content) if content.calibration else None,
    }


def _by_kind(content: Content) -> dict[str, Any]:
    """Return the same with the means of features of actions, of which each holds in many rows."""
    kinds = content.changes.kinds
    pairs = [
        plots.Pair(
            one.name,
            (one.new - one.available) / one.spread,
            (one.weighted - one.available) / one.spread,
            one.weighted_error / one.spread,
        )
        for one in kinds
    ]
    description = "Mean of each feature of actions under the new policy, against that in the weighted log."
    names = "mean under the new policy, in standard deviations", "mean in the weighted log"
    return {
        "propensities": plots.agreement(pairs, *names, description, short),
        "what": "feature of actions",
        "off": sum(abs(one.weighted - one.new) > 3.0 * one.weighted_error + 1e-9 for one in kinds),
        "outputs": len(kinds),
        "most": MOST_PAIRS,
        "model": _model(content) if content.calibration else None,
    }


def _model(content: Content) -> str:
    name = content.outcome.name
    pairs = [
        plots.Pair(counted(one.rows, "row"), one.predicted, one.observed, one.error) for one in content.calibration
    ]
    description = f"Mean predicted against mean logged {name}, by tenths of the rows."
    return plots.agreement(pairs, f"predicted {name}", f"logged {name}", description, short)
