"""Trees as arrays: against LightGBM itself, against trees walked by hand, and as content of files."""

import subprocess
import sys
from functools import cache

import numpy as np
import pytest
import scipy.sparse as sp
from earlier_policies import without_checksum
from hypothesis import given, settings
from hypothesis import strategies as st

import poem
from poem.compute import Forest, Threads
from poem.errors import InputError, PolicyFileError
from poem.models.trees import forest_of

lgb = pytest.importorskip("lightgbm")


def a_booster(seed=0, rows=400, features=5, columns=3, leaves=8):
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(rows, features)), 2)
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5)
    data = lgb.Dataset(X, y, params={"verbosity": -1})
    settings = {
        "objective": "multiclass",
        "num_class": columns,
        "num_leaves": leaves,
        "verbosity": -1,
        "num_threads": 1,
    }
    return X, lgb.train(settings | {"use_missing": False, "boost_from_average": False}, data, 7)


@cache
def a_forest(**how):
    X, booster = a_booster(**how)
    return X, forest_of(booster, X.shape[1], 3)


def walked(forest, x):
    """Return what each tree adds and the leaf that it ends in, one node at a time."""
    scores, leaves = np.zeros(forest.n_columns), []
    for root, column in zip(forest.root, forest.column, strict=True):
        node = root
        while forest.left[node] != node:
            node = forest.left[node] + int(x[forest.feature[node]] > forest.threshold[node])
        scores[column] += forest.value[node]
        leaves.append(node)
    return scores, leaves


def test_trees_say_what_the_library_says():
    X, booster = a_booster()
    forest = forest_of(booster, 5, 3)
    np.testing.assert_allclose(forest.scores(X), booster.predict(X, raw_score=True), rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_every_context_ends_in_the_leaf_that_its_features_lead_to(seed):
    X, forest = a_forest(seed=seed, leaves=3 + 4 * seed)
    few = X[:20]
    np.testing.assert_allclose(forest.scores(few), [walked(forest, x)[0] for x in few], atol=1e-12)
    leafy = forest.for_columns(3, leafy=4)
    number = {node: place for place, node in enumerate(np.flatnonzero(forest.left == np.arange(len(forest.left))))}
    for row, x in zip(leafy.leaves(few).toarray(), few, strict=True):
        assert sorted(np.flatnonzero(row)) == sorted(number[node] for node in walked(forest, x)[1][:4])
        assert row.sum() == 4


def test_features_that_no_tree_looks_at_do_not_move_the_others():
    X, _ = a_booster()
    rng = np.random.default_rng(0)
    some = np.hstack([np.zeros((len(X), 2)), rng.normal(size=(len(X), 1)), X[:, :2], np.ones((len(X), 1)), X[:, 2:]])
    data = lgb.Dataset(some, (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.5), params={"verbosity": -1})
    settings = {"objective": "multiclass", "num_class": 3, "num_leaves": 4, "verbosity": -1, "use_missing": False}
    forest = forest_of(lgb.train(settings | {"boost_from_average": False}, data, 2), 9, 3).for_columns(3, 3)
    assert len(forest.used) < 9
    assert forest.used[0] > 0
    walks = np.array([walked(forest, x)[0] for x in some])
    for X in (some, sp.csr_array(some)):
        np.testing.assert_allclose(forest.scores(X), walks, atol=1e-12)
        np.testing.assert_allclose(np.vstack([forest.scores(X[[i]]) for i in range(20)]), walks[:20], atol=1e-12)
    np.testing.assert_array_equal(forest.leaves(sp.csr_array(some)).toarray(), forest.leaves(some).toarray())


def test_sparse_contexts_and_any_number_of_threads_give_the_same_scores():
    X, forest = a_forest(rows=20_000)
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    np.testing.assert_array_equal(forest.scores(sp.csr_array(X)), forest.scores(X))
    np.testing.assert_array_equal(forest.scores(X, Threads(3)), forest.scores(X))
    leafy = forest.for_columns(3, leafy=5)
    wide = leafy.extended(sp.csr_array(X), Threads(2))
    np.testing.assert_array_equal(wide.toarray(), leafy.extended(X).toarray())
    assert wide.shape == (len(X), leafy.width)


def test_the_trees_of_some_columns_are_the_same_trees():
    X, forest = a_forest()
    np.testing.assert_array_equal(forest.for_columns(2).scores(X), forest.scores(X)[:, :2])
    count = forest.first_with(30)
    assert forest.for_columns(3, count).n_leaves <= 30 < forest.for_columns(3, count + 1).n_leaves


def test_a_forest_without_trees_adds_nothing():
    empty = Forest(*(np.empty(0) for _ in range(6)), 4, 2)
    X = np.ones((3, 4))
    assert empty.depth == 0
    np.testing.assert_array_equal(empty.extended(X), np.hstack([X, np.zeros((3, 2))]))


def test_equal_trees_are_equal():
    _, one = a_forest()
    _, two = a_forest.__wrapped__()
    _, other = a_forest(seed=1)
    assert one == two
    assert hash(one) == hash(two)
    assert one != other
    assert one != one.for_columns(3, 2)


# ---- files -----------------------------------------------------------------------------------------


@cache
def a_policy(leafy=0):
    X, forest = a_forest()
    forest = forest.for_columns(3, leafy)
    weights = np.random.default_rng(1).normal(size=(forest.width + 1, 3))
    return X, poem.Policy(poem.MultiClass(3), weights, True, ("a", "b", "c"), forest=forest)


@pytest.mark.parametrize("leafy", [0, 4])
def test_a_policy_with_trees_comes_back_from_its_file(tmp_path, leafy):
    X, policy = a_policy(leafy)
    back = poem.load_policy(policy.save(tmp_path / "trees.poem"))
    assert back.forest == policy.forest
    assert (back.n_features, back.forest.leafy) == (5, leafy)
    np.testing.assert_array_equal(back.marginals(X), policy.marginals(X))
    floored = policy.with_floor(0.1, policy.at_temperature(0.5))
    again = poem.load_policy(floored.save(tmp_path / "floor.poem"))
    np.testing.assert_array_equal(again.marginals(X), floored.marginals(X))
    uniform = policy.with_floor(0.3)
    np.testing.assert_allclose(uniform.marginals(X), 0.7 * policy.marginals(X) + 0.1, atol=1e-12)


def test_a_policy_scores_what_its_trees_make_of_the_features():
    X, policy = a_policy(leafy=4)
    wide = np.hstack([policy.forest.extended(X).toarray(), np.ones((len(X), 1))])
    np.testing.assert_allclose(policy.scores(X), wide @ policy.weights, atol=1e-12)
    cold = policy.at_temperature(2.0)
    np.testing.assert_allclose(cold.scores(X), 2.0 * policy.scores(X), atol=1e-12)
    with pytest.raises(InputError, match="the forest sees 5 features and makes 38"):
        poem.Policy(poem.MultiClass(3), np.zeros((7, 3)), True, ("a", "b", "c"), forest=policy.forest)


def arrays_of(forest, **changes):
    return forest.to_arrays("t") | {f"t.{name}": value for name, value in changes.items()}


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("left", 0, 10**6),
        ("left", 0, -1),
        ("left", 3, 1),
        ("feature", 0, 5),
        ("feature", 0, -1),
        ("column", 1, 3),
        ("root", 1, 0),
        ("root", 0, 1),
        ("value", 4, np.nan),
        ("threshold", 0, np.inf),
    ],
)
def test_broken_trees_are_refused_before_a_kernel_sees_them(name, place, value):
    _, forest = a_forest()
    broken = np.array(getattr(forest, name))
    broken[place] = value
    with pytest.raises(ValueError, match="tree"):
        Forest.from_arrays(arrays_of(forest, **{name: broken}), "t")


