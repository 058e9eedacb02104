"""Logs of a known logging policy, sound or broken on purpose."""

import numpy as np

import poem

K = 6


def softmax(scores):
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def drawn(rng, p):
    return (p.cumsum(axis=1) < rng.random((len(p), 1))).sum(axis=1).clip(max=p.shape[1] - 1)


def parts(seed=0, n=4000, contexts=None, k=K):
    """Return (X, y, loss, p of all outputs) of a logging policy that depends on the context."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(contexts or n, 4))
    if contexts:
        X = X[rng.integers(0, contexts, n)]
    p = softmax(X @ np.random.default_rng(99).normal(size=(4, k)) * 0.5)
    y = drawn(rng, p)
    loss = (rng.random(n) < 0.3 + 0.4 * (y == 0)).astype(float)
    return X, y, loss, p


def made(seed=0, propensity=None, **options):
    X, y, loss, p = parts(seed, **{key: options.pop(key) for key in ("n", "contexts", "k") if key in options})
    right = p[np.arange(len(y)), y]
    given = right if propensity is None else propensity(right, y, np.random.default_rng(seed))
    return poem.BanditLog(X, y, **({"loss": loss} | options), propensity=given, labels=range(p.shape[1]))


def sets(seed=0, n=4000, q=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    one = 1.0 / (1.0 + np.exp(-X @ np.random.default_rng(5).normal(size=(3, q)) * 0.4))
    y = (rng.random((n, q)) < one).astype(np.uint8)
    return X, y, np.abs(y - (X[:, :1] > 0)).sum(axis=1), np.where(y == 1, one, 1.0 - one).prod(axis=1)
