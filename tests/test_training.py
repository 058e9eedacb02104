"""What candidates share: models that have not seen what they predict, and the start that is made of them."""

import numpy as np
import pytest

import poem
from poem.compute.kernels import Threads
from poem.data import mean_square
from poem.data.folds import folds_by_context
from poem.evaluation.calibration import calibrate
from poem.learning.training import FOLDS, Training
from poem.models import held_out as held_out_rows
from poem.models.bounded import bounded_error, fit_bounded
from poem.models.held_out import held_out
from poem.models.logistic import Logistic
from poem.models.truth import HiddenTruth

KINDS = ("labels", "classes", "classes of their own")
every_kind = pytest.mark.parametrize("kind", KINDS)


def a_log(kind, contexts=120, seed=0):
    """Losses are mistakes, or for classes of their own linear in x."""
    rng = np.random.default_rng(seed)
    X, context = rng.normal(size=(contexts, 3)), np.repeat(np.arange(contexts), 2)
    x, rows = X[context], 2 * contexts
    if kind == "labels":
        y = rng.integers(0, 2, (rows, 3))
        loss = np.count_nonzero(y != (x > 0), axis=1) + 0.1 * rng.random(rows)
        return poem.BanditLog(X, y, loss=loss, propensity=np.full(rows, 1 / 8), context=context)
    y = rng.integers(0, 3, rows)
    loss = (y != x.argmax(axis=1)).astype(float) if kind == "classes" else np.sum(x * np.eye(3)[y], axis=1)
    return poem.BanditLog(X, y, loss=loss, propensity=np.full(rows, 1 / 3), context=context)


def trained(log, **options):
    options = {"intercept": True, "calibration": calibrate(log, poem.IPS()), **options}
    return Training(log, log.structure, **options)


@every_kind
def test_no_context_is_predicted_by_a_model_that_has_seen_it(kind):
    log = a_log(kind)
    training = trained(log)
    assert training.model.truth == (kind == "classes")
    fold = folds_by_context(log, FOLDS, 0)[log.context]
    other = log.replaced(loss=np.where(fold == 0, np.random.default_rng(1).permutation(log.loss), log.loss))
    changed = trained(other, strengths=training.strengths, calibration=training.calibration)
    same = fold[training.layout.order] == 0
    before, after = training.losses.predicted, changed.losses.predicted
    np.testing.assert_array_equal(after[same], before[same])
    assert np.abs(after[~same] - before[~same]).max() > 1e-3


@every_kind
def test_the_start_without_an_intercept_is_that_of_the_features(kind):
    log = a_log(kind)
    whole, bare = trained(log).direct, trained(log, intercept=False).direct
    assert bare.shape == (3, 3)
    spread = np.std(log.X @ whole[:-1])
    np.testing.assert_allclose(bare, whole[:-1] / spread, rtol=1e-6, atol=1e-9)


@every_kind
def test_the_start_prefers_what_has_a_low_loss(kind):
    log = a_log(kind, contexts=400)
    policy = poem.Policy(log.structure, 8 * trained(log).direct, True, log.labels)
    best = {"labels": log.X > 0, "classes": log.X.argmax(axis=1), "classes of their own": log.X.argmin(axis=1)}[kind]
    assert np.mean(policy.predict(log.X) == best) > 0.9


def test_strengths_are_chosen_on_no_more_units_than_it_takes(monkeypatch):
    log, seen = a_log("classes"), []
    monkeypatch.setattr(held_out_rows, "MANY_UNITS", 50)
    for kind in (HiddenTruth, Logistic):
        plain = kind.__init__

        def spy(self, part, *rest, plain=plain):
            seen.append(part.n_contexts and len(np.unique(part.context)))
            plain(self, part, *rest)

        monkeypatch.setattr(kind, "__init__", spy)
    assert trained(log).strengths.linear > 0.0
    assert seen
    assert max(seen) < 50


@pytest.mark.parametrize("kind", [HiddenTruth, Logistic])
def test_the_error_of_a_bounded_model_is_that_of_held_out_rows(kind):
    log = a_log("classes")
    held = held_out(log, 0)[0]
    strength, error = bounded_error(kind, log, [held], (0.0, 1.0), Threads())
    scaled = strength * mean_square(log) / mean_square(log.take(~held))
    weights = fit_bounded(kind, log.take(~held), scaled, (0.0, 1.0), Threads())
    judge = kind(log.take(held), (0.0, 1.0), Threads())
    by_hand = np.mean((judge.loss - judge.shares(weights)) ** 2)
    assert error == pytest.approx(by_hand, rel=0.05)  # warm and cold starts end near each other
