"""Laws of bets with a goal, and of the control that makes the terms less noisy."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats
from test_laws_certificate import clustered, heavy, rare, some_terms

from poem.certificates.certificate import SURE
from poem.certificates.paired import CAPS, _add_up, _fill
from poem.estimators.betting import Bets, best_share, downside, goal_bound, lower_bound


def stakes_by_hand(terms, floor, alpha, spread, sizes):
    """The stake of each unit, and the capital before it."""
    largest, capital, shares, n = sizes.max(), 1.0, [], len(terms)
    for i in range(n):
        missing = np.log(1.0 / alpha / capital) if capital * alpha < 1.0 else 0.0
        left = n - i if missing else n
        shares.append(min(np.sqrt(2.0 * (missing or np.log(1.0 / alpha)) / left) / spread, 0.99))
        if missing:
            capital *= (
                1.0 - shares[-1] * sizes[i] / largest + shares[-1] * (terms[i] - floor * sizes[i]) / (-floor * largest)
            )
    return np.array(shares)


@pytest.mark.parametrize("spread", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_bound_of_a_goal_is_the_largest_mean_that_the_capital_ever_spoke_against(spread, shift):
    for seed in range(6):
        terms, floor, sizes = some_terms(seed)
        terms = terms + shift * sizes
        shares, grid = stakes_by_hand(terms, floor, 0.05, spread, sizes), np.linspace(floor, 4.0, 601)[1:]

        def highest(mean, terms=terms, sizes=sizes, floor=floor, shares=shares):
            above = (terms - floor * sizes) / ((mean - floor) * sizes.max())
            return np.cumprod(1.0 - shares * sizes / sizes.max() + shares * above).max()

        by_hand = max((mean for mean in grid if highest(mean) >= 20.0), default=floor)
        found = goal_bound(terms, floor, 0.05, spread, sizes)
        assert by_hand - 1e-6 <= found <= by_hand + grid[1] - grid[0] + 1e-6


def shown_late(rng, n):
    """The spread of a term, but not its mean, follows the terms before."""
    terms, size = np.empty(n), 0.1
    for i in range(n):
        terms[i] = size * (2.0 * (rng.random() < 0.5) - 1.0)
        size = 0.9 if terms[i] < 0.0 else 0.1
    return terms, np.ones(n)


def narrow(rng, n):
    return rng.uniform(-0.5, 0.5, n), np.ones(n)


@pytest.mark.parametrize("draw", [heavy, rare, clustered, shown_late, narrow])
@pytest.mark.parametrize("n", [20, 150])
def test_goals_are_reached_by_chance_in_one_case_of_twenty(draw, n):
    """Whatever spread was foreseen: stakes may be wrong, and the bound holds all the same."""
    for factor in (0.3, 1.0, 3.0):
        misses = 0
        for seed in range(400):
            rng = np.random.default_rng([seed, n])
            earlier, sizes = draw(rng, n)
            spread = factor * downside(earlier, -1.0, sizes, sizes.max())
            terms, sizes = draw(rng, n)
            misses += goal_bound(terms, -1.0, 0.05, spread, sizes) > 1e-9
        assert misses <= 34  # by chance in one case of 1,000 if the rate is 5%


def test_a_bettor_with_a_goal_is_nearly_as_powerful_as_students_t():
    rng, n, wins = np.random.default_rng(0), 150, np.zeros(3)
    for _ in range(300):
        earlier, terms = np.maximum(rng.normal(0.1, 0.5, (2, n)), -1.5)
        spread = downside(earlier, -1.5, np.ones(n), 1.0)
        share = best_share(terms.std() / 1.5, n, 0.05)
        wins += [
            goal_bound(terms, -1.5, 0.05, spread) > 0.0,
            lower_bound(terms, -1.5, 0.05, Bets.around(share)) > 0.0,
            stats.ttest_1samp(terms, 0.0, alternative="greater").pvalue < 0.05,
        ]
    goal, fixed, student = wins / 300.0
    assert goal > student - 0.12
    assert goal > fixed + 0.15


@pytest.mark.parametrize(("n", "half"), [(150, 1.9), (1000, 1.75)])
def test_how_many_standard_errors_of_gain_win(n, half):
    """Half of the cases at ``half`` standard errors; 95% at SURE ones, cut to Student's interval like certificates."""
    rng, cases, wins = np.random.default_rng(1), 600, np.zeros(2)
    for _ in range(cases):
        earlier, noise = np.maximum(rng.normal(0.0, 0.5, (2, n)), -1.4)
        error, spread = 0.5 / np.sqrt(n), downside(earlier, -1.5, np.ones(n), 1.0)
        wins[0] += goal_bound(noise + half * error, -1.5, 0.05, spread) > 0.0
        student = stats.ttest_1samp(noise + SURE * error, 0.0, alternative="greater").pvalue < 0.025
        wins[1] += student and goal_bound(noise + SURE * error, -1.5, 0.05, spread) > 0.0
    assert np.abs(wins / cases - [0.5, 0.95]) == pytest.approx(0.0, abs=0.05)


