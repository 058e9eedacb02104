"""Laws of the simulated worlds themselves: what they log is what their truth says. Claims are checked elsewhere."""

import numpy as np
import pytest

from benchmarks.worlds import WORLDS
from benchmarks.worlds.adaptive import thompson_rule
from benchmarks.worlds.world import choose

N = 2000


@pytest.fixture(scope="module", params=sorted(WORLDS))
def sample(request):
    world = WORLDS[request.param]
    return world.sample(N, world.rng(N, 3))


class Everywhere:
    """A policy that has the same probabilities in all contexts; of what is available, if it is told."""

    def __init__(self, probabilities):
        self.probabilities = probabilities

    def marginals(self, X, available=None, actions=None):
        if available is None:
            return np.tile(self.probabilities, (len(X), 1))
        wanted = [np.asarray(self.probabilities)[one] + 1e-300 for one in available]
        return np.concatenate([one / one.sum() for one in wanted])


def z(values):
    """How many standard errors a mean is from 0."""
    return values.mean() / (values.std() / np.sqrt(len(values)) + 1e-12)


def test_probabilities_sum_to_one(sample):
    for draw in (sample.draw, sample.truth):
        assert (draw.P >= 0.0).all()
        np.testing.assert_allclose(draw.P.sum(axis=1), 1.0, rtol=1e-12)


def test_the_log_holds_the_propensities_of_what_was_logged(sample):
    draw, log = sample.draw, sample.log
    np.testing.assert_allclose(np.exp(log.log_propensity), draw.P[np.arange(N), draw.y], rtol=1e-12)
    np.testing.assert_array_equal(log.y, draw.outputs)
    np.testing.assert_array_equal(log.loss, draw.loss)
    np.testing.assert_array_equal(log.X[log.context], draw.contexts)


def test_classes_are_logged_as_often_as_the_propensities_say(sample):
    draw = sample.draw
    surprise = np.eye(draw.P.shape[1])[draw.y] - draw.P
    for column in surprise.T[:10]:
        assert abs(column.sum()) < 4.5 * np.sqrt(np.maximum(1.0, (column**2).sum()))


def test_losses_have_the_means_of_the_truth(sample):
    draw = sample.draw
    if draw.loss.max() - draw.loss.min() > 1.0:
        pytest.skip("a mean of heavy tails says little; they have a test of their own")
    excess = draw.loss - draw.L[np.arange(N), draw.y]
    together = np.arange(N) // 10  # rows of users and of repeated contexts
    assert abs(z(np.bincount(together, weights=excess))) < 4.5


def test_a_catastrophe_happens_once_in_fifty():
    draw = WORLDS["catastrophes"].draw(200_000, np.random.default_rng(0))
    rare = draw.loss[draw.y == 2]
    assert set(np.unique(rare)) == {0.2, 50.2}
    assert np.mean(rare == 50.2) == pytest.approx(0.02, abs=0.006)


@pytest.mark.parametrize(("name", "sigma"), [("heavy", 2.0), ("jackpots", 2.5)])
def test_heavy_tails_have_the_median_and_spread_that_go_with_their_mean(name, sigma):
    draw = WORLDS[name].draw(100_000, np.random.default_rng(0))
    logs = np.log((draw.loss / draw.L[np.arange(len(draw.y)), draw.y])[draw.y == 2])
    assert logs.mean() == pytest.approx(-(sigma**2) / 2.0, abs=0.15)  # of a lognormal with mean 1
    assert logs.std() == pytest.approx(sigma, abs=0.1)


def test_the_logger_gains_nothing_over_itself(sample):
    assert sample.truth.gain(sample.truth.P) == 0.0


def test_no_policy_gains_more_than_the_best(sample):
    k = sample.truth.P.shape[1]
    for a in range(min(k, 5)):
        assert sample.true_gain(Everywhere(np.eye(k)[a])) <= sample.best_gain() + 1e-12


def test_a_constant_policy_gains_what_its_class_is_worth():
    world = WORLDS["catastrophes"]
    sample = world.sample(10, world.rng(10, 0))
    assert sample.true_gain(Everywhere([1.0, 0.0, 0.0])) == pytest.approx(0.006)
    assert sample.true_gain(Everywhere([0.0, 0.0, 1.0])) == pytest.approx(-0.194)


@pytest.mark.parametrize("name", ["rule", "rule-yes-no", "rule-sloped", "rule-turning"])
def test_the_rule_leaves_a_gain_of_six_hundredths(name):
    world = WORLDS[name]
    assert world.fresh.best_gain() == pytest.approx(0.06, abs=0.0015)
    ruled = world.fresh.X[:, 0] > 0.52
    assert (world.fresh.P[ruled] == [1.0, 0.0, 0.0]).all()
    np.testing.assert_allclose(world.fresh.L[ruled, 1:] - world.fresh.L[ruled, :1], 0.8)


@pytest.mark.parametrize("name", ["linear-rewards", "linear-costs"])
def test_the_benign_worlds_have_a_fifth_to_gain(name):
    assert 0.17 < WORLDS[name].fresh.best_gain() < 0.25


@pytest.mark.parametrize(
    "name", [n for n in WORLDS if n.startswith(("null", "tiny", "thompson", "clusters", "repeats", "classes"))]
)
def test_where_all_are_equal_nothing_can_be_gained(name):
    world = WORLDS[name]
    sample = world.sample(50, world.rng(50, 0))
    k = sample.truth.P.shape[1]
    assert abs(sample.true_gain(Everywhere(np.eye(k)[0]))) < 1e-12
    assert sample.best_gain() < 1e-12


def test_the_same_seed_gives_the_same_log():
    world = WORLDS["thompson"]
    logs = [world.sample(100, world.rng(100, seed)).log.fingerprint() for seed in (0, 0, 1)]
    assert logs[0] == logs[1] != logs[2]


def test_thompson_sampling_has_the_probabilities_of_its_draws():
    mean, sd = np.array([0.1, 0.3, 0.2]), np.array([0.2, 0.1, 0.4])
    draws = np.random.default_rng(0).normal(mean, sd, size=(200_000, 3))
    often = np.bincount(draws.argmin(axis=1), minlength=3) / len(draws)
    np.testing.assert_allclose(thompson_rule(mean, sd), often, atol=0.004)
    two = thompson_rule(np.array([0.0, 0.5]), np.array([0.3, 0.4]))
    np.testing.assert_allclose(two[0], 0.8413447460685429, atol=1e-9)  # Φ(0.5 / 0.5)


def test_a_class_of_probability_zero_is_never_drawn():
    P = np.tile([0.0, 0.3, 0.7, 0.0], (10_000, 1))
    assert set(choose(P, np.random.default_rng(0))) == {1, 2}
