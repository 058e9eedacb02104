"""Raw columns → features: against scikit-learn's transformers, as data, and inside a policy."""

import copy
import json
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from earlier_policies import without_checksum
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import poem
from poem.data.features import HASH_SIZE, Encoding, Features, kinds
from poem.data.features.kinds import Bag, Hashed, Imputed, Missing, Numeric, OneHot, Sparse, Text, Vector
from poem.errors import InputError, LogError

CITIES = ["Ulm", "Bonn", None, "Ulm", "Köln"]
NOTES = ["a warm sunny day", "a cold day", None, "", "a Warm sunny day in Ulm"]


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def learnt(values, **options):
    """Return the recipe of one column, and its features."""
    table = pa.table({"x": values})
    features = Features.learn(table, Encoding(**options))
    return features, dense(features.transform(table))


def kind_of(values, **options):
    return learnt(values, **options)[0].kinds[0]


# ---- against scikit-learn -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        CITIES,
        pa.array(CITIES, pa.large_string()),
        pa.array(CITIES, pa.string_view()),
        pa.array(CITIES).dictionary_encode(),
        pa.array(CITIES).dictionary_encode().cast(pa.dictionary(pa.uint32(), pa.large_string())),
        pa.chunked_array([pa.array(CITIES[:2]).dictionary_encode(), pa.array(CITIES[2:]).dictionary_encode()]),
    ],
)
def test_strings_are_one_hot(values):
    features, X = learnt(values)
    assert features.kinds == (OneHot("x", ("Bonn", "Köln", "Ulm")), Missing("x"))
    assert features.names() == ("x=Bonn", "x=Köln", "x=Ulm", "x is missing")
    there = np.array([[city] for city in CITIES if city is not None], dtype=object)
    encoder = OneHotEncoder(handle_unknown="ignore").fit(there)
    expected = encoder.transform(np.array([[city] for city in CITIES], dtype=object)).toarray()
    np.testing.assert_array_equal(X, np.column_stack([expected, [0, 0, 1, 0, 0]]))


@pytest.mark.parametrize(
    ("values", "categories"),
    [
        ([3, 1, 3], ("1", "3")),
        ([3.0, 1.0, 3.0], ("1", "3")),
        ([0.5, 1.0, 1.0], ("0.5", "1")),
        ([True, False, True], ("false", "true")),
        ([1e300, 2e300, 1.0], ("1", "1e+300", "2e+300")),
        (pa.array(np.array([1.5, 2.0], dtype=np.float16)), ("1.5", "2")),
        ([2**53 + 1, 2**53, 2**53], ("9007199254740992", "9007199254740993")),
        ([3.0, float("nan"), 1.0], ("1", "3")),
    ],
)
def test_numbers_are_categories_on_request(values, categories):
    assert kind_of(values, one_hot=["x"]).categories == categories
    assert kind_of(values, one_hot="x").categories == categories


@pytest.mark.parametrize(
    "frame", [pd.DataFrame({"x": pd.Categorical([3, 1, 3])}), pa.table({"x": pa.array([3, 1, 3]).dictionary_encode()})]
)
def test_categories_of_numbers_are_one_hot(frame):
    features = Features.learn(frame)
    assert features.kinds == (OneHot("x", ("1", "3")),)
    np.testing.assert_array_equal(dense(features.transform(frame)), [[0, 1], [1, 0], [0, 1]])


def test_categories_that_no_row_has_are_no_features():
    frame = pd.DataFrame({"x": pd.Categorical(["a"], categories=["a", "never"])})
    assert Features.learn(frame).names() == ("x=a",)


def test_categories_are_hashed_on_request():
    features, X = learnt(CITIES, hashed=["x"], hash_size=8)
    assert features.kinds == (Hashed("x", 8), Missing("x"))
    words = [[] if city is None else [city] for city in CITIES]
    np.testing.assert_array_equal(X[:, :8], FeatureHasher(8, input_type="string").transform(words).toarray())


def test_many_categories_are_hashed():
    assert kind_of([f"item {i}" for i in range(1000)]).width == 1000
    assert kind_of([f"item {i}" for i in range(1001)]) == Hashed("x", HASH_SIZE)


def test_words_of_text_are_hashed():
    features, X = learnt(NOTES, text=["x"], hash_size=64)
    assert features.kinds == (Text("x", 64), Missing("x"))
    expected = HashingVectorizer(n_features=64).transform([note or "" for note in NOTES]).toarray()
    np.testing.assert_array_equal(X, np.column_stack([expected, [0, 0, 1, 0, 0]]))


