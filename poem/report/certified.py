"""Whether the policy was certified in training, in one line: by how much, or why not."""

import math
from dataclasses import dataclass
from typing import Any, Literal

from poem.policies import Record
from poem.report.wording import counted, significant


@dataclass(frozen=True)
class Certified:
    """One line on the certificate: a label in its colour, and what it says."""

    label: Literal["certified", "not certified", "certified before refitting"]
    text: str

    @property
    def tone(self) -> str:
        """The colour of the label."""
        return {"certified": "trust", "not certified": "none"}.get(self.label, "caution")


def certified_line(record: Record) -> Certified:
    """Return what a policy's record says of its certificate, whose figures anybody may have written."""
    if (before := record.certificate_before_refit) is not None and _holds(before):
        text = (
            f"Before it was learnt again from all rows, training certified {_gain(before)}. The policy itself is not."
        )
        return Certified("certified before refitting", text)
    found = record.certificate
    if found is None:
        known = "It was trained without" if record.explanation else "The policy has no record of"
        return Certified("not certified", f"{known} a certificate.")
    if _holds(found):
        return Certified("certified", f"Training certified {_gain(found)}.")
    return Certified("not certified", f"{_why_not(found)}.")


def _holds(found: dict[str, Any]) -> bool:
    return found.get("certified") is True and not math.isnan(_number(found, "gain_at_least"))


def _gain(found: dict[str, Any]) -> str:
    return f"a gain of at least {significant(_number(found, 'gain_at_least'))} over its training log, {_sure(found)}"


def _sure(found: dict[str, Any]) -> str:
    rows, confidence = _number(found, "rows"), _number(found, "confidence")
    on = "" if math.isnan(rows) else f", on {counted(int(rows), 'fresh row')}"
    sure = f"{100.0 * confidence:g}%" if 0.0 < confidence < 1.0 else "unknown"
    return f"with {sure} confidence{on}"


def _why_not(found: dict[str, Any]) -> str:
    objections = found.get("objections")
    if isinstance(objections, list) and objections:
        return "; ".join(map(str, objections))
    least = _number(found, "gain_at_least")
    known = "" if math.isnan(least) else f": all that is certain of its gain is that it is above {significant(least)}"
    return f"Fresh rows of its training log did not show a gain, {_sure(found)}{known}"


def _number(found: dict[str, Any], name: str) -> float:
    value = found.get(name)
    known = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e300
    return float(value) if known and value is not None else math.nan
