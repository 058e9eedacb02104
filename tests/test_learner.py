import pickle
from dataclasses import fields

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import _safe_indexing, check_array
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

import poem
from poem import CRMLearner
from poem.errors import InputError, LogError

QUICK = {"optimizer": poem.LBFGS(max_iterations=20), "guard": False}


def columns_of(log):
    """A log as what scikit-learn wants: one row of X for each decision."""
    y = log.y if log.y.ndim == 2 else np.asarray(log.labels)[log.y]
    return log.X[log.context], y, {"loss": log.loss, "propensity": np.exp(log.log_propensity)}


@pytest.fixture(scope="module")
def learner(class_log):
    X, y, given = columns_of(class_log)
    return CRMLearner(lam=0.1, **QUICK).fit(X, y, **given)


# ---- parameters -----------------------------------------------------------------------------------


def test_parameters_can_be_read_and_set():
    learner = CRMLearner(lam=0.5, estimator=poem.SNIPS())
    assert learner.get_params()["lam"] == 0.5
    assert learner.set_params(lam=2.0, select_by="snips") is learner
    assert (learner.lam, learner.select_by, learner.estimator) == (2.0, "snips", poem.SNIPS())
    with pytest.raises(ValueError, match="Invalid parameter"):
        learner.set_params(lambda_=1.0)


def test_a_clone_has_the_parameters_but_not_the_fit(learner):
    copy = clone(learner)
    assert copy.get_params() == learner.get_params()
    assert not hasattr(copy, "policy_")


def test_the_parameters_are_those_of_fit():
    flat = {field.name for field in fields(poem.Selection)}  # a search can set each of them by its name
    offered, wanted = set(CRMLearner().get_params()), set(poem.fit.__kwdefaults__) - {"selection"} | flat
    assert offered - wanted == {"random_state", "labels", "structure"}  # fit's seed, and what its log brings along
    left_out = {"seed", "start", "logging_policy", "additive", "refit", "imitate", "progress", "checkpoint"}
    assert wanted - offered == left_out


# ---- fit, predict, score --------------------------------------------------------------------------


def test_the_learner_is_fit_with_another_face(class_log):
    X, y, given = columns_of(class_log)
    learner = CRMLearner(lam=[0.01, 0.1], random_state=3, **QUICK).fit(X, y, **given)
    log = poem.BanditLog(X, y, **given)
    alike = {"optimizer": QUICK["optimizer"], "selection": poem.Selection(guard=False)}
    found = poem.fit(log, lam=[0.01, 0.1], seed=3, **alike)
    assert learner.policy_.weights.tobytes() == found.policy.weights.tobytes()
    assert learner.result_.policy is learner.policy_
    assert learner.n_features_in_ == 12


def test_classes_and_probabilities_of_classes(learner, class_log):
    X, y, _ = columns_of(class_log)
    probabilities = learner.predict_proba(X)
    assert learner.classes_.tolist() == [0, 1, 2, 3]
    assert learner.predict(X).shape == y.shape
    assert probabilities.shape == (len(y), 4)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0)
    np.testing.assert_array_equal(learner.predict(X), learner.classes_[probabilities.argmax(axis=1)])


def test_classes_may_be_strings(class_log):
    X, y, given = columns_of(class_log)
    names = np.array(["zero", "one", "two", "three"])
    learner = CRMLearner(lam=0.1, **QUICK).fit(X, names[y], **given)
    assert learner.classes_.tolist() == sorted(names)
    assert set(learner.predict(X)) <= set(names)


def test_label_sets_and_probabilities_of_labels(label_log):
    X, y, given = columns_of(label_log)
    learner = CRMLearner(lam=0.1, **QUICK).fit(X, y, **given)
    probabilities = learner.predict_proba(X)
    assert learner.predict(X).shape == y.shape == probabilities.shape
    np.testing.assert_array_equal(learner.predict(X), probabilities >= 0.5)


