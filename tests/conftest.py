from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_digits

import poem

# Fixtures that several files share stand beside the helpers that make them.
pytest_plugins = ("browsers", "evaluated_logs", "known_worlds", "same_logs", "shop_logs")


@pytest.fixture(scope="session")
def digits():
    """120 digits, 12 informative pixels each, in [0, 1]."""
    images, digit = load_digits(return_X_y=True)
    informative = np.flatnonzero(images[:120].std(axis=0) > 3.0)[:12]
    return SimpleNamespace(X=images[:120, informative] / 16.0, digit=digit[:120])


@pytest.fixture(scope="session")
def label_data(digits):
    """Contexts and four yes/no labels each."""
    return digits.X, (digits.digit[:, None] == np.arange(4)).astype(np.uint8)


@pytest.fixture(scope="session")
def class_data(digits):
    """Contexts and one of four classes each."""
    few = digits.digit < 4
    return digits.X[few], digits.digit[few]


@pytest.fixture(scope="session")
def label_logger(label_data):
    X, y = label_data
    return poem.supervised(X[:30], y[:30], C=0.1)


@pytest.fixture(scope="session")
def class_logger(class_data):
    X, y = class_data
    return poem.supervised(X[:20], y[:20], C=0.05, labels=range(4))


@pytest.fixture(scope="session")
def label_log(label_data, label_logger):
    """480 logged label sets in 120 contexts."""
    return poem.simulate(*label_data, label_logger, replay=4, rng=0)


@pytest.fixture(scope="session")
def class_log(class_data, class_logger):
    """Eight logged classes in each context."""
    return poem.simulate(*class_data, class_logger, replay=8, rng=0)


@pytest.fixture
def rows():
    """The raw parts of a valid log of 40 rows, fresh for each test."""
    rng = np.random.default_rng(7)
    return SimpleNamespace(
        n=40,
        X=rng.normal(size=(40, 3)).round(3),
        y=rng.integers(0, 3, 40),
        labels=rng.integers(0, 2, (40, 2)),
        loss=rng.random(40),
        propensity=rng.uniform(0.1, 0.9, 40),
        group=np.repeat(np.arange(10), 4),
    )


@pytest.fixture
def make_log(rows):
    """Return a function that builds a valid log, with any argument changed."""

    def make(X=None, y=None, **changes):
        options = {"loss": rows.loss, "propensity": rows.propensity} | changes
        given = {name: value for name, value in options.items() if value is not None}
        return poem.BanditLog(rows.X if X is None else X, rows.y if y is None else y, **given)

    return make