def test_a_few_large_terms_do_not_lower_the_stakes():
    # Nothing speaks against the policy, and one row has a large weight. By the standard deviation, little is staked.
    terms = np.concatenate([np.zeros(30), np.linspace(0.3, 1.1, 19), [27.0]])
    spread = downside(terms, -1.0, np.ones(50), 1.0)
    assert spread < 0.3 * terms.std()
    assert goal_bound(np.random.default_rng(0).permutation(terms), -1.0, 0.05, spread) > 0.1
    assert lower_bound(terms, -1.0, 0.05, Bets.around(best_share(terms.std(), 50, 0.05))) < 0.0


def test_no_units_reach_no_goal():
    assert goal_bound(np.empty(0), -1.5, 0.05, 1.0) == -1.5


# ---- levels -------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**32 - 1), outputs=st.integers(1, 12), scale=st.sampled_from([0.1, 1.0, 1e6, 1e20]))
@example(seed=343, outputs=3, scale=1e20)  # sums of such tilts lose what is left of the cap
@settings(max_examples=60, deadline=None)
def test_no_other_control_within_the_cap_leaves_less_variance(seed, outputs, scale):
    rng = np.random.default_rng(seed)
    g = rng.dirichlet(np.ones(outputs)) * (rng.random(outputs) < 0.8)
    tilt = np.where(rng.random(outputs) < 0.3, scale, 1.0) * rng.random(outputs) - rng.random(outputs)
    caps = np.array(CAPS)
    level, total = np.empty((2, 1, len(caps)))
    _fill(tilt, g, np.array([0, outputs]), caps, level)
    _add_up(tilt, g, np.array([0, outputs]), level, total)
    assert (total[0] <= caps * (1.0 + 1e-9) + 1e-12).all()
    assert (level[0] <= tilt.max()).all()
    assert (np.diff(level[0]) >= -1e-9 * np.abs(level[0, 1:])).all()
    for cap, height in zip(caps, level[0], strict=True):
        least = _variance(g, tilt + np.maximum(height - tilt, 0.0))
        for _ in range(5):
            other = rng.random(outputs) * (rng.random(outputs) < 0.7)
            other *= cap / max(float(g @ other), 1e-12) * rng.random()
            assert least <= _variance(g, tilt + other) * (1.0 + 1e-6) + 1e-9


def _variance(g, values):
    mean = float(g @ values) / max(float(g.sum()), 1e-300)
    return float(g @ (values - mean) ** 2)


def gaining_then_losing(rng, n):
    return np.where(np.arange(n) < n // 3, 0.25, -0.25)


def losing_then_gaining(rng, n):
    return np.where(np.arange(n) < n // 2, -0.2, 0.2)


def at_random(rng, n):
    return rng.choice([-0.3, 0.0, 0.3], size=n)


@pytest.mark.parametrize("means_of", [gaining_then_losing, losing_then_gaining, at_random])
def test_if_means_differ_the_bound_is_for_their_average_by_stakes(means_of):
    """Each mean is fixed before its term: rejected means are below the average in which terms count by their stakes."""
    n, false, alpha = 100, 0, 0.05
    for seed in range(400):
        rng = np.random.default_rng([seed, 31])
        means = means_of(rng, n)
        terms = np.where(rng.random(n) < 0.5 * (1.0 + means), 1.0, -1.0)
        bound = goal_bound(terms, -1.0, alpha, 1.0)
        if bound <= -1.0:
            continue
        shares = stakes_by_hand(terms, -1.0, alpha, 1.0, np.ones(n))
        logs = np.cumsum(np.log1p(shares * ((terms + 1.0) / (bound - 1e-6 + 1.0) - 1.0)))
        until = int(np.argmax(logs >= np.log(1.0 / alpha))) + 1  # when the bound was won
        false += bound - 1e-6 > shares[:until] @ means[:until] / shares[:until].sum()
    assert false <= 400 * alpha + 3.0 * np.sqrt(400 * alpha)
