"""Moments of the units of a part of a log, which those of other parts are added to."""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from poem.arrays import FloatArray

A = TypeVar("A", FloatArray, "Cubes")


@dataclass(frozen=True)
class Cubes:
    """Sums of products of three columns, (k, k, k), each column in units of its own ``scale``, (k,).

    Cubes of what weights can be would overflow.
    """

    scale: FloatArray
    sums: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> "Cubes":
        """Take the moments of some columns, (k, units)."""
        scale = np.abs(values).max(axis=1)
        small = values / np.where(scale > 0.0, scale, 1.0)[:, None]
        return cls(scale, np.stack([(small * one) @ small.T for one in small]))

    def __add__(self, other: "Cubes") -> "Cubes":
        scale = np.maximum(self.scale, other.scale)
        return Cubes(scale, self._in_units_of(scale) + other._in_units_of(scale))

    def _in_units_of(self, scale: FloatArray) -> FloatArray:
        by = self.scale / np.where(scale > 0.0, scale, 1.0)
        return self.sums * by[:, None, None] * by[:, None] * by


@dataclass
class Moments:
    """Sums over units of the columns of a scheme, of their products, and of their products of three."""

    units: int
    sums: FloatArray
    largest: FloatArray
    squares: list[FloatArray]
    cubes: list[Cubes | None]
    held: list[FloatArray | None]
    drawn: FloatArray | None

    def add(self, other: "Moments") -> None:
        """Add those of other units."""
        self.units += other.units
        self.sums = self.sums + other.sums
        self.largest = np.maximum(self.largest, other.largest)
        self.squares = [one + more for one, more in zip(self.squares, other.squares, strict=True)]
        self.cubes, self.held = _added(self.cubes, other.cubes), _added(self.held, other.held)
        (self.drawn,) = _added([self.drawn], [other.drawn])


def _added(some: list[A | None], more: list[A | None]) -> list[A | None]:
    return [None if one is None or two is None else one + two for one, two in zip(some, more, strict=True)]
