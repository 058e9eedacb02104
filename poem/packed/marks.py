"""Marks: which units of which packed folder, in words that a policy remembers."""

import re

MARK = re.compile(r"packed:([0-9a-f]{64}):([0-9a-f]{1,17}):([0-9a-f]{1,17})")


def mark_of(digest: str, low: int, high: int) -> str:
    """Return the mark of units with hashes from ``low`` to below ``high``, of a folder whose manifest has a digest."""
    return f"packed:{digest}:{low:x}:{high:x}"


def share_units(one: str, two: str) -> bool:
    """Tell whether two texts are marks of the same folder, and some of its units may belong to both."""
    first, second = MARK.fullmatch(one), MARK.fullmatch(two)
    if first is None or second is None or first[1] != second[1]:
        return False
    return int(first[2], 16) < int(second[3], 16) and int(second[2], 16) < int(first[3], 16)
