"""A checksum inside a policy file: a file in which anything has changed since it was written is refused."""

import hashlib
from typing import Any

from poem.errors import PolicyFileError

KEY = "checksum"  # of the metadata; it stands first, so that no name of a user comes before it
EMPTY = "0" * 64  # what stands in its place while it is computed
CHECKED_VERSION = 5  # files of this version and later ones must have a checksum


def with_checksum(content: bytes) -> bytes:
    """Return a file with the SHA-256 of all of its bytes in place of ``EMPTY``."""
    at = content.index(EMPTY.encode())
    return b"".join([content[:at], _digest(content, at).encode(), content[at + len(EMPTY) :]])


def check(path: str, content: bytes, about: dict[str, Any], version: int) -> None:
    """Raise unless a file is what was written; only files of earlier versions may lack a checksum.

    A checksum counts in files of any version: a version that was changed to an earlier one is found.
    """
    if KEY not in about and version < CHECKED_VERSION:
        return
    said = about.get(KEY)
    at = content.find(said.encode("utf-8", "replace")) if isinstance(said, str) and len(said) == len(EMPTY) else -1
    if at < 0 or _digest(content, at) != said:
        raise PolicyFileError(
            f"{path!r} is damaged: it was changed after it was saved, as its checksum shows. Copy it again from where "
            "it was saved, or save the policy again."
        )


def _digest(content: bytes, at: int) -> str:
    """Return the SHA-256 of a file as it is before its checksum is filled in at a place."""
    view = memoryview(content)
    digest = hashlib.sha256(view[:at])
    digest.update(EMPTY.encode())
    digest.update(view[at + len(EMPTY) :])
    return digest.hexdigest()
