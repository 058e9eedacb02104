"""Content → one HTML page, verdict first. The page itself is in templates, which escape whatever they are given."""

from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from poem.report import show_changes, show_estimates, show_origin, show_trust, show_verdict
from poem.report.content import Content
from poem.report.markup import harmless
from poem.report.verdict import Range
from poem.report.wording import count, counted, cut, percent, points, significant
from poem.version import VERSION


def page_of(content: Content) -> str:
    """Return the page."""

    def ends(one: Range, signed: bool = False) -> str:
        return content.decimals.interval(one.low, one.high, signed=signed)

    level = f"{100.0 * content.facts.level:g}%"
    return (
        _templates()
        .get_template("page.html")
        .render(
            content=content,
            name=content.outcome.name,
            level=level,
            show=content.decimals.show,
            ends=ends,
            counted=counted,
            version=VERSION,
            verdict=show_verdict.view(content, level),
            estimates=show_estimates.view(content),
            changes=show_changes.view(content),
            support=show_trust.support(content),
            foundations=show_trust.foundations(content),
            origin=show_origin.view(content),
            facts=_facts(content, level),
        )
    )


@cache
def _templates() -> Environment:
    found = Environment(
        loader=PackageLoader("poem.report"),
        autoescape=True,
        finalize=harmless,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters: dict[str, Any] = {"count": count, "cut": cut, "percent": percent, "points": points}
    found.filters.update(filters | {"significant": significant, "chance": show_estimates.chance})
    return found


def _facts(content: Content, level: str) -> tuple[tuple[str, str], ...]:
    facts = content.facts
    return (
        ("rows", count(facts.rows)),
        ("independent units", count(facts.units)),
        ("contexts × features", f"{count(facts.contexts)} × {count(facts.features)}"),
        ("output", facts.outputs_are),
        ("propensities", facts.propensities),
        ("intervals", f"{facts.interval}, {level}, over independent units"),
        ("floor of the policy", "none" if facts.floor is None else f"{percent(facts.floor)} of its decisions"),
        ("seed of the model's folds", str(facts.seed)),
        ("fingerprint of the log", facts.fingerprint[:16]),
        ("trained on this log", {True: "yes", False: "no", None: "not known"}[facts.trained_on_it]),
    )