def test_long_strings_are_text():
    assert kind_of(["the first of all notes", "and a second one of them"]) == Text("x", HASH_SIZE)
    assert isinstance(kind_of(["a single long category name"] * 3), OneHot)


def test_numbers_are_taken_as_they_are():
    features, X = learnt([1.5, -2.0, 1e300])
    assert features.kinds == (Numeric("x"),)
    assert X.tolist() == [[1.5], [-2.0], [1e300]]


@pytest.mark.parametrize("values", [[1.5, -2.0, 4.0], [3, 3, 3], [True, False, True]])
def test_numbers_are_scaled_on_request(values):
    features, X = learnt(values, scale=True)
    expected = StandardScaler().fit_transform(np.array(values, dtype=float)[:, None])
    np.testing.assert_array_equal(X, expected)
    assert str(features) == "x: numeric, scaled"


@pytest.mark.parametrize(
    "values",
    [
        pa.array([1, 2, 3], pa.uint64()),
        pa.array(np.array([1, 2, 3], dtype=np.float16)),
        pa.array([1, 2, 3], pa.decimal128(5, 2)),
        pa.array([1, 2, 3], pa.decimal256(60, 0)),
        pa.chunked_array([pa.array([1, 2]), pa.array([3])]),
        pa.RunEndEncodedArray.from_arrays(np.array([1, 2, 3], dtype=np.int32), pa.array([1.0, 2.0, 3.0])),
    ],
)
def test_numbers_of_any_type_are_numbers(values):
    assert learnt(values)[1].tolist() == [[1.0], [2.0], [3.0]]


# ---- lists ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float64()), pa.large_list(pa.int8()), pa.list_(pa.float32(), 2), pa.list_(pa.decimal128(5, 1))]
)
def test_lists_of_numbers_are_vectors(kind):
    features, X = learnt(pa.array([[1, 2], [3, 4]], kind))
    assert features.kinds == (Vector("x", 2),)
    assert features.names() == ("x[0]", "x[1]")
    assert X.tolist() == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.string()),
        pa.large_list(pa.string_view()),
        pa.list_(pa.dictionary(pa.int32(), pa.string())),
    ],
)
def test_lists_of_strings_are_bags(kind):
    features, X = learnt(pa.array([["b", "a", "b"], [], None, ["a", None]], kind))
    assert features.kinds == (Bag("x", "", ("a", "b")),)
    assert features.names() == ("x=a", "x=b")
    assert X.tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0], [1.0, 0.0]]


def test_names_with_values_beside_them_are_bags():
    table = pa.table({"f.name": [["b", "a"], ["a", "a"], []], "f.value": [[2.0, 0.5], [1.0, 3.0], []]})
    features = Features.learn(table)
    assert features.kinds == (Bag("f.name", "f.value", ("a", "b")),)
    assert (features.columns, features.names()) == (("f.name", "f.value"), ("a", "b"))
    assert dense(features.transform(table)).tolist() == [[0.5, 2.0], [4.0, 0.0], [0.0, 0.0]]


@pytest.mark.parametrize(
    ("index", "value"), [("f.index", "f.value"), ("f_index", "f_value"), ("f_indices", "f_values"), ("index", "value")]
)
@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.large_list(pa.uint8()), pa.list_(pa.uint64())])
def test_positions_with_values_beside_them_are_sparse_rows(index, value, kind):
    table = pa.table({index: pa.array([[2, 0], None, [1, 1]], kind), value: [[2.0, 0.5], None, [1.0, 3.0]]})
    features = Features.learn(table)
    assert features.kinds == (Sparse(index, value, 3),)
    assert features.names() is None
    assert dense(features.transform(table)).tolist() == [[0.5, 0.0, 2.0], [0.0, 0.0, 0.0], [0.0, 4.0, 0.0]]


def test_positions_that_were_not_seen_are_left_out():
    features = Features.learn(pa.table({"f.index": [[1]], "f.value": [[1.0]]}))
    new = pa.table({"f.index": [[0, 7], [9]], "f.value": [[2.0, 1.0], [1.0]]})
    assert dense(features.transform(new)).tolist() == [[2.0, 0.0], [0.0, 0.0]]


