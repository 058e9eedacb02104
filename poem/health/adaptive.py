"""Does the logging policy learn while it logs? See :mod:`poem.certificates.adaptive`."""

from collections.abc import Iterator

from poem.certificates import Adaptation, adapts
from poem.health.facts import Facts
from poem.health.finding import Finding, p_value

__all__ = ["Adaptation", "adaptation", "adapts"]

NO_TIMES = (
    "Rows have no times: they are taken in the order of the file; if that is not their order, name it (time=, --time)."
)
IN_ORDER = "Judge policies in the order of time, as poem train does: rows held out at random have taught the logger."
LATER = "Certify on a later log (poem.certify): units that a packed log holds out have taught the logger."


def adaptation(facts: Facts) -> Iterator[Finding]:
    """Report whether propensities change with time, and whether they follow past rewards."""
    if not facts.has_propensities:
        return
    found = adapts(facts.log)
    order = "with time" if found.timed else "with the order of the rows (no times are named)"
    same = "for the same context and output"
    if facts.choices is not None:
        same = "for the same context, output and list of available actions"
    if found.follows_rewards:
        text = (
            f"propensities {same} change {order} and follow past rewards "
            f"({p_value(found.p_value)}): an adaptive logger, such as Thompson sampling or UCB"
        )
        advice = IN_ORDER if found.timed else f"{IN_ORDER} {NO_TIMES}"
        advice = advice if facts.packed is None else LATER
        yield Finding("time", "adaptive logger", found.p_value, "with care", text, advice)
    elif found.changes:
        text = f"propensities {same} change {order}; they do not clearly follow past rewards"
        yield Finding("time", "adaptive logger", found.p_value, "fit", text)
