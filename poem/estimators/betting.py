"""Bets against a mean: a lower confidence bound for any n, any tail and any number of looks.

Terms tᵤ ≥ floor·sizeᵤ come from independent units (or one after the other, each given the past). A bettor who stakes
the share c of a capital of 1 on the claim that their mean per row exceeds m has, after all units,

    W(m) = mean over c of Π (1 − c·sᵤ + c·(tᵤ − floor·sizeᵤ) / ((m − floor)·largest size)),   sᵤ = sizeᵤ / largest size.

If the mean is m or less, the expected capital never exceeds 1, so P(W(m) ≥ 1/α at any time) ≤ α (Ville, 1939). W falls
with m. Every m with W(m) ≥ 1/α is rejected, and the largest of them is a lower bound. Because log(1 + x) ≤ x, the same
holds if units differ; the bound is then on the average of their means, given their sizes.

Stakes may also follow the units that came before (:func:`goal_bound`). That is nearly as powerful as Student's t, but a
bound on the mean of units that are alike, or else on the highest mean that any unit had, given those before.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from poem.arrays import FloatArray, IntArray, frozen
from poem.compute import kernel

LARGEST_SHARE = 0.95  # of the capital that a bet may stake
BOLDEST_SHARE = 0.99  # the same for a bettor with a goal
STEPS = 100  # of the bisection at the most
TOLERANCE = 1e-7  # of the bound, as a share of the distance from the floor
PILOT = 0.05  # share of the units that may set the stakes of the others
LEAST_PILOT = 20
BLIND = 0.05  # part of the capital that is staked in every size


@dataclass(frozen=True)
class Bets:
    """Shares of the capital to stake, and how the capital is split between them."""

    share: FloatArray
    weight: FloatArray

    @classmethod
    def around(cls, share: float) -> "Bets":
        """Return stakes near one that is expected to do well."""
        centre = min(max(share, 1e-9), LARGEST_SHARE)
        shares = np.minimum(centre * np.array([0.5, 1.0, 2.0]), LARGEST_SHARE)
        return cls(frozen(shares), frozen(np.array([0.2, 0.6, 0.2])))

    @classmethod
    def below(cls, share: float) -> "Bets":
        """Return stakes below one that is likely too high, because few units set it and show too little spread."""
        centre = min(max(share, 1e-9), LARGEST_SHARE)
        return cls(frozen(centre * np.array([0.4, 0.9])), frozen(np.array([0.5, 0.5])))

    @classmethod
    def blind(cls, units: int, alpha: float) -> "Bets":
        """Return stakes for this many units with spreads from 0.7 to 6, and a few of every size."""
        shares = np.minimum(best_share(1.0, units, alpha) * 2.0 ** np.arange(0.5, -3.0, -1.0), LARGEST_SHARE)
        return cls(frozen(shares), frozen(np.full(4, 0.25))).and_also(cls.everywhere(), 2.0 * BLIND)

    @classmethod
    def everywhere(cls, finest: float = 1e-5) -> "Bets":
        """Return stakes of every size from ``finest`` up, for use when nothing is known."""
        count = 1 + int(np.ceil(np.log2(LARGEST_SHARE / finest)))
        shares = LARGEST_SHARE * 2.0 ** -np.arange(count)
        return cls(frozen(shares), frozen(np.full(count, 1.0 / count)))

    def and_also(self, others: "Bets", part: float) -> "Bets":
        """Give a part of the capital to other stakes."""
        return Bets(
            frozen(np.concatenate([self.share, others.share])),
            frozen(np.concatenate([(1.0 - part) * self.weight, part * others.weight])),
        )


class Capital:
    """The capital of a bet that a mean exceeds ``mean`` above the floor, updated term by term.

    Once the capital reaches 1/α, the bet is won for good. If the mean does not exceed ``mean``, this happens with
    probability at most α, over all times (Ville's inequality).
    """

    def __init__(self, bets: Bets, mean: float, alpha: float) -> None:
        self.share, self.slope = bets.share, frozen(bets.share / mean)
        self.held, self.wanted = np.array(bets.weight), 1.0 / alpha
        self.won = False

    def add(self, above: FloatArray) -> int:
        """Bet on more terms ≥ 0; return the position of the term that won, or the number of terms."""
        if self.won:
            return len(above)
        position: int = _bet_on(above, self.share, self.slope, self.held, self.wanted)
        self.won = position < len(above)
        return position


def best_share(spread: float, units: float, alpha: float) -> float:
    """Return the stake that needs the least evidence: √(2 log(1/α)/n) standard deviations.

    ``spread`` is the standard deviation of (t − floor) as a share of its mean.
    """
    return float(np.sqrt(2.0 * np.log(1.0 / alpha) / max(units, 1.0)) / max(spread, 1e-9))


def growth(terms: FloatArray, floor: float, sizes: FloatArray, largest: float | None = None) -> float:
    """Return the growth of the capital per unit under the best stake, in bets that the mean exceeds 0.

    ``largest`` is the size of the largest unit of all, if these are a sample.
    """
    above, sizes = _scaled(terms, floor, sizes, largest)
    return max(_log_wealth(above, sizes, share, share / -floor) for share in Bets.everywhere(1e-3).share) / len(terms)


def log_capital(terms: FloatArray, floor: float, mean: float, bets: Bets, sizes: FloatArray | None = None) -> float:
    """Return log W(m) of a bet that the mean per row exceeds ``mean``."""
    above, sizes = _scaled(terms, floor, sizes)
    return _log_capital(above, sizes, mean - floor, bets)


def lower_bound(terms: FloatArray, floor: float, alpha: float, bets: Bets, sizes: FloatArray | None = None) -> float:
    """Return a lower bound on the mean per row with confidence 1 − α; the floor if nothing can be said.

    Parameters
    ----------
    terms : (units,) array
        The sum of each unit's rows, none below ``floor`` times its size.
    floor : float
        The lower limit of a row's term.
    alpha : float
        The probability of error.
    bets : Bets
        Fixed before the terms were looked at.
    sizes : (units,) array, optional
        Number of rows of each unit; 1 by default.
    """
    if len(terms) == 0:
        return floor
    above, sizes = _scaled(terms, floor, sizes)
    return floor + _largest_rejected([(above, sizes, bets)], alpha)


def two_stage_bound(
    terms: FloatArray, floor: float, alpha: float, rng: Generator, sizes: FloatArray | None = None
) -> float:
    """Return the same bound without given stakes: a few units are bet on blindly and set the stakes of the others.

    The product of both capitals is a capital, so no unit is lost. The units must come from one population.
    """
    bets, rest = pilot_bets(terms, floor, alpha, rng, sizes)
    above, sizes = _scaled(terms, floor, sizes)
    parts = [(frozen(above[rest]), frozen(sizes[rest]), bets)]
    few = np.ones(len(terms), dtype=bool)
    few[rest] = False
    if few.any():
        parts.append((frozen(above[few]), frozen(sizes[few]), Bets.blind(len(terms), alpha)))
    return floor + _largest_rejected(parts, alpha)


def _largest_rejected(parts: list[tuple[FloatArray, FloatArray, Bets]], alpha: float) -> float:
    """Return the largest mean above the floor against which the product of all capitals reaches 1/α."""
    wanted = np.log(1.0 / alpha)
    total = sum(float(above.sum()) for above, _, _ in parts)
    low, high = 0.0, total / sum(float(sizes.sum()) for _, sizes, _ in parts)  # at the observed mean, nothing is won
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if sum(_log_capital(above, sizes, middle, bets) for above, sizes, bets in parts) >= wanted:
            low = middle
        else:
            high = middle
        if high - low <= TOLERANCE * high:
            break
    return low


def downside(terms: FloatArray, floor: float, sizes: FloatArray, largest: float) -> float:
    """Return how far terms fall below their mean: the spread that a bettor with a goal takes for granted.

    It is √2 times the root mean square of what is missing, as a share of the distance from 0 to the floor. A large term
    does no harm, so it does not count.
    """
    above, sizes = _scaled(terms, floor, sizes, largest)
    missing = np.minimum(above - float(above.sum() / sizes.sum()) * sizes, 0.0)
    return float(np.sqrt(2.0 * np.mean(missing**2)) / -floor)


def goal_bound(terms: FloatArray, floor: float, alpha: float, spread: float, sizes: FloatArray | None = None) -> float:
    """Return a lower bound on the mean per row by a bettor whose goal is to show that it exceeds 0.

    Units come one after the other. Before each one, the stake is set anew: it is what would be best for the units that
    are left and the capital that is still missing. A bettor who is behind gets bolder, and one who has won goes on with
    the stake of the start, to raise the bound. A bet may look back, so the capital never grows on average if no unit's
    mean given the past exceeds m; by Ville's inequality, m is rejected if the capital reaches 1/α at any time.

    ``spread`` comes from :func:`downside` of earlier terms.
    """
    if len(terms) == 0:
        return floor
    above, sizes = _scaled(terms, floor, sizes)
    wanted, share = np.log(1.0 / alpha), np.empty(len(above))
    _set_stakes(above, sizes, -1.0 / floor, wanted, max(spread, 1e-9), share)
    low, high = 0.0, float(np.max(np.cumsum(above) / np.cumsum(sizes)))  # no capital grows against a higher mean
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        enough = middle > 0.0 and _highest_log(above, sizes, share, 1.0 / middle) >= wanted
        low, high = (middle, high) if enough else (low, middle)
        if high - low <= TOLERANCE * high:
            break
    return floor + low


def pilot_bets(
    terms: FloatArray, floor: float, alpha: float, rng: Generator, sizes: FloatArray | None = None
) -> tuple[Bets, IntArray]:
    """Return stakes set by a few units, and the positions of the other units: bet only on those."""
    units = len(terms)
    order = rng.permutation(units)
    count = max(LEAST_PILOT, int(PILOT * units))
    if units < 4 * count:
        return Bets.blind(units, alpha), np.sort(order)
    few, rest = order[:count], np.sort(order[count:])
    above, _ = _scaled(terms, floor, sizes)
    mean = float(above[few].mean())
    spread = float(above[few].std()) / mean if mean > 0.0 else 1.0
    share = best_share(max(spread, 0.05), len(rest), alpha)
    return Bets.below(share).and_also(Bets.everywhere(), BLIND), rest


def _scaled(
    terms: FloatArray, floor: float, sizes: FloatArray | None, largest: float | None = None
) -> tuple[FloatArray, FloatArray]:
    """Return the terms above the floor and the sizes of the units, as multiples of the largest size."""
    if sizes is None:
        return frozen(np.maximum(terms - floor, 0.0)), frozen(np.ones(len(terms)))
    largest = float(sizes.max()) if largest is None else largest
    return frozen(np.maximum(terms - floor * sizes, 0.0) / largest), frozen(sizes / largest)


def _log_capital(above: FloatArray, sizes: FloatArray, mean: float, bets: Bets) -> float:
    if mean <= 0.0:
        return np.inf
    logs = np.array([_log_wealth(above, sizes, share, share / mean) for share in bets.share])
    logs += np.log(bets.weight)
    highest = float(logs.max())
    return highest + float(np.log(np.exp(logs - highest).sum()))


@kernel
def _log_wealth(above: FloatArray, sizes: FloatArray, share: float, slope: float) -> float:
    """Return Σ log(1 − share·size + slope·above), with one logarithm for several factors."""
    total, product, n = 0.0, 1.0, above.shape[0]
    whole = n - n % 8
    for first in range(0, whole, 8):  # so many factors at a time can be vectorised
        eight = 1.0
        for i in range(first, first + 8):
            eight *= 1.0 - share * sizes[i] + slope * above[i]
        if 1e-100 < eight < 1e100:
            product *= eight
        else:
            for i in range(first, first + 8):
                total += np.log(1.0 - share * sizes[i] + slope * above[i])
        if product > 1e100 or product < 1e-100:
            total += np.log(product)
            product = 1.0
    for i in range(whole, n):
        total += np.log(1.0 - share * sizes[i] + slope * above[i])
    return float(total + np.log(product))


@kernel
def _bet_on(above: FloatArray, share: FloatArray, slope: FloatArray, held: FloatArray, wanted: float) -> int:
    """Multiply the capital of each stake by its factors until the total reaches the target."""
    for i in range(above.shape[0]):
        total = 0.0
        for k in range(share.shape[0]):
            held[k] *= 1.0 - share[k] + slope[k] * above[i]
            total += held[k]
        if total >= wanted:
            return i
    return len(above)


@kernel
def _set_stakes(
    above: FloatArray, sizes: FloatArray, slope: float, wanted: float, spread: float, share: FloatArray
) -> None:
    """Write the stake of each unit of a bettor with a goal, who bets that the mean exceeds 0."""
    n, missing = above.shape[0], wanted
    first = min(np.sqrt(2.0 * wanted / n) / spread, BOLDEST_SHARE)
    for i in range(n):
        share[i] = first if missing <= 0.0 else min(np.sqrt(2.0 * missing / (n - i)) / spread, BOLDEST_SHARE)
        if missing > 0.0:
            missing -= np.log(1.0 + share[i] * (slope * above[i] - sizes[i]))


@kernel
def _highest_log(above: FloatArray, sizes: FloatArray, share: FloatArray, slope: float) -> float:
    """Return the highest log-capital on the way."""
    total, highest = 0.0, 0.0
    for i in range(above.shape[0]):
        total += np.log(1.0 + share[i] * (slope * above[i] - sizes[i]))
        highest = max(highest, total)
    return float(highest)
