"""Laws of additive terms: label sets whose losses are sums over labels, against enumeration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

import poem
from poem.certificates import additive as additive_room
from poem.certificates.additive import (
    Additive,
    additive_differences,
    additive_terms,
    corrected_by_label,
    deviations,
    excesses,
)
from poem.certificates.interactions import Deviations, interacting
from poem.certificates.label_groups import SIZES, groupings
from poem.compute import Threads
from poem.data import Layout
from poem.structures import MultiLabel

seeds = st.integers(0, 2**32 - 1)
scales = st.sampled_from([0.0, 0.5, 2.0, 10.0, 60.0, 700.0])


class AnyScores:
    """The scores of a logging policy in each context."""

    def __init__(self, scores):
        self.scores = scores

    def of_piece(self, shard, piece):
        return self.scores[shard.first + piece.contexts.start : shard.first + piece.contexts.stop]


class AnyLosses:
    """A loss model that may be wrong in any way."""

    def __init__(self, layout, values):
        self.layout, self.values, self._threads = layout, values, Threads()

    def of_piece(self, shard, piece):
        return self.values[shard.first + piece.contexts.start : shard.first + piece.contexts.stop]

    @property
    def predicted(self):
        at = np.repeat(np.arange(len(self.values)), len(self.layout) // len(self.values))
        return (self.layout.y * self.values[at, :-1]).sum(axis=1) + self.values[at, -1]


class World:
    """Every label set, once, in some contexts; rewards are sums over labels and lie in [0, 1]."""

    def __init__(self, k, seed, scale, contexts=3, model=1.0):
        rng = np.random.default_rng(seed)
        self.structure = MultiLabel(k)
        outputs = self.structure.every(1 << 12)
        self.logger, self.weights = scale * rng.normal(size=(2, contexts, k))
        parts = rng.dirichlet(np.ones(k), size=contexts)  # of [0, 1]: what each label is worth, on or off
        on = rng.random((contexts, k)) < 0.5
        self.worth = np.where(on, -parts, parts)  # what a label adds to the loss
        rewards = np.where(outputs[None] == on[:, None], parts[:, None], 0.0).sum(axis=2)
        p, h = (self._chances(scores, outputs) for scores in (self.logger, self.weights))
        self.gain = ((h - p) * rewards).sum(axis=1)
        self.p = p.ravel()
        self.context = np.repeat(np.arange(contexts), len(outputs))
        log = poem.BanditLog(
            np.eye(contexts),
            np.tile(outputs, (contexts, 1)),
            loss=-rewards.ravel(),
            log_propensity=np.maximum(np.log(np.maximum(self.p, 1e-300)), -600.0),
            context=self.context,
            labels=range(k),
        )
        self.layout = Layout(log, self.structure, False)
        assert (self.layout.order == np.arange(len(log))).all()
        self.loss = self.layout.loss
        values = model * rng.normal(size=(contexts, k + 1))
        self.known = Additive(AnyScores(self.logger), AnyLosses(self.layout, values), 0.1)

    def _chances(self, scores, outputs):
        logs = -np.logaddexp(0.0, np.where(outputs[None] > 0, -scores[:, None], scores[:, None]))
        return np.exp(logs.sum(axis=2))

    def means(self, values):
        """Return the exact means in each context."""
        return np.array([np.bincount(self.context, weights=self.p * column) for column in np.atleast_2d(values.T)]).T

    def terms(self):
        return additive_terms(self.known, self.loss, self.weights, Threads(), self.known.forms)


@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 10])
@given(seed=seeds, scale=scales, model=st.sampled_from([0.0, 1.0, 30.0]))
@settings(max_examples=25, deadline=None)
def test_terms_mean_the_gain_and_are_never_below_their_floor(k, seed, scale, model):
    world = World(k, seed, scale, 2, model)
    terms = world.terms()
    assert np.isfinite(terms).all()
    assert (terms >= np.array([form.floor for form in world.known.forms]) - 1e-9).all()
    means = world.means(terms)
    assert (means <= world.gain[:, None] + 1e-8).all()
    if scale <= 2.0:  # further on, ratios are cut
        np.testing.assert_allclose(means, np.repeat(world.gain[:, None], terms.shape[1], axis=1), atol=1e-8)


@given(seed=seeds, scale=scales)
@settings(max_examples=25, deadline=None)
def test_excesses_times_rewards_mean_the_gain(seed, scale):
    world = World(5, seed, scale)
    found = excesses(world.known, world.weights, Threads())
    assert (found >= -5.0 - 1e-9).all()
    means = world.means(found * -world.loss)[:, 0]
    assert (means <= world.gain + 1e-8).all()
    if scale <= 2.0:
        np.testing.assert_allclose(means, world.gain, atol=1e-8)


@given(seed=seeds, scale=st.sampled_from([0.0, 0.5, 2.0]), model=st.sampled_from([0.0, 1.0]))
@settings(max_examples=25, deadline=None)
def test_differences_mean_the_gain_whatever_the_model(seed, scale, model):
    world = World(4, seed, scale, model=model)
    found = additive_differences(world.known, world.loss, world.weights, Threads())
    np.testing.assert_allclose(world.means(found)[:, 0], world.gain, atol=1e-8)


def test_a_policy_like_the_logger_gains_nothing_in_any_row():
    world = World(10, 3, 1.0)
    world.weights = world.logger
    np.testing.assert_allclose(world.terms(), 0.0, atol=1e-9)


def test_terms_do_not_depend_on_the_number_of_threads():
    world = World(10, 4, 1.0, contexts=40)
    two = additive_terms(world.known, world.loss, world.weights, Threads(2), world.known.forms)
    np.testing.assert_array_equal(world.terms(), two)


def test_sums_are_far_less_noisy_than_products():
    # Ten labels, each of which the policy prefers and the logger does not: one in 2^30 rows shows the policy's output.
    world = World(10, 5, 0.0)
    world.logger[:], world.weights[:] = -2.0, 2.0
    world.p = world._chances(world.logger, world.structure.every(1 << 12)).ravel()
    means, squares = (world.means(world.terms() ** power) for power in (1, 2))
    assert np.sqrt(squares - means**2).min() < 30.0
    products = np.expm1(4.0 * (2.0 * world.layout.y - 1.0).sum(axis=1)) * -world.loss
    assert np.sqrt(world.means(products**2)).min() > 1e4


@pytest.mark.parametrize("labels", [1, 7, 8, 9, 22, 103, 1000])
def test_groups_hold_each_label_once_and_no_more_than_can_be_listed(labels):
    found = groupings(labels)
    assert len(found[0]) - 1 == -(-labels // SIZES[0])
    assert len(found[-1]) - 1 == labels
    for borders in found:
        assert borders[0] == 0
        assert borders[-1] == labels
        assert (np.diff(borders) > 0).all()
        assert (np.diff(borders) <= SIZES[0]).all()


# ---- the corrected loss model ---------------------------------------------------------------------


def test_a_model_is_corrected_to_the_truth_on_average(monkeypatch):
    monkeypatch.setattr(additive_room, "LEAST", 0.0)
    world = World(3, 6, 1.0)
    predicted, rows = world.known.losses.predicted, len(world.p) // 3
    # Every output is there once, and rows count alike: errors are weighed by how often the logger chooses the output.
    often = predicted + (world.loss - predicted) * world.p * rows
    found = corrected_by_label(world.known, often)
    shard = world.layout.shards[0]
    values = np.concatenate([found.of_piece(shard, piece)[:, :-1] for piece in shard.pieces])
    np.testing.assert_allclose(values, world.worth, atol=1e-9)


# ---- losses that are no sums over labels ----------------------------------------------------------


def some_deviations(seed, together, n=3000, k=6, heavy=False):
    """Deviations of rows whose losses are sums over labels, and more where labels 1 and 4 are both on."""
    rng = np.random.default_rng(seed)
    p = special.expit(rng.normal(size=(n, k)))
    y = rng.random((n, k)) < p
    loss = (y * rng.random((n, k))).sum(axis=1) / k + together * (y[:, 1] & y[:, 4])
    loss += np.where(rng.random(n) < 0.01, 20.0, 0.0) if heavy else 0.0
    return Deviations(y - p, (rng.random((n, k)) < 0.5) - p, loss - loss.mean(), np.repeat(np.arange(n // 3), 3))


def test_labels_that_change_the_loss_together_are_found():
    assert interacting([some_deviations(0, 0.3)]) == (1, 4)
    assert interacting([some_deviations(1, 0.2), some_deviations(2, 0.2)]) == (1, 4)


def drawn(loss, n=3000, k=6, chance=0.35, seed=0):
    """Deviations of rows whose labels all have the same chance; the policy turns on those that ``loss`` names."""
    rng = np.random.default_rng(seed)
    x, y = rng.choice([-1.0, 1.0], n), (rng.random((n, k)) < chance).astype(float)
    found, on = loss(x, y)
    line = np.column_stack([np.ones(n), y - chance])
    additive = line @ np.linalg.lstsq(line, found, rcond=None)[0]
    return Deviations(y - chance, 0.9 * on - chance * (on > 0.0), found - additive, np.arange(n))


def on_where(x, y, *labels):
    on = np.zeros_like(y)
    on[:, labels] = (x > 0.0)[:, None]
    return on


def truth_of(y):
    return np.arange(y.shape[1]) % 2.0


INTERACTING = {
    "by the sign of x": (lambda x, y: (0.5 + 0.5 * x * y[:, 2] * y[:, 3], on_where(x, y, 2, 3)), 6, (2, 3)),
    "two of sixty": (lambda x, y: (0.5 * y[:, 7] * y[:, 58], on_where(x, y, 7, 58)), 60, (7, 58)),
    "right or wrong": (lambda x, y: ((y != truth_of(y)).any(axis=1), truth_of(y) + 0.0 * y), 4, None),
    "capped": (lambda x, y: (np.minimum(y.sum(axis=1), 2.0) / 2.0, np.ones_like(y)), 8, None),
}


@pytest.mark.parametrize("world", INTERACTING, ids=str)
def test_interactions_of_many_kinds_are_found(world):
    loss, k, labels = INTERACTING[world]
    found = interacting([drawn(loss, k=k)])
    assert found is not None
    assert labels is None or found == labels


SKEWED = {  # rare labels, and errors that are alike in nearly all rows or far off in a few
    "rare failures": lambda rng, x: (np.full(len(x), 0.01), (rng.random(len(x)) < 0.05) - 0.05),
    "a model that misses a step": lambda rng, x: (
        0.02 * special.expit(8.0 * (x - 1.0)),
        0.5 * ((x > 1.0) - 0.16) + 0.1 * rng.normal(size=len(x)).clip(-3.0, 3.0),
    ),
    "a model that misses a curve": lambda rng, x: (np.full(len(x), 0.01), 0.1 * (x**2).clip(0.0, 9.0) - 0.1),
    "labels by x": lambda rng, x: (special.expit(3.0 * x - 7.0), 0.3 * np.abs(x) + 0.1 * rng.normal(size=len(x)) - 0.2),
}


@pytest.mark.parametrize("n", [1000, 4000])
@pytest.mark.parametrize("world", SKEWED, ids=str)
def test_rare_labels_and_skewed_errors_are_seldom_called_interactions(world, n):
    def found(seed):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=n)
        p, error = SKEWED[world](rng, x)
        y = rng.random((n, 8)) < p[:, None]
        moved = np.repeat((x[:, None] > 0.0) - p[:, None], 8, axis=1)
        return interacting([Deviations(y - p[:, None], moved, error, np.arange(n))]) is not None

    assert sum(found(seed) for seed in range(100)) <= 4


def test_one_label_interacts_with_nothing():
    part = some_deviations(0, 0.3)
    assert interacting([Deviations(part.labels[:, :1], part.moved[:, :1], part.error, part.units)]) is None


@pytest.mark.parametrize("heavy", [False, True])
def test_sums_over_labels_are_seldom_called_something_else(heavy):
    assert sum(interacting([some_deviations(seed, 0.0, 600, heavy=heavy)]) is not None for seed in range(300)) <= 9


def test_few_rows_say_nothing():
    assert interacting([some_deviations(0, 5.0, 15)]) is None
    assert deviations(World(3, 1, 1.0).known, World(3, 1, 1.0).loss, np.arange(24)).labels.shape == (24, 3)
