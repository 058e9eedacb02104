"""From the terms of an estimate to an interval: by the delta method, the bootstrap, or bounds that hold for any n.

All of them work on independent units. Student's t and the normal interval use the standard error, BCa uses
Poisson-weighted replicates, and empirical Bernstein the range of a unit's term. The truncated, LS and betting bounds
need only a lower limit (floor) of the terms.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from scipy import special

from poem.arrays import AnyArray, FloatArray, frozen
from poem.compute import Threads, kernel
from poem.errors import InputError
from poem.estimators.betting import two_stage_bound
from poem.estimators.sums import Sums, UnitSums, acceleration

Method = Literal["t", "normal", "bootstrap", "bernstein", "truncated", "ls", "betting", "clopper-pearson"]
METHODS: tuple[Method, ...] = get_args(Method)
# Intervals that exist for one estimator only, and hold for any number of rows.
ONLY_FOR: dict[str, str] = {
    "bernstein": "clipped IPS",
    "truncated": "IPS",
    "ls": "IPS",
    "betting": "IPS",
    "clopper-pearson": "IPS",
}
FLOORED = ("truncated", "ls", "betting")  # bounds on the mean of terms that have a floor
REPLICATES = 1000
BLOCK = 4096  # units whose terms stay in the cache while all replicates are added to
SPLIT = 20  # one in so many units sets the truncation, as in Thomas et al. (2015)


def check_level(level: float) -> float:
    """Return a confidence level, or raise an error."""
    if not isinstance(level, int | float | np.floating) or not 0.0 < level < 1.0:
        raise InputError(f"level must be between 0 and 1; found {level!r}. Use 0.95 for 95%.")
    return float(level)


def student(value: float, stderr: float, freedom: float, tail: float) -> tuple[float, float]:
    """Return the interval with probability ``tail`` on each side; unbounded below one degree of freedom."""
    if freedom < 1.0 - 1e-9 or not np.isfinite(stderr):
        return -np.inf, np.inf
    reach = float(special.stdtrit(freedom, 1.0 - tail)) * stderr
    return value - reach, value + reach


def normal(value: float, stderr: float, tail: float) -> tuple[float, float]:
    """Return the normal interval."""
    reach = float(special.ndtri(1.0 - tail)) * stderr
    return value - reach, value + reach


# ---- the bootstrap --------------------------------------------------------------------------


@dataclass(frozen=True)
class Replicates:
    """Estimates on reweighted logs: one row per replicate, one column per estimate."""

    values: FloatArray

    def interval(self, column: int, sums: Sums, tail: float) -> tuple[float, float]:
        """Return the BCa interval of one estimate, corrected for bias and skewness."""
        return bca_interval(self.values[:, column], sums.value(), sums.acceleration(), tail)


def bca(replicates: FloatArray, value: float, left_out: FloatArray, tail: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval from the estimates without each unit."""
    return bca_interval(replicates, value, acceleration(left_out), tail)


def bca_interval(replicates: FloatArray, value: float, acceleration: float, tail: float) -> tuple[float, float]:
    """Return the bias-corrected and accelerated interval (Efron, 1987); unbounded if the acceleration is not known."""
    good = replicates[np.isfinite(replicates)]
    if len(good) < len(replicates) / 2 or np.isnan(acceleration):
        return -np.inf, np.inf
    if np.ptp(good) == 0.0:
        return value, value
    below = (np.count_nonzero(good < value) + 0.5 * np.count_nonzero(good == value)) / len(good)
    bias = float(special.ndtri(np.clip(below, 0.5 / len(good), 1.0 - 0.5 / len(good))))
    ends = []
    for side in (float(special.ndtri(tail)), float(special.ndtri(1.0 - tail))):
        shifted = bias + side
        ends.append(float(special.ndtr(bias + shifted / max(1.0 - acceleration * shifted, 1e-6))))
    low, high = np.quantile(good, ends)
    return float(low), float(high)


