"""The sections that say whether to believe it: does the log hold enough, and are propensities and model right."""

from poem.report import plots
from poem.report.content import Content
from poem.report.markup import Html, element, joined
from poem.report.pieces import figure, key, pill, row, section, side_by_side, table, words, words_head
from poem.report.wording import count, counted, percent, rough, short, significant

MOST_PAIRS = 60  # outputs in the check of the weights
CHECKS = {
    "effective units": "Units of its own that the weighted log is worth. From 100 on an interval can be relied on.",
    "independent units": "Users, sessions or contexts in the log. Rows of one unit count once.",
    "largest weight share": "How much of all weight one unit carries. The less, the less hangs on luck.",
    "mean weight": "Should be 1. If not, the propensities are wrong, or the log lacks what the policy does.",
    "clipped mass": "Weight that clipped IPS leaves out. Much of it makes clipped estimates too cautious.",
    "Pareto k": "How heavy the tail of the weights is. Above 0.7 no number of rows makes the estimate safe.",
    "moved by the clip": "How far the estimate hangs on the largest 1% of the weights.",
    "events": "Units whose outcomes decide: how often a rare one occurred. From 25 on an interval can be relied on.",
    "provably unsupported": "What the policy does where the log had no choice: nothing can be known about it.",
    "never logged": "How much of what the policy does was never tried in the log.",
}
SHARES = ("largest weight share", "clipped mass", "moved by the clip", "provably unsupported", "never logged")


def support_section(content: Content) -> Html:
    """Return the section on the weights."""
    verdict = joined("Whether the log can answer for this policy: ", pill(content.diagnosis))
    head = ("check", "value", "verdict", words_head("what it is"))
    rows = (
        row((one.name, _value(one.name, one.value), pill(one.verdict), words(CHECKS.get(one.name, ""))))
        for one in content.findings
    )
    return section(
        "support",
        "Does the log hold enough?",
        element("p", verdict),
        table("Diagnostics", head, rows),
        side_by_side(_weights(content), _clips(content)),
    )


def _value(name: str, value: float) -> str:
    if name in SHARES:
        return percent(value)
    if name == "independent units":
        return count(value)
    return rough(value) if name in ("effective units", "events") else significant(value)


def _weights(content: Content) -> Html:
    found = content.weights
    bins = [(one.low, one.high, one.rows, one.weight) for one in found.bins]
    picture = plots.weights(bins, "The weights on a logarithmic axis: share of the rows, and of all weight.")
    caption = joined(
        "a row's weight is how much more often the new policy would choose what was logged. Grey",
        key("rows"),
        "is the share of rows, blue",
        key("mass"),
        "the share of all weight that they carry. Blue far to the right of grey means that few rows decide. ",
        f"The mean weight is {significant(found.mean)}, the largest {significant(found.largest)}; the first bar holds "
        "all that are smaller as well.",
    )
    return figure("Weights", picture, caption)


def _clips(content: Content) -> Html:
    found, name = content.weights, content.outcome.name
    description = f"The estimated {name} for every clip of the weights."
    picture = plots.clip_curve(found.clip_curve, found.clip, content.logged, f"estimated {name}", description)
    caption = (
        f"large weights are cut back to the clip, and what is cut counts as the worst {name}. A curve that is flat to "
        f"the right does not hang on few large weights. Clipped IPS lets through {significant(found.clip)}."
    )
    return figure("The estimate for every clip", picture, caption)


def foundations_section(content: Content) -> Html:
    """Return the section on propensities and the loss model."""
    intro = (
        "Estimates rest on two things: logged propensities, and for DR and its relatives a model of the "
        f"{content.outcome.name}. DR is right if either is. Dots on the dashed line are as they should be."
    )
    return section(
        "foundations",
        "Are its foundations right?",
        element("p", intro),
        side_by_side(_propensities(content), _model(content)),
    )


def _propensities(content: Content) -> Html:
    outputs = sorted(content.changes.outputs, key=lambda one: -max(one.new, one.weighted))
    off = sum(abs(one.weighted - one.new) > 3.0 * one.weighted_error + 1e-9 for one in outputs)
    pairs = [plots.Pair(one.label, one.new, one.weighted, one.weighted_error) for one in outputs[:MOST_PAIRS]]
    description = "Share of each output under the new policy, against that in the weighted log."
    names = "share under the new policy", "share in the weighted log"
    picture = plots.agreement(pairs, *names, description, plots.axis_percent)
    most = f" The {MOST_PAIRS} most frequent ones are drawn." if len(outputs) > MOST_PAIRS else ""
    caption = (
        "each dot is an output. If propensities are right, the weighted log holds it as often as the new policy "
        f"chooses it; bars are two standard errors. {count(off)} of {count(len(outputs))} are off by more than three."
        f"{most}"
    )
    return figure("Propensities", picture, caption)


def _model(content: Content) -> Html:
    name = content.outcome.name
    if not content.calibration:
        return element("p", f"There is no model of the {name}: it needs two independent units at least.", class_="note")
    pairs = [
        plots.Pair(counted(one.rows, "row"), one.predicted, one.observed, one.error) for one in content.calibration
    ]
    description = f"Mean predicted against mean logged {name}, by tenths of the rows."
    picture = plots.agreement(pairs, f"predicted {name}", f"logged {name}", description, short)
    caption = (
        f"rows are cut into tenths by the {name} that a model predicts for them, one that has not seen them. Bars are "
        "two standard errors."
    )
    return figure(f"The model of the {name}", picture, caption)
