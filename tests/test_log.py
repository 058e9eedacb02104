import copy
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import poem
from poem import BanditLog
from poem.compute.matrix import is_sparse
from poem.errors import InputError

FIELDS = ("y", "loss", "log_propensity", "context")
NAMES = ("height", "weight", "größe")


def dense(log):
    return log.X.toarray() if is_sparse(log.X) else np.asarray(log.X)


def assert_same_log(one, two):
    assert is_sparse(one.X) == is_sparse(two.X)
    np.testing.assert_array_equal(dense(one), dense(two))
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
        assert getattr(one, name).dtype == getattr(two, name).dtype
    assert (one.group is None) == (two.group is None)
    if one.group is not None:
        np.testing.assert_array_equal(one.group, two.group)
    assert one.labels == two.labels
    assert one.feature_names == two.feature_names


def row_tuples(log):
    """Everything that belongs to a row, in an order that does not depend on where the row stands."""
    parts = [dense(log)[log.context], np.atleast_2d(log.y.T).T, log.loss[:, None], log.log_propensity[:, None]]
    if log.group is not None:
        parts.append(log.group[:, None])
    return sorted(map(tuple, np.hstack(parts).tolist()))


def frame_of(kind, columns):
    if kind == "pandas":
        return pd.DataFrame(columns)
    return pl.DataFrame(columns) if kind == "polars" else pa.table(columns)


frame_kinds = pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])


# ---- construction -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, np.ndarray.tolist, lambda X: X.astype(np.float32)])
def test_dense_contexts_become_c_ordered_float64(rows, make_log, form):
    log = make_log(X=form(rows.X))
    np.testing.assert_allclose(log.X, rows.X, rtol=1e-6)
    assert log.X.dtype == np.float64
    assert log.X.flags.c_contiguous
    assert log.feature_names is None


@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.csc_array, sp.coo_array])
def test_sparse_contexts_become_canonical_csr(rows, make_log, form):
    X = np.where(rows.X > 0.5, rows.X, 0.0)
    log = make_log(X=form(X))
    assert log.X.format == "csr"
    assert log.X.has_canonical_format
    assert log.X.dtype == np.float64
    assert log.X.indices.dtype == np.int32
    assert log.X.indptr.dtype == np.int32
    np.testing.assert_array_equal(log.X.toarray(), X)


def test_duplicate_entries_of_a_sparse_matrix_are_added_up(make_log):
    rows_, columns = np.repeat(np.arange(40), 2), np.zeros(80, dtype=int)
    log = make_log(X=sp.coo_array((np.ones(80), (rows_, columns)), shape=(40, 3)))
    assert log.X.nnz == 40
    assert log.X[5, 0] == 2.0


@frame_kinds
def test_a_frame_keeps_its_feature_names(rows, make_log, kind):
    log = make_log(X=frame_of(kind, dict(zip(NAMES, rows.X.T, strict=True))))
    assert log.feature_names == NAMES
    np.testing.assert_array_equal(log.X, rows.X)


@frame_kinds
def test_whole_numbers_and_booleans_of_a_frame_become_floats(make_log, kind):
    log = make_log(X=frame_of(kind, {"count": np.arange(40), "flag": np.arange(40) % 2 == 1}))
    assert log.X.dtype == np.float64
    np.testing.assert_array_equal(log.X[:3], [[0, 0], [1, 1], [2, 0]])


def test_the_index_of_a_pandas_frame_is_not_a_feature(rows, make_log):
    shuffled = pd.DataFrame(rows.X, columns=list(NAMES)).sample(frac=1.0, random_state=0)
    log = make_log(X=shuffled)
    assert log.feature_names == NAMES
    np.testing.assert_array_equal(log.X, shuffled.to_numpy())


def test_a_pandas_frame_with_a_named_index_of_strings_is_fine(rows, make_log):
    frame = pd.DataFrame(rows.X, columns=list(NAMES)).set_index(pd.Index([f"r{i}" for i in range(40)], name="id"))
    assert make_log(X=frame).feature_names == NAMES


def test_feature_names_can_be_given_for_an_array(make_log):
    assert make_log(feature_names=list(NAMES)).feature_names == NAMES


