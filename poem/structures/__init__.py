"""What y is: one file for each kind of output."""

from typing import Any

from poem.arrays import AnyArray
from poem.errors import PolicyFileError
from poem.structures.base import Structure
from poem.structures.labels import Labels, decode, encode
from poem.structures.multiclass import MultiClass
from poem.structures.multilabel import MultiLabel

__all__ = [
    "Labels",
    "MultiClass",
    "MultiLabel",
    "Structure",
    "decode",
    "encode",
    "inferred_structure",
    "structure_from_name",
]

_KINDS: dict[str, Any] = {kind.name: kind for kind in (MultiLabel, MultiClass)}


def inferred_structure(y: AnyArray, labels: Labels) -> Structure:
    """Infer the structure from codes: (n, q) of 0/1 is MultiLabel, (n,) is MultiClass."""
    return MultiLabel(len(labels)) if y.ndim == 2 else MultiClass(len(labels))


def structure_from_name(name: str, n_scores: int) -> Structure:
    """Rebuild the structure that a policy file names."""
    if name not in _KINDS:
        raise PolicyFileError(f"unknown output structure {name!r}; this version of poem knows {sorted(_KINDS)}.")
    structure: Structure = _KINDS[name](n_scores)
    return structure
