"""Values and standard errors from moments over units, which the parts of a log add up to.

A unit's share in the error of an estimate is linear in the unit's sums, with coefficients that depend on the totals of
all units. So the squares and cubes of all shares follow from the second and third moments of a few columns. The columns
are taken around references, estimates on some of the units: what is subtracted at the end is small, so that nothing
cancels. Differences between estimates have columns of their own, for the same reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from poem.arrays import AnyArray, FloatArray
from poem.estimators.hashed_draws import add_hashed
from poem.estimators.intervals import Replicates
from poem.estimators.moment_totals import Cubes, Moments
from poem.estimators.sums import Sums, UnitSums, error_of_luck, error_of_squares, sixth_of_skewness

COUNT = 0  # the column with the number of rows
BESIDE = ("held", "luck")  # columns that an estimate's value does not depend on
Coefficients = dict[int, float]


@dataclass(frozen=True)
class Reference:
    """About what the parts of an estimate are, and which of them it has.

    ``ratio`` is Σtop/Σbottom, ``scale`` the mean of bottom per row, ``base`` and ``held`` those of base and held.
    """

    constant: float
    ratio: float
    scale: float
    base: float
    held: float
    is_mean: bool
    has_base: bool
    has_held: bool
    has_luck: bool

    @classmethod
    def of(cls, sums: UnitSums) -> "Reference":
        """Take the parts of an estimate on some units."""
        n, bottom = float(sums.count.sum()), float(sums.bottom.sum())
        usable = bottom > 0.0 and np.isfinite(bottom)
        return cls(
            constant=sums.constant,
            ratio=float(sums.top.sum()) / bottom if usable else 0.0,
            scale=1.0 if sums.is_mean or not usable else bottom / n,
            base=0.0 if sums.base is None else float(sums.base.sum()) / n,
            held=0.0 if sums.held is None else float(sums.held.sum()) / n,
            is_mean=sums.is_mean,
            has_base=sums.base is not None,
            has_held=sums.held is not None,
            has_luck=sums.luck is not None,
        )

    def columns(self, sums: UnitSums) -> dict[str, FloatArray]:
        """Return the columns of an estimate: its share as the references have it, and what it takes to correct that."""
        top: FloatArray = (sums.top - self.ratio * sums.bottom) / self.scale
        found = {"whole": top if sums.base is None else top + (sums.base - self.base * sums.count)}
        if not self.is_mean:
            found |= {"bottom": sums.bottom} | ({"top": top} if self.has_base else {})
        if sums.held is not None:
            found["held"] = sums.held - self.held * sums.count
        if sums.luck is not None:
            found["luck"] = sums.luck
        return found

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        ratio = [] if self.is_mean else ["bottom", "top"] if self.has_base else ["bottom"]
        return ["whole", *ratio, *(["held"] if self.has_held else []), *(["luck"] if self.has_luck else [])]


@dataclass(frozen=True)
class Scheme:
    """Which moments are taken: of which estimates, and of the differences between which of them.

    Attributes
    ----------
    references : tuple of Reference
        One per estimate.
    pairs : tuple of (int, int)
        The estimates that are compared, by their positions.
    cubed : tuple of int
        The estimates whose third moments are taken.
    drawn : tuple of int
        The estimates that are valued on reweighted units, ``replicates`` times. Third moments are taken of these and
        of all pairs as well.
    """

    references: tuple[Reference, ...]
    pairs: tuple[tuple[int, int], ...] = ()
    cubed: tuple[int, ...] = ()
    drawn: tuple[int, ...] = ()
    replicates: int = 0
    seed: int = 0

    @cached_property
    def places(self) -> tuple[dict[str, int], ...]:
        """Where the columns of each estimate are."""
        found, place = [], COUNT + 1
        for reference in self.references:
            found.append({name: place + number for number, name in enumerate(reference.names)})
            place += len(found[-1])
        return tuple(found)

    @cached_property
    def _after(self) -> int:
        """Where the columns of pairs begin."""
        return 1 + sum(len(each) for each in self.places)

    @cached_property
    def drawn_places(self) -> tuple[int, ...]:
        """The columns that are summed with random weights."""
        wanted = {COUNT}
        for one in self.drawn:
            wanted |= {place for name, place in self.places[one].items() if name not in BESIDE}
        return tuple(sorted(wanted))

    def corrected(self, one: int) -> list[int]:
        """Return the columns that correct an estimate's share."""
        reference, at = self.references[one], self.places[one]
        if reference.is_mean:
            return [COUNT]
        return [at["top"], at["bottom"], COUNT] if reference.has_base else [at["whole"], at["bottom"]]

    @cached_property
    def forms(self) -> tuple[tuple[int, ...], ...]:
        """The columns of which moments are taken together: those of each estimate, then of each pair."""
        own = [dict.fromkeys([self.places[i]["whole"], *self.corrected(i)]) for i in range(len(self.references))]
        paired = [
            dict.fromkeys([self._after + number, *self.corrected(i), *self.corrected(j)])
            for number, (i, j) in enumerate(self.pairs)
        ]
        return tuple(tuple(form) for form in (*own, *paired))

    @cached_property
    def is_cubed(self) -> tuple[bool, ...]:
        """Of which forms third moments are taken."""
        own = [one in self.cubed or one in self.drawn for one in range(len(self.references))]
        return (*own, *(bool(self.drawn) for _ in self.pairs))

    def columns(self, sums: Sequence[UnitSums]) -> list[FloatArray]:
        """Return all columns of some units, one number per unit each."""
        found = [sums[0].count]
        for reference, one in zip(self.references, sums, strict=True):
            columns = reference.columns(one)
            found += [columns[name] for name in reference.names]
        whole = [at["whole"] for at in self.places]
        return [*found, *(found[whole[i]] - found[whole[j]] for i, j in self.pairs)]

    def moments(self, sums: Sequence[UnitSums], hashes: AnyArray) -> "Moments":
        """Return the moments of some units; ``hashes`` are theirs, (units,), to draw their weights by."""
        columns = self.columns(sums)
        squares, cubes = [], []
        for form, cubed in zip(self.forms, self.is_cubed, strict=True):
            values = np.stack([columns[place] for place in form])
            squares.append(values @ values.T)
            cubes.append(Cubes.of(values) if cubed else None)
        held = [self._held_squares(columns, one) for one in range(len(self.references))]
        drawn = None
        if self.drawn:
            drawn = np.zeros((self.replicates, len(self.drawn_places)))
            add_hashed(np.stack([columns[place] for place in self.drawn_places]), hashes, self.seed, drawn)
        return Moments(
            units=len(columns[COUNT]),
            sums=np.array([float(column.sum()) for column in columns]),
            largest=np.array([float(np.abs(column).max()) for column in columns]),
            squares=squares,
            cubes=cubes,
            held=held,
            drawn=drawn,
        )

    def _held_squares(self, columns: list[FloatArray], one: int) -> FloatArray | None:
        if not self.references[one].has_held:
            return None
        both = np.stack([columns[self.places[one]["held"]], columns[COUNT]])
        return np.asarray(both @ both.T)


