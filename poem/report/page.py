"""Content → one HTML page, verdict first."""

from importlib.resources import files
from string import Template

from poem.report import plots
from poem.report.content import Content
from poem.report.markup import Html, element, joined, text
from poem.report.pieces import NOTHING, ends, figure, items, level, paragraphs, row, section, side_by_side, table, words
from poem.report.show_changes import changes_section
from poem.report.show_estimates import estimates_section
from poem.report.show_origin import origin_section
from poem.report.show_trust import foundations_section, support_section
from poem.report.verdict import Range
from poem.report.wording import count, counted, percent, rough
from poem.version import VERSION

TONES = {"better": "better", "worse": "worse", "not shown": "unclear", "cannot be told": "beware"}


def page_of(content: Content) -> str:
    """Return the page."""
    template = Template((files("poem.report") / "template.html").read_text(encoding="utf-8"))
    parts = (
        _head,
        _verdict,
        estimates_section,
        changes_section,
        support_section,
        foundations_section,
        origin_section,
        _facts,
    )
    body = "\n".join(part(content) for part in parts)
    return template.substitute(title=text(content.title), version=text(VERSION), body=body)


def _head(content: Content) -> Html:
    under = (
        f"A policy that chooses {content.facts.outputs_are}, judged on a log of "
        f"{counted(content.facts.rows, 'decision')} that were made without it. "
        f"The {content.outcome.name} is an average over decisions; {content.outcome.better} is better."
    )
    return joined(element("h1", content.title), element("p", under, class_="under"))


# ---- the verdict ----------------------------------------------------------------------------


def _verdict(content: Content) -> Html:
    verdict = content.verdict
    tone = "beware" if content.facts.trained_on_it and verdict.kind == "better" else TONES[verdict.kind]
    next_steps = joined(element("h3", "What to do next"), items(verdict.next_steps))
    return section(
        "verdict",
        verdict.headline,
        element("p", verdict.summary[0]),
        _tiles(content),
        _warnings(content),
        side_by_side(_gain(content), element("div", next_steps, class_="aside")),
        element("h3", "What it rests on"),
        paragraphs(verdict.summary[1:]),
        kind=f"verdict {tone}",
    )


def _tiles(content: Content) -> Html:
    show, name = content.decimals.show, content.outcome.name
    told = content.verdict.kind != "cannot be told"
    worth = next(one.value for one in content.findings if one.name == "effective units")
    return element(
        "div",
        _tile(f"{name} in the log", show(content.logged.value), ends(content.logged, content)),
        _tile("new policy, estimated", show(content.value.value), ends(content.value, content)),
        _tile(
            "gain" if told else "gain, not to be relied on", show(content.gain.value, signed=True), _gain_more(content)
        ),
        _tile("the log is worth", rough(worth), f"of its {counted(content.facts.units, 'independent unit')}"),
        class_="tiles",
    )


def _tile(what: str, value: str, more: str) -> Html:
    parts = (("what", what), ("value", value), ("more", more))
    return element("div", *(element("span", part, class_=kind) for kind, part in parts), class_="tile")


def _gain_more(content: Content) -> str:
    told, old = ends(content.gain, content, signed=True), abs(content.logged.value)
    return f"{told}; {percent(content.gain.value / old, signed=True)}" if old and content.gain.bounded else told


def _warnings(content: Content) -> Html:
    found = content.verdict.warnings
    if not found:
        return NOTHING
    return element("div", element("p", "Before you rely on it"), items(found), class_="warnings", role="note")


def _gain(content: Content) -> Html:
    marks = [plots.Mark("new − log", content.gain)]
    if content.versus_other is not None:
        marks.append(plots.Mark("new − other", content.versus_other, "other"))
    description = f"The gain in {content.outcome.name} with its {level(content)} interval, and no gain as a line."
    nothing = Range(0.0, 0.0, 0.0)
    picture = plots.forest(marks, nothing, "gain, right is better", description, content.gain, "no gain")
    caption = (
        f"the dot is the estimated gain by {content.headline}, the bar its {level(content)} interval. A bar that is "
        "all to the right of the dashed line shows a gain; one that crosses it does not."
    )
    told = content.verdict.kind != "cannot be told"
    return figure("Estimated gain" if told else "Estimated gain, not to be relied on", picture, caption)


# ---- the small print ------------------------------------------------------------------------


def _facts(content: Content) -> Html:
    facts = content.facts
    pairs = (
        ("rows", count(facts.rows)),
        ("independent units", count(facts.units)),
        ("contexts × features", f"{count(facts.contexts)} × {count(facts.features)}"),
        ("output", facts.outputs_are),
        ("propensities", facts.propensities),
        ("intervals", f"{facts.interval}, {level(content)}, over independent units"),
        ("floor of the policy", "none" if facts.floor is None else f"{percent(facts.floor)} of its decisions"),
        ("seed of the model's folds", str(facts.seed)),
        ("fingerprint of the log", element("code", facts.fingerprint[:16])),
        ("trained on this log", {True: "yes", False: "no", None: "not known"}[facts.trained_on_it]),
    )
    rows = (row((name, words(value))) for name, value in pairs)
    inside = table("Facts", ("what", element("th", "value", scope="col", class_="words")), rows)
    foot = f"Made by poem {VERSION}. This page is one file: it asks for nothing from the network and runs no script."
    return joined(section("facts", "Facts for engineers", inside), element("p", foot, class_="foot"))
