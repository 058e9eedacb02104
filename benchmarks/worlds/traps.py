"""Worlds that fool an estimate: regions without support, rare large losses, huge weights, rows that belong together."""

import numpy as np

from benchmarks.worlds.world import Draw, World, at, choose, constant, softmax, weights, yes_no
from poem.arrays import FloatArray, IntArray

RULE = 0.52  # the logger explores where x0 is below
NOISE = 0.2  # of the rule's losses
CATASTROPHE = 50.0
WORSE = 0.8  # what the alternatives cost in addition where the logger never tries them


def rule(n: int, rng: np.random.Generator) -> Draw:
    """A business rule: class 0 always where x0 > 0.52, and the alternatives are 0.8 worse there.

    Elsewhere class 1 is better, and nothing says that it is not so beyond the rule. The logger takes it in 30% of the
    explored rows; always taking it there would gain 0.06 per row of the log. The noise is small.
    """
    draw = _everywhere_better(0.4, n, rng)
    return Draw(draw.X, draw.P, draw.L, draw.y, at(draw.L, draw.y) + rng.uniform(-NOISE, NOISE, n))


def rule_yes_no(n: int, rng: np.random.Generator) -> Draw:
    """The same rule with losses of 0 or 1."""
    return _everywhere_better(0.2, n, rng)


def _everywhere_better(usual: float, n: int, rng: np.random.Generator) -> Draw:
    X = rng.random((n, 3))
    better = 0.06 / RULE / 0.7
    return _ruled(X, X[:, 0] <= RULE, constant(n, usual, usual - better, usual), (0.4, 0.3, 0.3), rng)


def rule_sloped(n: int, rng: np.random.Generator) -> Draw:
    """The same rule; elsewhere class 1 is the better the larger x0, so that a linear model promises much beyond.

    The best policy gains 0.05 per explored context over class 0, and the logger wastes 0.3 · 0.218 on class 2: together
    0.06 per row.
    """
    X = rng.random((n, 3))
    falling = 0.2 + 0.2 * (1.0 - 2.0 * X[:, 0] / RULE)
    wasted = (0.06 / RULE - 0.05) / 0.3
    L = np.c_[np.full(n, 0.2), falling, np.full(n, 0.2 + wasted)]
    return _ruled(X, X[:, 0] <= RULE, L, (0.4, 0.3, 0.3), rng)


def rule_turning(n: int, rng: np.random.Generator) -> Draw:
    """The same rule; elsewhere x1 says which alternative is better by 0.06 / 0.52, at any x0."""
    X = rng.random((n, 3))
    turn = np.where(X[:, 1] > 0.5, 1.0, -1.0) * 0.06 / RULE
    L = np.c_[np.full(n, 0.565), 0.565 - turn, 0.565 + turn]
    L[X[:, 0] > RULE, 0] = 0.2
    return _ruled(X, X[:, 0] <= RULE, L, (0.5, 0.25, 0.25), rng)


def corner(n: int, rng: np.random.Generator) -> Draw:
    """A rule over two features: class 0 always where x0 > 0 and x1 > 0, where all else is 0.8 worse.

    Elsewhere class 1 is better by 0.15, and no single feature tells where the rule begins.
    """
    X = rng.uniform(-1.0, 1.0, size=(n, 3))
    explored = (X[:, 0] <= 0.0) | (X[:, 1] <= 0.0)
    return _ruled(X, explored, constant(n, 0.2, 0.05, 0.3), (0.4, 0.3, 0.3), rng)


def _ruled(
    X: FloatArray, explored: FloatArray, L: FloatArray, exploring: tuple[float, ...], rng: np.random.Generator
) -> Draw:
    """Draw from a logger that takes class 0 wherever it does not explore, and where the others are much worse."""
    P = np.where(explored[:, None], exploring, (1.0, 0.0, 0.0))
    L = np.where(explored[:, None] | (np.arange(3) == 0), L, L[:, :1] + WORSE)
    return yes_no(X, P, L, rng)


def catastrophes(n: int, rng: np.random.Generator) -> Draw:
    """A class that is tried in 3% of the rows costs 0.2, and once in 50 another 50: 1.2 against the others' 1."""
    X, P, L = rng.normal(size=(n, 3)), constant(n, 0.485, 0.485, 0.03), constant(n, 1.0, 1.0, 1.2)
    y = choose(P, rng)
    usual = 1.0 + rng.uniform(-0.3, 0.3, n)
    rare = 0.2 + CATASTROPHE * (rng.random(n) < 1.0 / 50.0)
    return Draw(X, P, L, y, np.where(y == 2, rare, usual))


def rare_failures(n: int, rng: np.random.Generator) -> Draw:
    """The usual class fails in 1% of the rows, the two that are rarely tried in 2%."""
    return yes_no(rng.normal(size=(n, 3)), constant(n, 0.92, 0.04, 0.04), constant(n, 0.01, 0.02, 0.02), rng)


