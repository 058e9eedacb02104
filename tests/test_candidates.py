"""Choices among what is available, with and without features of actions: logs, policies, fits and refusals."""

import copy
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from easy_logs import BRIEF
from refusals import refuses

import poem
from poem.compute import catalogue, touched
from poem.errors import InputError, LogError, MismatchError

ACTIONS = ("tea", "cake", "soup", "bread", "jam")
FEATURES = np.random.default_rng(5).normal(size=(5, 3))


def lists_of(n, rng, least=1):
    return [rng.permutation(ACTIONS)[: rng.integers(least, 6)].tolist() for _ in range(n)]


def world(n=300, seed=0, least=2):
    """Contexts, lists, the affinity of each context to each action, and a uniform choice among what is available."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    lists = lists_of(n, rng, least)
    affinity = X @ rng.normal(size=(2, 3)) @ FEATURES.T
    y = [lists[i][rng.integers(len(lists[i]))] for i in range(n)]
    reward = np.array([affinity[i, ACTIONS.index(one)] > 0 for i, one in enumerate(y)], dtype=float)
    return X, lists, y, {"reward": reward, "propensity": 1.0 / np.array([len(one) for one in lists])}


def a_log(kind="candidates", n=300, seed=0, **more):
    X, lists, y, rows = world(n, seed)
    if kind == "classes":
        return poem.BanditLog(X, y, available=lists, labels=ACTIONS, **rows, **more)
    return poem.BanditLog(X, y, available=lists, actions=poem.Catalogue(ACTIONS, FEATURES), **rows, **more)


every_kind = pytest.mark.parametrize("kind", ["classes", "candidates"])


# ---- logs -------------------------------------------------------------------------------------------


def test_all_forms_of_what_is_available_make_one_log():
    X, lists, y, rows = world(50)
    mask = np.array([[action in one for action in ACTIONS] for one in lists])
    ordered = [[action for action in ACTIONS if action in one] for one in lists]
    logs = [
        poem.BanditLog(X, y, available=given, labels=ACTIONS, **rows)
        for given in (
            ordered,
            mask,
            sp.csr_array(mask),
            pa.array(ordered),
            pa.chunked_array([ordered]),
            mask.astype(int),
        )
    ]
    assert len({log.fingerprint() for log in logs}) == 1
    assert logs[0].structure == poem.MultiClass(5)


def test_features_are_those_of_a_catalogue_or_of_candidates():
    X, lists, y, rows = world(50)
    flat = np.concatenate([[ACTIONS.index(action) for action in one] for one in lists])
    given = {"available": lists, "labels": ACTIONS, **rows}
    forms = [poem.Catalogue(ACTIONS, FEATURES), FEATURES[flat], sp.csr_array(FEATURES[flat])]
    forms.append(poem.Catalogue(ACTIONS[::-1], FEATURES[::-1]))
    policy = poem.Policy(poem.Candidates(5, 3), np.random.default_rng(0).normal(size=(3, 3)), True, ())
    expected = None
    for actions in forms:
        log = poem.BanditLog(X, y, actions=actions, **given)
        found = policy.log_prob_of(log)
        expected = found if expected is None else expected
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_candidates_without_ids_are_known_by_their_positions():
    z = np.arange(12.0).reshape(6, 2)
    log = poem.BanditLog(
        np.zeros((2, 1)), [1, 3], loss=[0, 1], propensity=[0.5, 0.25], available=np.array([2, 4]), actions=z
    )
    assert log.labels == (0, 1, 2, 3)
    assert log.available.counts().tolist() == [2, 4]
    assert len(log.available) == 6


@every_kind
def test_parts_and_copies_are_alike(kind):
    log = a_log(kind)
    weights = np.random.default_rng(1).normal(size=(3, log.structure.n_scores))
    policy = poem.policies.policy_for(log, weights, True, poem.Record())
    every = policy.log_prob_of(log)
    for again in (pickle.loads(pickle.dumps(log)), copy.deepcopy(log)):
        np.testing.assert_array_equal(policy.log_prob_of(again), every)
        assert again.fingerprint() == log.fingerprint()
    np.testing.assert_array_equal(policy.log_prob_of(log.take(np.arange(10, 20))), every[10:20])
    joined = poem.BanditLog.concat([log.take(np.arange(100)), next(log.take(np.arange(100, 300)).shards(1))])
    np.testing.assert_allclose(policy.log_prob_of(joined), every, rtol=1e-14)
    np.testing.assert_allclose(np.concatenate([policy.log_prob_of(part) for part in log.shards(4)]), every, rtol=1e-14)
    assert poem.BanditLog.concat([log, a_log(kind)]).deduplicated().n_contexts == 300
    other = a_log(kind, seed=1)
    assert other.fingerprint() != log.fingerprint()


def test_equal_contexts_with_other_candidates_are_other_contexts():
    X = np.zeros((3, 1))
    given = {"loss": [0, 0, 1], "propensity": [0.5, 0.5, 1.0], "labels": "ab"}
    log = poem.BanditLog(X, ["a", "b", "a"], available=[["a", "b"], ["a", "b"], ["a"]], **given)
    assert log.deduplicated().n_contexts == 2


# ---- the same as classes ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def alike():
    """Three logs of the same rows: classes, classes that are all available, and candidates with identities."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 4, 400)
    rows = {"loss": (X[:, 0] > 0) == (y % 2) + 0.3 * rng.random(400), "propensity": rng.uniform(0.15, 0.35, 400)}
    rows["loss"] = rows["loss"].astype(float) + 0.1 * rng.random(400)
    every = {"available": np.ones((400, 4), dtype=bool), "labels": range(4)}
    return (
        poem.BanditLog(X, y, labels=range(4), **rows),
        poem.BanditLog(X, y, **every, **rows),
        poem.BanditLog(X, y, **every, actions=poem.Catalogue(range(4), np.eye(4)), **rows),
    )