def test_sparse_contexts_give_the_same_policy(class_log, learner):
    X, y, given = columns_of(class_log)
    again = clone(learner).fit(sp.csc_array(X), y, **given)
    np.testing.assert_allclose(again.predict_proba(sp.csr_array(X)), learner.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("names", [{}, {"reward": "loss"}, {"log_propensity": "propensity"}], ids=repr)
def test_the_score_is_minus_the_self_normalised_estimate(class_log, learner, names):
    X, y, given = columns_of(class_log)
    log = poem.BanditLog(X, y, **given)
    change = {"reward": np.negative, "log_propensity": np.log}
    given = given | {new: change[new](given[old]) for new, old in names.items()}
    passed = {name: value for name, value in given.items() if name not in names.values()}
    assert learner.score(X, y, **passed) == pytest.approx(-poem.estimate(learner.policy_, log).value, rel=1e-12)


def test_the_score_takes_no_sample_weights(class_log, learner):
    X, y, given = columns_of(class_log)
    with pytest.raises(InputError, match=r"sample_weight is not supported\. Leave it out"):
        learner.score(X, y, **given, sample_weight=np.ones(len(y)))


def test_the_score_knows_all_classes_of_the_fit(class_log, learner):
    X, y, given = columns_of(class_log)
    some = np.flatnonzero(y != 2)[:50]
    part = {name: values[some] for name, values in given.items()}
    log = poem.BanditLog(X[some], y[some], labels=range(4), **part)
    assert learner.score(X[some], y[some], **part) == pytest.approx(-poem.estimate(learner.policy_, log).value)


def test_groups_are_kept_together(class_log):
    X, y, given = columns_of(class_log)
    learner = CRMLearner(lam=0.1, **QUICK).fit(X, y, **given, group=np.arange(len(y)) // 51)
    assert learner.result_.n_validation == 102


def test_a_missing_propensity_is_an_error(class_log, learner):
    X, y, given = columns_of(class_log)
    with pytest.raises(LogError, match=r"propensity is missing.*never guessed"):
        CRMLearner().fit(X, y, loss=given["loss"])
    with pytest.raises(LogError, match="propensity is missing"):
        learner.score(X, y, loss=given["loss"])


def test_a_missing_loss_is_an_error(class_log):
    X, y, given = columns_of(class_log)
    with pytest.raises(LogError, match="exactly one of loss="):
        CRMLearner().fit(X, y, propensity=given["propensity"])


def test_missing_outputs_are_an_error(class_log):
    X, _, given = columns_of(class_log)
    with pytest.raises(LogError, match="y is missing"):
        CRMLearner().fit(X, None, **given)


def test_nothing_can_be_predicted_before_fit(class_log):
    X, y, given = columns_of(class_log)
    for use in (CRMLearner().predict, CRMLearner().predict_proba, lambda X: CRMLearner().score(X, y, **given)):
        with pytest.raises(NotFittedError):
            use(X)


def test_frames_keep_their_column_names(class_log):
    X, y, given = columns_of(class_log)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(12)])
    learner = CRMLearner(lam=0.1, **QUICK).fit(frame, y, **given)
    assert learner.feature_names_in_.tolist() == list(frame.columns)
    assert learner.predict(frame).shape == y.shape
    with pytest.raises(ValueError, match="same order"):
        learner.predict(frame[frame.columns[::-1]])


def test_the_policy_of_a_learner_knows_the_column_names(class_log):
    X, y, given = columns_of(class_log)
    frame = pd.DataFrame(X, columns=[f"pixel {i}" for i in range(12)])
    assert CRMLearner(lam=0.1, **QUICK).fit(frame, y, **given).policy_.feature_names == tuple(frame.columns)


def test_a_fitted_learner_can_be_pickled(learner, class_log):
    X, _, _ = columns_of(class_log)
    again = pickle.loads(pickle.dumps(learner))
    assert again.predict_proba(X).tobytes() == learner.predict_proba(X).tobytes()


def test_the_policy_of_a_pickled_learner_stays_read_only(learner):
    assert not learner.policy_.weights.flags.writeable
    assert not pickle.loads(pickle.dumps(learner)).policy_.weights.flags.writeable


@pytest.mark.parametrize("random_state", [None, np.random.RandomState(0), 7])
def test_random_state_may_be_all_that_scikit_learn_allows(class_log, random_state):
    X, y, given = columns_of(class_log)
    CRMLearner(lam=0.1, random_state=random_state, **QUICK).fit(X, y, **given)


