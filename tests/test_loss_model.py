"""The loss model is ridge regression on φ(x, y), and its mean under a policy is the sum over all outputs."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

import poem
from poem.compute.kernels import Threads
from poem.data.folds import folds_of
from poem.errors import InputError
from poem.evaluation.judging import JudgedLog, model_for
from poem.evaluation.support import support_of
from poem.models import CrossFitted, LossModel, cross_fit
from poem.models.held_out import MANY_UNITS, held_out, some_units
from poem.models.linear import STRENGTHS, Products, fit_linear, linear_error, linear_strength, ridge
from poem.policies.foreign import judge_all

UNIT = (0.0, 1.0)
KINDS = ["labels", "classes"]
FORMS = {"dense": np.asarray, "CSR": sp.csr_array}
every_kind = pytest.mark.parametrize("kind", KINDS)
every_form = pytest.mark.parametrize("form", FORMS)


def expectations(judged, log, model, threads):
    """(predicted, expected) of each row."""
    predicted, expected = JudgedLog(log, UNIT, model, threads).rows(judged).model
    return predicted + 1.0, expected + 1.0


def a_policy(kind, *, d=3, intercept=True, seed=0):
    structure = poem.MultiLabel(3) if kind == "labels" else poem.MultiClass(4)
    weights = np.random.default_rng(seed).normal(size=(d + intercept, structure.n_scores))
    return poem.Policy(structure, weights, intercept, tuple("abcd"[: structure.n_scores]))


def a_log(kind, form="dense", *, contexts=40, rows=160, d=3, seed=0, loss=None):
    """A log whose rows see contexts in any order, some of them often and the last one never."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((contexts, d)) < 0.7, rng.normal(size=(contexts, d)), 0.0)
    context = rng.integers(0, contexts - 1, rows)
    logger = a_policy(kind, d=d, seed=9)
    y = logger.sample(X[context], rng)
    return poem.BanditLog(
        FORMS[form](X),
        y,
        loss=rng.normal(size=rows) if loss is None else loss(X[context], codes_of(y)),
        log_propensity=logger.log_prob(X[context], y),
        context=context,
        labels=logger.labels,
    )


def codes_of(y):
    return y if y.ndim == 2 else np.searchsorted(list("abcd"), y)


def one_hot_of(codes):
    return np.asarray(codes, float) if codes.ndim == 2 else np.eye(4)[codes]


def features_of(x, codes):
    """φ(x, y): the context and a constant, by the output and a constant."""
    outer = (
        np.hstack([x, np.ones((len(x), 1))])[:, :, None]
        * np.hstack([one_hot_of(codes), np.ones((len(x), 1))])[:, None, :]
    )
    return outer.reshape(len(x), -1)


def dense_of(log):
    return log.X.toarray() if sp.issparse(log.X) else log.X


def linear_loss(x, codes):
    """A loss without noise that the model can express."""
    features = features_of(x, codes)
    return features @ np.random.default_rng(5).normal(size=features.shape[1])


def changed_losses(log, rows, change):
    loss = log.loss.copy()
    loss[rows] += change
    return log.replaced(loss=loss)


# ---- ridge regression -----------------------------------------------------------------------------


@every_form
@every_kind
def test_all_strengths_at_once_are_ridge_regressions(kind, form):
    log = a_log(kind, form)
    products = Products(log, log.structure, Threads())
    rows = products.layout.order
    features, target = features_of(dense_of(log)[log.context[rows]], log.y[rows]), log.loss[rows] - log.loss.mean()
    strengths = (0.3, 2.0, 40.0, 1e4)
    found = ridge(products.normal, products.backward(target), strengths, 1e-8)
    for strength, weights in zip(strengths, found, strict=True):
        expected = Ridge(alpha=strength, fit_intercept=False, solver="cholesky").fit(features, target).coef_
        np.testing.assert_allclose(weights.ravel(), expected, atol=1e-4 * np.abs(expected).max())


