"""Certificates among available actions: by enumeration, and in worlds in which there is nothing to find."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poem
from poem.certificates.paired import CAPS, PAIRED, Control, paired_terms
from poem.compute import Threads, catalogue, ragged_places, touched
from poem.data import Layout

ACTIONS = 5


class Wrong:
    """What a model says of the candidates of each context, however wrong."""

    def __init__(self, layout, flat):
        self.layout, self.flat = layout, flat

    def of_piece(self, shard, piece):
        return self.layout.design.part(self.flat, shard.places(piece), self.layout.structure.n_scores)


class TinyWorld:
    """All that can happen in four contexts with one to five candidates: each that the logger ever chooses, once."""

    def __init__(self, seed, lacking, scale):
        rng = np.random.default_rng(seed)
        lists = [rng.permutation(ACTIONS)[:size].tolist() for size in (1, 2, 5, 3)]
        counts = np.array([len(one) for one in lists])
        starts, owner = np.append(0, np.cumsum(counts)), np.repeat(np.arange(4), counts)
        p = (rng.random(len(owner)) + 1e-3) * (rng.random(len(owner)) >= lacking)
        p[starts[:-1] + rng.integers(0, counts)] += 0.1
        self.p = p / np.add.reduceat(p, starts[:-1])[owner]
        reward, z = rng.random(len(owner)), rng.normal(size=(ACTIONS, 3))
        logged = np.flatnonzero(self.p > 0.0)
        log = poem.BanditLog(
            rng.normal(size=(4, 2)),
            np.concatenate(lists)[logged],
            reward=reward[logged],
            propensity=self.p[logged],
            context=owner[logged],
            available=lists,
            actions=poem.Catalogue(range(ACTIONS), z),
        )
        self.layout, self.logged, self.owner = Layout(log, log.structure, True), logged, owner
        self.weights = scale * rng.normal(size=(3, 3))
        h = poem.policies.policy_for(log, self.weights, True, poem.Record()).marginals_of(log)
        self.gain = np.bincount(owner, weights=(h - self.p) * reward)
        self.full = np.bincount(owner, weights=self.p == 0.0) == 0.0
        self.control = Control(
            Wrong(self.layout, scale * rng.normal(size=len(owner))), Wrong(self.layout, rng.normal(size=len(owner)))
        )

    def terms(self):
        return paired_terms(self.layout, self.layout.loss, self.weights, self.control, Threads())


@pytest.mark.parametrize(
    ("fewer", "slow"),
    [(0, -1e9), (10**9, -1e9), (10**9, 1e9)],
    ids=["products that occur", "all products", "weights of actions"],
)
@given(
    seed=st.integers(0, 2**32 - 1),
    lacking=st.sampled_from([0.0, 0.3, 0.7]),
    scale=st.sampled_from([0.0, 1.0, 5.0, 30.0]),
)
@settings(max_examples=40, deadline=None)
def test_terms_never_mean_more_than_the_gain(fewer, slow, seed, lacking, scale):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(touched, "FEWER", fewer)
        patch.setattr(catalogue, "ENTRY_AS_SLOW", slow)
        world = TinyWorld(seed, lacking, scale)
        terms, order = world.terms(), world.layout.order
    owner, p = world.owner[world.logged][order], world.p[world.logged][order]
    means = np.array([np.bincount(owner, weights=p * column, minlength=4) for column in terms.T]).T
    assert (means <= world.gain[:, None] + 1e-9).all()
    np.testing.assert_allclose(means[world.full], np.repeat(world.gain[world.full, None], len(CAPS), axis=1), atol=1e-9)
    assert (terms >= np.array([form.floor for form in PAIRED]) - 1e-9).all()


def null_log(kind, seed, n=400):
    """A log in which all actions are alike; lists, and with them propensities, depend on the context."""
    rng = np.random.default_rng([seed, 3])
    X, z = rng.normal(size=(n, 2)), rng.normal(size=(6, 3))
    lists = [rng.permutation(6)[: 1 if X[i, 0] > 1 else rng.integers(2, 6)].tolist() for i in range(n)]
    shares = [np.exp(0.7 * z[one] @ z[0]) for one in lists]
    place = [rng.choice(len(one), p=share / share.sum()) for one, share in zip(lists, shares, strict=True)]
    given = {"available": lists, "labels": range(6)}
    given |= {} if kind == "classes" else {"actions": poem.Catalogue(range(6), z)}
    p = [share[at] / share.sum() for share, at in zip(shares, place, strict=True)]
    y = [one[at] for one, at in zip(lists, place, strict=True)]
    return poem.BanditLog(X, y, reward=rng.random(n) < 0.3, propensity=p, **given)


@pytest.mark.parametrize("kind", ["classes", "candidates"])
def test_hardly_anything_is_certified_where_all_actions_are_alike(kind):
    fits = [poem.fit(null_log(kind, seed), learners=["direct"], loss_bounds=(0, 1)) for seed in range(16)]
    assert sum(found.certified for found in fits) <= 1


def test_places_are_runs_one_after_the_other():
    assert ragged_places(np.array([5, 0, 9]), np.array([2, 0, 3])).tolist() == [5, 6, 9, 10, 11]
