"""What in a log contradicts the conditions of a certificate, or weakens it: doubts, and the order of its rows."""

from collections.abc import Iterator

from poem.certificates import UNORDERED, adapts, doubts, drawn_because
from poem.health.facts import Facts
from poem.health.finding import Finding

SEED = 0  # that ``poem train`` has unless it is told another
DRAWN = {
    "random": "rows are sorted by contexts, outputs or outcomes and there are no times",
    "units": "rows of different groups alternate and there are no times",
}
ADVICE = (
    "Name the time (--time, time=), so that the latest can certify. Otherwise the logging policy must not have learnt "
    "from its own log."
)


def conditions(facts: Facts) -> Iterator[Finding]:
    """Report why nothing that is learnt from the log would be certified, and which rows would certify."""
    if not facts.has_propensities:
        return
    drawn = facts.packed is not None or facts.log.propensities == "balanced"
    why = None if drawn else drawn_because(facts.log, SEED)
    found = [*doubts(facts.log, in_order=not drawn and why is None)]
    if why is not None and adapts(facts.log).changes:
        found.append(UNORDERED[why])
    for text in found:
        reason, _, advice = text.partition(". ")
        said = f"nothing would be certified: {reason}"
        yield Finding("certificates", "certificates", None, "with care", said, f"{advice}." if advice else "")
    if why is not None and not found and (why == "random" or facts.log.group is not None):
        said = f"{DRAWN[why]}: the ones that certify are drawn at random"
        yield Finding("certificates", "order of rows", None, "with care", said, ADVICE)
