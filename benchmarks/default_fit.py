"""The default fit of large made logs: seconds and peak memory; and whether its choice is as good as the exhaustive one.

python -m benchmarks default_fit                                  200,000 × 30 × 10 and 1,000,000 × 30 × 20
python -m benchmarks.default_fit [--rows 60000] [--seeds 3]       the default beside all candidates in five folds

The right class is drawn from a softmax of scores that are linear in x, or of a sum of small trees. The loss is 1 for
any other class. A linear logging policy that hardly knows it acts with a floor of 10%.
"""

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np

import poem

CERTAIN, KNOWN, FLOOR = 2.0, 0.15, 0.1
TREES, DEPTH, TOUCHED = 6, 3, 0.3  # trees per class, their depth, and the share of the classes that each is about
SIZES = {"200,000 × 30 × 10": (200_000, 30, 10), "1,000,000 × 30 × 20": (1_000_000, 30, 20)}
LOGS = 4  # sizes of the log that a fit may take
TESTED = 40_000

Array = np.ndarray


@dataclass(frozen=True)
class World:
    """How contexts, right classes and logged ones are drawn."""

    kind: str
    features: int
    classes: int
    seed: int

    def scores(self, X: Array) -> Array:
        """Return what the right class depends on, (m, classes)."""
        rng = np.random.default_rng([self.seed, 1])
        linear = 3.0 * X @ rng.normal(size=(self.features, self.classes)) / np.sqrt(self.features)
        if self.kind == "linear":
            return linear
        out, places = np.zeros_like(linear), 2 ** np.arange(DEPTH)
        for _ in range(TREES * self.classes):
            feature, threshold = rng.integers(0, self.features, DEPTH), 0.5 * rng.normal(size=DEPTH)
            leaf = (X[:, feature] > threshold) @ places
            out += (rng.normal(size=(2**DEPTH, self.classes)) * (rng.random(self.classes) < TOUCHED))[leaf]
        return out

    def draw(self, rows: int, stream: int) -> tuple[Array, Array]:
        """Return contexts and their right classes."""
        rng = np.random.default_rng([self.seed, 2, stream])
        X = rng.normal(size=(rows, self.features))
        noise = rng.gumbel(size=(rows, self.classes))
        return X, np.argmax(CERTAIN * self.scores(X) + noise, axis=1)

    def logger(self, X: Array) -> Array:
        """Return the probabilities of the logging policy, (m, classes)."""
        rng = np.random.default_rng([self.seed, 1])
        weights = KNOWN * 3.0 * rng.normal(size=(self.features, self.classes)) / np.sqrt(self.features)
        weights += 0.3 * np.random.default_rng([self.seed, 3]).normal(size=weights.shape)
        odds = np.exp(X @ weights)
        return (1.0 - FLOOR) * odds / odds.sum(axis=1, keepdims=True) + FLOOR / self.classes

    def log(self, rows: int) -> poem.BanditLog:
        """Return a log of so many decisions."""
        X, right = self.draw(rows, 0)
        g, rng = self.logger(X), np.random.default_rng([self.seed, 4])
        y = np.minimum((g.cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1), self.classes - 1)
        labels = list(range(self.classes))
        return poem.BanditLog(X, y, loss=(y != right) * 1.0, propensity=g[np.arange(rows), y], labels=labels)

    def loss(self, policy: poem.Policy | None) -> Array:
        """Return the expected loss of a policy in each of some fresh contexts; of the logging policy if it is None."""
        X, right = self.draw(TESTED, 1)
        chance = self.logger(X) if policy is None else policy.marginals(X)
        return 1.0 - chance[np.arange(TESTED), right]


# ---- time and memory ------------------------------------------------------------------------------


def resident(key: str) -> int:
    """Return a figure of this process's memory, in bytes."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))


def measure(kind: str, rows: int, features: int, classes: int) -> dict[str, float]:
    """Fit a log in this process, which has fitted a small one before: kernels are loaded."""
    world = World(kind, features, classes, 0)
    poem.fit(world.log(3_000), loss_bounds=(0, 1))
    before = resident("VmRSS")
    log = world.log(rows)
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")  # the peak so far is forgotten
    start, used = time.monotonic(), time.process_time()
    found = poem.fit(log, loss_bounds=(0, 1))
    return {
        "seconds": time.monotonic() - start,
        "processor": time.process_time() - used,
        "memory": (resident("VmHWM") - before) / log.nbytes,
        "logged": float(world.loss(None).mean()),
        "loss": float(world.loss(found.policy).mean()),
    }


def run() -> dict[str, float]:
    """Print and return the seconds and the peak memory of each size, in a process of its own."""
    figures = {}
    for size, (rows, features, classes) in SIZES.items():
        for kind in ("trees", "linear"):
            asked = f"measure({kind!r}, {rows}, {features}, {classes})"
            code = f"import json; from benchmarks.default_fit import measure; print(json.dumps({asked}))"
            done = subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True)
            found = json.loads(done.stdout.splitlines()[-1])
            print(f"default fit, {size}, {kind}: { {name: round(value, 3) for name, value in found.items()} }")
            figures[f"default fit, {size}, {kind}, s"] = found["seconds"]
            figures[f"peak memory / allowed, default fit, {size}, {kind}"] = found["memory"] / LOGS
    return figures


# ---- choice ---------------------------------------------------------------------------------------


def compare(world: World, rows: int) -> str:
    """Return a line about the default and the exhaustive choice: learner, true loss, seconds of the processor."""
    log, cells, losses = world.log(rows), [], []
    for selection in (poem.Selection(validation=5), poem.Selection()):
        used = time.process_time()
        found = poem.fit(log, loss_bounds=(0, 1), selection=selection)
        losses.append(world.loss(found.policy))
        cells.append(f"{found.chosen.learner}: {losses[-1].mean():.4f} in {time.process_time() - used:.0f} s")
    more = losses[1] - losses[0]
    gap = f"{more.mean():+.4f} ± {more.std() / np.sqrt(TESTED):.4f}"
    return f"{world.kind:<7} {world.seed:>2}  all in five folds: {cells[0]};  default: {cells[1]};  difference {gap}"


def main() -> None:
    """Compare choices on several logs."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--features", type=int, default=30)
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    for seed in range(given.seeds):
        for kind in ("trees", "linear"):
            print(compare(World(kind, given.features, given.classes, seed), given.rows), flush=True)


if __name__ == "__main__":
    main()
