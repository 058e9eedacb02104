"""Laws that every estimator obeys; a new one joins by one line in OBJECTIVES."""

from dataclasses import replace

import numpy as np
import pytest
from finite_differences import numeric_gradient
from hypothesis import given, settings
from hypothesis import strategies as st

from poem.errors import InputError
from poem.estimators import IPS, SNIPS, DirectMethod, DoublyRobust, ImplicitExploration, LogSmoothing, Rows
from poem.estimators.objective import MeanObjective
from poem.objectives.likelihood import Divergence

ESTIMATORS = [IPS(None), IPS(2.0), SNIPS(None), SNIPS(2.0)]
WITH_MODEL = [DoublyRobust(None), DoublyRobust(2.0), DirectMethod()]
OBJECTIVES = [*ESTIMATORS, *WITH_MODEL, ImplicitExploration(0.1), LogSmoothing(0.5), Divergence()]
every_estimator = pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
every_objective = pytest.mark.parametrize("estimator", OBJECTIVES, ids=str)
every_one_with_a_model = pytest.mark.parametrize("estimator", WITH_MODEL, ids=str)
seeds = st.integers(0, 2**32 - 1)


def rows(seed, n=30):
    rng = np.random.default_rng(seed)
    return rng.normal(size=n), -rng.random(n)


def sample(estimator, seed, n=30):
    """Rows as evaluation sees them; with a loss model where the estimator wants one."""
    log_ratio, loss = rows(seed, n)
    rng = np.random.default_rng([seed, 1])
    if getattr(estimator, "clip", None) is not None:  # keep away from the kink of the clip
        log_ratio[np.abs(log_ratio - np.log(estimator.clip)) < 1e-3] = 0.0
    model = (-rng.random(n), -rng.random(n)) if estimator.needs_model else (None, None)
    return Rows(log_ratio, loss, -rng.exponential(size=n), *model)


def parts_of(estimator, seen):
    """What a risk would hand to the objective for the same rows: log h less the divisor, losses and bases."""
    log_used = seen.log_ratio + seen.log_propensity - estimator.log_divisor(seen.log_propensity)
    return log_used, seen.loss - seen.predicted if estimator.needs_model else seen.loss, seen.expected


def point_of(estimator, log_used, loss, base):
    return estimator.point(estimator.sums(estimator.ratios(log_used), loss, base), len(loss))


@every_objective
@given(seed=seeds, lam=st.sampled_from([0.0, 1.0, 20.0]))
@settings(max_examples=40, deadline=None)
def test_coefficients_equal_finite_differences(estimator, seed, lam):
    log_used, loss, base = parts_of(estimator, sample(estimator, seed))
    slopes = point_of(estimator, log_used, loss, base).slopes(lam)
    analytic = estimator.coefficients(estimator.ratios(log_used), loss, slopes, base)
    numeric = numeric_gradient(lambda v: point_of(estimator, v, loss, base).objective(lam), log_used, 1e-6)
    np.testing.assert_allclose(analytic, numeric, rtol=1e-6, atol=1e-8 * (1 + lam))


@every_one_with_a_model
@given(seed=seeds, lam=st.sampled_from([0.0, 1.0, 20.0]))
@settings(max_examples=40, deadline=None)
def test_coefficients_of_the_base_equal_finite_differences(estimator, seed, lam):
    log_used, loss, base = parts_of(estimator, sample(estimator, seed))
    slopes = point_of(estimator, log_used, loss, base).slopes(lam)
    analytic = estimator.base_coefficients(estimator.ratios(log_used), loss, slopes, base)
    numeric = numeric_gradient(lambda v: point_of(estimator, log_used, loss, v).objective(lam), base, 1e-6)
    np.testing.assert_allclose(analytic, numeric, rtol=1e-6, atol=1e-8 * (1 + lam))


@every_objective
@given(seed=seeds, cut=st.integers(1, 29))
@settings(max_examples=25, deadline=None)
def test_sums_of_parts_add_up(estimator, seed, cut):
    log_used, loss, base = parts_of(estimator, sample(estimator, seed))
    ratio = estimator.ratios(log_used)

    def sums(part):
        return estimator.sums(ratio[part], loss[part], None if base is None else base[part])

    whole = sums(slice(None))
    np.testing.assert_allclose(sums(slice(cut)) + sums(slice(cut, None)), whole, rtol=1e-12, atol=1e-12)


