"""Small simulated logs: easy ones, from which much can be learnt, and noise, from which nothing can."""

from dataclasses import replace

import numpy as np

import poem
from poem.learning.portfolio import AUTO, Learner

SHORT = poem.LBFGS(max_iterations=20)
# One candidate of each learner of the portfolio, in less time.
BRIEF = tuple(replace(one, sharpness=one.sharpness[-1:], pull=one.pull[-1:], optimizer=SHORT) for one in AUTO)
FEW = ("direct", Learner("POEM", start="direct", multipliers=(1e-2,), pull=(6e-4,), optimizer=SHORT))


def a_policy(structure, seed=0, scale=0.5):
    weights = scale * np.random.default_rng(seed).normal(size=(3, structure.n_scores))
    return poem.Policy(structure, weights, True, tuple(range(structure.n_scores)))


def logged_by(policy, loss, seed=0, contexts=160, replay=1, **more):
    """A log of a policy on two normal features; ``loss`` is a function of (contexts, outputs, rng).

    By default, there are too few contexts for trees, which take most of the time of a fit.
    """
    rng = np.random.default_rng([seed, 7])
    X, context = rng.normal(size=(contexts, 2)), np.tile(np.arange(contexts), replay)
    y = policy.sample(X[context], rng)
    given = {"loss": loss(X[context], y, rng), "log_propensity": policy.log_prob(X[context], y)}
    return poem.BanditLog(X, y, context=context, labels=policy.labels, **given, **more)


def noise(x, y, rng):
    return rng.random(len(y))


def best_of(x):
    """The class to choose: by the sector that x points to."""
    return (np.arctan2(x[:, 1], x[:, 0]) > 0) + (x[:, 0] > 0.5)


def easy(x, y, rng):
    return (best_of(x) != y) + 0.1 * rng.random(len(y))


def easy_log(seed=0, **options):
    """From 200 contexts on, trees are learnt from it as well."""
    return logged_by(a_policy(poem.MultiClass(3)), easy, seed, **options)


def noise_log(seed=0, structure=None, **options):
    return logged_by(a_policy(structure or poem.MultiClass(3), seed), noise, seed, **options)


def bits_of(found):
    """Everything that a fit found, to the last bit."""
    policy = b"" if found.policy is None else found.policy.weights.tobytes()
    return [policy, *(candidate.policy.weights.tobytes() for candidate in found.table)]


def rows_of(found):
    return [{name: value for name, value in row.items() if name != "seconds"} for row in found.table.to_dicts()]