# ---- pipelines and searches -----------------------------------------------------------------------


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def requested(**options):
    wanted = {"loss": True, "propensity": True}
    return CRMLearner(**QUICK | options).set_fit_request(**wanted).set_score_request(**wanted)


def test_a_pipeline_passes_loss_and_propensity_on(routing, class_log):
    X, y, given = columns_of(class_log)
    pipeline = make_pipeline(StandardScaler(), requested(lam=0.1)).fit(X, y, **given)
    scaled = StandardScaler().fit_transform(X)
    alone = CRMLearner(lam=0.1, **QUICK).fit(scaled, y, **given)
    np.testing.assert_array_equal(pipeline.predict(X), alone.predict(scaled))
    np.testing.assert_array_equal(pipeline.predict_proba(X), alone.predict_proba(scaled))
    assert pipeline.score(X, y, **given) == alone.score(scaled, y, **given)


def test_a_pipeline_without_routing_takes_prefixed_columns(class_log):
    X, y, given = columns_of(class_log)
    pipeline = Pipeline([("scale", StandardScaler()), ("learn", CRMLearner(lam=0.1, **QUICK))])
    pipeline.fit(X, y, **{f"learn__{name}": values for name, values in given.items()})
    assert pipeline.predict(X).shape == y.shape


def test_a_search_over_lam_scores_by_the_estimate(routing, class_log):
    X, y, given = columns_of(class_log)
    folds = KFold(3, shuffle=True, random_state=0)
    search = GridSearchCV(requested(), {"lam": [0.01, 100.0]}, cv=folds, error_score="raise").fit(X, y, **given)
    fit_rows, score_rows = next(folds.split(X))
    first = CRMLearner(lam=0.01, **QUICK).fit(X[fit_rows], y[fit_rows], **{k: v[fit_rows] for k, v in given.items()})
    held = first.score(X[score_rows], y[score_rows], **{k: v[score_rows] for k, v in given.items()})
    assert search.cv_results_["split0_test_score"][0] == pytest.approx(held)
    assert search.best_params_ == {"lam": 0.01}
    assert search.best_score_ == search.cv_results_["mean_test_score"].max()
    assert search.predict(X).shape == y.shape


def test_a_search_through_a_pipeline(routing, label_log):
    X, y, given = columns_of(label_log)
    pipeline = make_pipeline(StandardScaler(), requested(validation=None))
    search = GridSearchCV(pipeline, {"crmlearner__lam": [0.1, 1.0]}, cv=3, error_score="raise").fit(X, y, **given)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


# ---- scikit-learn's own checks ----------------------------------------------------------------------

REPLAY = 16


class TruthLearner(ClassifierMixin, CRMLearner):
    """Takes y for the truth: logs uniformly random outputs for each row of X, then learns from that log."""

    def fit(self, X, y):
        if y is None:
            return super().fit(X, y)
        truth = check_array(y, ensure_2d=False, dtype=None, input_name="y")
        check_classification_targets(truth)
        if truth.ndim != 2 or truth.shape[1] == 1:
            truth = column_or_1d(truth, warn=True)
        rows = np.tile(np.arange(len(truth)), REPLAY)
        logged, wrong, propensity = self._log(truth[rows])
        return super().fit(repeated(X, rows, len(truth)), logged, loss=wrong, propensity=propensity)

    def _log(self, truth):
        rng = np.random.default_rng(self.random_state)
        if truth.ndim == 2:
            logged = rng.integers(0, 2, truth.shape)
            return logged, np.sum(logged != truth, axis=1), np.full(len(truth), 0.5 ** truth.shape[1])
        classes = np.unique(truth)
        logged = classes[rng.integers(0, len(classes), len(truth))]
        return logged, (logged != truth).astype(float), np.full(len(truth), 1 / len(classes))

    score = ClassifierMixin.score


def repeated(X, rows, n):
    """Repeat the rows of X; what is not a matrix of n rows goes to the learner as it is, to be refused there."""
    X = X.tocsr() if sp.issparse(X) else X if hasattr(X, "iloc") else np.asarray(X)
    return _safe_indexing(X, rows) if X.ndim == 2 and X.shape[0] == n else X


@parametrize_with_checks([TruthLearner(lam=0.1, guard=False)])
def test_scikit_learns_own_check(estimator, check):
    check(estimator)
