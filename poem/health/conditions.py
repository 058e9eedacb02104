"""What in a log contradicts the conditions of a certificate. See :mod:`poem.certificates.doubts`."""

from collections.abc import Iterator

from poem.certificates import doubts
from poem.health.facts import Facts
from poem.health.finding import Finding


def conditions(facts: Facts) -> Iterator[Finding]:
    """Report why nothing that is learnt from the log would be certified."""
    if not facts.has_propensities:
        return
    for text in doubts(facts.log, in_order=facts.packed is None):
        reason, _, advice = text.partition(". ")
        said = f"nothing would be certified: {reason}"
        yield Finding("certificates", "certificates", None, "with care", said, f"{advice}." if advice else "")
