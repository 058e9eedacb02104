"""Values that are missing in features: when a recipe is learnt, when a policy decides, in actions and in files."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from offered_logs import CATALOGUE, offered_rows, only_ids, write_lines
from refusals import refuses
from shop_logs import COLUMNS, FIT, call, shop_table, write_table
from sklearn.tree import DecisionTreeRegressor

import poem
from poem.data.features import Encoding, Features
from poem.data.features.gaps import count_missing, missing_in
from poem.data.features.kinds import Imputed, Missing, Numeric, OneHot, Vector
from poem.errors import LogError, ReadError
from poem.health import inspect
from poem.health.finding import percent
from poem.policies import decide, read_log_for, uniform_policy
from poem.readers import empty_columns, log_of, note_on_gaps, read_raw

NAN = float("nan")
AGES = [30.0, None, 20.0, NAN, 50.0]


def dense(matrix):
    return matrix.toarray() if sp.issparse(matrix) else matrix


def learnt(values, **options):
    """Return the recipe of one column, and its features."""
    table = pa.table({"x": values})
    features = Features.learn(table, Encoding(**options))
    return features, dense(features.transform(table))


# ---- numbers --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        AGES,
        pa.array(AGES, pa.float32()),
        pa.array([None if age is None else np.float16(age) for age in AGES], pa.float16()),
        pa.array([30, None, 20, None, 50]),
        pa.array([30, None, 20, None, 50], pa.decimal128(5, 2)),
        pa.chunked_array([pa.array(AGES[:2]), pa.array(AGES[2:])]),
        pa.chunked_array([pa.array([30.0, NAN, 20.0]), pa.array([NAN, 50.0])]),
    ],
)
def test_the_median_stands_in_for_a_number_and_a_feature_says_where(values):
    features, X = learnt(values)
    assert features.kinds == (Imputed("x", fill=30.0), Missing("x"))
    assert features.names() == ("x", "x is missing")
    assert X.tolist() == [[30.0, 0.0], [30.0, 1.0], [20.0, 0.0], [30.0, 1.0], [50.0, 0.0]]


@pytest.mark.parametrize("library", [pd, pl, pa])
def test_data_frames_have_missing_values(library):
    frame = library.table({"x": AGES}) if library is pa else library.DataFrame({"x": AGES})
    np.testing.assert_array_equal(Features.learn(frame).transform(frame), learnt(AGES)[1])


def test_missing_booleans_are_the_commoner_value():
    assert learnt([True, None, True, False])[1].tolist() == [[1, 0], [1, 1], [1, 0], [0, 0]]


def test_scales_are_those_of_the_numbers_that_are_there():
    features, X = learnt([1.0, None, 3.0, NAN, 2.0, 6.0], scale=True)
    there = np.array([1.0, 3.0, 2.0, 6.0])
    assert features.kinds[0] == Imputed("x", there.mean(), there.std(), 2.0)
    np.testing.assert_allclose(X[[0, 2, 4, 5], 0], (there - there.mean()) / there.std(), rtol=1e-15)
    np.testing.assert_allclose(X[[1, 3], 0], (2.0 - there.mean()) / there.std(), rtol=1e-15)


@pytest.mark.parametrize("values", [[1.0, np.inf], [None, -np.inf, 1.0], [NAN, np.inf], [np.inf]])
@pytest.mark.parametrize("scale", [False, True])
def test_infinite_numbers_are_an_error(values, scale):
    with pytest.raises(LogError, match=r"row \d, column 'x' is infinite \(1 such value\).*Fill or drop"):
        learnt(values, scale=scale)


def test_huge_numbers_have_a_median():
    features, X = learnt([1.7e308, 1.6e308, None, 1.7e308])
    assert features.kinds[0].fill == 1.7e308
    assert np.isfinite(X).all()


def test_lists_and_their_numbers_may_be_missing():
    for kind in (pa.list_(pa.float64()), pa.list_(pa.float32(), 2), pa.large_list(pa.int8())):
        features, X = learnt(pa.array([None, [1, 2], [3, None]], kind))
        assert features.kinds == (Vector("x", 2), Missing("x"))
        assert X.tolist() == [[0.0, 0.0, 1.0], [1.0, 2.0, 0.0], [3.0, 0.0, 1.0]]


def test_a_tree_tells_missing_values_apart():
    """Whatever stands in for them: here their loss is that of no number near it."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=400)
    gaps = rng.random(400) < 0.2
    loss = np.where(gaps, 5.0, (values > 0) * 1.0)
    _, X = learnt(np.where(gaps, NAN, values))
    tree = DecisionTreeRegressor(max_depth=2, random_state=0).fit(X, loss)
    np.testing.assert_array_equal(tree.predict(X), loss)