def heavy(n: int, rng: np.random.Generator) -> Draw:
    """Lognormal losses; the class with the lowest median has the heaviest tail and the highest mean."""
    X, P, L = rng.normal(size=(n, 3)), constant(n, 0.4, 0.4, 0.2), constant(n, 1.0, 1.0, 1.25)
    return _lognormal(X, P, L, np.array([0.5, 0.5, 2.0]), rng)


def jackpots(n: int, rng: np.random.Generator) -> Draw:
    """Rewards with a heavy right tail: three classes of mean 1, of which the rarest pays by jackpots."""
    X, P = rng.normal(size=(n, 3)), constant(n, 0.475, 0.475, 0.05)
    paid = _lognormal(X, P, np.ones((n, 3)), np.array([0.5, 0.5, 2.5]), rng)
    return Draw(X, P, -paid.L, paid.y, -paid.loss, reward=True)


def _lognormal(X: FloatArray, P: FloatArray, L: FloatArray, sigma: FloatArray, rng: np.random.Generator) -> Draw:
    y = choose(P, rng)
    spread = sigma[y]
    return Draw(X, P, L, y, at(L, y) * np.exp(spread * rng.normal(size=len(y)) - 0.5 * spread**2))


def huge_weight(n: int, rng: np.random.Generator) -> Draw:
    """A worse class of propensity 1/1000: one of its rows weighs as much as all others."""
    return yes_no(rng.normal(size=(n, 2)), constant(n, 0.5, 0.499, 0.001), constant(n, 0.5, 0.5, 0.6), rng)


def lopsided(n: int, rng: np.random.Generator) -> Draw:
    """Two equal classes with propensities 0.99 and 0.01, by the sign of x0."""
    X = rng.normal(size=(n, 2))
    likely = np.where(X[:, 0] > 0.0, 0.99, 0.01)
    return yes_no(X, np.c_[likely, 1.0 - likely], np.full((n, 2), 0.5), rng)


def one_loss(n: int, rng: np.random.Generator) -> Draw:
    """All losses are 0 but one, whatever was done."""
    X = rng.normal(size=(n, 3))
    P = softmax(X @ weights("one-loss", 3, 3))
    loss = np.zeros(n)
    loss[rng.integers(n)] = 1.0
    return Draw(X, P, np.full((n, 3), 1.0 / n), choose(P, rng), loss)


def clusters(n: int, rng: np.random.Generator) -> Draw:
    """Ten rows per user, who likes and dislikes classes of their own; on average all are equal."""
    user = np.arange(n) // 10
    return _shared(rng.normal(size=(n, 3)) + rng.normal(size=(user.max() + 1, 3))[user], user, rng, group=user)


def repeats(n: int, rng: np.random.Generator) -> Draw:
    """Ten rows per context, which share what each class does there; ``context=`` tells that they do."""
    context = np.arange(n) // 10
    return _shared(rng.normal(size=(context.max() + 1, 3)), context, rng, context=context)


def repeats_unsaid(n: int, rng: np.random.Generator) -> Draw:
    """The same, but every row has a copy of its context."""
    context = np.arange(n) // 10
    return _shared(rng.normal(size=(context.max() + 1, 3))[context], context, rng)


def _shared(X: FloatArray, unit: IntArray, rng: np.random.Generator, **more: IntArray) -> Draw:
    """Draw losses of 0 or 1 whose means are 0.5 plus an effect of unit and class."""
    n = len(unit)
    seen = X[more["context"]] if "context" in more else X
    P = softmax(0.6 * seen @ weights("shared", 3, 3))
    effect = rng.uniform(-0.45, 0.45, size=(unit.max() + 1, 3))[unit]
    draw = yes_no(X, P, 0.5 + effect, rng)
    return Draw(X, P, np.full((n, 3), 0.5), draw.y, draw.loss, **more)


def sorted_outputs(n: int, rng: np.random.Generator) -> Draw:
    """All classes equal, a uniform logger; the log is sorted by class."""
    X = rng.normal(size=(n, 3))
    draw = yes_no(X, np.full((n, 3), 1.0 / 3.0), np.full((n, 3), 0.5), rng)
    order = np.argsort(draw.y, kind="stable")
    return Draw(X[order], draw.P, draw.L, draw.y[order], draw.loss[order])


TRAPS = (
    World("rule", rule, options={"loss_bounds": (0.0, 1.4)}),
    World("rule-data", rule, promised=False),
    World("rule-yes-no", rule_yes_no),
    World("rule-sloped", rule_sloped),
    World("rule-turning", rule_turning),
    World("corner", corner),
    World("catastrophes", catastrophes, options={"loss_bounds": (0.0, CATASTROPHE + 1.0)}),
    World("catastrophes-data", catastrophes, promised=False),
    World("rare-failures", rare_failures, (3000,)),
    World("heavy", heavy, (500, 2000), promised=False),
    World("jackpots", jackpots, promised=False),
    World("huge-weight", huge_weight),
    World("lopsided", lopsided),
    World("one-loss", one_loss, (200,)),
    World("clusters", clusters, (600,)),
    World("repeats", repeats),
    World("repeats-unsaid", repeats_unsaid, promised=False),
    World("sorted-outputs", sorted_outputs, (400,)),
)
