"""Laws that every estimator obeys; a new estimator joins by one line in ESTIMATORS."""

import numpy as np
import pytest
from finite_differences import numeric_gradient
from hypothesis import given, settings
from hypothesis import strategies as st

from poem.estimators import IPS, SNIPS

ESTIMATORS = [IPS(None), IPS(2.0), SNIPS(None), SNIPS(2.0)]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
seeds = st.integers(0, 2**32 - 1)


def rows(seed, n=30):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), -rng.random(n)


def objective(estimator, log_ratio, loss, lam):
    sums = estimator.sums(estimator.ratios(log_ratio), loss)
    return estimator.point(sums, len(loss)).objective(lam)


@every_estimator
@given(seed=seeds, lam=st.sampled_from([0.0, 1.0, 20.0]))
@settings(max_examples=40, deadline=None)
def test_coefficients_equal_finite_differences(estimator, seed, lam):
    log_ratio, loss = rows(seed)
    if estimator.clip is not None:  # keep away from the kink of the clip
        log_ratio[np.abs(log_ratio - np.log(estimator.clip)) < 1e-3] = 0.0
    ratio = estimator.ratios(log_ratio)
    point = estimator.point(estimator.sums(ratio, loss), len(loss))
    analytic = estimator.coefficients(ratio, loss, point.slopes(lam))
    numeric = numeric_gradient(lambda v: objective(estimator, v, loss, lam), log_ratio, 1e-6)
    np.testing.assert_allclose(analytic, numeric, rtol=1e-6, atol=1e-8 * (1 + lam))


@every_estimator
@given(seed=seeds, cut=st.integers(1, 29))
@settings(max_examples=25, deadline=None)
def test_sums_of_parts_add_up(estimator, seed, cut):
    log_ratio, loss = rows(seed)
    ratio = estimator.ratios(log_ratio)
    parts = estimator.sums(ratio[:cut], loss[:cut]) + estimator.sums(ratio[cut:], loss[cut:])
    np.testing.assert_allclose(parts, estimator.sums(ratio, loss), rtol=1e-12)


@every_estimator
def test_the_logging_policy_itself_is_valued_at_the_mean_loss(estimator):
    _, loss = rows(0)
    found = estimator.estimate(np.zeros(len(loss)), loss)
    assert found.value == pytest.approx(loss.mean(), rel=1e-12)
    assert found.mean_weight == 1.0
    assert found.effective_n == pytest.approx(len(loss))
    assert found.clipped_share == 0.0


@every_estimator
def test_no_rows_at_the_clip_have_a_gradient(estimator):
    log_ratio, loss = rows(1)
    log_ratio[:5] = 10.0
    ratio = estimator.ratios(log_ratio)
    coef = estimator.coefficients(ratio, loss, np.ones(len(estimator.sums(ratio, loss))))
    assert np.all((coef[:5] == 0.0) == (estimator.clip is not None))


@every_estimator
def test_extreme_log_ratios_stay_finite(estimator):
    loss = -np.linspace(0.1, 1.0, 6)
    for level in (-5000.0, -700.0, 700.0, 5000.0):
        log_ratio = np.array([level, 0.0, 1.0, -1.0, level, 0.5])
        found = estimator.estimate(log_ratio, loss)
        assert np.isfinite([found.value, found.stderr, found.mean_weight, found.effective_n]).all()


@every_estimator
def test_unbiased_and_covering_over_simulated_logs(estimator):
    """With light weights, values are right on average and 95 % intervals cover about that often."""
    rng = np.random.default_rng(5)
    logging, new = np.array([0.5, 0.3, 0.2]), np.array([0.3, 0.3, 0.4])
    mean_loss = np.array([-0.2, -0.5, -0.8])
    truth = new @ mean_loss
    values, covered = [], 0
    for _ in range(1500):
        y = rng.choice(3, size=400, p=logging)
        loss = -(rng.random(400) < -mean_loss[y]).astype(float)
        found = estimator.estimate(np.log(new[y] / logging[y]), loss)
        low, high = found.interval()
        values.append(found.value)
        covered += low <= truth <= high
    # No ratio exceeds 2, so that a clip at 2 changes nothing; SNIPS's bias is of order 1/n.
    assert abs(np.mean(values) - truth) < 3 * np.std(values) / np.sqrt(1500) + 1e-3
    assert 0.93 <= covered / 1500 <= 0.97


@given(seed=seeds, shift=st.sampled_from([-5.0, 0.3, 10.0]))
@settings(max_examples=25, deadline=None)
def test_snips_moves_with_a_shift_of_the_loss_and_ips_does_not(seed, shift):
    log_ratio, loss = rows(seed)
    snips, ips = SNIPS(None), IPS(None)
    moved = snips.estimate(log_ratio, loss + shift)
    assert moved.value == pytest.approx(snips.estimate(log_ratio, loss).value + shift, rel=1e-9)
    assert moved.stderr == pytest.approx(snips.estimate(log_ratio, loss).stderr, rel=1e-6)
    by_weight = ips.estimate(log_ratio, loss).value + shift * np.exp(log_ratio).mean()
    assert ips.estimate(log_ratio, loss + shift).value == pytest.approx(by_weight, rel=1e-9)


def test_a_constant_loss_has_no_width_under_snips():
    log_ratio, _ = rows(3)
    found = SNIPS(None).estimate(log_ratio, np.full(30, 0.1))
    assert found.interval() == (0.1, 0.1)


@given(seed=seeds)
@settings(max_examples=50, deadline=None)
def test_ips_slopes_are_the_constants_of_proposition_1(seed):
    log_ratio, loss = rows(seed)
    n, lam = len(loss), 3.0
    estimator = IPS(2.0)
    u = estimator.ratios(log_ratio) * loss
    deviation = np.std(u, ddof=1)
    a, b = -u.mean() / ((n - 1) * deviation), 1.0 / (2 * (n - 1) * deviation)
    slopes = estimator.point(estimator.sums(estimator.ratios(log_ratio), loss), n).slopes(lam)
    np.testing.assert_allclose(n * slopes, [1 + lam * np.sqrt(n) * a, lam * np.sqrt(n) * b], rtol=1e-9)


@given(seed=seeds, other=seeds, spread=st.sampled_from([0.01, 0.3, 3.0]))
@settings(max_examples=100, deadline=None)
def test_the_majoriser_touches_the_deviation_and_is_never_below_it(seed, other, spread):
    log_ratio, loss = rows(seed)
    estimator, n = IPS(2.0), 30
    u0 = estimator.ratios(log_ratio) * loss
    u = estimator.ratios(log_ratio + spread * np.random.default_rng(other).normal(size=n)) * loss
    at = estimator.point(np.array([u0.sum(), u0 @ u0]), n)

    def majoriser(v):
        change = np.array([v.sum() - u0.sum(), v @ v - u0 @ u0])
        return at.stderr + at.stderr_slopes @ change

    assert majoriser(u0) == pytest.approx(np.std(u0, ddof=1) / np.sqrt(n), rel=1e-12)
    assert majoriser(u) >= np.std(u, ddof=1) / np.sqrt(n) * (1 - 1e-9)


@every_estimator
def test_more_rows_give_narrower_intervals(estimator):
    log_ratio, loss = rows(0, 100_000)
    widths = [np.ptp(estimator.estimate(log_ratio[:n], loss[:n]).interval()) for n in (100, 1000, 10_000, 100_000)]
    assert widths == sorted(widths, reverse=True)
