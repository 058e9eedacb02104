"""The section of changes: which outputs rise and fall, where, and what speaks for them."""

import math
from collections.abc import Sequence

from poem.report import plots
from poem.report.changes import FEW_ROWS, Change, Segment, Shift
from poem.report.content import Content
from poem.report.markup import Html, element, joined
from poem.report.pieces import NOTHING, figure, key, label, row, section, side_by_side, table, words, words_head
from poem.report.wording import SPACE, UNKNOWN, count, counted, cut, percent, points, significant

MOST_OUTPUTS = 10  # that rise, and that fall, before the rest is summed


def changes_section(content: Content) -> Html:
    """Return the section."""
    rises, falls, rest = split_outputs(content.changes.outputs)
    off = ", or left out fewer than that" if not content.facts.one_each else ""
    intro = (
        "A share is how often an output is chosen: counted in the log, and expected of the new policy in the same "
        f"contexts. Outputs marked “few rows” were logged fewer than {FEW_ROWS} times{off}: "
        "little is known of them. Each picture has a scale of its own."
    )
    return section(
        "changes",
        "What changes",
        element("p", _in_all(content)),
        element("p", intro),
        _pictures(rises, falls),
        _outputs(content, rises, falls, rest),
        _segments(content.changes.segments),
    )


def split_outputs(outputs: Sequence[Change]) -> tuple[list[Change], list[Change], list[Change]]:
    """Return those that rise most, those that fall most (the greatest fall last), and the rest."""
    rises = [one for one in outputs if one.change > 0.0][:MOST_OUTPUTS]
    falls = [one for one in outputs if one.change < 0.0][-MOST_OUTPUTS:]
    shown = {id(one) for one in (*rises, *falls)}
    return rises, falls, [one for one in outputs if id(one) not in shown]


def _in_all(content: Content) -> str:
    outputs = content.changes.outputs
    up = sum(max(one.change, 0.0) for one in outputs)
    if content.facts.one_each:
        return (
            f"Of the logged decisions, the new policy would have made {percent(content.changes.otherwise)} otherwise. "
            f"In the sums over all contexts, which are drawn here, {percent(up)} move from some outputs to others."
        )
    down = sum(max(-one.change, 0.0) for one in outputs)
    before, after = sum(one.logged for one in outputs), sum(one.new for one in outputs)
    return (
        f"The log chose {significant(before)} labels a decision, the new policy chooses {significant(after)}: labels "
        f"that rise do so by {significant(up)} together, those that fall by {significant(down)}."
    )


def _pictures(rises: Sequence[Change], falls: Sequence[Change]) -> Html:
    if not rises and not falls:
        return element("p", "No output's share changes.")
    parts = [_moves("Outputs that rise most", rises, "rise")] if rises else []
    if falls:
        parts.append(_moves("Outputs that fall most", falls[::-1], "fall"))
    return side_by_side(*parts)


def _moves(heading: str, shown: Sequence[Change], kind: str) -> Html:
    drawn = [plots.Move(one.label, one.logged, one.new, one.few) for one in shown]
    picture = plots.moves(drawn, "share of decisions", f"{heading}: share in the log and under the new policy.")
    few = " A dashed bar marks an output with few rows." if any(one.few for one in shown) else ""
    parts = ("the ring", key("ring"), "is the share in the log, the dot", key(kind), f"that under the new policy.{few}")
    return figure(heading, picture, joined(*parts))


# ---- the table ------------------------------------------------------------------------------


def _outputs(content: Content, rises: Sequence[Change], falls: Sequence[Change], rest: Sequence[Change]) -> Html:
    compared = content.versus_other is not None
    other = ("other policy",) if compared else ()
    mean = f"mean {content.outcome.name} there"
    head = ("output", "in the log", "new policy", "change, points", *other, "logged rows", mean)
    rows = [_output(one, content, compared) for one in (*rises, *falls)]
    if rest:
        rows.insert(len(rises), _rest(rest, content, compared))
    return table("Outputs before and after", head, rows)


def _output(one: Change, content: Content, compared: bool) -> Html:
    moved = element("span", points(one.change), class_="rise-text" if one.change > 0.0 else "fall-text")
    other = (UNKNOWN if one.other is None else percent(one.other),) if compared else ()
    outcome = content.decimals.show(one.outcome)
    name = label(one.label, _few(one))
    return row((name, percent(one.logged), percent(one.new), moved, *other, count(one.rows), outcome))


def _few(one: Change) -> Html:
    if not one.few:
        return NOTHING
    return joined(" ", element("span", "never logged" if one.rows == 0 else "few rows", class_="few"))


def _rest(rest: Sequence[Change], content: Content, compared: bool) -> Html:
    rows = sum(one.rows for one in rest)
    mean = sum(one.outcome * one.rows for one in rest if one.rows) / rows if rows else math.nan
    before, after = sum(one.logged for one in rest), sum(one.new for one in rest)
    other = (percent(sum(one.other or 0.0 for one in rest)),) if compared else ()
    name, moved = f"{counted(len(rest), 'other output')} together", points(after - before)
    outcome = content.decimals.show(mean)
    return row((label(name), percent(before), percent(after), moved, *other, count(rows), outcome), "rest")


# ---- where ----------------------------------------------------------------------------------


def _segments(segments: Sequence[Segment]) -> Html:
    heading = element("h3", "Where it changes")
    if not segments:
        same = (
            "About the same everywhere: no feature that was looked at sets contexts apart with a change of their own."
        )
        return joined(heading, element("p", same))
    intro = "Contexts in which the policy moves most differently from how it moves elsewhere: share before → after."
    head = ("contexts", "rows", words_head("rises there"), words_head("falls there"))
    rows = (
        row((label(one.name), count(one.rows), words(_shifts(one.rises)), words(_shifts(one.falls))))
        for one in segments
    )
    return joined(heading, element("p", intro), table("Changes by context", head, rows))


def _shifts(shifts: Sequence[Shift]) -> Html | str:
    return element("span", *map(_shift, shifts), class_="several") if shifts else UNKNOWN


def _shift(one: Shift) -> Html:
    moved = f"{percent(one.logged)}{SPACE}→{SPACE}{percent(one.new)}"
    return element("span", element("b", cut(one.label, 30)), " ", moved)