def test_trees_of_another_type_or_shape_are_refused():
    _, forest = a_forest()
    for changes in (
        {"left": forest.left.astype(np.int64)},
        {"value": forest.value[:, None]},
        {"root": forest.root[1:]},
    ):
        with pytest.raises(ValueError, match="trees"):
            Forest.from_arrays(arrays_of(forest, **changes), "t")


@pytest.fixture(scope="module")
def file_content(tmp_path_factory):
    _, policy = a_policy(leafy=2)
    return without_checksum(policy.save(tmp_path_factory.mktemp("whole") / "p.poem")).read_bytes()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_a_file_with_a_changed_byte_is_read_or_refused_and_never_crashes(tmp_path_factory, file_content, seed):
    rng, folder = np.random.default_rng(seed), tmp_path_factory.mktemp("flips")
    X, _ = a_policy(leafy=2)
    content = bytearray(file_content)
    content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
    (folder / "p.poem").write_bytes(bytes(content))
    try:
        found = poem.load_policy(folder / "p.poem")
        if found.n_features == 5:
            assert found.marginals(X).shape == (len(X), 3)
    except (PolicyFileError, InputError):
        pass


def test_neither_policy_needs_the_boosting_library(tmp_path):
    X, policy = a_policy()
    path = policy.save(tmp_path / "trees.poem")
    np.save(tmp_path / "X.npy", X)
    code = (
        "import sys, numpy as np, poem; sys.modules['lightgbm'] = None\n"
        f"p = poem.load_policy({str(path)!r}); p.predict(np.load({str(tmp_path / 'X.npy')!r}))\n"
        "print('fine')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "fine", done.stderr
