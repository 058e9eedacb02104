"""Raw columns → features, by a recipe that is plain data."""

from poem.data.features.encoding import HASH_SIZE, Encoding
from poem.data.features.kinds import Numeric, Sparse, Vector
from poem.data.features.recipe import Features

__all__ = ["HASH_SIZE", "Encoding", "Features", "Numeric", "Sparse", "Vector"]
