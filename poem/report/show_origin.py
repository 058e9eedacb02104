"""What says how the policy was made: the candidates that were tried, in the order of their prospects."""

import math
from typing import Any

from poem.report.content import Content
from poem.report.verdict import Range

MOST_CANDIDATES = 20


def view(content: Content) -> dict[str, Any]:
    """Return what the template shows of candidates and features."""
    ordered = sorted(content.candidates, key=_rank)
    # Only a fit that certifies has prospects to choose by.
    certifies = any(not math.isnan(number(one, "gain_likely")) for one in ordered)
    prospects = ("gain, likely at least", "units to certify") if certifies else ()
    held_out = f"held-out {content.outcome.name}"
    return {
        "count": len(ordered),
        "left": len(ordered) - MOST_CANDIDATES,
        "certifies": certifies,
        "head": ("candidate", "λ", held_out, "95% interval", "gain", *prospects, "mean weight"),
        "candidates": [_candidate(one, content.outcome.name) for one in ordered[:MOST_CANDIDATES]],
        "looks": any(one.up or one.down for one in content.changes.pulls),
    }


def _rank(one: dict[str, Any]) -> tuple[bool, float]:
    return not one.get("chosen"), -number(one, "gain_likely", number(one, "gain", -math.inf))


def _candidate(one: dict[str, Any], outcome: str) -> dict[str, Any]:
    own = one.get("outcome", "loss")  # records of earlier versions are of losses
    found = Range(*(number(one, name) for name in ("validation", "validation_low", "validation_high")))
    return {
        "chosen": bool(one.get("chosen")),
        "learner": str(one.get("learner", "")),
        "problems": one.get("problems"),
        "lam": number(one, "lam"),
        "value": found.times(1.0 if own == outcome else -1.0),
        "gain": number(one, "gain"),
        "likely": number(one, "gain_likely"),
        "needed": number(one, "units_to_certify"),
        "weight": number(one, "mean_weight"),
    }


def number(one: dict[str, Any], name: str, otherwise: float = math.nan) -> float:
    """Return a number out of a policy's record, which anybody may have written."""
    value = one.get(name)
    try:
        return float(value) if isinstance(value, int | float) and not math.isnan(value) else otherwise
    except OverflowError:  # a whole number of hundreds of digits
        return otherwise
