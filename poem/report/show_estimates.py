"""The section of estimates: the outcome of the new policy by every estimator, beside what was logged."""

import math

from poem.report import plots
from poem.report.content import Content, Estimated
from poem.report.markup import Html, element, joined
from poem.report.pieces import NOTHING, ends, figure, items, key, label, level, row, section, side_by_side, table
from poem.report.wording import UNKNOWN, count, percent

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


def estimates_section(content: Content) -> Html:
    """Return the section."""
    name = content.outcome.name
    intro = (
        f"The headline is by {content.headline}. Estimators differ in what they risk: some are right on average and "
        "noisy, some steady and a little off. Where they agree, the answer does not hang on the method."
    )
    return section(
        "estimates",
        f"The {name}, by every estimator",
        element("p", intro),
        _surely(content),
        side_by_side(_picture(content), _notes(content)),
        _table(content),
        _by_logger(content),
    )


def _surely(content: Content) -> Html:
    if not math.isfinite(content.surely) or content.verdict.kind == "cannot be told":
        return NOTHING
    bound = "at most" if content.outcome.name == "loss" else "at least"
    surely = f"the new policy's {content.outcome.name} is {bound} {content.decimals.show(content.surely)}"
    return element("p", f"With about {level(content)} confidence (an approximate bound), {surely}.")


def _picture(content: Content) -> Html:
    several = len({one.policy for one in content.estimates}) > 1
    marks = [
        plots.Mark(f"{one.policy}: {one.estimator}" if several else one.estimator, one.value, one.policy)
        for one in content.estimates
    ]
    name, better = content.outcome.name, content.outcome.better
    description = f"Estimated {name} of the policies by every estimator, beside the logged one."
    picture = plots.forest(marks, content.logged, f"{name}, {better} is better", description, content.value)
    whose = joined("Blue", key("new"), "is the new policy, purple", key("other"), "the other one. ")
    caption = joined(
        f"dots are estimates, bars their {level(content)} intervals; an arrow goes on beyond the picture. ",
        whose if several else "",
        f"The dashed line is the logged {name}, the grey band its own interval.",
    )
    return figure("Estimates beside what was logged", picture, caption)


def _notes(content: Content) -> Html:
    shown = dict.fromkeys(one.estimator for one in content.estimates)
    named = (
        joined(element("b", name), ": ", NOTES[name].format(name=content.outcome.name))
        for name in shown
        if name in NOTES
    )
    return element("div", element("h3", "What they are"), items(named), class_="aside")


def _table(content: Content) -> Html:
    head = ("estimate", content.outcome.name, f"{level(content)} interval", "gain", "its interval", "chance of a gain")
    logged = row(("logged", content.decimals.show(content.logged.value), ends(content.logged, content), "", "", ""))
    rows = [_row(one, content) for one in content.estimates]
    simple = [_row(one, content, "apart" if first == 0 else None) for first, one in enumerate(content.trivial)]
    return joined(table("All estimates", head, (logged, *rows, *simple)), _about_trivial(content))


def _row(one: Estimated, content: Content, kind: str | None = None) -> Html:
    show = content.decimals
    chosen = one.policy == "new" and one.estimator == content.headline
    cells = (
        label(one.policy, joined(", ", element("span", one.estimator, class_="whole"))),
        show.show(one.value.value),
        ends(one.value, content),
        show.show(one.gain.value, signed=True),
        ends(one.gain, content, signed=True),
        _chance(one.probability_better),
    )
    return row(cells, "chosen" if chosen else kind)


def _chance(probability: float) -> str:
    if math.isnan(probability):
        return UNKNOWN
    if probability > 0.999:
        return "> 99.9%"
    return "< 0.1%" if probability < 0.001 else percent(probability)


def _about_trivial(content: Content) -> Html:
    if not content.trivial:
        return NOTHING
    told = "The last rows are policies that need no learning: a learnt one should beat them."
    if any(one.policy.startswith("always") for one in content.trivial):
        told += " The “always” one was picked on these very rows, which flatters it."
    return element("p", told, class_="note")


def _by_logger(content: Content) -> Html:
    if not content.by_logger:
        return NOTHING
    rows = (
        row(
            (
                label(name),
                count(n),
                content.decimals.show(one.gain.value, signed=True),
                ends(one.gain, content, signed=True),
            )
        )
        for name, n, one in content.by_logger
    )
    head = ("logger", "rows", "gain on its rows", f"{level(content)} interval")
    return joined(element("h3", "Each logger's rows alone"), table("Gain by logger", head, rows))