@pytest.mark.parametrize(
    "optimizer", [poem.LBFGS(max_iterations=15), poem.AdaGrad(max_batches=15)], ids=["lbfgs", "adagrad"]
)
@pytest.mark.parametrize("estimator", [poem.IPS(), poem.SNIPS(), poem.DoublyRobust()], ids=str)
def test_with_identity_and_everything_available_a_learner_is_that_of_classes(alike, optimizer, estimator):
    options = {"estimator": estimator, "lam": 0.1, "l2": 0.01, "optimizer": optimizer}
    found = [poem.fit(log, **options, selection=poem.Selection(guard=False)).policy.weights for log in alike]
    np.testing.assert_allclose(found[1], found[0], atol=1e-10)
    np.testing.assert_allclose(found[2], found[0], atol=1e-10)


@pytest.fixture
def without_trees(monkeypatch):
    """Trees are tried on classes, and not on actions with features."""
    monkeypatch.setattr("poem.models.chosen.can_boost", lambda log: False)


@pytest.mark.usefixtures("without_trees")
def test_with_identity_and_everything_available_a_portfolio_is_that_of_classes(alike):
    found = [poem.fit(log, learners=BRIEF, loss_bounds=(0, 2)) for log in alike]
    for other in found[1:]:
        for one, two in zip(found[0].table, other.table, strict=True):
            assert two.validation.value == pytest.approx(one.validation.value, abs=1e-8)  # after many iterations
            assert two.gain.likely == pytest.approx(one.gain.likely, abs=1e-8)
        assert other.certificate.gain_at_least == pytest.approx(
            found[0].certificate.gain_at_least, abs=1e-6
        )  # a bisection


@pytest.mark.usefixtures("without_trees")
def test_with_identity_and_everything_available_estimates_are_those_of_classes(alike):
    weights = np.random.default_rng(0).normal(size=(4, 4))
    tables = []
    for log in alike:
        policy = poem.policies.policy_for(log, weights, True, poem.Record())
        floored = policy.with_floor(0.2)
        tables.append([(line.value, line.low, line.high) for line in poem.evaluate([policy, floored], log).lines])
    np.testing.assert_allclose(tables[1], tables[0], atol=1e-10)
    np.testing.assert_allclose(tables[2], tables[0], atol=1e-10)


