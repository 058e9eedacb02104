"""Raw columns → features, by a recipe that is plain data."""

from poem.features.recipe import HASH_SIZE, Features

__all__ = ["HASH_SIZE", "Features"]