def test_a_frame_is_put_into_the_order_of_given_feature_names(rows, make_log):
    frame = pd.DataFrame(rows.X, columns=list(NAMES))
    log = make_log(X=frame, feature_names=NAMES[::-1])
    assert log.feature_names == NAMES[::-1]
    np.testing.assert_array_equal(log.X, rows.X[:, ::-1])


@frame_kinds
def test_label_columns_of_a_frame_keep_their_names(rows, make_log, kind):
    log = make_log(y=frame_of(kind, {"sport": rows.labels[:, 0], "news": rows.labels[:, 1]}))
    assert log.labels == ("sport", "news")
    np.testing.assert_array_equal(log.y, rows.labels)


def test_label_sets_may_be_sparse_or_boolean(rows, make_log):
    for form in (sp.csr_array, lambda y: y.astype(bool), lambda y: y.astype(float)):
        log = make_log(y=form(rows.labels))
        assert log.y.dtype == np.uint8
        assert log.labels == (0, 1)
        np.testing.assert_array_equal(log.y, rows.labels)


@pytest.mark.parametrize("form", [np.array, list, pd.Series, pl.Series, pd.Categorical, pa.array])
def test_classes_may_be_strings(make_log, form):
    log = make_log(y=form(["dog", "cat"] * 20))
    assert log.labels == ("cat", "dog")
    assert log.y.tolist() == [1, 0] * 20


def test_labels_may_name_classes_that_do_not_occur(rows, make_log):
    log = make_log(labels=[9, 2, 1, 0])
    assert log.labels == (9, 2, 1, 0)
    np.testing.assert_array_equal(np.asarray(log.labels)[log.y], rows.y)
    assert not np.any(log.y == 0)


def test_labels_may_name_the_label_columns(rows, make_log):
    assert make_log(y=rows.labels, labels=["sport", "news"]).labels == ("sport", "news")


def test_a_reward_is_negated_once(rows, make_log):
    log = make_log(loss=None, reward=rows.loss)
    np.testing.assert_array_equal(log.loss, -rows.loss)
    np.testing.assert_array_equal(log.take(np.arange(5)).loss, -rows.loss[:5])


def test_log_propensity_is_the_logarithm_of_propensity(rows, make_log):
    logs = np.log(rows.propensity)
    np.testing.assert_array_equal(make_log().log_propensity, logs)
    np.testing.assert_array_equal(make_log(propensity=None, log_propensity=logs).log_propensity, logs)


def test_a_log_propensity_far_below_the_smallest_float_is_fine(make_log):
    log = make_log(propensity=None, log_propensity=np.full(40, -2000.0))
    assert np.all(log.log_propensity == -2000.0)


def test_rounding_above_one_is_forgiven(make_log):
    assert np.all(make_log(propensity=np.full(40, 1.0 + 1e-12)).log_propensity == 0.0)


def test_context_says_which_stored_context_was_seen(rows, make_log):
    seen = np.arange(40) % 4
    log = make_log(X=rows.X[:4], context=seen.astype(np.int16))
    assert (len(log), log.n_contexts, log.n_features) == (40, 4, 3)
    assert log.context.dtype == np.int64
    np.testing.assert_array_equal(log.context, seen)


def test_without_context_each_row_has_its_own(make_log):
    np.testing.assert_array_equal(make_log().context, np.arange(40))


def test_per_row_columns_may_come_from_frames(rows, make_log):
    frame = pd.DataFrame({"loss": rows.loss, "p": rows.propensity, "who": rows.group}).sample(frac=1, random_state=1)
    log = make_log(loss=frame["loss"], propensity=frame["p"], group=frame["who"])
    np.testing.assert_array_equal(log.loss, frame["loss"].to_numpy())
    np.testing.assert_array_equal(log.group, frame["who"].to_numpy())


# ---- immutability -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", BanditLog.__slots__)
def test_attributes_cannot_be_set(make_log, name):
    log = make_log()
    with pytest.raises(AttributeError, match="never changes"):
        setattr(log, name, None)


def test_attributes_cannot_be_deleted(make_log):
    log = make_log()
    with pytest.raises(AttributeError):
        del log.loss
    assert len(log) == 40


def test_attributes_cannot_be_added(make_log):
    with pytest.raises(AttributeError):
        make_log().colour = "red"


