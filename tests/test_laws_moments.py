"""Moments answer as the units themselves do, whatever they are taken around and in however many parts."""

import numpy as np
import pytest

from poem.estimators import MomentSums, Reference, Scheme, Terms, UnitSums, replicates_of, standard_error
from poem.estimators.hashed_draws import add_hashed

UNITS = 300


def estimates(seed=0, n=900, shift=0.0):
    """Means and ratios, with and without a base, of rows in units."""
    rng = np.random.default_rng(seed)
    unit = np.concatenate([np.arange(UNITS), rng.integers(0, UNITS, n - UNITS)])
    ratio, loss, base = rng.exponential(size=n), rng.normal(size=n) + shift, rng.normal(size=n) + shift
    other = ratio * rng.uniform(0.9, 1.1, n)
    terms = [
        Terms(loss),
        Terms(ratio * loss, held=ratio**2),
        Terms(ratio * loss, base=base, held=np.abs(loss), luck=base - loss),
        Terms(ratio * loss, bottom=ratio, constant=2.0, held=ratio),
        Terms(ratio * loss, bottom=ratio, base=base, luck=loss - base),
        Terms(other * loss, bottom=other, base=base),
    ]
    return [one.by_unit(unit) for one in terms]


def part(sums, units):
    """Some units of an estimate, whose bottom is still its count if it was."""
    count = sums.count[units]
    bottom = count if sums.is_mean else sums.bottom[units]
    base, held, luck = (None if one is None else one[units] for one in (sums.base, sums.held, sums.luck))
    return UnitSums(count, sums.top[units], bottom, base, sums.constant, held, luck)


def moments(scheme, sums, parts, hashes):
    found = None
    for units in np.array_split(np.arange(UNITS), parts):
        one = scheme.moments([part(each, units) for each in sums], hashes[units])
        if found is None:
            found = one
        else:
            found.add(one)
    return found


HASHES = np.random.default_rng(9).integers(0, 1 << 64, UNITS, dtype=np.uint64)
PAIRS = tuple((i, j) for i in range(6) for j in range(6) if i != j)


@pytest.mark.parametrize("shift", [0.0, 1e4])
@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("known", [30, UNITS])
def test_values_and_errors_are_those_of_the_units(known, parts, shift):
    sums = estimates(shift=shift)
    references = tuple(Reference.of(part(one, np.arange(known))) for one in sums)
    scheme = Scheme(references, PAIRS, tuple(range(6)))
    found = moments(scheme, sums, parts, HASHES)
    answers = [MomentSums(scheme, found, number) for number in range(6)]
    for one, units in zip(answers, sums, strict=True):
        assert (one.n_units, one.n_rows, one.largest_unit) == (units.n_units, units.n_rows, units.largest_unit)
        assert one.value() == pytest.approx(units.value(), rel=1e-12)
        assert one.stderr() == pytest.approx(units.stderr(), rel=1e-9)
        assert one.held_back() == pytest.approx(units.held_back(), rel=1e-9)
        assert one.stderr_of_luck() == pytest.approx(units.stderr_of_luck(), rel=1e-9)
        squares, cubes = one.scaled()
        assert cubes / squares**1.5 == pytest.approx(np.sum(units.shares() ** 3) / one.squares() ** 1.5, rel=1e-6)
        assert one.acceleration() == pytest.approx(units.acceleration(), rel=0.05, abs=0.003)
    assert sum(one.stderr_of_luck() > 0.0 for one in answers) == 1  # of two opposite ones
    for i, j in PAIRS:
        expected = standard_error(sums[i].shares() - sums[j].shares())
        assert answers[i].stderr_less(answers[j]) == pytest.approx(expected, rel=1e-8), (i, j)


def test_equal_estimates_differ_by_nothing():
    sums = estimates()
    twice = [*sums, *estimates()]
    scheme = Scheme(tuple(Reference.of(part(one, np.arange(30))) for one in twice), tuple((i, i + 6) for i in range(6)))
    found = moments(scheme, twice, 3, HASHES)
    for i in range(6):
        one, two = (MomentSums(scheme, found, number) for number in (i, i + 6))
        assert one.stderr_less(two) < 1e-9 * one.stderr()


def test_effective_weights_are_counted():
    weights = Terms(np.random.default_rng(3).exponential(size=UNITS)).by_unit(None)
    scheme = Scheme((Reference.of(part(weights, np.arange(10))),))
    found = MomentSums(scheme, moments(scheme, [weights], 4, HASHES), 0)
    assert found.effective_number() == pytest.approx(weights.top.sum() ** 2 / np.sum(weights.top**2), rel=1e-12)


def test_replicates_spread_as_standard_errors_say_and_ignore_parts():
    sums = estimates()
    references = tuple(Reference.of(part(one, np.arange(30))) for one in sums)
    scheme = Scheme(references, (), (), tuple(range(6)), 4001, 0)
    values = []
    for parts in (1, 5):
        found = moments(scheme, sums, parts, HASHES)
        values.append(replicates_of([MomentSums(scheme, found, number) for number in range(6)]).values)
    np.testing.assert_allclose(values[0], values[1], rtol=1e-9, atol=1e-12)
    for column, one in zip(values[0].T, sums, strict=True):
        assert column.std() == pytest.approx(one.stderr(), rel=0.1)
        assert column.mean() == pytest.approx(one.value(), abs=0.2 * one.stderr())


def test_hashed_weights_are_poisson_and_independent():
    drawn = np.zeros((5000, UNITS))
    add_hashed(np.eye(UNITS), HASHES, 0, drawn)
    values, counts = np.unique(drawn, return_counts=True)
    np.testing.assert_allclose(counts[:4] / drawn.size, np.exp(-1) / np.array([1, 1, 2, 6]), atol=0.002)
    assert values[0] == 0.0
    correlations = np.corrcoef(drawn, rowvar=False) - np.eye(UNITS)
    assert np.abs(correlations).max() < 6 / np.sqrt(5000)
    for lag in (1, 2, 3, 4, 5):  # replicates beside each other share a random number
        assert abs(np.corrcoef(drawn[lag:].ravel(), drawn[:-lag].ravel())[0, 1]) < 0.004
    other = np.zeros((50, UNITS))
    add_hashed(np.eye(UNITS), HASHES, 1, other)
    assert not np.array_equal(other, drawn[:50])