def test_lists_that_are_all_empty_are_no_features():
    table = pa.table({"f.index": pa.array([[], None]), "f.value": pa.array([[], None])})
    assert Features.learn(table).transform(table).shape == (2, 0)


def test_huge_positions_cost_nothing():
    table = pa.table({"x": [1.0], "f.index": [[2**31 - 3]], "f.value": [[1.0]]})
    features = Features.learn(table)
    assert features.width == 2**31 - 1
    assert features.names() is None
    assert features.transform(table).shape == (1, 2**31 - 1)


# ---- what was not seen, and what cannot be used ---------------------------------------------------------


def test_categories_that_were_not_seen_have_no_features():
    features, _ = learnt(CITIES)
    new = features.transform(pa.table({"x": ["Rom", "Ulm"]}))
    assert dense(new).tolist() == [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]]
    bag, _ = learnt([["a"], ["b"]])
    assert dense(bag.transform(pa.table({"x": [["c", "b"]]}))).tolist() == [[0.0, 1.0]]


def test_numbers_too_large_to_scale_are_refused():
    with pytest.raises(LogError, match="column 'x' has numbers too large to be scaled"):
        learnt([1e308, -1e308, 1e308], scale=True)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[1.0, 2.0], [3.0]], "row 1, column 'x' has a list of 1 numbers where 2 are expected"),
        ([[1.0, 2.0], []], "row 1, column 'x' has a list of 0 numbers where 2 are expected"),
        ([[1.0, 2.0], [3.0, float("-inf")]], "row 1, column 'x' is infinite (1 such value)"),
        ([[[1.0]]], "lists can hold numbers or strings"),
        ([date(2026, 1, 1)], "holds date32[day], which cannot be a feature"),
        ([b"a"], "holds binary, which cannot be a feature"),
    ],
)
def test_columns_that_cannot_be_features_are_named(values, message):
    with pytest.raises(LogError) as error:
        learnt(values)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("index", "value", "message"),
    [
        ([[0, 1]], [[1.0]], "row 0 has 2 entries in 'f.index' and 1 in 'f.value'"),
        ([[-1]], [[1.0]], "row 0, column 'f.index' has the position -1"),
        ([[2**31]], [[1.0]], "has the position 2147483648"),
        ([[0], [1, None]], [[1.0], [1.0, 2.0]], "row 1, column 'f.index' has a position that is missing (1 such"),
        ([[0.5]], [[1.0]], "should hold lists of whole numbers"),
        ([[0]], [["a"]], "should hold lists of numbers and holds list<"),
        ([[0]], [[None]], "row 0, column 'f.value' is empty or NaN"),
    ],
)
def test_sparse_rows_that_are_wrong_are_named(index, value, message):
    table = pa.table({"f.index": index, "f.value": value})
    with pytest.raises(LogError) as error:
        Features.learn(table).transform(table)
    assert message in str(error.value)


def test_wrong_arguments_are_named():
    table = pa.table({"city": ["Ulm"], "x": [1.0], "v": [[1.0]]})
    for size in (0, 2**31, "8"):
        with pytest.raises(InputError, match="hash_size must be a whole number from 1 to"):
            Features.learn(table, Encoding(hash_size=size))
    with pytest.raises(LogError, match=r"the context has no column 'citty'. Did you mean 'city'\?"):
        Features.learn(table, Encoding(one_hot=["citty"]))
    with pytest.raises(LogError, match="holds double, which is not text"):
        Features.learn(table, Encoding(text=["x"]))
    with pytest.raises(LogError, match="categories are strings or numbers"):
        Features.learn(table, Encoding(hashed=["v"]))


def test_a_column_that_is_there_twice_is_refused():
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["x", "x"])
    with pytest.raises(LogError, match="has the column 'x' twice"):
        Features((Numeric("x"),)).transform(table)


# ---- cost -----------------------------------------------------------------------------------------


def test_each_distinct_value_is_encoded_once(monkeypatch):
    encoded = []

    class Counting(FeatureHasher):
        def transform(self, raw):
            encoded.append(len(raw))
            return super().transform(raw)

    monkeypatch.setattr("sklearn.feature_extraction.FeatureHasher", Counting)
    rows = pa.array(np.arange(200_000) % 7).cast(pa.string())
    X = Features((Hashed("x", 32),)).transform(pa.table({"x": rows}))
    assert encoded == [7]
    assert X.nnz == 200_000


