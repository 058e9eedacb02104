"""The registry of output structures, and the choice of one for given outputs."""

import re
from typing import Any

import numpy as np

from poem.arrays import AnyArray
from poem.compute import is_sparse
from poem.errors import InputError, LogError, PolicyFileError
from poem.structures.base import Structure
from poem.structures.candidates import Candidates
from poem.structures.labels import Coded, Labels
from poem.structures.multiclass import MultiClass
from poem.structures.multilabel import MultiLabel
from poem.structures.subset import Subset

KINDS: dict[str, type[Structure]] = {kind.name: kind for kind in (MultiClass, MultiLabel, Subset, Candidates)}

Wanted = Structure | type[Structure] | str | None  # how users ask for a structure; None infers it


def encoded(
    y: Any, labels: Labels | None = None, wanted: Wanted = None, *, inside: bool = True
) -> tuple[AnyArray, Labels, Structure]:
    """Return ``(codes, labels, structure)`` of a user's outputs.

    ``wanted`` is a structure, its class, or its name, such as ``"subset"`` or ``"subset(3)"``. If it is None, a vector
    holds classes and a matrix holds yes/no labels. Pass ``inside=False`` for true outputs outside the space.
    """
    kind, sizes = kind_of(y, wanted)
    codes, known = y if isinstance(y, Coded) else kind.encode(y, labels)
    structure = wanted if isinstance(wanted, Structure) else kind.of(codes, known, **sizes)
    if len(known) != structure.n_names:
        raise LogError(f"structure is {structure}, but y has {len(known)} labels. Pass labels= for all of them.")
    if inside:
        structure.check(codes)
    return codes, known, structure


def kind_of(y: Any, wanted: Wanted) -> tuple[type[Structure], dict[str, int]]:
    """Return the class of the structure that is wanted, or that y looks like, and the numbers that were given."""
    if isinstance(wanted, Structure):
        return type(wanted), {}
    if isinstance(wanted, type) and issubclass(wanted, Structure):
        return wanted, {}
    if isinstance(wanted, str):
        return _named(wanted)
    if wanted is not None:
        raise InputError(f"structure must be a structure such as poem.Subset, or its name; found {wanted!r}.")
    codes = y.codes if isinstance(y, Coded) else y
    dimensions = 2 if is_sparse(codes) else np.ndim(codes)
    if dimensions not in (1, 2):
        raise LogError(
            f"y must be a vector of classes or a matrix of 0/1 labels; found {dimensions} dimensions. "
            "Pass (n,) for one class a row or (n, q) for q yes/no labels."
        )
    return (MultiClass if dimensions == 1 else MultiLabel), {}


def _named(text: str) -> tuple[type[Structure], dict[str, int]]:
    match = re.fullmatch(r"(\w+)(?:\((\d+)\))?", text.strip().lower())
    kind = KINDS.get(match[1]) if match else None
    if match is None or kind is None:
        raise InputError(f"there is no output structure {text!r}; known are {', '.join(KINDS)}.")
    if match[2] is None:
        return kind, {}
    sizes = kind.sizes()
    if not sizes:
        raise InputError(f"{match[1]} takes no number; found {text!r}.")
    return kind, {sizes[0]: int(match[2])}


def structure_from_data(data: Any, n_names: int) -> Structure:
    """Rebuild a structure from a file: from the data of :meth:`Structure.to_data`, or from its name alone."""
    sizes = dict(data) if isinstance(data, dict) else {"name": data}
    name = sizes.pop("name", None)
    if name not in KINDS:
        raise PolicyFileError(f"unknown output structure {name!r}; this version of poem knows {sorted(KINDS)}.")
    structure: Any = KINDS[name]
    return structure(n_names, **sizes)  # type: ignore[no-any-return]
