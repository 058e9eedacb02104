"""What y is: one file for each kind of output."""

from typing import Any

from poem.errors import PolicyFileError
from poem.log import BanditLog
from poem.structures.base import Structure
from poem.structures.multiclass import MultiClass
from poem.structures.multilabel import MultiLabel

__all__ = ["MultiClass", "MultiLabel", "Structure", "structure_from_name", "structure_of"]

_KINDS: dict[str, Any] = {kind.name: kind for kind in (MultiLabel, MultiClass)}


def structure_of(log: BanditLog) -> Structure:
    """Infer the structure from y: (n, q) of 0/1 is MultiLabel, (n,) is MultiClass."""
    return MultiLabel(len(log.labels)) if log.y.ndim == 2 else MultiClass(len(log.labels))


def structure_from_name(name: str, n_scores: int) -> Structure:
    """Rebuild the structure that a policy file names."""
    if name not in _KINDS:
        raise PolicyFileError(f"unknown output structure {name!r}; this version of poem knows {sorted(_KINDS)}.")
    structure: Structure = _KINDS[name](n_scores)
    return structure
