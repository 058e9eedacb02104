"""The logistic loss model is logistic regression on φ(x, y), and a start only where it predicts better."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import poem
from poem.compute.kernels import Threads
from poem.data import mean_square
from poem.evaluation.calibration import calibrate
from poem.learning.training import Training
from poem.models.bounded import bounded_error, fit_bounded
from poem.models.held_out import held_out
from poem.models.linear import linear_error
from poem.models.logistic import Logistic

KINDS = ["labels", "classes"]
every_kind = pytest.mark.parametrize("kind", KINDS)


def make_log(kind, loss_of, rows=600, seed=0):
    """Return a log whose loss is a function of a score that is linear in φ(x, y)."""
    rng = np.random.default_rng(seed)
    X, k = rng.normal(size=(rows, 3)), 3
    y = (rng.random((rows, k)) < 0.5).astype(int) if kind == "labels" else rng.integers(0, k, rows)
    chosen = y if kind == "labels" else np.eye(k)[y]
    score = np.sum(chosen * (X @ rng.normal(size=(3, k))), axis=1)
    propensity = np.full(rows, 1 / 8 if kind == "labels" else 1 / 3)
    return poem.BanditLog(X, y, loss=loss_of(score, rng), propensity=propensity), chosen


def drawn(score, rng):
    return (rng.random(len(score)) < 1 / (1 + np.exp(-4 * score))).astype(float)


def linear(score, rng):
    return score + 0.01 * rng.normal(size=len(score))


@every_kind
def test_it_is_logistic_regression_on_the_features(kind):
    log, chosen = make_log(kind, drawn)
    X = np.hstack([log.X, np.ones((len(log), 1))])
    features = np.hstack([np.einsum("nd,nk->ndk", X, chosen).reshape(len(X), -1), X])
    expected = LogisticRegression(C=1 / (0.1 * mean_square(log)), fit_intercept=False, tol=1e-8, max_iter=1000)
    coef = expected.fit(features, log.loss).coef_[0]
    found = fit_bounded(Logistic, log, 0.1, (0.0, 1.0), Threads())
    np.testing.assert_allclose(found[:, :-1].ravel(), coef[: 4 * 3], atol=0.02 * np.abs(coef).max())
    np.testing.assert_allclose(found[:, -1], coef[4 * 3 :], atol=0.02 * np.abs(coef).max())


@every_kind
def test_losses_of_any_range_are_scaled(kind):
    log, _ = make_log(kind, drawn)
    stretched = poem.BanditLog(log.X, log.y, loss=5 + 3 * log.loss, log_propensity=log.log_propensity)
    plain = fit_bounded(Logistic, log, 0.1, (0.0, 1.0), Threads())
    np.testing.assert_allclose(
        fit_bounded(Logistic, stretched, 0.1, (5.0, 8.0), Threads()), plain, rtol=1e-6, atol=1e-9
    )
    parts = held_out(log, 0)
    strength, error = bounded_error(Logistic, log, parts, (0.0, 1.0), Threads())
    assert bounded_error(Logistic, stretched, parts, (5.0, 8.0), Threads()) == pytest.approx(
        (strength, 9 * error), rel=1e-4
    )
    assert strength in Logistic.strengths


@every_kind
def test_the_start_is_the_model_that_predicts_better(kind):
    for loss_of, logistic in ((drawn, True), (linear, False)):
        log, _ = make_log(kind, loss_of)
        training = Training(log, log.structure, True, calibrate(log, poem.IPS()))
        assert (training.strengths.logistic is not None) == logistic
        parts = held_out(log, 0)
        misses = (
            bounded_error(Logistic, log, parts, training.calibration.bounds, Threads())[1],
            linear_error(log, parts, Threads())[1],
        )
        assert (misses[0] < misses[1]) == logistic
        # Either way the outputs that it prefers are those of low losses.
        policy = poem.Policy(log.structure, 8 * training.direct, True, log.labels)
        assert poem.estimate(policy, log).value < log.loss.mean() - 0.2


def test_of_pure_noise_the_strongest_is_chosen():
    log, _ = make_log("classes", lambda score, rng: (rng.random(len(score)) < 0.5).astype(float))
    assert bounded_error(Logistic, log, held_out(log, 0), (0.0, 1.0), Threads())[0] >= Logistic.strengths[2]
