"""What the first section shows: the tone of the verdict, four figures, and a picture of the gain."""

from typing import Any

from poem.report import plots
from poem.report.content import Content
from poem.report.verdict import Range
from poem.report.wording import counted, percent, rough

TONES = {"better": "better", "worse": "worse", "not shown": "unclear", "cannot be told": "beware"}


def view(content: Content, level: str) -> dict[str, Any]:
    """Return what the template shows besides the verdict itself."""
    kind = content.verdict.kind
    return {
        "tone": "beware" if content.facts.trained_on_it and kind == "better" else TONES[kind],
        "told": kind != "cannot be told",
        "tiles": _tiles(content),
        "picture": _picture(content, level),
    }


def _tiles(content: Content) -> list[tuple[str, str, str]]:
    show, interval = content.decimals.show, content.decimals.interval
    worth = next(one.value for one in content.findings if one.name == "effective units")
    gain = "gain, unreliable" if content.verdict.kind == "cannot be told" else "gain"
    logged, value = content.logged, content.value
    return [
        (f"{content.outcome.name} in the log", show(logged.value), interval(logged.low, logged.high)),
        ("new policy, estimated", show(value.value), interval(value.low, value.high)),
        (gain, show(content.gain.value, signed=True), _gain_more(content)),
        ("the log is worth", rough(worth), f"of its {counted(content.facts.units, 'independent unit')}"),
    ]


def _gain_more(content: Content) -> str:
    gain, old = content.gain, abs(content.logged.value)
    told = content.decimals.interval(gain.low, gain.high, signed=True)
    return f"{told}; {percent(gain.value / old, signed=True)}" if old and gain.bounded else told


def _picture(content: Content, level: str) -> str:
    marks = [plots.Mark("new − log", content.gain)]
    if content.versus_other is not None:
        marks.append(plots.Mark("new − other", content.versus_other, "other"))
    description = f"The gain in {content.outcome.name} with its {level} interval, and no gain as a line."
    nothing = Range(0.0, 0.0, 0.0)
    return plots.forest(marks, nothing, "gain, right is better", description, content.gain, "no gain")
