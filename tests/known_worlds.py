"""Worlds that are small enough to know the truth, and logs drawn from them."""

import itertools
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import poem
from poem.compute.kernels import OneBlasThread
from poem.estimators import (
    IPS,
    SNIPS,
    DoublyRobust,
    ImplicitExploration,
    LogSmoothing,
    Rows,
    SelfNormalisedDR,
    ShrinkageDR,
    SwitchDR,
    Weighted,
)

TAIL = 0.025  # on each side of a 95% interval

UNBIASED = {"IPS": IPS(None), "DR": DoublyRobust()}
PLAIN = UNBIASED | {"SNIPS": SNIPS(None), "SNDR": SelfNormalisedDR()}  # whose weights are used whole
PESSIMISTIC = [IPS(2.0), ImplicitExploration(0.05), LogSmoothing(0.5)]
HELD_BACK = [*PESSIMISTIC, SwitchDR(2.0), ShrinkageDR(4.0), DoublyRobust(2.0)]
OUTPUTS, WEIGHTS, SIZES = ("classes", "labels"), ("light", "heavy"), (200, 2000, 20_000)

# Weights are this many times the scores of one table: the heavy policy does what was rarely logged.
# The largest ratio is 1.3 (classes) and 1.5 (labels) for light weights, 30 and 65 for heavy ones.
SCALES = {
    ("classes", "light"): (0.6, 1.0),
    ("classes", "heavy"): (1.5, -1.5),
    ("labels", "light"): (0.4, 0.8),
    ("labels", "heavy"): (1.1, -1.1),
}

every_world = pytest.mark.parametrize(("outputs", "weights"), list(itertools.product(OUTPUTS, WEIGHTS)))
every_size = pytest.mark.parametrize("n", SIZES)
every_plain = pytest.mark.parametrize("name", PLAIN)


@pytest.fixture
def one_blas_thread():
    """As in poem.evaluate: for rows as few as these, waking BLAS threads takes longer than the sums."""
    with OneBlasThread():
        yield


@dataclass(frozen=True, eq=False)
class World:
    """Six contexts, all outputs, losses of −1 or 0: each combination is a cell of known probability.

    ``cells`` are the cells as the rows of a log, with a model of the loss that is wrong on purpose; ``true_model``
    has the true one.
    """

    logging: poem.Policy
    new: poem.Policy
    y: np.ndarray
    context: np.ndarray
    probability: np.ndarray
    cells: Rows
    true_model: Rows
    wrong_losses: np.ndarray
    truth: float

    def draw(self, n, logs, seed):
        """Return how often each cell occurs in each log, (logs, cells)."""
        return np.random.default_rng([seed, n]).multinomial(n, self.probability, size=logs)

    def log(self, counts):
        """Return a real log of these cells."""
        at = drawn(counts)
        X, labels = np.eye(6)[self.context[at]], self.logging.labels
        p = self.cells.log_propensity[at]
        return poem.BanditLog(X, self.y[at], loss=self.cells.loss[at], log_propensity=p, labels=labels)


@cache
def world(outputs, weights):
    rng = np.random.default_rng(0)
    if outputs == "classes":
        y, structure, labels = np.arange(4), poem.MultiClass(4), (0, 1, 2, 3)
    else:
        y, structure, labels = np.array(list(itertools.product([0, 1], repeat=3))), poem.MultiLabel(3), ("a", "b", "c")
    scores = rng.normal(size=(6, len(labels)))
    logging, new = (poem.Policy(structure, scale * scores, False, labels) for scale in SCALES[outputs, weights])
    context, y = np.repeat(np.arange(6), len(y)), np.concatenate([y] * 6)
    old_log, new_log = (policy.log_prob(np.eye(6)[context], y) for policy in (logging, new))
    share = np.array([1, 2, 3, 3, 2, 1])[context] / 12
    mean, wrong = -rng.uniform(0.1, 0.9, len(y)), -rng.uniform(0.0, 1.0, len(y))

    def both(values):  # the cells with a loss of −1, then those with 0
        return np.concatenate([values, values])

    def rows(model):
        expected = np.bincount(context, np.exp(new_log) * model)[context]
        loss = np.repeat([-1.0, 0.0], len(y))
        return Rows(both(new_log - old_log), loss, both(old_log), both(model), both(expected))

    logged = share * np.exp(old_log)
    return World(
        logging=logging,
        new=new,
        y=both(y),
        context=both(context),
        probability=np.concatenate([logged * -mean, logged * (1.0 + mean)]),
        cells=rows(wrong),
        true_model=rows(mean),
        wrong_losses=wrong,
        truth=float(np.sum(share * np.exp(new_log) * mean)),
    )


def drawn(counts):
    return np.repeat(np.arange(len(counts)), counts)


def taken(rows, at):
    fields = ("log_ratio", "loss", "log_propensity", "predicted", "expected")
    return Rows(*(getattr(rows, field)[at] for field in fields))


@cache
def small_logs(outputs, weights, model="cells"):
    """2000 logs of 200 rows."""
    here = world(outputs, weights)
    return [taken(getattr(here, model), drawn(counts)) for counts in here.draw(200, 2000, seed=1)]


@cache
def many_logs(outputs, weights, n):
    return world(outputs, weights).draw(n, 5000, seed=2)


def judged_by_cell(estimator, here, counts):
    """Return value, stderr and effective_n in each of many logs, without writing out their rows."""
    terms, ratio, n = estimator.terms(here.cells), here.cells.ratio, counts.sum(axis=1)
    bottom = np.ones(len(ratio)) if terms.bottom is None else terms.bottom
    base = np.zeros(len(ratio)) if terms.base is None else terms.base
    whole, quotient, mean = counts @ bottom, counts @ terms.top / (counts @ bottom), counts @ base / n
    share = (terms.top - np.outer(quotient, bottom)) / whole[:, None] + (base - mean[:, None]) / n[:, None]
    stderr = np.sqrt(n / (n - 1) * np.einsum("lc,lc->l", counts, share**2))
    return terms.constant + mean + quotient, stderr, (counts @ ratio) ** 2 / (counts @ ratio**2)


def ready(estimator, rows):
    """Return an estimator with nothing left to the data."""
    fixed = estimator.with_clip(2.0) if isinstance(estimator, Weighted) and estimator.clip == "auto" else estimator
    return fixed.tuned(rows)
