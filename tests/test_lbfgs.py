"""L-BFGS against an independent implementation, and its line search on hard functions."""

import numpy as np
import pytest
from scipy import optimize

from poem.errors import InputError
from poem.optimizers import LBFGS
from poem.optimizers.line_search import search


class Logistic:
    """A convex problem: l2-penalised logistic regression."""

    def __init__(self, seed=0, n=200, d=30, k=2, l2=1e-2):
        rng = np.random.default_rng(seed)
        self.X, self.Y, self.shape, self.l2 = rng.normal(size=(n, d)), rng.choice([-1.0, 1.0], (n, k)), (d, k), l2

    def __call__(self, w):
        margin = self.Y * (self.X @ w)
        slopes = -self.Y / (1.0 + np.exp(margin)) / len(self.X)
        return float(np.logaddexp(0.0, -margin).sum() / len(self.X) + 0.5 * self.l2 * np.sum(w**2)), (
            self.X.T @ slopes + self.l2 * w
        )


class Rosenbrock:
    shape = (4, 5)

    def __call__(self, w):
        return float(optimize.rosen(w.ravel())), optimize.rosen_der(w.ravel()).reshape(self.shape)


class Along:
    """A function of one variable as a problem of shape (1, 1)."""

    shape = (1, 1)

    def __init__(self, function, slope):
        self.function, self.slope, self.calls = function, slope, 0

    def __call__(self, w):
        self.calls += 1
        return float(self.function(w[0, 0])), np.array([[self.slope(w[0, 0])]])


@pytest.mark.parametrize("problem", [Logistic(), Logistic(1, d=100, l2=1e-4), Rosenbrock()], ids=["a", "b", "rosen"])
def test_it_finds_what_scipy_finds(problem):
    ours = LBFGS(ftol=0.0, gtol=1e-8, max_iterations=5000).minimize(problem)
    theirs = optimize.minimize(
        lambda w: tuple(np.ravel(part) if np.ndim(part) else part for part in problem(w.reshape(problem.shape))),
        np.zeros(np.prod(problem.shape)),
        jac=True,
        method="L-BFGS-B",
        options={"ftol": 0.0, "gtol": 1e-8, "maxiter": 5000},
    )
    assert ours.value == pytest.approx(theirs.fun, rel=1e-8, abs=1e-10)
    np.testing.assert_allclose(ours.weights.ravel(), theirs.x, atol=1e-4)
    assert ours.steps < 3 * theirs.nit
    assert ours.converged


def test_the_curve_never_rises_and_reasons_are_given():
    trace = LBFGS().minimize(Rosenbrock())
    values = [value for _, value in trace.curve]
    assert np.all(np.diff(values) <= 0.0)
    assert trace.reason == "decrease below ftol"
    assert LBFGS(max_iterations=3).minimize(Rosenbrock()).reason == "iteration limit"
    assert LBFGS().minimize(Rosenbrock(), np.ones((4, 5))).reason == "gradient below gtol"


def test_a_given_start_is_not_changed():
    start = np.full((4, 5), 0.3)
    LBFGS().minimize(Rosenbrock(), start)
    assert np.all(start == 0.3)


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (lambda t: (t - 3.0) ** 2, lambda t: 2 * (t - 3.0)),
        (lambda t: -np.exp(-((t - 2.0) ** 2)), lambda t: 2 * (t - 2.0) * np.exp(-((t - 2.0) ** 2))),
        (lambda t: abs(t - 0.7), lambda t: np.sign(t - 0.7)),
        (lambda t: np.inf if t > 5.0 else (t - 4.9) ** 2, lambda t: 2 * (t - 4.9)),
    ],
    ids=["parabola", "bell", "kink", "wall"],
)
@pytest.mark.parametrize("first", [1e-3, 1.0, 100.0])
def test_line_search_descends_whatever_the_first_step(function, slope, first):
    problem = Along(function, slope)
    value, gradient = problem(np.zeros((1, 1)))
    found = search(problem, np.zeros((1, 1)), value, gradient, -np.sign(gradient), first)
    assert found is not None
    assert found.value < value
    assert problem.calls <= 21


def test_line_search_refuses_a_direction_that_rises():
    problem = Along(lambda t: t**2, lambda t: 2 * t)
    value, gradient = problem(np.ones((1, 1)))
    assert search(problem, np.ones((1, 1)), value, gradient, gradient, 1.0) is None


def test_settings_are_checked():
    with pytest.raises(InputError, match="corrections must be at least 1, and a whole number; found 0"):
        LBFGS(corrections=0)
