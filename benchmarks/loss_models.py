"""How much narrower the better loss model makes DR intervals of class logs, and whether they still cover the truth."""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

import poem

SETS: dict[str, Callable[..., Any]] = {
    "iris": load_iris,
    "wine": load_wine,
    "breast cancer": load_breast_cancer,
    "digits": load_digits,
}
LOGS, ROWS, CLASSES, FEATURES = 500, 500, 4, 5


def widths(name: str, seeds: int = 5) -> dict[str, float]:
    """Return the mean width of DR intervals by each kind of loss model, on logs that the policy has not seen."""
    X, Y = SETS[name](return_X_y=True)
    X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-9)
    found: dict[str, list[float]] = {"linear": [], "auto": []}
    for seed in range(seeds):
        rng = np.random.default_rng([5, seed])
        order = rng.permutation(len(X))
        learnt, judged = order[: len(X) // 2], order[len(X) // 2 :]
        logger = poem.logging_policy(X, Y, fraction=0.05, C=0.1, rng=rng)
        policy = poem.fit(
            poem.simulate(X[learnt], Y[learnt], logger, replay=4, rng=rng),
            lam=0.1,
            selection=poem.Selection(guard=False),
        ).policy
        log = poem.simulate(X[judged], Y[judged], logger, replay=4, rng=rng)
        for model in found:
            line = poem.evaluate(policy, log, "DR", model=model)["policy", "DR"]
            found[model].append(line.high - line.low)
    return {model: float(np.mean(each)) for model, each in found.items()}


class World:
    """Contexts with a right class each, a logging policy and another policy whose loss is known."""

    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        shape = (FEATURES + 1, CLASSES)
        self.truth, other = rng.normal(size=(2, *shape))
        labels = tuple(range(CLASSES))
        self.logger = poem.Policy(poem.MultiClass(CLASSES), 0.5 * other, True, labels)
        self.policy = poem.Policy(poem.MultiClass(CLASSES), other + 1.5 * self.truth, True, labels)
        X, Y = self.labelled(1_000_000, rng)
        self.loss = self.policy.expected_loss(X, Y)

    def labelled(self, rows: int, rng: np.random.Generator) -> tuple[Any, Any]:
        """Draw contexts and their right classes."""
        X = rng.normal(size=(rows, FEATURES))
        noise = rng.gumbel(size=(rows, CLASSES))
        return X, np.argmax(2.0 * (X @ self.truth[:-1] + self.truth[-1]) + noise, axis=1)

    def log(self, rng: np.random.Generator) -> poem.BanditLog:
        """Draw a log of the logging policy."""
        X, Y = self.labelled(ROWS, rng)
        return poem.simulate(X, Y, self.logger, replay=1, rng=rng)


def coverage(model: str, logs: int = LOGS) -> tuple[float, float, float]:
    """Return the share of logs whose 95% DR interval covers the truth, its mean width, and the share of hidden truths.

    With 500 logs, the share is off by one point of a hundred.
    """
    world, inside, width, hidden = World(), 0, 0.0, 0
    for number in range(logs):
        found = poem.evaluate(world.policy, world.log(np.random.default_rng([1, number])), "DR", model=model, n_jobs=1)
        line = found["policy", "DR"]
        inside += line.low <= world.loss <= line.high
        width += (line.high - line.low) / logs
        hidden += found.model == "hidden truth"
    return inside / logs, width, hidden / logs


def run() -> dict[str, float]:
    """Print and return the ratios of widths, and the coverage."""
    figures = {}
    for name in SETS:
        found = widths(name)
        print(f"DR intervals on {name}: { {model: round(width, 4) for model, width in found.items()} }", flush=True)
        figures[f"DR width on {name}, auto / linear"] = found["auto"] / found["linear"]
    for model in ("linear", "auto"):
        covered, width, hidden = coverage(model)
        print(f"DR, {model}: covers {covered:.1%}, width {width:.4f}, hidden truth in {hidden:.0%} of logs", flush=True)
        figures[f"DR coverage, {model}"] = covered
    return figures


if __name__ == "__main__":
    print(run() if len(sys.argv) == 1 else coverage(sys.argv[1]))
