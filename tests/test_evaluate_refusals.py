"""evaluate: a clear word on what it cannot judge."""

import numpy as np
import pytest
from evaluated_logs import POLICY, Probabilities, a_policy
from refusals import refuses
from sklearn.linear_model import LogisticRegression, Ridge

import poem
from poem.errors import InputError, LogError, MismatchError

NAN = float("nan")


def test_a_policy_for_other_outputs_is_refused(log, label_rows):
    with refuses(
        MismatchError, "the log's outputs are one of 4 classes, ['c', 'a', 'd', 'b']", "the policy's are", "'x'"
    ):
        poem.evaluate(a_policy(1, labels="wxyz"), log)
    with refuses(MismatchError, "the log's outputs are", "the policy's are 3 yes/no labels, ['a', 'b', 'c']"):
        poem.evaluate(label_rows[1], log)


def test_a_policy_for_other_features_is_refused(log):
    with refuses(MismatchError, "X has 3 features; the policy was made for 5"):
        poem.evaluate(a_policy(1, d=5), log)


def test_a_classifier_of_unknown_classes_is_refused(log):
    model = LogisticRegression().fit(log.X, np.array(["c", "a", "zebra", "b"])[log.y])
    with refuses(MismatchError, "policy chooses ['zebra'], which this log does not know", "'c'"):
        poem.evaluate(model, log)


def test_a_classifier_of_the_wrong_shape_is_refused(log):
    marginals = POLICY.marginals(log.X)
    with refuses(MismatchError, "policy", "3"):
        poem.evaluate(Probabilities(marginals[:, :3] / marginals[:, :3].sum(axis=1, keepdims=True)), log)
    with refuses(MismatchError, "policy", "50"):
        poem.evaluate(Probabilities(marginals[:50]), log)
    with refuses(MismatchError, "policy", "4"):
        poem.evaluate(Probabilities(marginals, classes=["a", "b"]), log)


def test_a_classifier_is_for_classes(label_rows):
    log, _ = label_rows
    model = LogisticRegression().fit(log.X, log.y[:, 0])
    with refuses(MismatchError, "predict_proba", "this log holds 3 yes/no labels"):
        poem.evaluate(model, log)


@pytest.mark.parametrize("value", [-0.1, 1.2, NAN, float("inf")])
def test_probabilities_must_be_probabilities(log, value):
    at_logged, by_context = np.exp(POLICY.log_prob_of(log)), POLICY.marginals(log.X)
    at_logged[17], by_context[17, 2] = value, value
    for given in (at_logged, by_context, Probabilities(by_context)):
        with refuses(InputError, "new: probabilities must be in [0, 1]", f"row 17 has {value}", "1 such value)"):
            poem.evaluate({"new": given}, log)


def test_logarithms_are_no_probabilities(log):
    with refuses(InputError, "probabilities must be in [0, 1]", "not scores or logarithms"):
        poem.evaluate(POLICY.log_prob_of(log), log)


def test_class_probabilities_add_up_to_1(log):
    matrix = POLICY.marginals(log.X)
    matrix[17] *= 0.5
    with refuses(InputError, "probabilities must add up to 1; row 17 adds up to 0.5"):
        poem.evaluate(matrix, log)


def test_a_policy_that_never_chooses_what_was_logged_is_refused(log):
    with refuses(MismatchError, "policy gives every logged output the probability 0", "Check"):
        poem.evaluate(np.zeros(len(log)), log)
    only_c = log.take(log.y == 0)
    with refuses(MismatchError, "policy gives every logged output the probability 0"):
        poem.evaluate(poem.constant_policy(log, "a"), only_c)


@pytest.mark.parametrize("length", [0, 599, 601])
def test_probabilities_must_be_as_many_as_rows(log, length):
    with refuses(MismatchError, "one probability for each of the 190 rows", f"found shape ({length},)"):
        poem.evaluate(np.full(length, 0.5), log)
    with refuses(MismatchError, f"has {length} rows; the log has 190 rows in 190 contexts"):
        poem.evaluate(np.full((length, 4), 0.25), log)


def test_a_matrix_must_have_a_column_for_each_class(log, label_rows):
    with refuses(MismatchError, "shape (190, 3)", "one column for each of its 4 labels"):
        poem.evaluate(np.full((190, 3), 1 / 3), log)
    with refuses(MismatchError, "shape (190, 3)", "class probabilities need a log of classes"):
        poem.evaluate(np.full((190, 3), 1 / 3), label_rows[0])


@pytest.mark.parametrize(
    "policy", ["best", object(), {"a": "best"}, [0, POLICY]], ids=["text", "object", "dict", "list"]
)
def test_what_is_no_policy_is_refused(log, policy):
    with pytest.raises(InputError, match=r"must be a policy, a classifier|must have one probability for each"):
        poem.evaluate(policy, log)


