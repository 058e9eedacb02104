"""The release's own training: its stochastic update, and the size of its loss."""

from dataclasses import replace

import numpy as np
import pytest
from made_up_results import PAPER, RELEASE
from test_laws_risk import make_log, make_risk, random_weights

from poem.data.layout import Layout
from poem.errors import InputError
from poem.estimators import IPS
from poem.experiments.release import ReleaseIPS
from poem.objectives.risk import Risk
from poem.optimizers import LBFGS, AdaGrad

# ---- the stochastic update of the release ----------------------------------------------------------


def rows_of_a_log(n=50, seed=0):
    rng = np.random.default_rng(seed)
    return np.exp(rng.normal(size=n)), -rng.random(n)


def release_factor(u, batch_u, lam):
    """1 + λ√n·A + 2·(λ/√n)·B·mean(u), with A and B of the paper's Proposition 1."""
    n, sd = len(u), u.std(ddof=1)
    A, B = -u.mean() / ((n - 1) * sd), 1.0 / (2.0 * (n - 1) * sd)
    return 1.0 + lam * np.sqrt(n) * A + 2.0 * lam / np.sqrt(n) * B * batch_u.mean()


def frozen_slopes(estimator, ratio, loss, lam):
    return estimator.point(estimator.sums(ratio, loss), len(loss)).slopes(lam)


@pytest.mark.parametrize("lam", [0.0, 0.5, 30.0])
@pytest.mark.parametrize("batch", [slice(0, 10), slice(35, 50), slice(0, 50)], ids=str)
def test_coefficients_of_the_release_are_the_formula_in_its_text(lam, batch):
    estimator = ReleaseIPS(2.0)
    unclipped, loss = rows_of_a_log()
    ratio = estimator.ratios(np.log(unclipped))
    u, n, size = ratio * loss, len(loss), batch.stop - batch.start
    slopes = frozen_slopes(estimator, ratio, loss, lam)
    found = estimator.coefficients(ratio[batch], loss[batch], slopes * (n / size))  # as Risk's batches scale them
    clipped = unclipped[batch] >= 2.0
    assert clipped.any()
    assert not clipped.all()
    assert np.all(found[clipped] == 0.0)
    gradient_of_u = np.where(clipped, 0.0, u[batch])  # the derivative of u in log h
    np.testing.assert_allclose(found, gradient_of_u / size * release_factor(u, u[batch], lam), rtol=1e-12)


def test_without_a_penalty_the_release_is_plain_ips():
    ratio, loss = rows_of_a_log()
    plain, release = (
        kind(2.0).coefficients(ratio, loss, frozen_slopes(kind(2.0), ratio, loss, 0.0)) for kind in (IPS, ReleaseIPS)
    )
    np.testing.assert_array_equal(release, plain)


def test_with_a_penalty_the_release_is_not_the_majoriser_of_the_paper():
    ratio, loss = rows_of_a_log()
    plain, release = (
        kind(None).coefficients(ratio, loss, frozen_slopes(kind(None), ratio, loss, 30.0)) for kind in (IPS, ReleaseIPS)
    )
    assert np.linalg.norm(release - plain) > 0.1 * np.linalg.norm(plain)


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_a_batch_of_the_release_steps_along_the_gradient_of_ips(kind):
    log, batch = make_log(kind, "csr-replayed"), slice(20, 50)
    release = make_risk(log, ReleaseIPS(3.0), lam=8.0, l2=0.0)
    plain = make_risk(log, IPS(3.0), lam=0.0, l2=0.0)
    wide = release.for_batches(random_weights(release)).astype(np.float64)
    order = np.random.default_rng(0).permutation(release.n_rows)
    u = release.ratios(release.from_batches(wide)) * release.loss
    gradients = [
        next(risk.batches(order[batch], 30))(wide, risk.frozen_point(wide)[1])[1].values for risk in (release, plain)
    ]
    factor = release_factor(u, u[order[batch]], 8.0)
    assert factor > 1.1
    np.testing.assert_allclose(gradients[0], factor * gradients[1], rtol=1e-10, atol=1e-15)


def test_the_release_still_reports_the_objective_itself():
    log = make_log("labels", "csr")
    release, exact = (make_risk(log, kind(3.0), lam=8.0) for kind in (ReleaseIPS, IPS))
    wide = release.for_batches(random_weights(release))
    assert release.frozen_point(wide)[0] == exact.frozen_point(wide)[0]


# ---- a loss in [−1, 0] and one in [−q, 0] ----------------------------------------------------------


def minimised(optimizer, scale):
    log = make_log("labels", "csr-replayed")
    layout = Layout(log, log.structure, True)
    risk = Risk(layout, layout.loss * scale, IPS(3.0), lam=0.5)
    return optimizer.minimize(risk, rng=np.random.default_rng(0))


STOCHASTIC = {"batch_size": 10, "max_batches": 200}


def test_adagrad_on_a_smaller_loss_takes_the_same_way_from_a_smaller_start():
    """With q a power of two nothing is rounded, so that the weights are the same to the bit."""
    large = minimised(AdaGrad(**STOCHASTIC), 8.0)
    small = minimised(AdaGrad(**STOCHASTIC, initial=1 / 64, tol=1e-6 / 8), 1.0)
    np.testing.assert_array_equal(small.weights, large.weights)
    assert small.value == pytest.approx(large.value / 8, rel=1e-12)
    other = minimised(AdaGrad(**STOCHASTIC), 1.0).weights
    assert np.linalg.norm(other - large.weights) > 0.1 * np.linalg.norm(large.weights)


@pytest.mark.parametrize("q", [6, 14, 22])
def test_optimizers_of_the_release_are_those_for_a_loss_q_times_as_large(q):
    rules = {"batch_size": 10, "max_batches": 20, "min_epochs": 1}  # few, as rounding to float32 grows on its way
    small, large, other = (
        minimised(replace(protocol.adagrad(q), **rules), scale).weights
        for protocol, scale in ((RELEASE, 1.0), (PAPER, float(q)), (PAPER, 1.0))
    )
    np.testing.assert_allclose(small, large, atol=1e-4 * np.abs(large).max())
    assert np.abs(other - large).max() > 0.1 * np.abs(large).max()


def test_lbfgs_on_a_smaller_loss_stops_at_the_same_step():
    large = minimised(PAPER.lbfgs(8), 8.0)
    small = minimised(RELEASE.lbfgs(8), 1.0)
    assert (small.steps, small.reason) == (large.steps, large.reason)
    np.testing.assert_allclose(small.weights, large.weights, atol=1e-6 * np.abs(large.weights).max())
    assert minimised(replace(RELEASE.lbfgs(8), floor=100.0), 1.0).steps < small.steps


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
@pytest.mark.parametrize(("optimizer", "name"), [(AdaGrad, "initial"), (AdaGrad, "step"), (LBFGS, "floor")])
def test_a_start_or_floor_that_is_not_positive_is_refused(optimizer, name, value):
    with pytest.raises(InputError, match=f"{name} must be above 0; found {value}"):
        optimizer(**{name: value})