class MomentSums(Sums):
    """The sums of one estimate of a scheme, by its position."""

    def __init__(self, scheme: Scheme, moments: Moments, position: int) -> None:
        self._scheme, self._moments, self._position = scheme, moments, position
        self._reference, self._at = scheme.references[position], scheme.places[position]

    def _sum(self, name: str) -> float:
        return float(self._moments.sums[self._at[name]])

    @property
    def n_units(self) -> int:
        return self._moments.units

    @property
    def n_rows(self) -> int:
        return round(float(self._moments.sums[COUNT]))

    @property
    def largest_unit(self) -> float:
        return float(self._moments.largest[COUNT])

    @property
    def largest_share(self) -> float:
        """About the largest share of a unit, as the references have it."""
        return float(self._moments.largest[self._at["whole"]]) / self.n_rows

    @property
    def _total(self) -> float:
        """Σbottom."""
        return float(self.n_rows) if self._reference.is_mean else self._sum("bottom")

    def ratio(self) -> float:
        """Return Σtop/Σbottom; of a plain mean, with its base."""
        reference = self._reference
        top = self._sum("top" if "top" in self._at else "whole")
        more = reference.base if reference.is_mean else 0.0
        return reference.ratio + more + reference.scale * top / self._total if self._total > 0.0 else np.nan

    def value(self) -> float:
        reference = self._reference
        base = reference.base + (self._sum("whole") - self._sum("top")) / self.n_rows if "top" in self._at else 0.0
        return reference.constant + base + self.ratio()

    def squares(self) -> float:
        """Return the sum of the squared shares of all units."""
        return _form(self._moments.squares[self._position], self._scheme.forms[self._position], self._shares())

    def scaled(self) -> tuple[float, float]:
        """Return the sums of the squared and of the cubed shares of all units, in a unit that keeps both finite."""
        return self._scaled(self._position, self._shares())

    def stderr(self) -> float:
        return error_of_squares(self.squares(), self.n_units)

    def stderr_less(self, other: "MomentSums") -> float:
        number, shares = self._less(other)
        return error_of_squares(_form(self._moments.squares[number], self._scheme.forms[number], shares), self.n_units)

    def acceleration(self) -> float:
        return sixth_of_skewness(*self.scaled()) if self.n_units > 1 else np.nan

    def acceleration_less(self, other: "MomentSums") -> float:
        if self.n_units < 2:
            return np.nan
        return sixth_of_skewness(*self._scaled(*self._less(other)))

    def held_back(self) -> float:
        squares = self._moments.held[self._position]
        if squares is None:
            return 0.0
        n = float(self._moments.sums[COUNT])
        off = self._sum("held") / n
        return self._reference.held + off + 2.0 * float(np.sqrt(_form(squares, (0, 1), {0: 1.0 / n, 1: -off / n})))

    def stderr_of_luck(self) -> float:
        return error_of_luck(self._sum("luck"), self._total) if "luck" in self._at else 0.0

    def effective_number(self) -> float:
        """Return (Σw)²/Σw² of units whose weights this is the mean of."""
        about = self._reference.ratio
        square = _form(self._moments.squares[self._position], (0, 1), {0: 1.0, 1: about})
        total = self._sum("whole") + about * float(self._moments.sums[COUNT])
        return total**2 / square if square > 0.0 else 0.0

    def replicated(self) -> FloatArray:
        """Return the estimate on each reweighted log."""
        scheme, drawn, reference = self._scheme, self._moments.drawn, self._reference
        assert drawn is not None
        own = {name: place for name, place in self._at.items() if name not in BESIDE}
        at = {name: drawn[:, scheme.drawn_places.index(place)] for name, place in own.items()}
        count = drawn[:, scheme.drawn_places.index(COUNT)]
        with np.errstate(divide="ignore", invalid="ignore"):
            top = at.get("top", at["whole"])
            ratio = reference.ratio + reference.scale * top / (count if reference.is_mean else at["bottom"])
            base = reference.base + ((at["whole"] - top) / count if "top" in at else 0.0)
        return np.asarray(reference.constant + base + ratio)

    # ---- shares as linear forms of the columns ------------------------------------------------

    def _shares(self) -> Coefficients:
        """Return what a unit's share is made of: its column around the reference, and corrections."""
        return _combined({self._at["whole"]: 1.0 / self.n_rows}, self._corrections())

    def _corrections(self) -> Coefficients:
        n, reference = float(self.n_rows), self._reference
        if reference.is_mean:
            return {COUNT: -self._sum("whole") / n / n}
        top = "top" if reference.has_base else "whole"
        scale = self._total / n
        off = reference.scale * self._sum(top) / self._total
        found = {self._at[top]: (reference.scale / scale - 1.0) / n, self._at["bottom"]: -off / scale / n}
        return found | ({COUNT: (self._sum("top") - self._sum("whole")) / n / n} if reference.has_base else {})

    def _less(self, other: "MomentSums") -> tuple[int, Coefficients]:
        """Return the form of a difference, and what a unit's share of it is made of."""
        number = self._scheme.pairs.index((self._position, other._position))
        column = self._scheme.forms[len(self._scheme.references) + number][0]
        minus = {place: -value for place, value in other._corrections().items()}
        shares = _combined({column: 1.0 / self.n_rows}, _combined(self._corrections(), minus))
        return len(self._scheme.references) + number, shares

    def _scaled(self, number: int, shares: Coefficients) -> tuple[float, float]:
        cubes, form = self._moments.cubes[number], self._scheme.forms[number]
        assert cubes is not None
        share = np.array([shares.get(place, 0.0) for place in form]) * cubes.scale
        unit = float(np.abs(share).max()) or 1.0
        squares = _form(self._moments.squares[number], form, shares) / unit**2
        share = share / unit
        return squares, float(((cubes.sums @ share) @ share) @ share)


def _combined(one: Coefficients, two: Coefficients) -> Coefficients:
    return {place: one.get(place, 0.0) + two.get(place, 0.0) for place in one | two}


def _form(squares: FloatArray, form: tuple[int, ...], shares: Coefficients) -> float:
    share: Any = np.array([shares.get(place, 0.0) for place in form])
    return max(float(share @ squares @ share), 0.0)


def replicates_of(estimates: Sequence[MomentSums]) -> Replicates:
    """Return the estimates on reweighted logs, as the bootstrap has them."""
    return Replicates(np.column_stack([one.replicated() for one in estimates]))