@pytest.mark.parametrize("policies", [[], {}, ()], ids=repr)
def test_there_must_be_a_policy(log, policies):
    with refuses(InputError, "there is no policy to evaluate"):
        poem.evaluate(policies, log)


@pytest.mark.parametrize("name", ["logged", 3, None], ids=repr)
def test_names_of_policies_are_texts_other_than_logged(log, name):
    with refuses(InputError, f"a policy cannot be named {name!r}"):
        poem.evaluate({name: POLICY}, log)


@pytest.mark.parametrize("estimators", ["ipss", ["IPS", "DoubleRobust"], [3]], ids=repr)
def test_estimators_must_be_known(log, estimators):
    with refuses(InputError, "there is no estimator", "choose from IPS"):
        poem.evaluate(POLICY, log, estimators)


@pytest.mark.parametrize("estimators", [None, 5, [["IPS"]], poem.IPS], ids=repr)
def test_estimators_of_a_wrong_kind_are_refused(log, estimators):
    with pytest.raises(InputError, match="estimator"):
        poem.evaluate(POLICY, log, estimators)


def test_there_must_be_an_estimator(log):
    with refuses(InputError, "no estimator was given; choose from IPS"):
        poem.evaluate(POLICY, log, [])


@pytest.mark.parametrize("level", [0, 1, 1.5, -0.5, 95, "95", NAN, None], ids=repr)
def test_the_level_is_between_0_and_1(log, level):
    with refuses(InputError, "level must be between 0 and 1", f"found {level!r}"):
        poem.evaluate(POLICY, log, level=level)
    with refuses(InputError, "level must be between 0 and 1", f"found {level!r}"):
        poem.evaluate(POLICY, log, "IPS").bound("policy", "IPS", level)


@pytest.mark.parametrize("interval", ["student", None, 3], ids=repr)
def test_the_interval_must_be_known(log, interval):
    with refuses(InputError, "interval must be one of t, normal, bootstrap", f"found {interval!r}"):
        poem.evaluate(POLICY, log, interval=interval)


def test_the_policy_to_compare_with_must_be_among_them(log):
    with refuses(InputError, "against must be one of logged, new", "found 'old'"):
        poem.evaluate({"new": POLICY}, log, against="old")


@pytest.mark.parametrize("model", ["forest", 3, LogisticRegression], ids=["name", "number", "class"])
def test_the_model_must_be_known(log, model):
    with pytest.raises(InputError, match="model must be 'auto', 'linear', a scikit-learn regressor or None; found"):
        poem.evaluate(POLICY, log, model=model)


def test_a_regressor_is_no_model_for_label_sets(label_rows):
    log, policy = label_rows
    with refuses(InputError, "use model='linear' for labels"):
        poem.evaluate(policy, log, model=Ridge())


@pytest.mark.parametrize("folds", [1, 0, -2, 601, 2.0, "2"], ids=repr)
def test_folds_are_from_2_to_the_number_of_units(log, folds):
    with refuses(InputError, "folds must be from 2 to the number of independent units, 190", f"found {folds}"):
        poem.evaluate(POLICY, log, resampling=poem.Resampling(folds=folds))


@pytest.mark.parametrize("replicates", [5, 0])
def test_a_bootstrap_needs_replicates(log, replicates):
    with refuses(InputError, "replicates must be at least 100", f"found {replicates}"):
        poem.evaluate(POLICY, log, interval="bootstrap", resampling=poem.Resampling(replicates=replicates))


WRONG = [{"resampling": poem.Resampling(replicates=bad)} for bad in (-1, "x")] + [{"seed": bad} for bad in (-1, None)]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_whole_numbers_are_wanted(log, options):
    with refuses(InputError, "must be a whole number"):
        poem.evaluate(POLICY, log, **options)


def test_estimators_that_need_a_model_are_refused_without_one(log):
    with refuses(InputError, "DR need a loss model"):
        poem.evaluate(POLICY, log, ["DR"], model=None)


@pytest.mark.parametrize("n_jobs", [0, "2"], ids=repr)
def test_n_jobs_must_be_a_number_of_threads(log, n_jobs):
    with refuses(InputError, "n_jobs must"):
        poem.evaluate(POLICY, log, n_jobs=n_jobs)


def test_a_log_without_propensities_is_refused(log):
    missing = poem.BanditLog(log.X, log.y, loss=log.loss, propensity="missing", labels=range(4))
    with refuses(LogError, "this log has no propensities", "poem.estimate_propensities(log)"):
        poem.evaluate(POLICY, missing)


def test_arguments_in_the_wrong_order_are_named(log):
    with refuses(InputError, "evaluate takes (policies, log); found Policy as the log"):
        poem.evaluate(log, POLICY)
    with refuses(InputError, "evaluate takes (policies, log); found str as the log"):
        poem.evaluate(POLICY, "log.csv")
