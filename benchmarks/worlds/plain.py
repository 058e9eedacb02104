"""Worlds where nothing is wrong: there is a gain to find, or there is none at all."""

import numpy as np
from numpy.typing import NDArray

from benchmarks.worlds.world import Draw, World, at, choose, constant, epsilon_greedy, softmax, weights, yes_no
from poem.arrays import FloatArray

BoolArray = NDArray[np.bool_]

NULL = 0.5  # the loss of every class where all are equal


def _null(logger: str, n: int, rng: np.random.Generator, k: int = 4) -> Draw:
    X = rng.normal(size=(n, 4))
    scores = X @ weights(f"null-{logger}", 4, k)
    P = {
        "uniform": lambda: np.full((n, k), 1.0 / k),
        "softmax": lambda: softmax(scores),
        "greedy": lambda: epsilon_greedy(scores.argmax(axis=1), k, 0.2),
    }[logger]()
    return yes_no(X, P, np.full((n, k), NULL), rng)


def null_uniform(n: int, rng: np.random.Generator) -> Draw:
    """All classes equal, each as likely."""
    return _null("uniform", n, rng)


def null_softmax(n: int, rng: np.random.Generator) -> Draw:
    """All classes equal, a linear softmax logger."""
    return _null("softmax", n, rng)


def null_greedy(n: int, rng: np.random.Generator) -> Draw:
    """All classes equal, a linear epsilon-greedy logger (ε = 0.2)."""
    return _null("greedy", n, rng)


def many_classes(n: int, rng: np.random.Generator) -> Draw:
    """200 equal classes, a linear softmax logger."""
    X = rng.normal(size=(n, 5))
    return yes_no(X, softmax(0.7 * X @ weights("classes-200", 5, 200)), np.full((n, 200), NULL), rng)


def linear_labels(n: int, rng: np.random.Generator) -> Draw:
    """A linear right class, 0/1 loss, 15% of the losses flipped, uniform logger: most there is to gain."""
    X = rng.normal(size=(n, 5))
    right = (X @ weights("linear-labels", 5, 5)).argmax(axis=1)
    return yes_no(X, np.full((n, 5), 0.2), np.where(np.arange(5) == right[:, None], 0.15, 0.85), rng)


def linear_rewards(n: int, rng: np.random.Generator) -> Draw:
    """Rewards of 0 or 1, their means logistic in x; a softmax logger around a weak version of the right weights."""
    X = rng.normal(size=(n, 5))
    true = weights("linear-rewards", 5, 5)
    scores = 0.55 * X @ true
    guess = 0.25 * X @ (true + 1.5 * weights("linear-rewards-logger", 5, 5))
    draw = yes_no(X, softmax(guess), 1.0 / (1.0 + np.exp(scores)), rng)
    return Draw(X, draw.P, draw.L - 1.0, draw.y, draw.loss - 1.0, reward=True)


def linear_costs(n: int, rng: np.random.Generator) -> Draw:
    """Continuous losses, linear in x plus uniform noise, within [0, 1]; a weak softmax logger."""
    X = rng.uniform(-1.0, 1.0, size=(n, 5))
    true = weights("linear-costs", 5, 5)
    L = np.clip(0.5 + 0.2 * X @ true, 0.1, 0.9)
    P = softmax(0.4 * X @ (weights("linear-costs-logger", 5, 5) - true))
    y = choose(P, rng)
    mean = at(L, y)
    reach = np.minimum(0.3, np.minimum(mean, 1.0 - mean))  # so that the noise keeps the mean
    return Draw(X, P, L, y, mean + reach * rng.uniform(-1.0, 1.0, n))


def drift(n: int, rng: np.random.Generator) -> Draw:
    """The losses move during the log; the truth is their average over its period."""
    X = rng.normal(size=(n, 4))
    early, late = (_probability(X @ weights(f"drift-{when}", 4, 4)) for when in ("early", "late"))
    late = 0.6 * early + 0.4 * late
    time = np.arange(n) / n
    P = softmax(0.3 * X @ weights("drift-logger", 4, 4))
    draw = yes_no(X, P, (1.0 - time[:, None]) * early + time[:, None] * late, rng)
    return Draw(X, P, 0.5 * (early + late), draw.y, draw.loss, time=time)


def nonlinear(n: int, rng: np.random.Generator) -> Draw:
    """The right class is the product of two signs, and the logger knows it but for ε = 0.1."""
    X = rng.normal(size=(n, 3))
    right = (X[:, 0] * X[:, 1] > 0.0).astype(int)
    L = constant(n, 0.9, 0.9, 0.5)
    L[np.arange(n), right] = 0.1
    return yes_no(X, epsilon_greedy(right, 3, 0.1), L, rng)


def eligibility(n: int, rng: np.random.Generator) -> Draw:
    """Five classes; all but the first are eligible in 60% of the contexts only, and fail elsewhere.

    The last four features say what is eligible. The logger draws among the eligible classes by a weak softmax.
    """
    X = rng.normal(size=(n, 3))
    eligible = np.c_[np.ones(n, dtype=bool), rng.random((n, 4)) < 0.6]
    return _eligible(X, np.c_[X, eligible[:, 1:]], eligible, rng)


def eligibility_hidden(n: int, rng: np.random.Generator) -> Draw:
    """The same, but what is eligible follows from products of features, which no linear policy can tell."""
    X = rng.normal(size=(n, 3))
    x, y, z = (X > 0.0).T
    return _eligible(X, X, np.c_[np.ones(n, dtype=bool), x ^ y, y ^ z, x ^ z, ~(x ^ y ^ z)], rng)


def _eligible(X: FloatArray, seen: FloatArray, eligible: BoolArray, rng: np.random.Generator) -> Draw:
    true = weights("eligibility", 3, 5)
    P = softmax(np.where(eligible, 0.3 * X @ true, -np.inf))
    return yes_no(seen, P, np.where(eligible, 0.7 * _probability(-X @ true), 1.0), rng)


def _probability(scores: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-scores))


NULL_SIZES = (50, 200, 1000)
BENIGN_SIZES = (300, 1000, 3000)
PLAIN = (
    World("null-uniform", null_uniform, NULL_SIZES),
    World("null-softmax", null_softmax, NULL_SIZES),
    World("null-greedy", null_greedy, NULL_SIZES),
    World("tiny", null_softmax, (20, 30)),
    World("classes-200", many_classes, (500, 2000)),
    World("linear-labels", linear_labels, BENIGN_SIZES),
    World("linear-rewards", linear_rewards, BENIGN_SIZES),
    World("linear-costs", linear_costs, BENIGN_SIZES),
    World("drift", drift),
    World("nonlinear", nonlinear),
    World("eligibility", eligibility),
    World("eligibility-hidden", eligibility_hidden),
)