def bootstrap(
    estimates: list[UnitSums], replicates: int = REPLICATES, *, seed: int = 0, threads: Threads | None = None
) -> Replicates:
    """Reweight all units by Poisson(1) numbers, the same for all estimates, and value each again.

    Nothing of size replicates × units is ever stored.
    """
    if replicates < 100:
        raise InputError(f"replicates must be at least 100; found {replicates}. Use 1000.")
    columns, owners = _columns(estimates)
    sums = _weighted_sums(columns, replicates, seed, threads or Threads())
    values = np.empty((replicates, len(estimates)))
    with np.errstate(divide="ignore", invalid="ignore"):
        for position, (found, (count, top, bottom, base)) in enumerate(zip(estimates, owners, strict=True)):
            values[:, position] = found.constant + sums[:, top] / sums[:, bottom]
            if base is not None:
                values[:, position] += sums[:, base] / sums[:, count]
    return Replicates(values)


def _columns(estimates: list[UnitSums]) -> tuple[FloatArray, list[tuple[int, int, int, int | None]]]:
    """Return the distinct columns of all estimates, (units, m), and the columns of each estimate."""
    kept: list[FloatArray] = []

    def place(values: FloatArray) -> int:
        for position, known in enumerate(kept):
            if known is values:
                return position
        kept.append(values)
        return len(kept) - 1

    owners = [
        (place(e.count), place(e.top), place(e.bottom), None if e.base is None else place(e.base)) for e in estimates
    ]
    return np.ascontiguousarray(np.stack(kept)), owners


def _weighted_sums(columns: FloatArray, replicates: int, seed: int, threads: Threads) -> FloatArray:
    table = poisson_table()
    n = columns.shape[1]
    blocks = [(first, min(first + BLOCK, n)) for first in range(0, n, BLOCK)]
    seeds = np.random.SeedSequence([seed, 5]).generate_state(len(blocks), np.uint64)

    def part(chunk: range) -> FloatArray:
        out = np.zeros((replicates, columns.shape[0]))
        for number in chunk:
            first, last = blocks[number]
            _add_weighted(columns[:, first:last], table, seeds[number], out)
        return out

    # Eight parts, however many threads there are, so that sums are added in one order.
    chunks = [range(start, len(blocks), 8) for start in range(min(8, len(blocks)))]
    total: FloatArray = np.sum(threads.map(part, chunks), axis=0)
    return total


def poisson_table() -> AnyArray:
    """Return 2¹⁶ Poisson(1) numbers with a mean of exactly 1."""
    size = 1 << 16
    cumulative = np.cumsum(np.exp(-1.0) / special.factorial(np.arange(20)))
    numbers = np.searchsorted(cumulative, (np.arange(size) + 0.5) / size)
    missing = size - int(numbers.sum())  # a few in 65536, made up for by noughts or ones
    few = np.flatnonzero(numbers == (0 if missing > 0 else 1))[: abs(missing)]
    numbers[few] += np.sign(missing)
    return numbers.astype(np.uint8)


@kernel
def _add_weighted(columns: FloatArray, table: AnyArray, seed: int, out: FloatArray) -> None:
    """Add Poisson-weighted sums of each column to each replicate; four weights from each random number."""
    state = np.uint64(seed) | np.uint64(1)
    m, n = columns.shape
    weights = np.empty(n)
    for b in range(out.shape[0]):
        for first in range(0, n, 4):
            state ^= state << np.uint64(13)
            state ^= state >> np.uint64(7)
            state ^= state << np.uint64(17)
            bits = state * np.uint64(2685821657736338717)
            for offset in range(min(4, n - first)):
                weights[first + offset] = table[(bits >> np.uint64(16 * offset)) & np.uint64(0xFFFF)]
        for j in range(m):
            total = 0.0
            for i in range(n):
                total += weights[i] * columns[j, i]
            out[b, j] += total


# ---- bounds for any n -----------------------------------------------------------------------


def bernstein(sums: Sums, span: float, tail: float) -> tuple[float, float]:
    """Return the empirical Bernstein interval (Maurer & Pontil, 2009) of a plain mean.

    ``span`` is the range of a row's term. A unit of many rows counts as one term.
    """
    units, n = sums.n_units, sums.n_rows
    if units < 2 or not np.isfinite(span):
        return -np.inf, np.inf
    value = sums.value()
    share = units * sums.stderr() ** 2  # the variance of one unit's term, in units of the value
    largest = span * sums.largest_unit * units / n
    log_term = np.log(2.0 / tail)
    reach = float(np.sqrt(2.0 * share * log_term / units) + 7.0 * largest * log_term / (3.0 * (units - 1)))
    return value - reach, value + reach


