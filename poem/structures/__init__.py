"""What y is: one module per kind of output, and one line in ``KINDS``."""

from poem.structures.base import Structure
from poem.structures.fit_labels import CERTAIN, Unseen
from poem.structures.kinds import KINDS, Wanted, encoded, kind_of, structure_from_data
from poem.structures.labels import Coded, Labels
from poem.structures.multiclass import MultiClass
from poem.structures.multilabel import MultiLabel
from poem.structures.subset import Subset

__all__ = [
    "CERTAIN",
    "KINDS",
    "Coded",
    "Labels",
    "MultiClass",
    "MultiLabel",
    "Structure",
    "Subset",
    "Unseen",
    "Wanted",
    "encoded",
    "kind_of",
    "structure_from_data",
]
