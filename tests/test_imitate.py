"""The imitated logging policy is the maximum likelihood of the logged decisions."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import poem
from poem.compute.kernels import Threads
from poem.data.layout import Layout
from poem.objectives.likelihood import Divergence, imitation
from poem.objectives.risk import Risk

every_kind = pytest.mark.parametrize("kind", ["labels", "classes"])


def a_logger(kind, seed=0):
    structure = poem.MultiLabel(3) if kind == "labels" else poem.MultiClass(4)
    weights = np.random.default_rng(seed).normal(size=(4, structure.n_scores))
    return poem.Policy(structure, weights, True, tuple(range(structure.n_scores)))


def logged_by(policy, rows, contexts, seed=1):
    """Decisions of a policy, whose losses are noise."""
    rng = np.random.default_rng(seed)
    X, context = rng.normal(size=(contexts, 3)), rng.integers(0, contexts, rows)
    y = policy.sample(X[context], rng)
    log_propensity = policy.log_prob(X[context], y)
    return poem.BanditLog(
        X, y, loss=rng.random(rows), log_propensity=log_propensity, context=context, labels=policy.labels
    )


def imitated(log, threads=1):
    weights = imitation(Layout(log, log.structure, True), Threads(threads))
    return poem.Policy(log.structure, weights, True, log.labels)


@every_kind
def test_a_policy_is_recovered_from_many_of_its_decisions(kind):
    logger = a_logger(kind)
    few, many = (logged_by(logger, rows, 200) for rows in (300, 30_000))
    errors = [np.abs(imitated(log).marginals(many.X) - logger.marginals(many.X)).mean() for log in (few, many)]
    assert errors[1] < 0.01
    assert errors[1] < 0.5 * errors[0]


def with_a_constant(X):
    """An intercept as one more feature, so that it is penalised like the others."""
    return np.hstack([X, np.ones((len(X), 1))])


def test_the_imitation_of_classes_is_logistic_regression():
    log = logged_by(a_logger("classes"), 400, 150)
    model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
    model.fit(with_a_constant(log.X[log.context]), log.y)
    expected = model.predict_proba(with_a_constant(log.X))
    np.testing.assert_allclose(imitated(log).marginals(log.X), expected, atol=2e-3)


def test_the_imitation_of_labels_is_one_logistic_regression_each():
    log = logged_by(a_logger("labels"), 400, 150)
    found = imitated(log).marginals(log.X)
    for label in range(3):
        model = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-10, max_iter=10_000)
        model.fit(with_a_constant(log.X[log.context]), log.y[:, label])
        expected = model.predict_proba(with_a_constant(log.X))[:, 1]
        np.testing.assert_allclose(found[:, label], expected, atol=2e-3)


@every_kind
def test_neither_losses_nor_propensities_play_a_part(kind):
    log = logged_by(a_logger(kind), 300, 100)
    other = log.replaced(loss=-5.0 * log.loss, log_propensity=np.full(300, -1.0))
    np.testing.assert_allclose(imitated(other).weights, imitated(log).weights, atol=1e-3)


@every_kind
def test_the_form_of_the_log_and_the_threads_change_nothing(kind):
    log = logged_by(a_logger(kind), 300, 100)
    found = imitated(log).weights
    sparse = poem.BanditLog(
        sp.csr_array(log.X),
        log.y,
        loss=log.loss,
        log_propensity=log.log_propensity,
        context=log.context,
        labels=log.labels,
    )
    np.testing.assert_allclose(imitated(sparse).weights, found, atol=1e-3)
    np.testing.assert_array_equal(imitated(log, threads=2).weights, found)


@every_kind
def test_the_divergence_is_the_mean_difference_of_the_logarithms(kind):
    log = logged_by(a_logger(kind), 300, 100)
    layout = Layout(log, log.structure, True)
    other = a_logger(kind, seed=5)
    found = Risk(layout, layout.loss, Divergence()).point(other.weights).value
    assert found == pytest.approx(np.mean(log.log_propensity - other.log_prob_of(log)), rel=1e-12)
    assert Risk(layout, layout.loss, Divergence()).point(a_logger(kind).weights).value == pytest.approx(0.0, abs=1e-12)
