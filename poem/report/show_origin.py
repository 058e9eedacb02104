"""The section on how the policy was made: what was tried in training, and what it looks at."""

import math
from collections.abc import Sequence
from typing import Any

from poem.report.changes import Pull
from poem.report.content import Content
from poem.report.markup import Html, element, joined
from poem.report.pieces import NOTHING, ends, items, label, row, section, table, words, words_head
from poem.report.verdict import Range
from poem.report.wording import UNKNOWN, counted, cut, significant

MOST_CANDIDATES = 20
HOW_TO_READ = (
    "How to read this: the likely gain is an approximate lower bound from held-out rows. Units to certify is how many "
    "fresh users, contexts or rows should certify that the candidate is better than the log. Of the candidates for "
    "which the log has enough units, the one with the highest likely gain is chosen; if there is none, the one that "
    "needs the fewest. Only the chosen one is certified, on rows that played no part in any of this."
)


def origin_section(content: Content) -> Html:
    """Return the section."""
    parts = (_explanation(content), _candidates(content), _pulls(content.changes.pulls))
    return section("origin", "How the policy was made", *parts)


def _explanation(content: Content) -> Html:
    if not content.explanation:
        return NOTHING
    return joined(element("h3", "What training said"), items(content.explanation))


# ---- candidates -----------------------------------------------------------------------------


def _candidates(content: Content) -> Html:
    if not content.candidates:
        return NOTHING
    ordered = sorted(content.candidates, key=_rank)
    intro = (
        f"Each was judged on rows of the training log that it had not seen. The first one of {len(ordered)} was chosen."
    )
    left = len(ordered) - MOST_CANDIDATES
    more = element("p", f"{counted(left, 'more candidate')} did worse.", class_="note") if left > 0 else NOTHING
    # Only a fit that certifies has prospects to choose by.
    certifies = any(not math.isnan(_number(one, "gain_likely")) for one in ordered)
    prospects = ("likely gain", "units to certify") if certifies else ()
    interval = "95% interval"
    head = ("candidate", "λ", f"held-out {content.outcome.name}", interval, "gain", *prospects, "mean weight")
    rows = (_candidate(one, content, certifies) for one in ordered[:MOST_CANDIDATES])
    note = element("p", HOW_TO_READ, class_="note") if certifies else NOTHING
    return joined(element("h3", "Candidates tried"), element("p", intro), table("Candidates", head, rows), more, note)


def _rank(one: dict[str, Any]) -> tuple[bool, float]:
    return not one.get("chosen"), -_number(one, "gain_likely", _number(one, "gain", -math.inf))


def _candidate(one: dict[str, Any], content: Content, certifies: bool) -> Html:
    show = content.decimals.show
    found = Range(*(_number(one, name) for name in ("validation", "validation_low", "validation_high")))
    found = found.times(content.outcome.sign)
    problems = element("span", one["problems"], class_="few") if one.get("problems") else NOTHING
    cells = (
        element("td", str(one.get("learner", "")), " ", problems, class_="label wide"),
        significant(_number(one, "lam")),
        show(found.value),
        ends(found, content),
        show(_number(one, "gain"), signed=True),
        *(_prospects(one, content) if certifies else ()),
        significant(_number(one, "mean_weight")),
    )
    return row(cells, "chosen" if one.get("chosen") else None)


def _prospects(one: dict[str, Any], content: Content) -> tuple[str, str]:
    """Return the likely gain, and the units that a certificate takes: none would be enough where there is no gain."""
    needed = _number(one, "units_to_certify")
    return content.decimals.show(_number(one, "gain_likely"), signed=True), significant(needed)


def _number(one: dict[str, Any], name: str, otherwise: float = math.nan) -> float:
    value = one.get(name)
    try:
        return float(value) if isinstance(value, int | float) and not math.isnan(value) else otherwise
    except OverflowError:  # a whole number of hundreds of digits
        return otherwise


# ---- features -------------------------------------------------------------------------------


def _pulls(pulls: Sequence[Pull]) -> Html:
    heading = element("h3", "Top features")
    if not any(one.up or one.down for one in pulls):
        return joined(
            heading, element("p", "The policy looks at no feature: it chooses the same way in every context.")
        )
    intro = (
        "What makes the outputs that change most more and less likely. The figure is a feature's weight times its "
        "standard deviation: how far the log-odds move when the feature moves by its usual amount."
    )
    head = ("output", words_head("more likely with"), words_head("less likely with"))
    rows = (row((label(one.label), words(_features(one.up)), words(_features(one.down)))) for one in pulls)
    return joined(heading, element("p", intro), table("Top features of outputs", head, rows))


def _features(features: Sequence[tuple[str, float]]) -> Html | str:
    return element("span", *(_feature(*one) for one in features), class_="several") if features else UNKNOWN


def _feature(name: str, strength: float) -> Html:
    return element("span", f"{cut(name, 40)} {'+' if strength > 0.0 else ''}{significant(strength, 2)}")
