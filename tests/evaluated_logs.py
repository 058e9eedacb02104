"""Logs and policies that evaluate is asked about."""

import numpy as np
import pytest

import poem

LABELS = ("c", "a", "d", "b")  # not in the order of the alphabet


def a_policy(seed, *, k=4, d=3, scale=0.6, labels=LABELS):
    weights = scale * np.random.default_rng(seed).normal(size=(d + 1, k))
    return poem.Policy(poem.MultiClass(k), weights, True, tuple(labels)[:k])


def logged(logger, X, *, context=None, seed=0, **options):
    """A log of what a policy does; the second class costs more, and so do large first features."""
    rng = np.random.default_rng(seed)
    context = np.arange(len(X)) if context is None else context
    seen = X[context]
    y = logger.sample(seen, rng)
    cost = y[:, 0] if y.ndim == 2 else y == logger.labels[1]
    return poem.BanditLog(
        X,
        y,
        loss=rng.random(len(y)) + cost + 0.3 * np.tanh(seen[:, 0]),
        log_propensity=logger.log_prob(seen, y),
        context=context,
        labels=logger.labels,
        **options,
    )


LOGGER, POLICY, OTHER = a_policy(1), a_policy(2), a_policy(3)


@pytest.fixture(scope="session")
def log():
    """190 rows, each of another context; as in the others, there are too few contexts for trees."""
    return logged(LOGGER, np.random.default_rng(0).normal(size=(190, 3)))


@pytest.fixture(scope="session")
def replayed():
    """500 rows in 190 contexts, in any order."""
    rng = np.random.default_rng(5)
    return logged(LOGGER, rng.normal(size=(190, 3)), context=rng.integers(0, 190, 500))


@pytest.fixture(scope="session")
def label_rows():
    """190 rows of three yes/no labels, and a policy for them."""
    rng = np.random.default_rng(6)
    logger, policy = (poem.Policy(poem.MultiLabel(3), rng.normal(size=(4, 3)), True, ("a", "b", "c")) for _ in "ab")
    return logged(logger, rng.normal(size=(190, 3))), policy


class Probabilities:
    """Any object with predict_proba: gives back what it was made with."""

    def __init__(self, probabilities, classes=None):
        self.probabilities = probabilities
        if classes is not None:
            self.classes_ = classes

    def predict_proba(self, X):
        return self.probabilities
