"""How tight are bounds that hold for any number of rows? One-sided radii on real sets, and a confidence sequence.

    python -m benchmarks.radii --data FOLDER [--first-seed 100] [--seeds 10] [--streams 2000]

FOLDER holds sets as name.csv.bz2, the class in the last column. In each set, logger and target are softmax policies
around the true class; the logger takes the two most frequent classes for each other. The reward is 1 for the truth,
and is flipped with a given probability. A radius is (truth − lower bound)/truth at 95% one-sided confidence. A bound
below 0 counts as 0, the least that a reward can be, so that no radius exceeds 1.

The stakes of betting and the λ of LS were chosen on these sets with seeds 0 to 3; the default seeds are others.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from estimators.bandits import cs

from benchmarks.data import labelled
from poem.arrays import FloatArray, IntArray
from poem.estimators import Terms
from poem.estimators.betting import Bets, lower_bound
from poem.estimators.intervals import bernstein, least_mean

LOGGER_TEMPERATURES, TARGET_TEMPERATURES = (0.2, 0.25, 0.3), (0.1, 0.2, 0.3, 0.4, 0.5)
NOISE = (0.0, 0.1, 0.2)
ALPHA = 0.05
Bound = Callable[[FloatArray, FloatArray], float]  # ratio, reward → a lower bound on the target's reward


# ---- bounds -----------------------------------------------------------------------------------


def by(method: str) -> Bound:
    """Return one of poem's bounds on the mean of terms ≥ 0."""
    return lambda ratio, reward: least_mean(method, ratio * reward, np.ones(len(ratio)), 0.0, ALPHA)


def by_bernstein(power: float) -> Bound:
    """Return the empirical Bernstein bound of IPS with ratios cut at n^power, which only lowers their mean."""

    def bound(ratio: FloatArray, reward: FloatArray) -> float:
        cut = len(ratio) ** power
        return bernstein(Terms(np.minimum(ratio, cut) * reward).by_unit(None), cut, ALPHA)[0]

    return bound


def by_exploration(propensity: FloatArray, target: FloatArray, reward: FloatArray) -> float:
    """Return the bound of implicit exploration (Neu, 2015) with γ = √(log(1/α)/n)/2."""
    n = len(reward)
    gamma = np.sqrt(np.log(1.0 / ALPHA) / n) / 2.0
    return float(np.mean(target * reward / (propensity + gamma)) - np.log(1.0 / ALPHA) / (2.0 * gamma * n))


BOUNDS: dict[str, Bound] = {
    "betting": by("betting"),
    "LS": by("ls"),
    "truncated": by("truncated"),
    "Bern. n^1/4": by_bernstein(0.25),
    "Bern. n^1/2": by_bernstein(0.5),
}


# ---- real sets ----------------------------------------------------------------------------------


def softmax_around(centre: IntArray, k: int, temperature: float) -> FloatArray:
    """Return probabilities ∝ exp(1[class is the centre]/temperature), (n, k)."""
    scores = np.exp(np.eye(k)[centre] / temperature)
    return scores / scores.sum(axis=1, keepdims=True)


def mistaken(label: IntArray, k: int) -> IntArray:
    """Return the classes that a logger takes for the true ones: each of the two most frequent for the other."""
    first, second = np.argsort(-np.bincount(label, minlength=k), kind="stable")[:2]
    taken = label.copy()
    taken[label == first], taken[label == second] = second, first
    return taken


def radii(label: IntArray, seed: int) -> Iterator[dict[str, float]]:
    """Yield the radius of each bound on logs of one set, one for each combination of temperatures and noise."""
    k, n, rng = int(label.max()) + 1, len(label), np.random.default_rng([seed, len(label)])
    for logging, target, noise in itertools.product(LOGGER_TEMPERATURES, TARGET_TEMPERATURES, NOISE):
        old, new = softmax_around(mistaken(label, k), k, logging), softmax_around(label, k, target)
        chosen = np.minimum((old.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1), k - 1)
        reward = ((chosen == label) ^ (rng.random(n) < noise)).astype(np.float64)
        right = new[np.arange(n), label]
        truth = float(np.mean((1.0 - noise) * right + noise * (1.0 - right)))
        p, h = old[np.arange(n), chosen], new[np.arange(n), chosen]
        bounds = {name: bound(h / p, reward) for name, bound in BOUNDS.items()}
        bounds["IX"] = by_exploration(p, h, reward)
        yield {name: 1.0 - max(value, 0.0) / truth for name, value in bounds.items()}