def arrays_of(log):
    matrix = [log.X.data, log.X.indices, log.X.indptr] if is_sparse(log.X) else [log.X]
    return [*matrix, *(getattr(log, name) for name in FIELDS), *([] if log.group is None else [log.group])]


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize(
    "made_by",
    [
        lambda log: log,
        lambda log: log.take(np.arange(7)),
        lambda log: log.split(0.5, 0)[0],
        lambda log: next(log.shards(2)),
        lambda log: BanditLog.concat([log, log]),
        lambda log: BanditLog.concat(list(log.shards(2))),
        lambda log: log.deduplicated(),
        lambda log: pickle.loads(pickle.dumps(log)),
        copy.copy,
        copy.deepcopy,
    ],
    ids=["new", "take", "split", "shards", "concat", "concat shards", "deduplicated", "pickle", "copy", "deepcopy"],
)
def test_arrays_cannot_be_written_to(rows, make_log, form, made_by):
    X = np.vstack([rows.X[:20], rows.X[:20]])
    log = made_by(make_log(X=form(X), group=rows.group))
    assert not any(array.flags.writeable for array in arrays_of(log))


# ---- take, split, shards, concat, deduplicated --------------------------------------------------


def test_take_accepts_positions_masks_and_repeats(rows, make_log):
    log = make_log(group=rows.group)
    positions = np.array([3, 1, 1, 39])
    np.testing.assert_array_equal(log.take(positions).loss, rows.loss[positions])
    np.testing.assert_array_equal(log.take(positions).group, rows.group[positions])
    np.testing.assert_array_equal(log.take(rows.loss > 0.5).y, rows.y[rows.loss > 0.5])
    assert log.take([2]).X is log.X


def test_taking_nothing_is_an_error(make_log):
    with pytest.raises(poem.PoemError, match="empty"):
        make_log().take(np.zeros(40, dtype=bool))


def test_a_mask_of_the_wrong_length_is_an_error(make_log):
    with pytest.raises((poem.PoemError, IndexError)):
        make_log().take(np.ones(5, dtype=bool))


@pytest.mark.parametrize("fraction", [0.01, 0.25, 0.5, 0.99])
def test_split_holds_out_the_fraction_of_rows(make_log, fraction):
    log = make_log()
    rest, held = log.split(fraction, 0)
    assert len(held) == min(max(1, round(40 * fraction)), 39)
    assert sorted(row_tuples(rest) + row_tuples(held)) == row_tuples(log)


def test_split_never_cuts_a_group(rows, make_log):
    log = make_log(group=np.array([f"user {g}" for g in rows.group]))
    for seed in range(5):
        rest, held = log.split(0.3, seed)
        assert set(rest.group).isdisjoint(held.group)
        assert len(set(held.group)) == 3
        assert len(rest) + len(held) == 40


def test_split_by_row_ignores_groups(rows, make_log):
    rest, held = make_log(group=rows.group).split(0.25, 0, by="row")
    assert len(held) == 10
    assert set(rest.group) & set(held.group)


def test_split_by_unit_never_cuts_a_group_or_else_a_context(rows, make_log):
    contexts = make_log(X=rows.X[:8], context=np.arange(40) % 8)
    rest, held = contexts.split(0.25, 0, by="unit")
    assert set(rest.context).isdisjoint(held.context)
    assert len(held) == 10
    rest, held = contexts.replaced(group=rows.group).split(0.3, 0, by="unit")
    assert set(rest.group).isdisjoint(held.group)
    assert len(held) == 12


def test_split_repeats_itself_for_the_same_seed(make_log):
    log = make_log()
    np.testing.assert_array_equal(log.split(0.5, 3)[1].context, log.split(0.5, 3)[1].context)
    generator = np.random.default_rng(3)
    np.testing.assert_array_equal(log.split(0.5, 3)[1].context, log.split(0.5, generator)[1].context)
    assert not np.array_equal(log.split(0.5, 3)[1].context, log.split(0.5, 4)[1].context)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.1, 1.5, float("nan")])
def test_split_wants_a_fraction_between_0_and_1(make_log, fraction):
    with pytest.raises(poem.PoemError, match=f"between 0 and 1; found {fraction}. Use"):
        make_log().split(fraction, 0)


