"""Raw columns → features, by a recipe that is plain data."""

from poem.data.features.kinds import Numeric, Sparse, Vector
from poem.data.features.recipe import HASH_SIZE, Features

__all__ = ["HASH_SIZE", "Features", "Numeric", "Sparse", "Vector"]
