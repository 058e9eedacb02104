"""Worlds in which availability varies strongly: estimates hold, and policies stay within what is available."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import special, stats

import poem

ACTIONS, REQUESTS, ROWS, LOGS = 16, 60, 150, 300
KINDS = ("features", "classes")
MODELLED = {"features": 150, "classes": 60}  # logs in which a loss model is fitted as well, which takes longer
POLICIES = ("uniform", "good", "bad")
every_kind = pytest.mark.parametrize("kind", KINDS)
every_estimator = pytest.mark.parametrize("estimator", ["IPS", "SNIPS", "DR"])
every_policy = pytest.mark.parametrize("policy", POLICIES)


class World:
    """60 requests, in each of which an action is available with a chance of its own, 10 to 50%, and rewards of 0 or 1.

    Mean rewards are linear in crossed features, so a linear model can be right.
    """

    def __init__(self):
        rng = np.random.default_rng(16)
        self.X, self.Z = rng.uniform(-1, 1, (REQUESTS, 2)), rng.uniform(-1, 1, (ACTIONS, 3))
        self.mask = rng.random((REQUESTS, ACTIONS)) < np.linspace(0.1, 0.5, ACTIONS)
        self.mask[np.arange(REQUESTS), rng.permutation(REQUESTS) % ACTIONS] = True
        self.mask[:, -1] |= self.mask.sum(axis=1) < 2
        W = rng.uniform(-1, 1, (3, 3))
        scores = np.hstack([self.X, np.ones((REQUESTS, 1))]) @ W @ self.Z.T
        scores /= np.abs(scores).max()
        self.mean = 0.5 + 0.45 * scores
        self.logging = self.softmax(-0.7 * scores)
        scales = {"uniform": 0.0, "good": 2.5, "bad": -2.0}
        self.policies = {name: self.softmax(scale * scores) for name, scale in scales.items()}

    def softmax(self, scores):
        return special.softmax(np.where(self.mask, scores, -np.inf), axis=1)

    def truth(self, policy):
        return (self.policies[policy] * self.mean).sum(axis=1).mean()

    def flat(self, table, drawn):
        """Return the entries of available actions, in the order of the lists."""
        return table[drawn][self.mask[drawn]]

    def given(self, kind, drawn):
        if kind == "classes":
            return {"available": self.mask[drawn]}
        lists = [np.flatnonzero(row).tolist() for row in self.mask[drawn]]
        return {"available": lists, "actions": poem.Catalogue(range(ACTIONS), self.Z)}

    def log(self, kind, rng, rows=ROWS):
        """Return a log, and which request each of its rows is."""
        drawn = rng.integers(0, REQUESTS, rows)
        y = (self.logging[drawn].cumsum(axis=1) < rng.random((rows, 1))).sum(axis=1)
        reward = (rng.random(rows) < self.mean[drawn, y]).astype(float)
        p = self.logging[drawn, y]
        columns = {"reward": reward, "propensity": p, "labels": range(ACTIONS)}
        return poem.BanditLog(self.X[drawn], y, **columns, **self.given(kind, drawn)), drawn


WORLD = World()


@cache
def estimates(kind):
    """Return value, low and high of each estimator and policy in each log."""
    rng, found = np.random.default_rng(5), {}
    for number in range(LOGS):
        log, drawn = WORLD.log(kind, rng)
        policies = {name: WORLD.flat(table, drawn) for name, table in WORLD.policies.items()}
        wanted, model = (("IPS", "SNIPS", "DR"), "linear") if number < MODELLED[kind] else (("IPS", "SNIPS"), None)
        table = poem.evaluate(policies, log, wanted, model=model, n_jobs=1)
        for line in table.lines:
            found.setdefault((line.policy, line.estimator), []).append((line.value, line.low, line.high))
    return {key: np.array(values) for key, values in found.items()}


def test_availability_varies_strongly():
    share = WORLD.mask.mean(axis=0)
    assert 0.1 <= share.min() <= share.max() <= 0.6
    assert share.max() > 3 * share.min()
    assert WORLD.mask.sum(axis=1).min() >= 2


@every_kind
@every_policy
@every_estimator
def test_estimates_are_unbiased(kind, policy, estimator):
    values = estimates(kind)[policy, estimator][:, 0]
    error = values.std(ddof=1) / np.sqrt(len(values))
    bias = 0.01 if estimator == "SNIPS" else 0.0  # vanishes with more rows
    assert abs(values.mean() - WORLD.truth(policy)) < 3.5 * error + bias


@every_kind
@every_policy
@every_estimator
def test_intervals_cover(kind, policy, estimator):
    _, low, high = estimates(kind)[policy, estimator].T
    truth = WORLD.truth(policy)
    missed = np.count_nonzero((truth < low) | (truth > high))
    assert missed <= stats.binom.ppf(0.999, len(low), 0.06)


@every_kind
def test_self_normalised_estimates_are_consistent(kind):
    log, drawn = WORLD.log(kind, np.random.default_rng(6), 40_000)
    policies = {name: WORLD.flat(table, drawn) for name, table in WORLD.policies.items()}
    table = poem.evaluate(policies, log, ("SNIPS", "DM", "DR"), model="linear")
    for name in POLICIES:
        for estimator in ("SNIPS", "DR") if kind == "classes" else ("SNIPS", "DM", "DR"):
            assert table[name, estimator].value == pytest.approx(WORLD.truth(name), abs=0.012)


@pytest.mark.parametrize(
    ("kind", "learner"),
    [*product(["features"], ["ips", "poem", "norm-poem", "direct", "dr", "ix", "ls"]), ("classes", "direct")],
)
def test_learnt_policies_stay_within_what_is_available(kind, learner):
    log, _ = WORLD.log(kind, np.random.default_rng(7), 300)
    policy = poem.fit(log, learners=learner, certify=False, n_jobs=1).policy
    every = np.arange(REQUESTS)
    given = WORLD.given(kind, every)
    p = policy.marginals(WORLD.X, **given)
    owner = np.nonzero(WORLD.mask)[0]
    assert p.shape == (WORLD.mask.sum(),)
    np.testing.assert_allclose(np.bincount(owner, p), 1.0, rtol=1e-9)
    for chosen in (policy.predict(WORLD.X, **given), policy.sample(WORLD.X, 0, **given)):
        assert WORLD.mask[every, chosen].all()


@pytest.mark.parametrize(("kind", "share"), [("features", 0.7), ("classes", 0.3)])  # of what there is to gain
def test_a_default_fit_finds_a_better_policy(kind, share):
    log, _ = WORLD.log(kind, np.random.default_rng(8), 2_000)
    fit = poem.fit(log)
    assert fit.certified
    every = np.arange(REQUESTS)
    chosen = fit.policy.predict(WORLD.X, **WORLD.given(kind, every))
    logged = (WORLD.logging * WORLD.mean).sum(axis=1).mean()
    best = np.where(WORLD.mask, WORLD.mean, 0.0).max(axis=1).mean()
    assert WORLD.mean[every, chosen].mean() > logged + share * (best - logged)


def test_contexts_need_no_features():
    rng = np.random.default_rng(9)
    sizes = rng.integers(2, 6, 1_500)
    Z = rng.normal(size=(sizes.sum(), 2))
    starts = np.append(0, sizes.cumsum())
    y = rng.integers(0, sizes)
    reward = (rng.random(len(sizes)) < special.expit(2.0 * Z[starts[:-1] + y, 0])).astype(float)
    log = poem.BanditLog(
        np.empty((len(sizes), 0)), y, reward=reward, propensity=1.0 / sizes, available=sizes, actions=Z
    )
    fit = poem.fit(log)
    assert fit.certified
    chosen = fit.policy.predict(
        np.empty((2, 0)), available=np.array([3, 2]), actions=np.array([[0, 1], [1, 0], [-1, 0], [0, 0], [2, 0]])
    )
    np.testing.assert_array_equal(chosen, [1, 1])