# ---- categories and text ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        ["a", None, "b"],
        pa.array(["a", None, "b"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", None, "b"])),
        pa.chunked_array([pa.array(["a", None]).dictionary_encode(), pa.array(["b"]).dictionary_encode()]),
    ],
)
def test_a_missing_category_is_one_of_its_own(values):
    features, X = learnt(values)
    assert features.kinds == (OneHot("x", ("a", "b")), Missing("x"))
    assert X.tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    unknown = features.transform(pa.table({"x": ["new", None]}))
    assert dense(unknown).tolist() == [[0, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize("values", [pd.Categorical([2.5, None, 1.5]), pd.Categorical(["u", None, "v"])])
def test_categoricals_of_pandas_may_have_gaps(values):
    frame = pd.DataFrame({"x": values})
    features = Features.learn(frame)
    assert features.names()[-1] == "x is missing"
    assert dense(features.transform(frame))[:, -1].tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("options", [{"hashed": ["x"]}, {"text": ["x"]}, {"one_hot": ["x"]}])
def test_hashed_columns_and_text_say_where_they_are_missing(options):
    features, X = learnt(["one", None, "two"], hash_size=8, **options)
    assert X[:, -1].tolist() == [0.0, 1.0, 0.0]
    assert not X[1, :-1].any()
    assert dense(features.transform(pa.table({"x": pa.nulls(2)}))).sum(axis=1).tolist() == [1.0, 1.0]


def test_numbers_as_categories_may_be_missing():
    assert learnt([3, None, 1], one_hot=["x"])[1].tolist() == [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


# ---- columns without any value ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        pa.nulls(2),
        [NAN, None],
        pa.nulls(2, pa.string()),
        pa.nulls(2, pa.list_(pa.float64())),
        pa.nulls(2, pa.date32()),
        pa.nulls(2, pa.dictionary(pa.int8(), pa.string())),
    ],
)
def test_columns_without_any_value_are_left_out(values):
    for options in ({}, {"one_hot": ["x"]}, {"scale": True}):
        features, X = learnt(values, **options)
        assert features == Features(())
        assert X.shape == (2, 0)
    beside = pa.table({"x": values, "y": [1.0, 2.0]})
    assert Features.learn(beside).transform(pa.table({"y": [7.0]})).tolist() == [[7.0]]  # x is not asked for


# ---- when a policy decides --------------------------------------------------------------------------


def test_a_recipe_without_gaps_knows_what_stands_in_for_a_number():
    features, _ = learnt([1.0, 5.0, 2.0])
    assert features.kinds == (Numeric("x"),)
    later = pa.table({"x": [None, 7.0, NAN]})
    assert features.transform(later).tolist() == [[2.0], [7.0], [2.0]]
    assert features.unexpected_gaps(later) == {"x": 2}
    again = Features.from_data(json.loads(json.dumps(features.to_data())))
    assert again.transform(pa.table({"x": pa.nulls(1)})).tolist() == [[2.0]]


def test_what_is_usual_in_a_long_column_is_near_its_median():
    values = np.random.default_rng(0).normal(size=100_000) ** 3
    features, _ = learnt(values)
    assert abs(np.mean(values < features.kinds[0].fill) - 0.5) < 0.05


def test_logs_without_gaps_have_equal_recipes_and_logs_with_them_need_not():
    assert learnt([1.0, 2.0])[0] == learnt([3.0, 4.0])[0]
    assert learnt([1.0, None])[0] != learnt([3.0, None])[0]
    assert learnt([1.0, None, 1.0])[0] == learnt([1.0, None])[0]


def test_recipes_that_know_nothing_to_stand_in_are_written_as_before_and_refuse_gaps():
    before = [
        {"kind": "numeric", "column": "x", "mean": 0.0, "scale": 1.0},
        {"kind": "vector", "column": "v", "size": 1},
    ]
    features = Features.from_data(before)
    assert features.to_data() == before
    for gap in ({"x": [1.0, None], "v": [[1.0], [2.0]]}, {"x": [1.0, 1.0], "v": [[1.0], [None]]}):
        with pytest.raises(LogError, match=r"row 1, column '[xv]' is empty or NaN \(1 such value\)"):
            features.transform(pa.table(gap))


def test_gaps_that_features_do_not_tell_are_counted_by_column():
    table = pa.table({"x": [1.0, 2.0], "c": ["a", "b"], "v": [[1.0], [2.0]], "t": [["k"], []], "g": [1.0, None]})
    features = Features.learn(table)
    gaps = pa.table({"x": [None, NAN], "c": [None, "a"], "v": [[None], None], "t": [None, None], "g": [None, None]})
    assert features.unexpected_gaps(gaps) == {"x": 2, "v": 2, "c": 1}
    assert features.unexpected_gaps(table) == {}
    X = dense(features.transform(gaps))
    assert np.isfinite(X).all()


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    n = 300
    age = np.where(rng.random(n) < 0.1, np.nan, rng.integers(18, 80, n))
    city = pd.Series(rng.choice(["Ulm", "Bonn"], n)).where(rng.random(n) > 0.1, None)
    shown = {"output": rng.choice(["news", "sport"], n), "loss": rng.random(n).round(3), "propensity": 0.5}
    return pd.DataFrame({"age": age, "income": rng.normal(size=n), "city": city, "none": [None] * n, **shown})


@pytest.fixture(scope="module")
def policy(frame, tmp_path_factory):
    """A policy of random weights that was saved and loaded."""
    uniform = uniform_policy(poem.read_log(frame))
    weights = np.random.default_rng(1).normal(size=uniform.weights.shape)
    return poem.load_policy(replace(uniform, weights=weights).save(tmp_path_factory.mktemp("policy") / "policy.poem"))


def test_a_policy_takes_gaps_in_any_column(frame, policy):
    assert policy.feature_names == ("age", "age is missing", "income", "city=Bonn", "city=Ulm", "city is missing")
    later = frame[["age", "income", "city"]].assign(income=np.nan, city=None)  # no policy asks for what was left out
    assert np.isfinite(policy.marginals(later)).all()
    one = later.iloc[:1]
    np.testing.assert_array_equal(policy.marginals(one), policy.marginals(later)[:1])
    usual = frame.assign(income=policy.features.kinds[2].fill)
    np.testing.assert_array_equal(policy.marginals(usual), policy.marginals(frame.assign(income=np.nan)))
    assert decide(policy, later).num_rows == len(later)


def test_a_log_is_read_for_a_policy_with_gaps_that_its_own_log_had_not(frame, policy):
    later = frame.assign(income=[None, *frame["income"][1:]])
    log = read_log_for(policy, later)
    assert log.features == policy.features
    assert np.isfinite(policy.log_prob_of(log)).all()
    note = note_on_gaps(read_raw(later), policy.features, None)
    assert note.startswith("values are missing for which the policy has no feature: 'income' in 1 row. The column's")
    assert note_on_gaps(read_raw(frame), policy.features, None) is None


def test_a_policy_that_knows_names_alone_refuses_gaps(frame):
    numbers = frame[["age", "income"]].fillna(0.0)
    log = poem.BanditLog(numbers, frame["output"], loss=frame["loss"], propensity=frame["propensity"])
    with refuses(LogError, "X must be finite", "Impute or drop"):
        uniform_policy(log).predict(frame[["age", "income"]])


# ---- logs and files ---------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["", "NA", "nan", "NaN", "null", "N/A"])
def test_csv_says_in_many_ways_that_a_number_is_missing(tmp_path, word):
    lines = ["x,c,output,loss,propensity", f"1,{word},u,0,0.5", f"{word},k,v,1,0.5", "3,k,v,1,0.5"]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    log = poem.read_log(tmp_path / "log.csv")
    assert log.X[:, [0, 1]].toarray().tolist() == [[1.0, 0.0], [1.0, 1.0], [3.0, 0.0]]
    # Of strings, an empty one alone is missing: NA may be Namibia.
    assert log.feature_names[2:] == (("c=k", "c is missing") if word == "" else (*sorted([f"c={word}", "c=k"]),))


def test_every_format_has_the_same_gaps(frame, tmp_path):
    there = frame.drop(columns="none")
    expected = poem.read_log(there)
    for suffix in (".csv", ".parquet"):
        assert poem.read_log(write_table(there, tmp_path / f"log{suffix}")).fingerprint() == expected.fingerprint()
    rows = [{name: value for name, value in row.items() if value == value} for row in there.to_dict("records")]
    assert poem.read_log(write_lines(tmp_path / "log.jsonl", rows)).fingerprint() == expected.fingerprint()


def test_the_native_file_keeps_a_log_with_gaps(frame, tmp_path):
    log = poem.read_log(frame)
    again = poem.read_log(poem.write_log(log, tmp_path / "log.parquet"))
    assert (again.fingerprint(), again.features) == (log.fingerprint(), log.features)
    broken = pq.read_table(tmp_path / "log.parquet")
    values = broken.column("features.value").to_pylist()
    values[3][0] = None
    place = broken.column_names.index("features.value")
    pq.write_table(broken.set_column(place, "features.value", pa.array(values)), tmp_path / "broken.parquet")
    with refuses(ReadError, "row 3, column 'features.value' is empty or NaN"):
        poem.read_log(tmp_path / "broken.parquet")


@pytest.mark.parametrize("column", ["loss", "propensity", "output"])
def test_what_is_no_feature_must_be_there(frame, column):
    with refuses(ReadError, "row 2", f"column '{column}'", "empty"):
        poem.read_log(frame.assign(**{column: [*frame[column][:2], None, *frame[column][3:]]}))


# ---- actions ----------------------------------------------------------------------------------------


def with_gaps(rows):
    """Candidates of which each third has no price, and each fourth no kind; none has a size."""
    found = []
    for at, row in enumerate(rows):
        described = []
        for number, one in enumerate(row["candidates"], at):
            gaps = {name: None for name, step in (("price", 3), ("kind", 4), ("size", 1)) if number % step == 0}
            described.append(one | gaps)
        found.append(row | {"candidates": described})
    return found


def test_candidates_have_missing_values(tmp_path):
    rows = offered_rows(60)
    log = poem.read_log(write_lines(tmp_path / "log.jsonl", with_gaps(rows)))
    assert log.action_names == ("price", "price is missing", "kind=new", "kind=old", "kind is missing")
    prices = [one["price"] for row in with_gaps(rows) for one in row["candidates"]]
    found = log.available.features.toarray()
    assert found[:, 1].tolist() == [float(price is None) for price in prices]
    usual = sorted(price for price in prices if price is not None)
    assert set(found[found[:, 1] == 1.0, 0]) == {usual[(len(usual) - 1) // 2]}


def test_a_policy_decides_among_candidates_with_gaps():
    rows = offered_rows(60)
    policy = uniform_policy(poem.read_log(pa.Table.from_pylist(rows)))
    later = pa.Table.from_pylist(with_gaps(rows))
    assert decide(policy, later).num_rows == 60
    assert len(read_log_for(policy, later)) == 60
    note = note_on_gaps(read_raw(later), policy.features, policy.action_features)
    assert "'candidates.price' in " in note
    assert "'candidates.kind' in " in note


def test_a_catalogue_has_missing_values():
    weights = pa.array([None, NAN, *np.arange(7.0)])
    catalogue = CATALOGUE.set_column(1, "weight", weights).append_column("size", pa.nulls(9))
    table = pa.Table.from_pylist(only_ids(offered_rows(40)))
    log = poem.read_log(table, actions=catalogue)
    assert log.action_names == ("weight", "weight is missing", "kind=new", "kind=old")
    raw = read_raw(table, actions=catalogue)
    assert empty_columns(raw) == ["candidates.size"]
    health, checked = inspect(raw), inspect(log_of(raw))
    assert "'candidates.weight' in 22%" in health.of("missing values").text
    assert "'candidates.size'" in health.of("empty columns").text
    assert health.of("missing values").value == checked.of("missing values").value == 1.0


# ---- inspect ----------------------------------------------------------------------------------------


def test_inspect_names_the_columns_with_the_most_gaps(frame):
    health = inspect(read_raw(frame))
    shares = frame[["age", "city"]].isna().mean()
    finding = health.of("missing values")
    assert (finding.value, finding.verdict) == (2.0, "fit")
    worst, other = shares.sort_values(ascending=False).index
    assert finding.text.startswith(f"values are missing in 2 columns: '{worst}' in {percent(shares[worst])}")
    assert f"'{other}' in" in finding.text
    assert health.of("empty columns").text == "1 column is empty in all rows and left out: 'none'"
    assert health.of("constant features") is None
    assert health.of("rows").value == len(frame)
    checked = inspect(poem.read_log(frame))
    assert checked.of("missing values").text == finding.text
    assert inspect(read_raw(frame.drop(columns="none").dropna())).of("missing values") is None


def test_inspect_leaves_out_rows_with_an_infinite_number_only(frame):
    health = inspect(read_raw(frame.assign(income=[np.inf, None, *frame["income"][2:]])))
    assert health.of("broken contexts").value == 1
    assert health.of("rows").value == len(frame) - 1
    known = Features((Numeric("income"),))  # which knows nothing to stand in for a number
    health = inspect(read_raw(frame.assign(income=[None, None, *frame["income"][2:]])), features=known)
    assert health.of("broken contexts").value == 2
    assert health.of("rows").value == len(frame) - 2


def test_inspect_leaves_out_sparse_rows_with_gaps(frame):
    n = len(frame)
    values = [[1.0, None] if row == 5 else [1.0, 2.0] for row in range(n)]
    lists = frame.assign(**{"f.index": [[row % 7, 9] for row in range(n)], "f.value": values, "v": [[None, 1.0]] * n})
    health = inspect(read_raw(lists))
    assert health.of("broken contexts").value == 1
    assert "'f.value'" in health.of("broken contexts").text
    assert "'v' in 100%" in health.of("missing values").text


@pytest.mark.parametrize(
    "values",
    [
        pd.Categorical(["a", "b", None] * 100),
        pd.Categorical(["a", "b", "c"] * 100),
        pd.Categorical([1, 2, None] * 100),
        pd.Categorical([0.5, 2.0, None] * 100),
        pd.Categorical([True, False, None] * 100),
        pd.Categorical([None] * 300, categories=["a"]),
    ],
)
def test_inspect_takes_categories(frame, values, tmp_path):
    with_category = frame.assign(kind=values, same=pd.Categorical(["x"] * 300), id=pd.Categorical(map(str, range(300))))
    with_category.to_parquet(tmp_path / "log.parquet")
    health = inspect(read_raw(tmp_path / "log.parquet"))
    assert health.of("readable") is None
    assert "'same'" in health.of("constant features").text
    assert "'id'" in health.of("ids").text
    share = pd.isna(values).mean()
    assert ("'kind' in 33%" in health.of("missing values").text) == (0 < share < 1)
    assert ("'kind'" in health.of("empty columns").text) == (share == 1)


# ---- commands ---------------------------------------------------------------------------------------


def test_training_says_which_numbers_are_text(tmp_path, capsys):
    table = _shop_with_gaps(190, 0).assign(size=[str(row % 5) for row in range(190)])
    table.to_parquet(tmp_path / "log.parquet")
    named = ("train", tmp_path / "log.parquet", "-o", tmp_path / "policy.poem", *FIT, *COLUMNS, "--no-certificate")
    call(*named)
    err = capsys.readouterr().err
    assert "numbers that are stored as text become categories: 'size'" in err
    assert "name them as categories (--one-hot)" in err
    call(*named, "--one-hot", "size")
    assert "stored as text" not in capsys.readouterr().err


def test_training_says_which_words_stand_among_numbers(tmp_path, capsys):
    table = _shop_with_gaps(190, 0).assign(size=["unknown" if row == 5 else str(row % 50) for row in range(190)])
    table.to_csv(tmp_path / "log.csv", index=False)
    named = ("train", tmp_path / "log.csv", "-o", tmp_path / "policy.poem", *FIT, *COLUMNS, "--no-certificate")
    call(*named)
    err = capsys.readouterr().err
    assert "note: words turn a column of numbers into categories: 'size' ('unknown'). Leave" in err
    call(*named, "--one-hot", "size")
    assert "note: words" not in capsys.readouterr().err


def test_training_says_what_looks_like_a_time_or_an_id(tmp_path, capsys):
    seconds, visit = 1_700_000_000 + 60 * np.arange(190), [f"v{row}" for row in range(190)]
    table = _shop_with_gaps(190, 0).assign(ts=seconds, visit=visit)
    log = write_table(table.drop(columns="when"), tmp_path / "log.csv")
    names = [*COLUMNS[: COLUMNS.index("--time")], "--no-certificate"]
    call("train", log, "-o", tmp_path / "policy.poem", *FIT, *names)
    err = capsys.readouterr().err
    assert "note: 1 column looks like a time: 'ts'. Name the time (--time)" in err
    assert "note: 1 column looks like an id, different in each row: 'visit'." in err
    call("train", log, "-o", tmp_path / "policy.poem", *FIT, *names, "--time", "ts", "--ignore", "visit")
    assert "looks like" not in capsys.readouterr().err


def test_a_shop_with_empty_cells_from_log_to_decisions(tmp_path, capsys):
    """Age decides what sells; where it is missing, the same article does."""
    table, later = (_shop_with_gaps(rows, seed) for rows, seed in ((600, 0), (300, 1)))
    log = write_table(table.assign(fax=""), tmp_path / "log.csv")
    assert call("inspect", log, *COLUMNS) == 0
    assert "values are missing in 2 columns: 'age' in 2" in capsys.readouterr().out
    policy = tmp_path / "policy.poem"
    assert call("train", log, "-o", policy, *FIT, *COLUMNS) == 0
    err = capsys.readouterr().err
    assert "age: numeric, 0.5 if missing; age: missing or not" in err
    assert "left out, as they are empty in all rows: 'fax'" in err
    assert "no feature" not in err
    assert call("evaluate", policy, write_table(later, tmp_path / "later.csv")) == 0
    assert "no feature" not in capsys.readouterr().err
    contexts = write_table(later[["city", "age"]], tmp_path / "contexts.csv")
    assert call("predict", policy, contexts, "-o", tmp_path / "decisions.csv") == 0
    decisions = pd.read_csv(tmp_path / "decisions.csv")
    assert (decisions.loc[decisions["age"].isna(), "item"] == "tea").mean() > 0.9
    one = write_table(later[["city", "age"]].iloc[:1].assign(age=np.nan), tmp_path / "one.csv")
    assert call("predict", policy, one) == 0


def _shop_with_gaps(rows, seed):
    table = shop_table(rows, seed)
    rng = np.random.default_rng(100 + seed)
    gap = rng.random(rows) < 0.25
    table["click"] = np.where(gap, table["item"] == "tea", table["click"]).astype(int)
    return table.assign(age=table["age"].where(~gap), city=table["city"].where(rng.random(rows) > 0.05))


def test_commands_say_which_values_are_missing_that_the_log_had(shop, tmp_path, capsys):
    gaps = shop_table(50, 4).assign(age=[np.nan] * 3 + [0.5] * 47)
    contexts = write_table(gaps[["city", "age"]], tmp_path / "contexts.csv")
    for command in (
        ("predict", shop.policy, contexts, "-o", tmp_path / "new.csv"),
        ("evaluate", shop.policy, write_table(gaps, tmp_path / "log.csv"), "--estimators", "SNIPS"),
        ("convert", tmp_path / "log.csv", tmp_path / "log.parquet", *COLUMNS),
    ):
        assert call(*command) in (0, 1)
        err = capsys.readouterr().err
        assert ("for which the policy has no feature: 'age' in 3 rows" in err) == (command[0] != "convert")
        assert call(*command, "--quiet") in (0, 1)
        assert "missing" not in capsys.readouterr().err


# ---- laws -------------------------------------------------------------------------------------------

COLUMN = st.lists(
    st.none() | st.just(NAN) | st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3)),
    min_size=1,
    max_size=30,
)


@settings(max_examples=200, deadline=None, derandomize=True, database=None)
@given(COLUMN, COLUMN, st.booleans(), st.randoms(use_true_random=False))
def test_laws_of_numbers_with_gaps(values, later, scale, random):
    table = pa.table({"x": pa.array(values, pa.float64())})
    gaps = np.array([value is None or value != value for value in values])
    np.testing.assert_array_equal(missing_in(table.column("x")), gaps)
    assert count_missing(table.column("x")) == gaps.sum()
    features = Features.learn(table, Encoding(scale=scale))
    if gaps.all():
        assert features == Features(())
        return
    assert features.width == 1 + gaps.any()
    X = features.transform(table)
    assert np.isfinite(X).all()
    if gaps.any():
        np.testing.assert_array_equal(X[:, 1], gaps)
    kind = features.kinds[0]
    there = sorted(value for value, gap in zip(values, gaps, strict=True) if not gap)
    assert kind.fill == there[(len(there) - 1) // 2]
    raw = np.array([kind.fill if gap else value for value, gap in zip(values, gaps, strict=True)])
    np.testing.assert_allclose(X[:, 0] * kind.scale + kind.mean, raw, atol=1e-6)
    again = Features.from_data(json.loads(json.dumps(features.to_data())))
    assert (again, again.kinds[0].fill) == (features, kind.fill)
    other = pa.table({"x": pa.array(later, pa.float64())})
    served = again.transform(other)
    assert np.isfinite(served).all()
    np.testing.assert_array_equal(np.vstack([again.transform(other.slice(i, 1)) for i in range(len(later))]), served)
    assert sum(features.unexpected_gaps(other).values()) == (0 if gaps.any() else count_missing(other.column("x")))
    order = random.sample(range(len(values)), len(values))
    shuffled = Features.learn(table.take(order), Encoding(scale=False))
    assert scale or shuffled == features  # whatever the order of the rows