def test_all_ways_to_compute_the_products_give_the_same_fit(monkeypatch):
    log = a_log(identity=True)
    options = {"lam": 0.1, "selection": poem.Selection(guard=False)}
    fits = []
    for fewer, slow in ((0, -1e9), (10**9, -1e9), (10**9, 1e9)):
        monkeypatch.setattr(touched, "FEWER", fewer)
        monkeypatch.setattr(touched, "FEWER_IN_BATCHES", fewer)
        monkeypatch.setattr(catalogue, "ENTRY_AS_SLOW", slow)
        fits.append(
            [
                poem.fit(log, optimizer=optimizer, **options).policy.weights
                for optimizer in (poem.LBFGS(max_iterations=15), poem.AdaGrad(max_batches=15))
            ]
        )
    for other in fits[1:]:
        np.testing.assert_allclose(fits[0][0], other[0], atol=1e-10)
        np.testing.assert_allclose(fits[0][1], other[1], atol=1e-4)  # AdaGrad's numbers have 24 bits


# ---- policies -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["classes", "candidates", "ids"])
def fitted(request):
    log = a_log(request.param, n=3000, identity=request.param == "ids")
    return log, poem.fit(log, loss_bounds=(0, 1), learners=BRIEF)


def test_what_is_learnt_is_certified_and_respects_what_is_available(fitted, tmp_path):
    log, found = fitted
    assert found.certificate.gain_at_least > 0.1
    X, lists, _, _ = world(500, seed=9)
    actions = (
        {}
        if log.action_names is None and not log.structure.described
        else {"actions": poem.Catalogue(ACTIONS, FEATURES)}
    )
    for policy in (
        found.policy,
        found.policy.with_floor(0.1),
        poem.load_policy(found.policy.save(tmp_path / "p.poem")),
    ):
        drawn = policy.sample(X, 0, available=lists, **actions)
        assert all(one in some for one, some in zip(drawn, lists, strict=True))
        assert all(one in some for one, some in zip(policy.predict(X, available=lists, **actions), lists, strict=True))
        flat = policy.marginals(X, available=lists, **actions)
        starts = np.append(0, np.cumsum([len(one) for one in lists]))
        np.testing.assert_allclose(np.add.reduceat(flat, starts[:-1]), 1.0, rtol=1e-12)
        place = [start + one.index(y) for start, one, y in zip(starts, lists, drawn, strict=False)]
        log_prob = policy.log_prob(X, drawn, available=lists, **actions)
        np.testing.assert_allclose(np.exp(log_prob), flat[place], rtol=1e-10)


def test_a_floor_is_over_what_is_available():
    log = a_log()
    sure = poem.policies.policy_for(log, 100.0 * np.ones((3, 3)), True, poem.Record()).with_floor(0.2)
    flat = sure.marginals_of(log)
    counts = np.repeat(log.available.counts(), log.available.counts())
    assert np.all(flat >= 0.2 / counts - 1e-12)


def test_new_actions_are_scored_by_their_features(fitted):
    log, found = fitted
    if not log.structure.described:
        with refuses(LogError, "not one of the 5 known"):
            found.policy.predict(np.zeros((1, 2)), available=[["tea", "pie"]])
        return
    X = np.array([[1.0, 0.0]])
    known = found.policy.marginals(X, [["tea", "cake"]], poem.Catalogue(ACTIONS, FEATURES))
    new = found.policy.marginals(X, [["pie", "flan"]], poem.Catalogue(("pie", "flan"), FEATURES[:2]))
    if log.structure.n_ids == 0:
        np.testing.assert_allclose(new, known, rtol=1e-12)
    else:  # what is known of an identity is not known of a new one
        assert np.all(np.isfinite(new))


def test_a_class_policy_may_be_used_with_and_without_a_list():
    log = a_log("classes")
    policy = poem.policies.policy_for(log, np.random.default_rng(2).normal(size=(3, 5)), True, poem.Record())
    X = np.array([[0.3, -1.0]])
    whole = policy.marginals(X)[0]
    part = policy.marginals(X, available=[["soup", "tea"]])
    np.testing.assert_allclose(part, whole[[2, 0]] / whole[[2, 0]].sum(), rtol=1e-12)