def clopper_pearson(gain: FloatArray, weight: FloatArray, tail: float) -> tuple[float, float]:
    """Return the exact interval for the mean of gains that are 0 or w, where all weights are 0 or w."""
    largest = float(weight.max())
    if largest <= 0.0:
        return -np.inf, np.inf
    _check_all_or_nothing(gain / largest, weight / largest)
    trials, successes = len(gain), round(float(gain.sum()) / largest)
    low = float(special.betaincinv(successes, trials - successes + 1.0, tail)) if successes > 0 else 0.0
    failures = trials - successes
    high = float(special.betaincinv(successes + 1.0, failures, 1.0 - tail)) if failures > 0 else 1.0
    return min(largest * low, 1.0), min(largest * high, 1.0)


def _check_all_or_nothing(gain: FloatArray, weight: FloatArray) -> None:
    """Raise an error unless gains and weights, as shares of the largest weight, are 0 or 1."""
    for values, what in ((weight, "weights"), (gain, "gains over the worst loss")):
        between = np.flatnonzero((values > 1e-6) & (values < 1.0 - 1e-6))
        if len(between):
            raise InputError(
                f"interval='clopper-pearson' is for units that have the same weight or 0, and the best or the worst "
                f"loss; {len(between)} of {len(values)} units have {what} between 0 and the largest one. "
                "Use interval='betting'."
            )


def least_mean(method: str, terms: FloatArray, sizes: FloatArray, floor: float, tail: float, seed: int = 0) -> float:
    """Return a lower bound on the mean per row with confidence 1 − tail, by one of ``FLOORED``; at least the floor.

    ``terms`` are the sums of each unit's rows, none below ``floor`` times its size.
    """
    above: FloatArray = frozen(np.maximum(terms - floor * sizes, 0.0))
    mean = float(above.sum() / sizes.sum())
    if method == "betting":
        found = two_stage_bound(above, 0.0, tail, np.random.default_rng([seed, 7]), sizes)
    else:
        per_row: FloatArray = above * (len(sizes) / float(sizes.sum()))  # a unit counts as one row
        found = smoothed(per_row, tail) if method == "ls" else truncated(per_row, tail, seed)
    return floor + min(max(found, 0.0), mean)


def smoothed(terms: FloatArray, tail: float) -> float:
    """Return the logarithmic-smoothing bound on the mean of independent terms ≥ 0 (Sakhi et al., 2024).

    E Π(1 + λt) = Π(1 + λ·E t), so (e^A − 1)/λ with A = mean log(1 + λt) − log(1/tail)/n is too high with
    probability at most ``tail``. λ = 1/√n, as in the paper.
    """
    n = len(terms)
    lam = 1.0 / np.sqrt(n)
    return float(np.expm1(np.mean(np.log1p(lam * terms)) - np.log(1.0 / tail) / n) / lam)


def truncated(terms: FloatArray, tail: float, seed: int = 0) -> float:
    """Return a lower bound on the mean of terms ≥ 0 with a heavy tail (Thomas, Theocharous & Ghavamzadeh, 2015).

    Terms are cut at c, which only lowers their mean. One term in twenty is used to choose c, so the bound on
    the others holds with probability 1 − tail.
    """
    order = np.random.default_rng([seed, 6]).permutation(len(terms))
    few, rest = terms[order[: len(terms) // SPLIT]], terms[order[len(terms) // SPLIT :]]
    if len(few) < 2 or len(rest) < 2:
        return 0.0
    cuts = np.unique(np.quantile(few, np.linspace(0.5, 1.0, 50)))
    cuts = np.append(cuts[cuts > 0.0], [few.max() * 2.0 + 1e-300, few.max() * 10.0 + 1e-300])
    best = max(cuts, key=lambda cut: _truncated_at(few, cut, tail, len(rest)))
    return max(_truncated_at(rest, float(best), tail, len(rest)), 0.0)


def _truncated_at(terms: FloatArray, cut: float, tail: float, n: int) -> float:
    """Return the bound of n terms like these, cut at ``cut``."""
    cut_off = np.minimum(terms, cut)
    log_term = np.log(2.0 / tail)
    slack = 7.0 * cut * log_term / (3.0 * (n - 1)) + np.sqrt(2.0 * cut_off.var(ddof=1) * log_term / n)
    return float(cut_off.mean() - slack)
