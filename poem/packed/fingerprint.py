"""Which units of which packed folder: a text by which a policy remembers what it was trained on."""

import hashlib
import re

from poem.packed.manifest import Manifest

FORM = re.compile(r"([0-9a-f]{64})/([0-9a-f]{1,17})-([0-9a-f]{1,17})(:[0-9a-f]+)?")


def fingerprint_of(manifest: Manifest, low: int, high: int, seen: str | None = None) -> str:
    """Return the digest of a folder, the range of hashes of some of its units, and a digest of how they are seen."""
    about = (manifest.kind_sha256, [note.sha256 for note in manifest.shards])
    view = "" if seen is None else f":{_digest(seen)[:16]}"
    return f"{_digest(repr(about))}/{low:x}-{high:x}{view}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def share_units(one: str, two: str) -> bool:
    """Tell whether two fingerprints are of the same log, or of parts of one folder that have units in common."""
    if one == two:
        return True
    parts = [FORM.fullmatch(text) for text in (one, two)]
    if parts[0] is None or parts[1] is None or parts[0][1] != parts[1][1]:
        return False
    (low, high), (other_low, other_high) = ((int(part[2], 16), int(part[3], 16)) for part in parts if part is not None)
    return low < other_high and other_low < high