def test_names_and_recipes_of_actions_are_saved(tmp_path):
    X, lists, y, rows = world(60)
    frame = pd.DataFrame(FEATURES, columns=["price", "age", "size"])
    log = poem.BanditLog(X, y, available=lists, actions=poem.Catalogue(ACTIONS, frame), identity=True, **rows)
    assert log.action_names[:3] == ("price", "age", "size")
    assert log.action_names[3:] == tuple(f"id={one}" for one in ACTIONS)
    policy = poem.uniform_policy(log)
    again = poem.load_policy(policy.save(tmp_path / "p.poem"))
    assert (again.structure, again.labels, again.action_names) == (policy.structure, ACTIONS, log.action_names)


# ---- policies of others -------------------------------------------------------------------------------


def test_arrays_and_functions_give_probabilities_of_candidates():
    log = a_log("classes")
    policy = poem.policies.policy_for(log, np.random.default_rng(2).normal(size=(3, 5)), True, poem.Record())
    flat = policy.marginals_of(log)
    expected = poem.evaluate(policy, log)
    for form in (flat, lambda log: policy.marginals_of(log), log.available.by_action(flat, 5).toarray()):
        found = poem.evaluate(form, log)
        for name in ("SNIPS", "DR", "DM"):
            assert found["policy", name].value == pytest.approx(expected["policy", name].value, rel=1e-9)


def test_a_classifier_chooses_among_what_is_available():
    from sklearn.linear_model import LogisticRegression

    log = a_log("classes")
    model = LogisticRegression().fit(log.X, np.array(ACTIONS)[log.y])
    found = poem.evaluate(model, log)
    assert np.isfinite(found["policy", "DR"].value)


def test_wrong_probabilities_of_candidates_are_refused():
    log = a_log("classes", n=40)
    flat = poem.uniform_policy(log).marginals_of(log)
    with refuses(InputError, "must add up to 1; those of context 0"):
        poem.evaluate(np.append(0.5 * flat[:1], flat[1:]), log)
    everywhere = np.full((40, 5), 0.2)
    with refuses(InputError, "candidates of a context must add up to 1"):
        poem.evaluate(everywhere, log)
    with refuses(MismatchError, "for each of the"):
        poem.evaluate(flat[:-1], log)


# ---- refusals -----------------------------------------------------------------------------------------

GOOD = {"X": np.zeros((2, 1)), "y": ["a", "b"], "loss": [0, 1], "propensity": [0.5, 0.5]}
LISTS = [["a", "b"], ["b", "c"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"available": [["a", "b"], []]}, "context 1 has no candidates"),
        ({"available": [["a", "b"], ["c"]]}, "'b' of row 1 is not among the candidates"),
        ({"available": [["a", "a"], ["b"]]}, "context 0 has the candidate 'a' twice"),
        ({"available": [["a", "b"]]}, "one list for each of the 2 contexts; found 1"),
        ({"available": [["a", None], ["b"]]}, "an action in the list of context 0 is missing"),
        ({"available": 3}, "available must be a mask"),
        ({"available": np.ones((2, 2), bool)}, "Pass labels="),
        ({"available": np.ones((2, 3), bool), "labels": "ab"}, "found shape (2, 3)"),
        ({"available": np.full((2, 2), 0.5), "labels": "ab"}, "holds 0 and 1"),
        ({"available": LISTS, "labels": "ab"}, "the action 'c', which is not one of the 2 known"),
        ({"actions": np.eye(2)}, "Pass available="),
        ({"available": LISTS, "actions": np.zeros((3, 1))}, "one row per candidate (4)"),
        ({"available": LISTS, "actions": np.zeros((4, 0))}, "the actions have no features"),
        ({"available": LISTS, "actions": poem.Catalogue("ab", np.eye(2))}, "'c', which is not one of the 2"),
        ({"available": LISTS, "actions": np.full((4, 1), np.nan)}, "must be finite"),
        ({"available": [list(range(10_001)), [1]], "y": [0, 1]}, "has 10,001 candidates; 10,000 is the most"),
        ({"available": LISTS, "structure": "multilabel", "y": [[1, 0], [0, 1]]}, "of which one is chosen"),
    ],
)
def test_what_cannot_be_is_refused(given, message):
    with refuses(LogError, message):
        poem.BanditLog(**(GOOD | given))


@pytest.mark.parametrize(("ids", "message"), [("aab", "has the action 'a' twice"), ("abcd", "4 actions and 3 rows")])
def test_a_catalogue_has_one_row_per_action(ids, message):
    with refuses(LogError, message):
        poem.Catalogue(ids, np.eye(3))


