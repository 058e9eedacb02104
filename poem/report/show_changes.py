"""What the section of changes shows: which outputs rise and fall, where, and what speaks for them."""

import math
from collections.abc import Sequence
from typing import Any

from poem.report import plots
from poem.report.changes import FEW_ROWS, Change
from poem.report.content import Content
from poem.report.wording import counted, fixed, percent, short, significant

MOST_OUTPUTS = 10  # that rise, and that fall, before the rest is summed


def view(content: Content) -> dict[str, Any]:
    """Return what the template shows besides the segments."""
    rises, falls, rest = split_outputs(content.changes.outputs)
    compared = content.versus_other is not None
    other, some = ("other policy",) if compared else (), ("available in",) if content.facts.available else ()
    what, mean = ("action" if content.facts.available else "output"), f"mean {content.outcome.name} there"
    shown = ((rises, "rise"), (falls[::-1], "fall"))
    return {
        "in_all": _in_all(content),
        "few_rows": FEW_ROWS,
        "compared": compared,
        "head": (what, *some, "in the log", "new policy", "change, points", *other, "logged rows", mean),
        "what": what,
        "moves": [_moves(f"{what.capitalize()}s that {kind} most", moved, kind) for moved, kind in shown if moved],
        "kinds": _kinds(content) if content.changes.kinds else None,
        "described": content.facts.described,
        "rises": rises,
        "falls": falls,
        "rest": _summed(rest, what) if rest else None,
    }


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
        what = "actions" if content.facts.available else "outputs"
        return (
            f"Of the logged decisions, the new policy would have made {percent(content.changes.otherwise)} otherwise. "
            f"Summed over all contexts, as drawn here, {percent(up)} move from some {what} to others."
            f"{_never_logged(content)}"
        )
    down = sum(max(-one.change, 0.0) for one in outputs)
    before, after = sum(one.logged for one in outputs), sum(one.new for one in outputs)
    return (
        f"The log chose {significant(before)} labels per decision, the new policy chooses {significant(after)}: labels "
        f"that rise do so by {significant(up)} together, those that fall by {significant(down)}."
    )


def _never_logged(content: Content) -> str:
    """Say how many decisions are on actions that were never logged."""
    share = content.changes.never_logged
    if not content.facts.available or share == 0.0:
        return ""
    known = "features alone say what to expect of them" if content.facts.described else "nothing is known of them"
    return f" {percent(share)} of its decisions are for actions that were available and never logged: {known}."


def _kinds(content: Content) -> dict[str, Any]:
    """Return the kinds of action that rise and fall: a picture in standard deviations, and the rows of a table."""
    kinds = content.changes.kinds
    drawn = [
        plots.Move(one.name, (one.logged - one.available) / one.spread, (one.new - one.available) / one.spread)
        for one in kinds
    ]
    description = "Mean of each feature of actions in the log and under the new policy."
    label = "above what is available, in standard deviations"
    return {
        "picture": plots.moves(drawn, label, description, show=short),
        "head": ("feature of actions", "available", "in the log", "new policy", "change, standard deviations"),
        "rows": [
            {
                "name": one.name,
                "means": [
                    (percent if one.share else significant)(mean) for mean in (one.available, one.logged, one.new)
                ],
                "change": one.change,
                "shown": fixed(one.change, 2, signed=True),
            }
            for one, shown in ((one, percent if one.share else significant) for one in kinds)
        ],
    }


def _moves(heading: str, shown: Sequence[Change], kind: str) -> dict[str, Any]:
    drawn = [plots.Move(one.label, one.logged, one.new, one.few) for one in shown]
    picture = plots.moves(drawn, "share of decisions", f"{heading}: share in the log and under the new policy.")
    return {"heading": heading, "kind": kind, "picture": picture, "few": any(one.few for one in shown)}


def _summed(rest: Sequence[Change], what: str) -> dict[str, Any]:
    """Return the outputs that are not shown, as one."""
    rows = sum(one.rows for one in rest)
    before, after = sum(one.logged for one in rest), sum(one.new for one in rest)
    return {
        "label": f"{counted(len(rest), f'other {what}')} together",
        "logged": before,
        "new": after,
        "change": after - before,
        "other": sum(one.other or 0.0 for one in rest),
        "rows": rows,
        "outcome": sum(one.outcome * one.rows for one in rest if one.rows) / rows if rows else math.nan,
    }
