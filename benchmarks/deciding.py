"""How many contexts a second a policy with trees decides on, with 10 classes and all cores."""

import time

import numpy as np

import poem
from poem.compute import Threads
from poem.models import Boosting, boosted

CONTEXTS, FEATURES, CLASSES, LEARNT = 400_000, 30, 10, 20_000


def policy_with_trees(rounds: int, seed: int = 0) -> poem.Policy:
    """Fit a hidden truth with trees to logged mistakes; return the policy that prefers what is likely right."""
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(LEARNT, FEATURES)), rng.integers(0, CLASSES, LEARNT)
    right = (X[:, 0] * X[:, 1] > 0) + 2 * (X[:, 2] > 0.5) + 3 * (X[:, 3] * X[:, 4] > 0)
    log = poem.BanditLog(X, y, loss=(y != right).astype(float), propensity=np.full(LEARNT, 1.0 / CLASSES))
    model = boosted(log, Boosting(True, 0.1, 31, 6, rounds), (0.0, 1.0), Threads(2))
    assert model.forest is not None
    forest = model.forest.for_columns(CLASSES)
    weights = np.vstack([model.preference[:-1], np.eye(CLASSES), model.preference[-1:]])
    return poem.Policy(log.structure, weights, True, log.labels, forest=forest)


def run(repeats: int = 3, contexts: int = CONTEXTS, rounds: int = 60) -> dict[str, float]:
    """Print and return the thousands of contexts that are decided on in a second."""
    policy = policy_with_trees(rounds)
    X = np.random.default_rng(1).normal(size=(contexts, FEATURES))
    policy.predict(X[:1000])  # kernels are compiled
    seconds, busy = [], []
    for _ in range(repeats):
        begin, before = time.perf_counter(), time.process_time()
        policy.predict(X)
        seconds.append(time.perf_counter() - begin)
        busy.append(time.process_time() - before)
    trees = 0 if policy.forest is None else len(policy.forest)
    print(f"predict with {trees:,} trees, {contexts:,} contexts, s: {min(seconds):.2f}, of all cores {min(busy):.2f}")
    return {"predict with trees, 10 classes, thousand contexts/s": contexts / min(seconds) / 1000.0}


if __name__ == "__main__":
    print(run())