def test_split_by_group_needs_groups(make_log):
    with pytest.raises(poem.PoemError, match="needs a log with group="):
        make_log().split(0.5, 0, by="group")
    with pytest.raises(poem.PoemError, match="'row', 'group' or 'unit'; found 'user'"):
        make_log().split(0.5, 0, by="user")


def test_one_group_cannot_be_split(make_log):
    with pytest.raises(poem.PoemError, match="cannot split"):
        make_log(group=np.zeros(40)).split(0.5, 0)


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("count", [1, 2, 3, 7, 11, 12, 100])
def test_shards_hold_every_row_once(rows, make_log, form, count):
    # Contexts 0, 5 and 11 are never seen; the others unequally often.
    seen = np.random.default_rng(0).choice([1, 2, 3, 4, 6, 7, 8, 9, 10, 1, 1, 1], 40)
    log = make_log(X=form(rows.X[:12]), context=seen, group=rows.group)
    shards = list(log.shards(count))
    assert 1 <= len(shards) <= count
    assert sum(shard.n_contexts for shard in shards) <= 12
    assert sorted(row for shard in shards for row in row_tuples(shard)) == row_tuples(log)


@pytest.mark.parametrize("count", [0, -1])
def test_shards_never_drop_rows_silently(make_log, count):
    with pytest.raises(poem.PoemError):
        list(make_log().shards(count))


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_concat_undoes_shards(rows, make_log, form, kind):
    y = rows.y if kind == "classes" else rows.labels
    log = make_log(X=form(rows.X[:12]), y=y, context=np.arange(40) % 12, group=rows.group, feature_names=NAMES)
    joined = BanditLog.concat(list(log.shards(5)))
    assert row_tuples(joined) == row_tuples(log)
    assert joined.n_contexts == log.n_contexts
    assert is_sparse(joined.X) == is_sparse(log.X)
    assert (joined.labels, joined.feature_names) == (log.labels, log.feature_names)


def test_concat_of_parts_of_one_log_shares_contexts(make_log):
    log = make_log()
    rest, held = log.split(0.25, 0)
    joined = BanditLog.concat([rest, held])
    assert joined.X is log.X
    assert row_tuples(joined) == row_tuples(log)


def test_concat_joins_dense_and_sparse(rows, make_log):
    joined = BanditLog.concat([make_log(), make_log(X=sp.csr_array(rows.X))])
    assert is_sparse(joined.X)
    np.testing.assert_array_equal(joined.X.toarray(), np.vstack([rows.X, rows.X]))
    np.testing.assert_array_equal(joined.context, np.arange(80))


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"labels": [0, 1, 2, 3]}, "labels"),
        ({"X": np.zeros((40, 2))}, "features"),
        ({"feature_names": NAMES}, "feature names"),
        ({"y": np.ones((40, 3))}, "outputs"),
        ({"group": np.zeros(40)}, "groups"),
    ],
)
def test_concat_refuses_logs_of_different_kinds(make_log, changes, what):
    with pytest.raises(poem.PoemError, match=f"same {what}; found"):
        BanditLog.concat([make_log(), make_log(**changes)])


def test_concat_of_nothing_is_an_error(make_log):
    with pytest.raises(poem.PoemError, match="at least one log"):
        BanditLog.concat([])


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_deduplicated_stores_equal_contexts_once(rows, make_log, form):
    X = rows.X[np.arange(40) % 6]
    log = make_log(X=form(X), group=rows.group)
    small = log.deduplicated()
    assert small.n_contexts == 6
    np.testing.assert_array_equal(dense(small)[small.context], X)
    assert row_tuples(small) == row_tuples(log)
    assert small.deduplicated() is small


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
def test_minus_zero_is_zero_to_deduplicated(make_log, form):
    X = np.ones((40, 2))
    X[::2, 1], X[1::2, 1] = 0.0, -0.0
    assert make_log(X=form(X)).deduplicated().n_contexts == 1


