"""Numbers as a reader wants them: few digits, real minus signs, thousands apart."""

import math
import unicodedata
from dataclasses import dataclass

from poem import text

MINUS, SPACE, UNKNOWN = "−", "\u00a0", "–"  # the space does not break
MOST_DECIMALS = 12


def fixed(value: float, decimals: int, *, signed: bool = False) -> str:
    """Return a number with so many decimals."""
    if math.isnan(value):
        return UNKNOWN
    if math.isinf(value):
        return "∞" if value > 0.0 else f"{MINUS}∞"
    rounded = round(value, decimals) + 0.0  # no "−0.00"
    return f"{rounded:{'+' if signed and rounded else ''},.{decimals}f}".replace("-", MINUS)


def significant(value: float, digits: int = 3) -> str:
    """Return a number with so many significant digits."""
    if not math.isfinite(value) or value == 0.0:
        return fixed(value, 0)
    if not 1e-5 <= abs(value) < 1e12:
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        return f"{mantissa}e{int(power)}".replace("-", MINUS)
    return fixed(value, min(max(digits - 1 - exponent(value), 0), MOST_DECIMALS))


def short(value: float) -> str:
    """Return a number for an axis: no digits that say nothing."""
    if value == 0.0 or not 1e-5 <= abs(value) < 1e15:
        return f"{value:.3g}".replace("-", MINUS)
    shown = f"{value:,.{min(max(3 - exponent(value), 0), MOST_DECIMALS)}f}"
    return (shown.rstrip("0").rstrip(".") if "." in shown else shown).replace("-", MINUS)


def percent(share: float, *, signed: bool = False) -> str:
    """Return a share as a percentage."""
    if not math.isfinite(share):
        return UNKNOWN if math.isnan(share) else fixed(share, 0) + "%"
    size = abs(100.0 * share)
    decimals = 0 if size >= 100.0 else 1 if size >= 1.0 or size == 0.0 else 2
    return fixed(100.0 * share, decimals, signed=signed) + "%"


def points(change: float) -> str:
    """Return a change of a share in percentage points, with its sign."""
    decimals = 1 if abs(100.0 * change) >= 1.0 else 2
    return fixed(100.0 * change, decimals, signed=True)


def count(number: float) -> str:
    """Return a whole number."""
    return fixed(float(number), 0)


def counted(number: int, what: str) -> str:
    """Return a number of things on one line: ``1 row``, ``1,200 rows``."""
    return text.counted(number, what).replace(" ", SPACE, 1)


def rough(number: float) -> str:
    """Return a number with two digits that count, written out."""
    if not math.isfinite(number) or number <= 0.0:
        return fixed(number, 0)
    return short(round(number, 1 - exponent(number)))


def exponent(value: float) -> int:
    """Return the power of ten of a number; 0 has 0."""
    return math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0


@dataclass(frozen=True)
class Decimals:
    """How many decimals all values of one page have, so that they can be compared at a glance."""

    number: int

    @staticmethod
    def of(size: float, reach: float) -> "Decimals":
        """Return what shows two digits of an interval's ``reach`` and three or four of a value's ``size``."""
        if not (math.isfinite(size) and size > 0.0):
            size = reach if math.isfinite(reach) and reach > 0.0 else 1.0
        wanted = 2 - exponent(size)
        if math.isfinite(reach) and reach > 0.0:
            wanted = min(max(wanted, 1 - exponent(reach)), wanted + 1)
        return Decimals(min(max(wanted, 0), MOST_DECIMALS))

    def show(self, value: float, *, signed: bool = False) -> str:
        """Return a value."""
        return fixed(value, self.number, signed=signed)

    def interval(self, low: float, high: float, *, signed: bool = False) -> str:
        """Return an interval in words."""
        if math.isinf(low) and math.isinf(high):
            return "unbounded"
        return f"{self.show(low, signed=signed)} to {self.show(high, signed=signed)}"


def cut(label: str, width: int) -> str:
    """Return a label in at most so many columns; wide characters take two."""
    sizes = [2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in label]
    if sum(sizes) <= width:
        return label
    kept, used = "", 1  # the ellipsis takes one
    for character, size in zip(label, sizes, strict=True):
        if used + size > width:
            break
        kept, used = kept + character, used + size
    return kept.rstrip() + "…"
