"""What the section of estimates shows: the outcome of the new policy by every estimator, beside what was logged."""

import math
from typing import Any

from poem.report import plots
from poem.report.content import Content
from poem.report.wording import UNKNOWN, percent

NOTES = {
    "IPS": "the weighted mean: right on average, and noisy",
    "clipped IPS": "large weights are cut: steadier, and cautious",
    "SNIPS": "weights are made to average 1",
    "DM": "a model of the {name} alone; its interval knows nothing of the model's error",
    "DR": "the model, corrected by the weighted errors that it makes on logged rows",
    "SNDR": "the same with weights that average 1",
    "SWITCH-DR": "DR, but the model alone where weights are large",
    "DRos": "DR with large weights shrunk",
    "IX": "all weights held back a little",
    "LS": "large weighted terms flattened",
}


def view(content: Content) -> dict[str, Any]:
    """Return what the template shows besides the estimates themselves."""
    name, several = content.outcome.name, len({one.policy for one in content.estimates}) > 1
    shown = dict.fromkeys(one.estimator for one in content.estimates)
    return {
        "several": several,
        "surely": math.isfinite(content.surely) and content.verdict.kind != "cannot be told",
        "picked": any(one.policy.startswith("always") for one in content.trivial),
        "notes": [(one, NOTES[one].format(name=name)) for one in shown if one in NOTES],
        "picture": _picture(content, several),
    }


def _picture(content: Content, several: bool) -> str:
    marks = [
        plots.Mark(f"{one.policy}: {one.estimator}" if several else one.estimator, one.value, one.policy)
        for one in content.estimates
    ]
    name, better = content.outcome.name, content.outcome.better
    description = f"Estimated {name} of the policies by every estimator, beside the logged one."
    return plots.forest(marks, content.logged, f"{name}, {better} is better", description, content.value)


def chance(probability: float) -> str:
    """Return a probability as a chance; one that is nearly certain is not called certain."""
    if math.isnan(probability):
        return UNKNOWN
    if probability > 0.999:
        return "> 99.9%"
    return "< 0.1%" if probability < 0.001 else percent(probability)
