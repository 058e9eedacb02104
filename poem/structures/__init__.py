"""What y is: one module per kind of output, and one line in ``KINDS``."""

from poem.structures.available import MOST_CANDIDATES, Available
from poem.structures.base import Fixed, Structure
from poem.structures.candidates import Candidates
from poem.structures.fit_labels import CERTAIN, Unseen
from poem.structures.kinds import KINDS, Wanted, encoded, kind_of, structure_from_data
from poem.structures.labels import Coded, Labels, plain_labels
from poem.structures.multiclass import MultiClass
from poem.structures.multilabel import MultiLabel
from poem.structures.offered import Offered
from poem.structures.space import Space
from poem.structures.subset import Subset

__all__ = [
    "CERTAIN",
    "KINDS",
    "MOST_CANDIDATES",
    "Available",
    "Candidates",
    "Coded",
    "Fixed",
    "Labels",
    "MultiClass",
    "MultiLabel",
    "Offered",
    "Space",
    "Structure",
    "Subset",
    "Unseen",
    "Wanted",
    "encoded",
    "kind_of",
    "plain_labels",
    "structure_from_data",
]
