import numba
import numpy as np
import pytest

from poem.compute.exponential import LOWEST, exp_down


# As poem compiles its loops, but not kept on disk: a kept loop would not notice that exp_down has changed.
@numba.njit(fastmath={"contract", "reassoc", "nsz"}, error_model="numpy")
def loop(x, out):
    for i in range(x.shape[0]):
        out[i] = exp_down(x[i])


def exps(x, dtype=np.float64):
    x = np.asarray(x, dtype=dtype)
    out = np.empty(len(x))
    loop(x, out)
    return out


def grid():
    """Even steps, all sizes near 0, and both sides of where the power of two changes."""
    rng = np.random.default_rng(0)
    turns = -(np.arange(1021) + 0.5) * np.log(2.0)
    near = np.concatenate([np.nextafter(turns, 0.0), turns, np.nextafter(turns, -np.inf)])
    return np.concatenate([np.linspace(LOWEST, 0.0, 100_000), -np.exp(rng.uniform(-40.0, 6.5, 100_000)), near])


def test_it_is_the_exponential_to_the_last_bit_or_the_one_before():
    x = grid()
    exact = np.exp(x.astype(np.longdouble))  # NumPy's own float64 may be off by a bit as well
    found = exps(x)
    assert np.max(np.abs(found - exact) / exact) < 4e-16
    np.testing.assert_allclose(found, np.exp(x), rtol=4.5e-16)


def test_it_never_leaves_0_to_1():
    found = exps(grid())
    assert found.min() > 0.0
    assert found.max() == 1.0


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_0_gives_exactly_1(zero):
    assert exps([zero])[0] == 1.0
    assert exp_down(zero) == 1.0


def test_nan_stays_nan():
    found = exps([-1.0, np.nan, -2.0])
    assert np.isnan(found).tolist() == [False, True, False]
    assert np.isnan(exp_down(np.nan))


@pytest.mark.parametrize("x", [np.nextafter(LOWEST, -np.inf), -709.0, -745.2, -1e4, -1e300, -np.inf])
def test_what_is_below_the_lowest_power_stays_tiny(x):
    assert 0.0 <= exps([x])[0] <= np.exp(LOWEST) * (1 + 4e-16)


def test_a_loop_over_float32_gives_the_powers_of_the_numbers_it_has():
    x = np.linspace(-100.0, 0.0, 1001).astype(np.float32)
    np.testing.assert_allclose(exps(x, np.float32), np.exp(x.astype(np.float64)), rtol=4.5e-16)
    assert np.isnan(exps([np.nan], np.float32)[0])