@every_objective
@given(seed=seeds)
@settings(max_examples=25, deadline=None)
def test_what_is_minimised_is_what_is_judged(estimator, seed):
    seen = sample(estimator, seed)
    point, judged = point_of(estimator, *parts_of(estimator, seen)), estimator.judge(seen)
    assert point.value == pytest.approx(judged.value, rel=1e-12, abs=1e-12)
    # SNIPS learns with the paper's standard error and is judged with n/(n − 1) of its square.
    factor = 1.0 if isinstance(estimator, MeanObjective) else np.sqrt(30 / 29)
    assert factor * point.stderr == pytest.approx(judged.stderr, rel=1e-9)


def test_implicit_exploration_divides_by_a_little_more():
    log_propensity = np.log([1e-9, 0.01, 0.5, 1.0])
    for gamma in (0.0, 0.1, 3.0):
        divisor = np.exp(ImplicitExploration(gamma).log_divisor(log_propensity))
        np.testing.assert_allclose(divisor, np.exp(log_propensity) + gamma, rtol=1e-12)


@pytest.mark.parametrize("held_back", [ImplicitExploration, LogSmoothing])
def test_with_next_to_nothing_held_back_it_is_ips(held_back):
    seen = sample(IPS(None), 0)
    ips, found = (point_of(one, *parts_of(one, seen)) for one in (IPS(None), held_back(1e-9)))
    assert found.objective(2.0) == pytest.approx(ips.objective(2.0), rel=1e-6)
    np.testing.assert_allclose(found.slopes(2.0), ips.slopes(2.0), rtol=1e-5)


@pytest.mark.parametrize("estimator", [ImplicitExploration(), LogSmoothing()], ids=str)
def test_what_is_left_to_the_data_must_be_set_before_learning(estimator):
    seen = sample(estimator, 0)
    with pytest.raises(InputError, match="'auto' must be set from a log first"):
        point_of(estimator, *parts_of(estimator, seen))
    tuned = estimator.tuned(seen)
    assert point_of(tuned, *parts_of(tuned, seen)).value == pytest.approx(estimator.judge(seen).value, rel=1e-12)


@every_estimator
def test_the_logging_policy_itself_is_valued_at_the_mean_loss(estimator):
    _, loss = rows(0)
    found = estimator.estimate(np.zeros(len(loss)), loss)
    assert found.value == pytest.approx(loss.mean(), rel=1e-12)
    assert found.mean_weight == 1.0
    assert found.effective_n == pytest.approx(len(loss))
    assert found.clipped_share == 0.0


@every_objective
def test_no_rows_at_the_clip_have_a_gradient(estimator):
    log_used, loss, base = parts_of(estimator, sample(estimator, 1))
    log_used[:5] = 10.0
    ratio = estimator.ratios(log_used)
    coef = estimator.coefficients(ratio, loss, np.ones(len(estimator.sums(ratio, loss, base))), base)
    clipped = getattr(estimator, "clip", None) is not None
    assert np.all((coef[:5] == 0.0) == (clipped or isinstance(estimator, DirectMethod)))  # whose weights are all 0
    assert np.all(estimator.clipped(ratio)[:5] == clipped)


@every_objective
@pytest.mark.parametrize("level", [-5000.0, -700.0, 700.0, 5000.0])
def test_extreme_log_ratios_stay_finite(estimator, level):
    seen = sample(estimator, 0, 6)
    seen = replace(seen, log_ratio=np.array([level, 0.0, 1.0, -1.0, level, 0.5]))
    found = estimator.judge(seen)
    assert np.isfinite([found.value, found.stderr, found.mean_weight, found.effective_n]).all()

    log_used, loss, base = parts_of(estimator, seen)
    point, ratio = point_of(estimator, log_used, loss, base), estimator.ratios(log_used)
    assert np.isfinite([point.value, point.stderr]).all()
    assert np.isfinite(estimator.coefficients(ratio, loss, point.slopes(3.0), base)).all()
    if estimator.needs_model:
        assert np.isfinite(estimator.base_coefficients(ratio, loss, point.slopes(3.0), base)).all()


@every_estimator
def test_unbiased_and_covering_over_simulated_logs(estimator):
    """With light weights, values are right on average and 95% intervals cover about that often."""
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