# ---- a confidence sequence ------------------------------------------------------------------------


def stream(n: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the ratios and rewards of a stream: 4 actions, the logger prefers the second one, the target the first."""
    rng = np.random.default_rng([seed, 1])
    old, new, mean = np.array([0.2, 0.5, 0.2, 0.1]), np.array([0.7, 0.1, 0.1, 0.1]), np.array([0.6, 0.4, 0.3, 0.5])
    action = rng.choice(4, n, p=old)
    return (new / old)[action], (rng.random(n) < mean[action]).astype(np.float64)


TRUTH = 0.7 * 0.6 + 0.1 * (0.4 + 0.3 + 0.5)


def covers_always(ratio: FloatArray, reward: FloatArray) -> bool:
    """Tell whether neither side's capital against the truth ever reaches 2/α."""
    bets, wanted = Bets.everywhere(), np.log(2.0 / ALPHA)
    for terms, mean in ((ratio * reward, TRUTH), (ratio * (1.0 - reward), 1.0 - TRUTH)):
        factors = np.log1p(bets.share[:, None] * (terms / mean - 1.0))
        capital = np.logaddexp.reduce(np.cumsum(factors, axis=1) + np.log(bets.weight)[:, None], axis=0)
        if capital.max() >= wanted:
            return False
    return True


def widths(n: int, seed: int) -> tuple[float, float]:
    """Return the width of poem's sequence and of vw-estimators' at the end of a stream."""
    ratio, reward = stream(n, seed)
    theirs = cs.Interval(0.0, 1.0)
    for one, gain in zip(ratio.tolist(), reward.tolist(), strict=True):
        theirs.add_example(1.0, gain, one)
    their_low, their_high = theirs.get(ALPHA)
    bets = Bets.everywhere()
    low, rest = (lower_bound(ratio * part, 0.0, ALPHA / 2.0, bets) for part in (reward, 1.0 - reward))
    assert their_low is not None
    assert their_high is not None
    return 1.0 - rest - low, their_high - their_low


# ---- the command ----------------------------------------------------------------------------------


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--first-seed", type=int, default=100, metavar="N")
    parser.add_argument("--seeds", type=int, default=10, metavar="N")
    parser.add_argument("--streams", type=int, default=2000, metavar="N")
    parser.add_argument("--rows", type=int, default=10_000, metavar="N", help="of each stream")
    options = parser.parse_args()
    paths = sorted(options.data.glob("*.csv.bz2"))
    if not paths:
        parser.error(f"there is no *.csv.bz2 in {options.data}")
    names, seeds = [*BOUNDS, "IX"], range(options.first_seed, options.first_seed + options.seeds)
    print(f"{'set':12} {'rows':>6} " + " ".join(f"{name:>12}" for name in names))
    everything = []
    for path in paths:
        _, label = labelled(path)
        found = [[one[name] for name in names] for seed in seeds for one in radii(label, seed)]
        everything += found
        _row(path.name.removesuffix(".csv.bz2"), len(label), found)
    _row("mean", 0, everything)
    covered = sum(covers_always(*stream(options.rows, seed)) for seed in range(options.streams))
    print(f"covers at every time: {covered} of {options.streams} streams of {options.rows} rows")
    ours, theirs = np.mean([widths(options.rows, seed) for seed in range(20)], axis=0)
    print(f"mean width at the end: {ours:.4f}; vw-estimators' sequence: {theirs:.4f}")


def _row(name: str, rows: int, found: list[list[float]]) -> None:
    print(f"{name:12} {rows or '':>6} " + " ".join(f"{mean:12.3f}" for mean in np.mean(found, axis=0)))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
