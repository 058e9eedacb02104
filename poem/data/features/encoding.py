"""How raw columns become features, where the defaults do not fit."""

from collections.abc import Collection
from dataclasses import dataclass, replace

from poem.errors import InputError

HASH_SIZE = 4096
MOST_FEATURES = 2**31 - 1  # what a matrix can number in 32 bits


@dataclass(frozen=True)
class Encoding:
    """How the raw columns of a log become features, where the defaults do not fit.

    By default, numbers are kept as they are. Strings are one-hot encoded, or hashed if there are more than a thousand
    different ones, or hashed by words if they are text. A column with missing values has one more feature.

    Attributes
    ----------
    scale : bool
        Scale numbers to mean 0 and standard deviation 1.
    one_hot : names
        Columns to take as categories.
    hashed : names
        Columns of categories to hash.
    text : names
        Columns whose words to hash.
    hash_size : int
        The number of features of each hashed column.
    """

    scale: bool = False
    one_hot: Collection[str] = ()
    hashed: Collection[str] = ()
    text: Collection[str] = ()
    hash_size: int = HASH_SIZE

    def __post_init__(self) -> None:
        if not isinstance(self.hash_size, int) or not 1 <= self.hash_size <= MOST_FEATURES:
            raise InputError(f"hash_size must be a whole number from 1 to {MOST_FEATURES}; found {self.hash_size!r}.")

    def only(self, names: Collection[str]) -> "Encoding":
        """Return the same for some columns; others are not asked for."""
        asked = {name: kind for name, kind in self.by_column().items() if name in names}
        one_hot, hashed, text = (
            tuple(name for name in asked if asked[name] == kind) for kind in ("one-hot", "hashed", "text")
        )
        return replace(self, one_hot=one_hot, hashed=hashed, text=text)

    def by_column(self) -> dict[str, str]:
        """Return the kind of feature that was asked for, by column."""
        kinds = (("one-hot", self.one_hot), ("hashed", self.hashed), ("text", self.text))
        return {name: kind for kind, names in kinds for name in ((names,) if isinstance(names, str) else tuple(names))}