@every_form
@every_kind
def test_the_two_products_are_those_of_the_features(kind, form):
    log = a_log(kind, form)
    products = Products(log, log.structure, Threads(2))
    rows = products.layout.order
    features = features_of(dense_of(log)[log.context[rows]], log.y[rows])
    rng = np.random.default_rng(1)
    weights, coef = rng.normal(size=products.shape), rng.normal(size=len(log))
    np.testing.assert_allclose(products.forward(weights), features @ weights.ravel(), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(products.backward(coef).ravel(), features.T @ coef, rtol=1e-10, atol=1e-12)


@every_kind
def test_a_given_strength_is_in_mean_squared_norms_of_a_context(kind):
    log = a_log(kind)
    model = fit_linear(log, 0.5, Threads())
    alpha = 0.5 * (np.mean((dense_of(log) ** 2).sum(axis=1)) + 1.0)
    features = features_of(dense_of(log)[log.context], log.y)
    expected = Ridge(alpha=alpha, fit_intercept=False, solver="cholesky").fit(features, log.loss - log.loss.mean())
    np.testing.assert_allclose(model.weights.ravel(), expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())
    assert model.centre == pytest.approx(log.loss.mean())


@every_kind
def test_a_loss_of_noise_gets_a_large_strength_and_a_clean_one_the_least(kind):
    # All large strengths are nearly alike on noise: of several logs, most must get one.
    noise = [a_log(kind, contexts=200, rows=200, d=20, seed=seed) for seed in range(7)]
    clean = a_log(kind, contexts=400, rows=800, loss=linear_loss)
    assert np.median([linear_strength(log, 0, Threads()) for log in noise]) >= 100.0
    assert linear_strength(clean, 0, Threads()) == min(STRENGTHS)


def test_few_units_are_held_out_in_turn_and_of_many_a_fifth():
    few = a_log("classes", contexts=60, rows=200)
    parts = held_out(few, 0)
    assert len(parts) == 5
    np.testing.assert_array_equal(np.sum(parts, axis=0), 1)
    for part in parts:  # no unit on both sides
        assert not set(few.context[part]) & set(few.context[~part])
    rows = 30_000
    many = poem.BanditLog(np.ones((rows, 1)), np.arange(rows) % 2, loss=np.zeros(rows), propensity=np.full(rows, 0.5))
    (held,) = held_out(many.replaced(group=np.arange(rows)), 0)
    assert held.mean() == pytest.approx(0.2, abs=0.02)
    one = poem.BanditLog(np.ones((20, 1)), np.arange(20) % 2, loss=np.zeros(20), propensity=np.full(20, 0.5))
    assert held_out(one.replaced(group=np.zeros(20, dtype=int)), 0) == []


def test_of_very_many_units_a_sample_is_enough():
    rows = 120_000
    log = poem.BanditLog(
        np.ones((1, 1)),
        np.arange(rows) % 2,
        loss=np.zeros(rows),
        propensity=np.full(rows, 0.5),
        context=np.zeros(rows, dtype=int),
        group=np.arange(rows),
    )
    some = some_units(log, 0)
    assert len(np.unique(some.group)) == MANY_UNITS == len(some)
    assert 0.49 < some.y.mean() < 0.51
    pairs = log.replaced(group=np.arange(rows) // 2)
    assert some_units(pairs, 0) is pairs  # 60,000 units


@every_kind
def test_the_strength_is_the_best_of_cross_validation(kind):
    log = a_log(kind, contexts=100, rows=200, d=20)
    log = log.replaced(loss=log.loss + 0.3 * log.y.reshape(len(log), -1)[:, 0])
    parts = held_out(log, 0)
    features = features_of(dense_of(log)[log.context], log.y)
    scale = np.mean((dense_of(log) ** 2).sum(axis=1)) + 1.0
    errors = []
    for strength in STRENGTHS:
        missed = 0.0
        for held in parts:
            centre = log.loss[~held].mean()
            model = Ridge(alpha=strength * scale, fit_intercept=False, solver="cholesky")
            model.fit(features[~held], log.loss[~held] - centre)
            missed += np.sum((log.loss[held] - centre - model.predict(features[held])) ** 2)
        errors.append(missed / len(log))
    strength, error = linear_error(log, parts, Threads())
    assert strength == STRENGTHS[int(np.argmin(errors))]
    assert error == pytest.approx(min(errors), rel=1e-2)


def test_a_constant_loss_is_predicted_as_it_is():
    log = a_log("classes", loss=lambda x, _: np.full(len(x), 0.7))
    model = fit_linear(log, linear_strength(log, 0, Threads()), Threads())
    assert model.centre == pytest.approx(0.7)
    np.testing.assert_allclose(model.weights, 0.0, atol=1e-12)


# ---- folds ----------------------------------------------------------------------------------------


def test_folds_keep_the_rows_of_a_unit_together_and_are_of_equal_size():
    log = a_log("classes")
    fold = folds_of(log, 4, 0)
    folds_by_context = [np.unique(fold[log.context == c]) for c in np.unique(log.context)]
    assert all(len(found) == 1 for found in folds_by_context)
    sizes = np.bincount(np.concatenate(folds_by_context))
    assert len(sizes) == 4
    assert np.ptp(sizes) <= 1
    assert np.any(fold != folds_of(log, 4, 1))


@every_kind
def test_predictions_of_a_fold_do_not_depend_on_its_losses(kind):
    log = a_log(kind, contexts=200, rows=400, loss=linear_loss)
    inside = folds_of(log, 2, 0) == 0
    changed = changed_losses(log, inside, 0.01 * np.random.default_rng(2).normal(size=inside.sum()))
    # The one thing that folds share is the strength; here it is the least one before and after.
    assert linear_strength(log, 0, Threads()) == linear_strength(changed, 0, Threads()) == min(STRENGTHS)
    (judged,) = judge_all(a_policy(kind, seed=3), log)
    before, after = (expectations(judged, one, cross_fit(one), Threads()) for one in (log, changed))
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one[inside], other[inside])
        assert np.abs(one[~inside] - other[~inside]).max() > 1e-4


def test_predictions_of_a_regressor_do_not_depend_on_the_losses_of_their_fold():
    log = a_log("classes")
    inside = folds_of(log, 2, 0) == 0
    changed = changed_losses(log, inside, 3.0)
    (judged,) = judge_all(a_policy("classes", seed=3), log)
    tree = DecisionTreeRegressor(random_state=0)
    before, after = (
        expectations(judged, one, model_for(one, tree, 2, UNIT, 0, Threads()), Threads()) for one in (log, changed)
    )
    for one, other in zip(before, after, strict=True):
        np.testing.assert_array_equal(one[inside], other[inside])
        assert np.any(one[~inside] != other[~inside])


def test_the_model_of_some_rows_keeps_their_folds():
    log = a_log("classes")
    rows = np.arange(0, len(log), 3)
    (judged,) = judge_all(a_policy("classes", seed=3), log)
    for model in (cross_fit(log), model_for(log, Ridge(), 2, UNIT, 0, Threads())):
        whole = expectations(judged, log, model, Threads())
        part = expectations(judged.of_rows(rows), log.take(rows), model.of_rows(rows), Threads())
        np.testing.assert_allclose(part, np.array(whole)[:, rows], rtol=1e-12)


# ---- expectations ---------------------------------------------------------------------------------


def all_codes(kind):
    if kind == "labels":
        return np.array(list(itertools.product([0, 1], repeat=3)), dtype=np.uint8)
    return np.arange(4)


def random_model(log, folds=3):
    """Weights that no fit has made: nothing cancels by chance."""
    rng = np.random.default_rng(11)
    shape = (log.n_features + 1, len(log.labels) + 1)
    models = tuple(LossModel(rng.normal(size=shape), centre) for centre in rng.normal(size=folds))
    return CrossFitted(models, rng.integers(0, folds, len(log)))


def by_enumeration(policy, log, model, kind):
    """(predicted, expected) from every possible output of each row."""
    x = dense_of(log)[log.context]
    outputs = all_codes(kind)
    losses, probabilities = np.empty((2, len(log), len(outputs)))
    for position, code in enumerate(outputs):
        codes = np.repeat(code[None], len(log), axis=0)
        features = features_of(x, codes)
        for number, fitted in enumerate(model.models):
            mine = model.fold == number
            losses[mine, position] = features[mine] @ fitted.weights.ravel() + fitted.centre
        outputs_as_given = codes if kind == "labels" else np.array(list("abcd"))[codes]
        probabilities[:, position] = np.exp(policy.log_prob(x, outputs_as_given))
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    at_logged = [np.flatnonzero(np.all(y == np.atleast_2d(outputs.T).T, axis=1))[0] for y in log.y]
    return losses[np.arange(len(log)), at_logged], (losses * probabilities).sum(axis=1)


@pytest.mark.parametrize("intercept", [True, False])
@every_form
@every_kind
def test_predicted_and_expected_losses_are_those_of_enumeration(kind, form, intercept):
    log = a_log(kind, form)
    policy, model = a_policy(kind, intercept=intercept, seed=4), random_model(log)
    (judged,) = judge_all(policy, log)
    found = expectations(judged, log, model, Threads(2))
    np.testing.assert_allclose(found, by_enumeration(policy, log, model, kind), rtol=1e-9, atol=1e-11)


@every_form
@pytest.mark.parametrize("by", ["contexts", "rows"])
def test_an_array_of_probabilities_expects_what_its_policy_does(form, by):
    log = a_log("classes", form)
    policy, model = a_policy("classes", seed=4), random_model(log)
    marginals = policy.marginals(log.X)
    (judged,) = judge_all(marginals if by == "contexts" else marginals[log.context], log)
    found = expectations(judged, log, model, Threads())
    np.testing.assert_allclose(found, by_enumeration(policy, log, model, "classes"), rtol=1e-9, atol=1e-11)


@every_form
@pytest.mark.parametrize("regressor", [DecisionTreeRegressor(max_depth=3, random_state=0), Ridge(alpha=0.1)], ids=str)
def test_a_regressor_sees_the_context_and_the_class(form, regressor):
    log = a_log("classes", form)
    policy = a_policy("classes", seed=4)
    (judged,) = judge_all(policy, log)
    predicted, expected = expectations(judged, log, model_for(log, regressor, 3, UNIT, 0, Threads()), Threads())
    x, fold = dense_of(log)[log.context], folds_of(log, 3, 0)
    probabilities = policy.marginals(x)
    for part in range(3):
        out, inside = fold != part, fold == part
        fitted = clone(regressor).fit(np.hstack([x[out], np.eye(4)[log.y[out]]]), log.loss[out])
        losses = np.stack(
            [fitted.predict(np.hstack([x[inside], np.tile(np.eye(4)[c], (inside.sum(), 1))])) for c in range(4)], axis=1
        )
        np.testing.assert_allclose(
            predicted[inside], losses[np.arange(inside.sum()), log.y[inside]], rtol=1e-5, atol=1e-5
        )
        np.testing.assert_allclose(expected[inside], (losses * probabilities[inside]).sum(axis=1), rtol=1e-5, atol=1e-5)


def test_a_regressor_cannot_list_label_sets():
    log = a_log("labels")
    with pytest.raises(InputError, match=r"needs outputs that can be listed; use model='linear' for labels"):
        model_for(log, Ridge(), 2, UNIT, 0, Threads())


# ---- what was never logged ------------------------------------------------------------------------


@every_kind
def test_the_share_of_outputs_never_logged_is_that_of_enumeration(kind):
    log = a_log(kind)
    if kind == "labels":
        log = log.take((log.y[:, 0] == 0) & (log.y[:, 1] == 1))
        supported = [output for output in all_codes(kind) if output[0] == 0 and output[1] == 1]
        outputs = np.array(supported)
    else:
        log = log.take((log.y == 1) | (log.y == 2))
        outputs = np.array(["b", "c"])
    policy = a_policy(kind, seed=4)
    x = log.X[log.context]
    inside = sum(np.exp(policy.log_prob(x, np.array([one] * len(log)))) for one in outputs)
    (judged,) = judge_all(policy, log)
    assert support_of(judged, log).never_logged == pytest.approx(1.0 - inside.mean(), rel=1e-9)
    assert support_of(judge_all(policy, a_log(kind))[0], a_log(kind)).never_logged == 0.0
