"""What the section of changes shows: which outputs rise and fall, where, and what speaks for them."""

import math
from collections.abc import Sequence
from typing import Any

from poem.report import plots
from poem.report.changes import FEW_ROWS, Change
from poem.report.content import Content
from poem.report.wording import counted, percent, significant

MOST_OUTPUTS = 10  # that rise, and that fall, before the rest is summed


def view(content: Content) -> dict[str, Any]:
    """Return what the template shows besides the segments."""
    rises, falls, rest = split_outputs(content.changes.outputs)
    compared = content.versus_other is not None
    other = ("other policy",) if compared else ()
    mean = f"mean {content.outcome.name} there"
    shown = ((rises, "rise"), (falls[::-1], "fall"))
    return {
        "in_all": _in_all(content),
        "few_rows": FEW_ROWS,
        "compared": compared,
        "head": ("output", "in the log", "new policy", "change, points", *other, "logged rows", mean),
        "moves": [_moves(f"Outputs that {kind} most", some, kind) for some, kind in shown if some],
        "rises": rises,
        "falls": falls,
        "rest": _summed(rest) if rest else None,
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
        return (
            f"Of the logged decisions, the new policy would have made {percent(content.changes.otherwise)} otherwise. "
            f"In the sums over all contexts, which are drawn here, {percent(up)} move from some outputs to others."
        )
    down = sum(max(-one.change, 0.0) for one in outputs)
    before, after = sum(one.logged for one in outputs), sum(one.new for one in outputs)
    return (
        f"The log chose {significant(before)} labels per decision, the new policy chooses {significant(after)}: labels "
        f"that rise do so by {significant(up)} together, those that fall by {significant(down)}."
    )


def _moves(heading: str, shown: Sequence[Change], kind: str) -> dict[str, Any]:
    drawn = [plots.Move(one.label, one.logged, one.new, one.few) for one in shown]
    picture = plots.moves(drawn, "share of decisions", f"{heading}: share in the log and under the new policy.")
    return {"heading": heading, "kind": kind, "picture": picture, "few": any(one.few for one in shown)}


def _summed(rest: Sequence[Change]) -> dict[str, Any]:
    """Return the outputs that are not shown, as one."""
    rows = sum(one.rows for one in rest)
    before, after = sum(one.logged for one in rest), sum(one.new for one in rest)
    return {
        "label": f"{counted(len(rest), 'other output')} together",
        "logged": before,
        "new": after,
        "change": after - before,
        "other": sum(one.other or 0.0 for one in rest),
        "rows": rows,
        "outcome": sum(one.outcome * one.rows for one in rest if one.rows) / rows if rows else math.nan,
    }
