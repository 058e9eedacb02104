"""Logging policies: fitted on a share of the data, sharpened, and careful with what they never saw."""

import numpy as np
import pytest

import poem
from poem.errors import InputError


@pytest.mark.parametrize("kind", ["labels", "classes"])
@pytest.mark.parametrize("fraction", [0.003, 0.1, 0.35, 1.0])
def test_a_logging_policy_is_fitted_on_the_first_rows_of_one_permutation(request, kind, fraction):
    """So the rows of a smaller fraction are among those of a larger one."""
    X, y = request.getfixturevalue("label_data" if kind == "labels" else "class_data")
    rows = np.random.default_rng(3).permutation(len(y))[: int(np.ceil(fraction * len(y)))]
    found = poem.logging_policy(X, y, fraction=fraction, C=0.5, rng=3)
    names = range(4) if kind == "classes" else None  # a few rows alone do not show all classes
    expected = poem.supervised(X[rows], y[rows], C=0.5, labels=names)
    np.testing.assert_array_equal(found.weights, expected.weights)
    assert found.labels == expected.labels
    assert found.record.n_train == len(rows)


def test_a_seed_and_a_generator_of_it_give_the_same_logging_policy(label_data):
    found = [poem.logging_policy(*label_data, rng=rng).weights for rng in (3, np.random.default_rng(3), 4)]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])


@pytest.mark.parametrize("temperature", [0.5, 8.0])
def test_the_temperature_multiplies_the_weights(label_data, temperature):
    plain = poem.logging_policy(*label_data, rng=0)
    found = poem.logging_policy(*label_data, temperature=temperature, rng=0)
    np.testing.assert_array_equal(found.weights, plain.at_temperature(temperature).weights)
    np.testing.assert_array_equal(found.weights, plain.weights * temperature)
    assert found.record.temperature == temperature


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.01, np.nan])
def test_a_share_that_is_none_is_refused(label_data, fraction):
    with pytest.raises(InputError, match=f"fraction must be above 0 and at most 1; found {fraction}"):
        poem.logging_policy(*label_data, fraction=fraction, rng=0)


def test_labels_that_were_never_seen_are_never_chosen_or_rarely(label_data):
    X, y = label_data
    y = y.copy()
    y[:, 1], y[:, 2] = 0, 1
    never, rate = (
        poem.logging_policy(X, y, fraction=0.5, unseen=unseen, rng=0).marginals(X) for unseen in ("never", "rate")
    )
    assert np.all(never[:, 1] < 1e-300)
    assert np.all(never[:, 2] == 1.0)
    np.testing.assert_allclose(rate[:, 1], 0.5 / 61)
    np.testing.assert_allclose(rate[:, 2], 1 - 0.5 / 61)
    np.testing.assert_array_equal(never[:, [0, 3]], rate[:, [0, 3]])


@pytest.mark.parametrize("seen", [[0], [1, 3], [0, 1, 3]], ids=str)
def test_classes_that_were_never_seen_are_never_chosen_or_rarely(class_data, seen):
    X, y = class_data
    few, unseen = np.isin(y, seen), np.setdiff1d(range(5), seen)
    never, rate = (
        poem.logging_policy(X[few], y[few], fraction=1.0, labels=range(5), unseen=name, rng=0).marginals(X)
        for name in ("never", "rate")
    )
    assert np.all(never[:, unseen] < 1e-300)
    assert np.all(rate[:, unseen] > 0.0)
    assert np.all(rate[:, unseen] < 0.05)
    np.testing.assert_allclose(never[:, seen].sum(axis=1), 1.0, rtol=1e-12)


@pytest.mark.parametrize("make", [poem.supervised, lambda X, y, **rest: poem.logging_policy(X, y, rng=0, **rest)])
def test_any_other_way_with_the_unseen_is_refused(label_data, make):
    with pytest.raises(InputError, match="unseen must be 'rate' or 'never'; found 'sometimes'"):
        make(*label_data, unseen="sometimes")