def test_stored_zeros_do_not_make_a_sparse_context_different(make_log):
    pointers = np.concatenate([[0, 2], np.arange(3, 42)])
    data, columns = np.ones(41), np.zeros(41, dtype=int)
    data[1], columns[1] = -0.0, 1
    X = sp.csr_array((data, columns, pointers), shape=(40, 2))
    assert X.nnz == 41
    log = make_log(X=X)
    assert log.deduplicated().n_contexts == 1
    assert log.X.nnz == 41


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_a_policy_sees_no_difference_after_deduplication(rows, make_log, form, kind):
    X, y = rows.X[np.arange(40) % 6], rows.y if kind == "classes" else rows.labels
    log = make_log(X=form(np.where(X > 0, X, 0.0)), y=y)
    structure = poem.MultiClass(3) if kind == "classes" else poem.MultiLabel(2)
    weights = np.random.default_rng(0).normal(size=(4, structure.n_scores))
    policy = poem.Policy(structure, weights, True, log.labels)
    np.testing.assert_allclose(policy.log_prob_of(log.deduplicated()), policy.log_prob_of(log), rtol=1e-14)


# ---- looks and copies ---------------------------------------------------------------------------


def test_repr_tells_what_is_in_the_log(rows, make_log):
    shown = repr(make_log(group=rows.group))
    assert "40 rows, 40 contexts × 3 features (dense)" in shown
    assert "one of 3 classes: 0, 1, 2" in shown
    assert f"mean {rows.loss.mean():.4g}, from {rows.loss.min():.4g} to {rows.loss.max():.4g}" in shown
    assert f"from {rows.propensity.min():.3g} to {rows.propensity.max():.3g}" in shown
    assert "10 groups" in shown


def test_repr_of_a_sparse_multilabel_log(rows, make_log):
    shown = repr(make_log(X=sp.csr_array(np.eye(40)), y=np.tile(rows.labels, 4)))
    assert "40 features (CSR, 1.0 non-zeros per row)" in shown
    assert "8 yes/no labels: 0, 1, 2, 3, 4, …" in shown


@pytest.mark.parametrize("form", [np.array, sp.csr_array])
@pytest.mark.parametrize("again", [lambda log: pickle.loads(pickle.dumps(log)), copy.copy, copy.deepcopy])
def test_copies_are_equal(rows, make_log, form, again):
    log = make_log(X=form(rows.X), y=np.array(["b", "a"] * 20), group=rows.group, feature_names=NAMES)
    assert_same_log(again(log), log)


def test_sparse_contexts_of_a_log_are_usable_by_scipy(rows, make_log):
    X = np.where(rows.X > 0.5, rows.X, 0.0)
    log = make_log(X=sp.csr_array(X))
    np.testing.assert_array_equal(log.X.tocoo().toarray(), X)
    np.testing.assert_array_equal(sp.vstack([log.X, X]).toarray(), np.vstack([X, X]))
    assert "Compressed Sparse Row" in repr(log.X)


def test_nbytes_counts_the_arrays(make_log):
    assert make_log().nbytes == 40 * (3 * 8 + 4 + 8 + 8 + 8)


# ---- time ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "fraction", "later"),
    [
        ([1, 2, 3, 4], 0.25, [4]),
        ([1, 1, 1, 1, 2], 0.25, [2]),
        ([1, 2, 2, 2], 0.25, [2, 2, 2]),
        ([3, 1, 2, 2], 0.4, [3]),
    ],
)
def test_the_latest_rows_are_held_out_and_moments_stay_whole(times, fraction, later):
    n = len(times)
    log = poem.BanditLog(np.ones((n, 1)), np.arange(n) % 2, loss=np.ones(n), propensity=np.full(n, 0.5), time=times)
    early, late = log.split_by_time(fraction)
    assert late.time.tolist() == later
    assert sorted([*early.time, *late.time]) == sorted(times)


def test_one_moment_cannot_be_split():
    log = poem.BanditLog(np.ones((3, 1)), [0, 1, 0], loss=np.ones(3), propensity=np.full(3, 0.5), time=[5, 5, 5])
    with pytest.raises(InputError, match="the same time"):
        log.split_by_time(0.5)
    with pytest.raises(InputError, match="needs a log with time="):
        poem.BanditLog(np.ones((2, 1)), [0, 1], loss=[0, 1], propensity=[0.5, 0.5]).split_by_time(0.5)
