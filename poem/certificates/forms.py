"""The forms in which the gain is written as terms for betting."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """Terms that are never below a floor.

    The lower the floor, the less noisy terms may be, and the less can be staked on each.

    Attributes
    ----------
    floor : float
        Below 0.
    additive : bool
        Whether the terms take for granted that losses are sums over labels.
    """

    floor: float
    additive: bool = False
