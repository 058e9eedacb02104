import itertools

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

import poem

TIGHT = {"tol": 1e-8, "max_iter": 10_000}


def all_outputs(policy):
    """Every output that a policy can choose."""
    if isinstance(policy.structure, poem.MultiLabel):
        return list(itertools.product([0, 1], repeat=len(policy.labels)))
    return list(policy.labels)


def probabilities(policy, X):
    """h(y|x) of every output, by brute force."""
    columns = [policy.log_prob(X, np.array([y] * X.shape[0])) for y in all_outputs(policy)]
    return np.exp(np.column_stack(columns))


@pytest.fixture
def string_data(class_data):
    X, y = class_data
    return X, np.array(["nought", "one", "two", "three"])[y]


# ---- supervised -----------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("rows", [11, 120])  # fewer than the 12 features, and more
def test_label_probabilities_are_those_of_liblinear(label_data, form, C, rows):
    X, y = label_data[0][:rows], label_data[1][:rows]
    policy = poem.supervised(form(X), y, C=C, **TIGHT)
    for label in range(4):
        for dual in (True, False):
            model = LogisticRegression(solver="liblinear", dual=dual, C=C, random_state=0, **TIGHT).fit(X, y[:, label])
            np.testing.assert_allclose(policy.marginals(X)[:, label], model.predict_proba(X)[:, 1], rtol=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_class_probabilities_are_those_of_scikit_learn(class_data, form, C):
    X, y = class_data
    policy = poem.supervised(form(X), y, C=C, **TIGHT)
    model = LogisticRegression(C=C, **TIGHT).fit(form(X), y)
    np.testing.assert_allclose(policy.marginals(X), model.predict_proba(X), rtol=1e-10)
    np.testing.assert_array_equal(policy.predict(X), model.predict(X))


def test_two_classes_are_those_of_scikit_learn(class_data):
    X, y = class_data
    few = y < 2
    policy = poem.supervised(X[few], y[few], **TIGHT)
    model = LogisticRegression(**TIGHT).fit(X[few], y[few])
    np.testing.assert_allclose(policy.marginals(X), model.predict_proba(X), rtol=1e-10)


def test_string_classes_are_those_of_scikit_learn(string_data):
    X, y = string_data
    policy = poem.supervised(X, y, **TIGHT)
    model = LogisticRegression(**TIGHT).fit(X, y)
    assert policy.labels == tuple(model.classes_)
    np.testing.assert_allclose(policy.marginals(X), model.predict_proba(X), rtol=1e-10)
    assert policy.predict(X).tolist() == model.predict(X).tolist()


def test_a_label_that_never_occurs_stays_possible(label_data):
    X, y = label_data
    y = y.copy()
    y[:, 1], y[:, 2] = 0, 1
    marginals = poem.supervised(X, y).marginals(X)
    np.testing.assert_allclose(marginals[:, 1], 0.5 / 121)
    np.testing.assert_allclose(marginals[:, 2], 1 - 0.5 / 121)


def test_a_class_that_never_occurs_stays_possible(class_data):
    X, y = class_data
    few = y < 3
    unseen = poem.supervised(X[few], y[few], labels=range(5)).marginals(X)[:, 3:]
    assert np.all(unseen > 0)
    assert np.all(unseen < 0.02)


@pytest.mark.parametrize("only", [0, 2])
def test_one_class_alone_is_nearly_certain(rows, only):
    policy = poem.supervised(rows.X, np.full(40, only), labels=range(3))
    marginals = policy.marginals(rows.X)
    assert np.all(marginals[:, only] > 0.95)
    assert np.all(marginals > 0)
    assert policy.predict(rows.X).tolist() == [only] * 40


def test_a_supervised_policy_says_how_it_was_made(label_data):
    X, y = label_data
    policy = poem.supervised(pd.DataFrame(X).add_prefix("pixel "), y, C=0.5)
    assert policy.record == poem.Record(made_by="supervised", n_train=120, settings={"C": 0.5})
    assert policy.feature_names == tuple(f"pixel {i}" for i in range(12))
    assert policy.intercept


def test_the_contexts_of_a_sparse_log_can_be_used_again(label_data):
    X, y = label_data
    sparse = np.where(X > 0.5, X, 0.0)
    log = poem.BanditLog(sp.csr_array(sparse), y, loss=np.arange(120.0), propensity=np.full(120, 0.5))
    np.testing.assert_array_equal(poem.supervised(log.X, y).weights, poem.supervised(sp.csr_array(sparse), y).weights)


# ---- MAP and expected loss ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_probabilities_of_all_outputs_add_up(request, kind):
    X, _ = request.getfixturevalue("label_data" if kind == "labels" else "class_data")
    policy = request.getfixturevalue("label_logger" if kind == "labels" else "class_logger")
    np.testing.assert_allclose(probabilities(policy, X).sum(axis=1), 1.0, rtol=1e-12)


def test_the_map_and_expected_loss_of_label_sets(label_data, label_logger):
    X, y = label_data
    outputs, h = np.array(all_outputs(label_logger)), probabilities(label_logger, X)
    hamming = (outputs[None] != y[:, None]).sum(axis=2)
    best = h.argmax(axis=1)
    np.testing.assert_array_equal(label_logger.predict(X), outputs[best])
    assert label_logger.expected_loss(X, y) == pytest.approx((h * hamming).sum(axis=1).mean(), rel=1e-12)
    assert label_logger.map_loss(X, y) == pytest.approx(hamming[np.arange(len(y)), best].mean())
    np.testing.assert_allclose(label_logger.marginals(X), h @ outputs, rtol=1e-10)


def test_the_map_and_expected_loss_of_classes(class_data, class_logger):
    X, y = class_data
    h = probabilities(class_logger, X)
    np.testing.assert_array_equal(class_logger.predict(X), h.argmax(axis=1))
    assert class_logger.expected_loss(X, y) == pytest.approx(1 - h[np.arange(len(y)), y].mean(), rel=1e-12)
    assert class_logger.map_loss(X, y) == pytest.approx((h.argmax(axis=1) != y).mean())
    np.testing.assert_allclose(class_logger.marginals(X), h, rtol=1e-12)


@pytest.mark.parametrize("kind", ["labels", "classes"])
def test_samples_follow_the_probabilities(request, kind):
    X, _ = request.getfixturevalue("label_data" if kind == "labels" else "class_data")
    policy = request.getfixturevalue("label_logger" if kind == "labels" else "class_logger")
    drawn = policy.sample(np.tile(X[:1], (20_000, 1)), 0)
    shares = drawn.mean(axis=0) if kind == "labels" else np.bincount(drawn, minlength=4) / len(drawn)
    np.testing.assert_allclose(shares, policy.marginals(X[:1])[0], atol=0.015)  # four standard errors


def test_trivial_policies(label_log, class_log):
    uniform = poem.uniform_policy(label_log)
    np.testing.assert_allclose(uniform.log_prob_of(label_log), 4 * np.log(0.5))
    always = poem.constant_policy(label_log, [1, 0, 0, 1])
    assert np.unique(always.sample(label_log.X, 0), axis=0).tolist() == [[1, 0, 0, 1]]
    two = poem.constant_policy(class_log, 2)
    assert set(two.sample(class_log.X, 0).tolist()) == {2}


# ---- simulate -------------------------------------------------------------------------------------


@pytest.fixture(params=["labels", "classes"])
def world(request):
    kind = "label" if request.param == "labels" else "class"
    return *request.getfixturevalue(f"{kind}_data"), request.getfixturevalue(f"{kind}_logger")


def outputs_of(log):
    return log.y if log.y.ndim == 2 else np.asarray(log.labels)[log.y]


def test_propensities_are_the_logging_policys_own(world):
    X, y, logger = world
    log = poem.simulate(X, y, logger, replay=3, rng=0)
    np.testing.assert_array_equal(log.log_propensity, logger.log_prob(X[log.context], outputs_of(log)))
    np.testing.assert_allclose(log.log_propensity, logger.log_prob_of(log), rtol=1e-12, atol=1e-14)


def test_each_context_is_replayed(world):
    X, y, logger = world
    log = poem.simulate(X, y, logger, replay=3, rng=0)
    assert (len(log), log.n_contexts) == (3 * len(X), len(X))
    assert np.bincount(log.context).tolist() == [3] * len(X)
    first, second = log.y[: len(X)], log.y[len(X) : 2 * len(X)]
    assert not np.array_equal(first, second)


def test_the_hamming_loss_counts_wrong_labels(label_data, label_logger):
    X, y = label_data
    log = poem.simulate(X, y, label_logger, rng=0)
    np.testing.assert_array_equal(log.loss, np.abs(log.y.astype(int) - y[log.context]).sum(axis=1))


def test_all_losses_of_classes_are_zero_one(class_data, class_logger):
    X, y = class_data
    for loss in ("hamming", "zero-one", "f1"):
        log = poem.simulate(X, y, class_logger, loss=loss, rng=0)
        np.testing.assert_array_equal(log.loss, log.y != y[log.context])


def test_the_f1_loss_is_one_minus_scikit_learns_f1(label_data, label_logger):
    X, y = label_data
    log = poem.simulate(X, y, label_logger, loss="f1", rng=0)
    expected = [1.0 - f1_score(y[c], chosen, zero_division=1.0) for c, chosen in zip(log.context, log.y, strict=True)]
    np.testing.assert_allclose(log.loss, expected, atol=1e-12)


def test_the_zero_one_loss_of_label_sets_is_of_the_whole(label_data, label_logger):
    X, y = label_data
    log = poem.simulate(X, y, label_logger, loss="zero-one", rng=0)
    np.testing.assert_array_equal(log.loss, np.any(log.y != y[log.context], axis=1))


def test_a_function_may_be_the_loss(label_data, label_logger):
    X, y = label_data

    def missed(truth, chosen):
        return ((truth == 1) & (chosen == 0)).sum(axis=1) * 2

    log = poem.simulate(X, y, label_logger, loss=missed, rng=0)
    np.testing.assert_array_equal(log.loss, missed(y[log.context], log.y))
    assert log.loss.dtype == np.float64


def test_a_loss_function_must_return_one_number_a_row(label_data, label_logger):
    with pytest.raises(poem.PoemError, match="loss must have one value for each of the 480 rows"):
        poem.simulate(*label_data, label_logger, loss=lambda truth, chosen: np.zeros(3), rng=0)


def test_the_same_seed_gives_the_same_log(world):
    X, y, logger = world
    logs = [poem.simulate(X, y, logger, rng=rng) for rng in (5, 5, np.random.default_rng(5), 6)]
    for log in logs[1:3]:
        np.testing.assert_array_equal(log.y, logs[0].y)
        np.testing.assert_array_equal(log.loss, logs[0].loss)
    assert not np.array_equal(logs[3].y, logs[0].y)


def test_a_generator_moves_on(world):
    X, y, logger = world
    rng = np.random.default_rng(5)
    assert not np.array_equal(poem.simulate(X, y, logger, rng=rng).y, poem.simulate(X, y, logger, rng=rng).y)


def test_string_classes_can_be_simulated(string_data):
    X, y = string_data
    logger = poem.supervised(X, y, C=0.01)
    log = poem.simulate(X, y, logger, rng=0)
    assert log.labels == ("nought", "one", "three", "two")
    np.testing.assert_array_equal(log.loss, outputs_of(log) != y[log.context])


def test_classes_that_the_truth_lacks_may_be_chosen(class_data, class_logger):
    X, y = class_data
    few = y < 2
    log = poem.simulate(X[few], y[few], class_logger, replay=20, rng=0)
    assert log.labels == (0, 1, 2, 3)
    assert set(log.y.tolist()) == {0, 1, 2, 3}


def test_the_mean_loss_of_a_log_is_the_loggers_expected_loss(world):
    X, y, logger = world
    log = poem.simulate(X, y, logger, replay=60, rng=0)
    stderr = log.loss.std() / np.sqrt(len(log))
    assert log.loss.mean() == pytest.approx(logger.expected_loss(X, y), abs=4 * stderr)


def test_estimates_of_another_policy_are_near_the_truth(world):
    X, y, logger = world
    log = poem.simulate(X, y, logger, replay=60, rng=0)
    other = poem.supervised(X, y, C=0.05)
    for estimator in (poem.IPS(clip=None), poem.SNIPS(clip=None)):
        found = poem.estimate(other, log, estimator)
        assert found.value == pytest.approx(other.expected_loss(X, y), abs=4 * found.stderr)


def test_sparse_and_dense_contexts_give_the_same_log(world):
    X, y, logger = world
    dense, sparse = (poem.simulate(form(X), y, logger, rng=0) for form in (np.asarray, sp.csr_array))
    np.testing.assert_array_equal(dense.y, sparse.y)
    np.testing.assert_allclose(dense.log_propensity, sparse.log_propensity, rtol=1e-10)


def test_a_frame_keeps_its_names_in_the_log(class_data):
    X, y = class_data
    frame = pd.DataFrame(X).add_prefix("pixel ")
    log = poem.simulate(frame, y, poem.supervised(frame, y), rng=0)
    assert log.feature_names == tuple(frame.columns)


def test_reordered_columns_are_known_by_name(class_data):
    X, y = class_data
    frame = pd.DataFrame(X).add_prefix("pixel ")
    logger = poem.supervised(frame, y)
    log = poem.simulate(frame[frame.columns[::-1]], y, logger, replay=1, rng=0)
    np.testing.assert_allclose(log.log_propensity, logger.log_prob(frame, outputs_of(log)))