# ---- as data --------------------------------------------------------------------------------------

EVERY = Features(
    (
        Numeric("a", 0.5, 2.0),
        Imputed("i", fill=7.5),
        Missing("i"),
        Vector("b", 3, fill=0.0),
        OneHot("c", ("Bonn", "Ulm")),
        Hashed("d", 16),
        Text("e", 16),
        Sparse("f.index", "f.value", 9),
        Bag("g", "", ("k", "l")),
        Bag("h.name", "h.value", ("m",)),
    )
)


def test_a_recipe_is_plain_data():
    data = json.loads(json.dumps(EVERY.to_data()))
    assert Features.from_data(data) == EVERY
    assert Features.from_data(EVERY.to_data()) == EVERY
    assert [one["kind"] for one in data] == [kind.kind for kind in EVERY.kinds]
    assert EVERY.width == 1 + 1 + 1 + 3 + 2 + 16 + 16 + 9 + 2 + 1


def test_every_kind_is_told_in_words():
    assert str(EVERY).startswith(
        "a: numeric, scaled; i: numeric, 7.5 if missing; i: missing or not; b: vector (3); c: "
    )
    assert str(Features(())) == "none"
    assert set(kinds.KINDS) == {kind.kind for kind in EVERY.kinds}


HOSTILE = [
    None,
    7,
    "abc",
    {"kind": "numeric"},
    [None],
    [{}],
    [{"kind": "pickle", "column": "a"}],
    [{"kind": ["numeric"], "column": "a"}],
    [{"kind": "numeric"}],
    [{"kind": "numeric", "column": 3}],
    [{"kind": "numeric", "column": ["a"]}],
    [{"kind": "numeric", "column": "\ud800"}],
    [{"kind": "numeric", "column": "a", "more": 1}],
    [{"kind": "numeric", "column": "a", "mean": "0"}],
    [{"kind": "numeric", "column": "a", "mean": [0.0]}],
    [{"kind": "numeric", "column": "a", "mean": float("nan")}],
    [{"kind": "numeric", "column": "a", "scale": 0.0}],
    [{"kind": "numeric", "column": "a", "fill": float("inf")}],
    [{"kind": "numeric", "column": "a", "fill": 7}],
    [{"kind": "numeric", "column": "a", "fill": True}],
    [{"kind": "imputed", "column": "a"}],
    [{"kind": "imputed", "column": "a", "fill": None}],
    [{"kind": "missing", "column": "a", "fill": 1.0}],
    [{"kind": "vector", "column": "a", "size": 2, "fill": "0"}],
    [{"kind": "numeric", "column": "a", "scale": -1.0}],
    [{"kind": "numeric", "column": "a", "scale": float("inf")}],
    [{"kind": "vector", "column": "a", "size": -1}],
    [{"kind": "vector", "column": "a", "size": 1.5}],
    [{"kind": "vector", "column": "a", "size": True}],
    [{"kind": "vector", "column": "a", "size": 2**31}],
    [{"kind": "vector", "column": "a", "size": 2**31 - 1}] * 2,
    [{"kind": "hashed", "column": "a", "size": 0}],
    [{"kind": "text", "column": "a"}],
    [{"kind": "one-hot", "column": "a", "categories": "abc"}],
    [{"kind": "one-hot", "column": "a", "categories": [1]}],
    [{"kind": "one-hot", "column": "a", "categories": ["a", "a"]}],
    [{"kind": "one-hot", "column": "a", "categories": {"a": 1}}],
    [{"kind": "bag", "column": "a", "vocabulary": ["\udfff"]}],
    [{"kind": "bag", "column": "a", "value": None}],
    [{"kind": "sparse", "column": "a", "value": 1, "size": 2}],
]


@pytest.mark.parametrize("data", HOSTILE)
def test_data_that_no_recipe_gives_are_refused(data):
    with pytest.raises((ValueError, TypeError, KeyError)):
        Features.from_data(data)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.data())
def test_changed_data_are_refused_or_harmless(data):
    content = copy.deepcopy(json.loads(json.dumps(EVERY.to_data())))
    one = data.draw(st.sampled_from(content))
    one[data.draw(st.sampled_from([*one, "more"]))] = data.draw(VALUES)
    try:
        features = Features.from_data(content)
    except (ValueError, TypeError, KeyError):
        return
    with pytest.raises(LogError, match=r"the column .* is missing"):
        features.transform(pa.table({"none of these": [1.0]}))
    assert features.names() is None or len(features.names()) == features.width


