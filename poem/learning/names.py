"""The learners that can be asked for by name, and what they are called in tables; nothing is imported for them.

What each of them consists of is in :mod:`poem.learning.portfolio`.
"""

LEARNERS = {
    "ips": "IPS",
    "poem": "POEM",
    "norm-poem": "Norm-POEM",
    "direct": "direct method",
    "dr": "DR-CRM",
    "ix": "IX",
    "ls": "LS",
    "trees": "boosted trees",
    "leaves": "DR-CRM",
}