def test_policies_and_logs_of_other_features_are_refused():
    log = a_log()
    policy = poem.uniform_policy(log)
    with refuses(MismatchError, "Pass available= and actions="):
        policy.predict(log.X)
    with refuses(LogError, "the policy was made for 3"):
        policy.predict(np.zeros((1, 2)), [["a", "b"]], np.zeros((2, 4)))
    with refuses(MismatchError, "the policy's are"):
        policy.log_prob_of(a_log("classes"))
    with refuses(LogError, "available= is for outputs of which one is chosen"):
        poem.Policy(poem.MultiLabel(2), np.zeros((1, 2)), True, (0, 1)).predict(np.zeros((1, 0)), [[0, 1]])


def test_numbers_of_candidates_may_be_a_list_and_texts_are_no_lists():
    rows = {"loss": [0, 1], "propensity": [0.5, 1.0]}
    log = poem.BanditLog(np.zeros((2, 1)), [1, 0], available=[2, 1], actions=np.ones((3, 2)), **rows)
    assert log.available.counts().tolist() == [2, 1]
    with refuses(LogError, "one text per context"):
        poem.BanditLog(**(GOOD | {"available": ["ab", "bc"]}))


def test_a_catalogue_may_hold_raw_columns():
    X, lists, y, rows = world(200)
    frame = pd.DataFrame({"kind": ["hot", "sweet", "hot", "plain", "sweet"], "price": [1.0, 2.0, 3.0, 4.0, 5.0]})
    recipe = poem.Features.learn(frame)
    catalogue = poem.Catalogue(ACTIONS, recipe.transform(frame))
    log = poem.BanditLog(X, y, available=lists, actions=catalogue, action_features=recipe, **rows)
    policy = poem.policies.policy_for(log, np.random.default_rng(1).normal(size=(3, 4)), True, poem.Record())
    expected = policy.marginals(X, lists, catalogue)
    np.testing.assert_allclose(policy.marginals(X, lists, poem.Catalogue(ACTIONS, frame)), expected)
    with refuses(LogError, "features of actions must be numeric; column 'kind'"):
        poem.BanditLog(X, y, available=lists, actions=poem.Catalogue(ACTIONS, frame), **rows)


def test_features_of_actions_are_known_by_name():
    X, lists, y, rows = world(60)
    frame = pd.DataFrame(FEATURES, columns=["price", "age", "size"])
    swapped = frame[["age", "size", "price"]]
    one, two = (
        poem.BanditLog(X, y, available=lists, actions=poem.Catalogue(ACTIONS, columns), **rows)
        for columns in (frame, swapped)
    )
    policy = poem.policies.policy_for(one, np.random.default_rng(1).normal(size=(3, 3)), True, poem.Record())
    expected = policy.marginals(X, lists, poem.Catalogue(ACTIONS, FEATURES))
    np.testing.assert_allclose(policy.marginals(X, lists, poem.Catalogue(ACTIONS, swapped)), expected)
    with refuses(MismatchError, "the log's features of actions are ['age', 'size', 'price']"):
        policy.log_prob_of(two)
    with refuses(MismatchError, "its features of actions are "):
        poem.fit(two, start=policy, lam=0.1)


@pytest.mark.parametrize("ids", [[1.0, 2.0], np.array([1, 2]), ["1", "2"]], ids=["floats", "array", "texts"])
@pytest.mark.parametrize("described", [False, True])
def test_ids_of_any_type_are_written_and_read(ids, described, tmp_path):
    given = {"available": [list(ids)] * 3 + [list(ids)[:1]], "labels": ids}
    given |= {"actions": poem.Catalogue(ids, np.eye(2))} if described else {}
    rows = {"reward": [0, 1, 0, 1], "propensity": [0.5, 0.5, 0.5, 1.0]}
    log = poem.BanditLog(np.zeros((4, 1)), [ids[0], ids[1], ids[0], ids[0]], **given, **rows)
    assert poem.read_log(poem.write_log(log, tmp_path / "log.parquet")).fingerprint() == log.fingerprint()
    poem.uniform_policy(log).save(tmp_path / "policy.poem")
