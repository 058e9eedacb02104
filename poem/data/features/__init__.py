"""Raw columns → features, by a recipe that is plain data."""

from poem.data.features.choice import TableSummary, in_pairs, value_columns
from poem.data.features.encoding import HASH_SIZE, Encoding
from poem.data.features.gaps import count_missing, is_empty
from poem.data.features.kinds import Sparse
from poem.data.features.numbers import Missing, Numeric, Vector
from poem.data.features.recipe import Features

__all__ = [
    "HASH_SIZE",
    "Encoding",
    "Features",
    "Missing",
    "Numeric",
    "Sparse",
    "TableSummary",
    "Vector",
    "count_missing",
    "in_pairs",
    "is_empty",
    "value_columns",
]