# ---- in a policy ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def raw():
    rng = np.random.default_rng(0)
    n = 300
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "city": rng.choice(["Ulm", "Bonn", "Köln"], n),
            "note": rng.choice(["a rather long note of words", "quite another text than that"], n),
            "tags": [list(rng.choice(["k", "l", "m"], 2)) for _ in range(n)],
            "vector": [rng.normal(size=2).round(3).tolist() for _ in range(n)],
            "output": rng.choice(["news", "sport"], n),
            "loss": rng.random(n).round(3),
            "propensity": 0.5,
        }
    )


@pytest.fixture(scope="module")
def log(raw):
    return poem.read_log(raw, features=Encoding(scale=True, hash_size=32))


@pytest.fixture(scope="module")
def policy(log, tmp_path_factory):
    """A policy of random weights that was saved and loaded."""
    uniform = poem.uniform_policy(log)
    weights = np.random.default_rng(1).normal(size=uniform.weights.shape)
    return poem.load_policy(replace(uniform, weights=weights).save(tmp_path_factory.mktemp("policy") / "policy.poem"))


def shuffled(frame):
    """The same columns in another order, and one more."""
    return frame[list(frame.columns)[::-1]].assign(unknown="x")


@pytest.mark.parametrize(
    "form",
    [
        lambda frame: frame,
        shuffled,
        lambda frame: pl.from_pandas(shuffled(frame)),
        lambda frame: pa.Table.from_pandas(shuffled(frame)),
        lambda frame: frame.astype({"city": "category"}),
        lambda frame: pl.from_pandas(frame).with_columns(pl.col("city").cast(pl.Categorical)),
    ],
)
def test_a_policy_takes_raw_columns_in_any_order(raw, log, policy, form):
    np.testing.assert_array_equal(policy.marginals(form(raw)), policy.marginals(log.X[log.context]))
    np.testing.assert_array_equal(policy.predict(form(raw)), policy.predict(log.X))


def test_a_learnt_policy_keeps_its_recipe(log, raw, tmp_path):
    fitted = poem.fit(log, lam=0.0, selection=poem.Selection(validation=None, guard=False), n_jobs=1).policy
    again = poem.load_policy(fitted.save(tmp_path / "policy.poem"))
    assert again.features == log.features
    np.testing.assert_array_equal(again.marginals(raw), fitted.marginals(log.X))


def test_a_policy_takes_categories_that_it_never_saw(raw, policy):
    changed = raw.assign(city="Rom", tags=[["new"]] * len(raw))
    assert np.isfinite(policy.marginals(changed)).all()


def test_a_policy_misses_a_column_by_name(raw, policy):
    with pytest.raises(LogError, match=r"the column 'city' is missing. Did you mean 'City'\?.*raw columns"):
        policy.predict(raw.rename(columns={"city": "City"}))
    with pytest.raises(LogError, match=r"'age' is missing \(and 3 more\)"):
        policy.predict(raw[["city"]])


def test_a_policy_names_the_row_that_is_no_number(raw, policy):
    with pytest.raises(LogError, match=r"column 'age' should hold numbers and holds .*row 0: 'old'"):
        policy.predict(raw.assign(age="old"))
    with pytest.raises(LogError, match="row 2, column 'age' is infinite"):
        policy.predict(raw.assign(age=[1.0, 2.0, np.inf] * 100))


def test_a_policy_file_with_a_hostile_recipe_is_refused(policy, tmp_path):
    path = without_checksum(policy.save(tmp_path / "policy.poem"))
    content = path.read_bytes()
    # Of the same length, so that the rest of the file stays where it is.
    path.write_bytes(content.replace(b'\\"kind\\": \\"one-hot\\"', b'\\"kind\\": \\"one-hut\\"'))
    assert path.read_bytes() != content
    with pytest.raises(poem.errors.PolicyFileError, match="one-hut"):
        poem.load_policy(path)


def test_a_log_follows_the_recipe_of_a_policy(raw, log, policy):
    later = poem.read_log(raw.assign(city="Rom").iloc[::-1], features=policy.features, labels=policy.labels)
    assert later.feature_names == log.feature_names
    assert later.features == policy.features
    assert np.isfinite(policy.log_prob_of(later)).all()
