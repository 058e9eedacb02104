import contextlib
import json
import os
import pickle
import struct
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

import poem
from poem import load_policy
from poem.errors import InputError, PolicyFileError

ABOUT = {
    "format": "poem.policy",
    "version": 1,
    "structure": "multiclass",
    "intercept": True,
    "labels": [0, 1, 2],
    "feature_names": ["a", "b", "c"],
    "training": {},
}
WEIGHTS = np.arange(12.0).reshape(4, 3)


def steady(max_examples):
    """The same examples in each run; the file is written anew for each of them."""
    shared = [HealthCheck.function_scoped_fixture]
    return settings(
        max_examples=max_examples, derandomize=True, database=None, deadline=None, suppress_health_check=shared
    )


def write_file(path, tensors=None, about=ABOUT, raw=None):
    """Write a safetensors file with any metadata."""
    metadata = {"poem": json.dumps(about) if raw is None else raw}
    path.write_bytes(save({"weights": WEIGHTS} if tensors is None else tensors, metadata=metadata))
    return path


def write_bytes_of_type(path, kind, size):
    """Write weights of a type that numpy may not have."""
    weights = {"dtype": kind, "shape": [4, 3], "data_offsets": [0, 12 * size]}
    header = json.dumps({"weights": weights, "__metadata__": {"poem": json.dumps(ABOUT)}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + bytes(12 * size))
    return path


def assert_same_policy(one, two):
    assert one.structure == two.structure
    assert one.weights.tobytes() == two.weights.tobytes()
    assert one.weights.shape == two.weights.shape
    assert one.intercept == two.intercept
    assert one.labels == two.labels
    assert [type(label) for label in one.labels] == [type(label) for label in two.labels]
    assert one.feature_names == two.feature_names
    assert one.record == two.record


def saved_and_loaded(policy, folder):
    return load_policy(policy.save(folder / "policy.poem"))


# ---- there and back -------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_a_learnt_label_policy_comes_back(label_log, tmp_path, intercept):
    policy = poem.fit(label_log, lam=[0.01, 1.0], loss_bounds=(0, 4), fit_intercept=intercept).policy
    again = saved_and_loaded(policy, tmp_path)
    assert_same_policy(again, policy)
    assert again.marginals(label_log.X).tobytes() == policy.marginals(label_log.X).tobytes()
    assert again.log_prob_of(label_log).tobytes() == policy.log_prob_of(label_log).tobytes()


@pytest.mark.parametrize("optimizer", [poem.LBFGS(), poem.AdaGrad(max_batches=5)], ids=["LBFGS", "AdaGrad"])
def test_the_trace_comes_back(class_log, tmp_path, optimizer):
    policy = poem.fit(class_log, lam=1.0, optimizer=optimizer, selection=poem.Selection(guard=False)).policy
    again = saved_and_loaded(policy, tmp_path)
    assert again.record == policy.record
    assert again.record.trace.steps > 0


def test_a_record_of_a_fit_comes_back(class_log, tmp_path):
    policy = poem.fit(class_log, learners="ips", n_jobs=1, certify=False).policy
    again = saved_and_loaded(policy, tmp_path)
    assert again.record == policy.record
    assert again.record.candidates
    assert again.record.explanation[0].startswith("Chosen: ")


def test_a_class_policy_with_int_labels_comes_back(class_log, tmp_path):
    policy = poem.fit(class_log, lam=1.0, selection=poem.Selection(guard=False)).policy
    again = saved_and_loaded(policy, tmp_path)
    assert_same_policy(again, policy)
    assert again.predict(class_log.X).tolist() == policy.predict(class_log.X).tolist()


@pytest.mark.parametrize("labels", [["no", "yes"], ["höflich", "日本 🎉"], [0.5, 1.5], [False, True]], ids=repr)
def test_labels_of_any_plain_type_come_back(rows, tmp_path, labels):
    policy = poem.supervised(rows.X, np.array(labels)[rows.y % 2])
    again = saved_and_loaded(policy, tmp_path)
    assert_same_policy(again, policy)
    assert again.sample(rows.X, 3).tolist() == policy.sample(rows.X, 3).tolist()
    assert again.marginals(rows.X).tobytes() == policy.marginals(rows.X).tobytes()


@pytest.mark.parametrize("labels", [np.arange(3), np.array(["a", "b", "c"])], ids=["int", "str"])
def test_labels_given_as_an_array_come_back(rows, tmp_path, labels):
    policy = poem.supervised(rows.X, labels[rows.y], labels=labels)
    assert saved_and_loaded(policy, tmp_path).labels == tuple(labels.tolist())


def test_label_and_feature_names_come_back(rows, tmp_path):
    X = pd.DataFrame(rows.X, columns=["größe", 'x\n"y"', "🎈"])
    y = pd.DataFrame(rows.labels, columns=["sport", "ニュース"])
    policy = poem.supervised(X, y)
    again = saved_and_loaded(policy, tmp_path)
    assert_same_policy(again, policy)
    assert again.feature_names == ("größe", 'x\n"y"', "🎈")
    assert again.predict(X[X.columns[::-1]]).tolist() == policy.predict(X).tolist()


def test_numpy_numbers_among_the_settings_can_be_saved(make_log, tmp_path):
    bounds = (np.int64(0), np.int64(1))
    policy = poem.fit(
        make_log(), lam=0.1, seed=np.int64(1), loss_bounds=bounds, selection=poem.Selection(guard=False)
    ).policy
    assert_same_policy(saved_and_loaded(policy, tmp_path), policy)


def test_extreme_weights_come_back(tmp_path):
    weights = np.array([[5e-324, -0.0], [1.7e308, 1 / 3]])
    policy = poem.Policy(poem.MultiLabel(2), weights, False, ("a", "b"))
    assert_same_policy(saved_and_loaded(policy, tmp_path), policy)


def test_save_returns_the_path_and_takes_strings(rows, tmp_path):
    policy = poem.supervised(rows.X, rows.y)
    path = policy.save(str(tmp_path / "ünïcode policy.poem"))
    assert path == tmp_path / "ünïcode policy.poem"
    assert_same_policy(load_policy(str(path)), policy)


# ---- broken files ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a policy file."""
    return write_file(tmp_path_factory.mktemp("whole") / "policy.poem").read_bytes()


def test_a_truncated_file_is_refused_at_any_length(whole, tmp_path):
    path = tmp_path / "cut.poem"
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(PolicyFileError, match=r"not a whole policy file.*save it again"):
            load_policy(path)


def test_a_file_with_something_appended_is_refused(whole, tmp_path):
    path = tmp_path / "long.poem"
    path.write_bytes(whole + b"\0")
    with pytest.raises(PolicyFileError, match="not a whole policy file"):
        load_policy(path)


@given(content=st.binary(max_size=200))
@steady(max_examples=100)
def test_random_bytes_are_refused(tmp_path, content):
    path = tmp_path / "random.poem"
    path.write_bytes(content)
    with pytest.raises(PolicyFileError, match="not a whole policy file"):
        load_policy(path)


@given(data=st.data())
@steady(max_examples=200)
def test_a_flipped_byte_gives_a_policy_or_a_policy_file_error(whole, tmp_path, data):
    position = data.draw(st.integers(0, len(whole) - 1))
    content = bytearray(whole)
    content[position] = data.draw(st.integers(0, 255))
    path = tmp_path / "flipped.poem"
    path.write_bytes(content)
    with contextlib.suppress(PolicyFileError):
        assert load_policy(path).weights.shape[1] == 3


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "foreign.safetensors"
    for metadata in (None, {"format": "pt"}):
        path.write_bytes(save({"weights": WEIGHTS}, metadata=metadata))
        with pytest.raises(PolicyFileError, match="is a safetensors file, but not a policy"):
            load_policy(path)


@pytest.mark.parametrize(("kind", "size"), [("BF16", 2), ("F8_E4M3", 1), ("F8_E5M2", 1), ("C64", 8)])
def test_weights_of_a_foreign_type_are_refused(tmp_path, kind, size):
    with pytest.raises(PolicyFileError):
        load_policy(write_bytes_of_type(tmp_path / "foreign.safetensors", kind, size))


def test_a_newer_version_is_refused(tmp_path):
    path = write_file(tmp_path / "new.poem", about=ABOUT | {"version": 6})
    with pytest.raises(PolicyFileError, match=r"format version 6; this poem reads up to 5\. Upgrade poem"):
        load_policy(path)


@pytest.mark.parametrize(
    "raw", ["", "{", "[]", "null", "7", '"poem.policy"', "{}", "[" * 100_000], ids=lambda raw: raw[:9]
)
def test_metadata_that_is_not_a_policy_is_refused(tmp_path, raw):
    with pytest.raises(PolicyFileError, match="metadata is missing or broken"):
        load_policy(write_file(tmp_path / "broken.poem", raw=raw))


@pytest.mark.parametrize("name", sorted(ABOUT))
def test_each_field_of_the_metadata_is_needed(tmp_path, name):
    about = {key: value for key, value in ABOUT.items() if key != name}
    with pytest.raises(PolicyFileError, match=name):
        load_policy(write_file(tmp_path / "broken.poem", about=about))


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"format": None},
        {"version": "one"},
        {"version": None},
        {"version": float("inf")},
        {"structure": "tree"},
        {"structure": ["multiclass"]},
        {"structure": None},
        {"labels": [0, 1]},
        {"labels": [0, 1, 2, 3]},
        {"labels": None},
        {"labels": 3},
        {"labels": [0, 1, 1]},
        {"labels": [[0], [1], [2]]},
        {"feature_names": ["a", "b"]},
        {"feature_names": 3},
        {"training": []},
        {"training": None},
    ],
    ids=repr,
)
def test_broken_metadata_is_refused(tmp_path, change):
    with pytest.raises(PolicyFileError):
        load_policy(write_file(tmp_path / "broken.poem", about=ABOUT | change))


@pytest.mark.parametrize("levels", [10, 300, 500, 700, 900, 5000])
@pytest.mark.parametrize("name", ["candidates", "explanation", "other"])
def test_a_deep_record_gives_a_policy_or_a_policy_file_error(tmp_path, name, levels):
    content = json.dumps(ABOUT | {"training": {name: [0]}}).replace("[0]", "[" * levels + "]" * levels)
    path = write_file(tmp_path / "deep.poem", raw=content)
    with contextlib.suppress(PolicyFileError):
        policy = load_policy(path)
        assert_same_policy(saved_and_loaded(policy, tmp_path), policy)


@pytest.mark.parametrize(
    "tensors",
    [
        {"w": WEIGHTS},
        {"weights": WEIGHTS[None]},
        {"weights": WEIGHTS[0]},
        {"weights": WEIGHTS[:, :2]},
        {"weights": WEIGHTS[:0]},
        {"weights": np.full((4, 3), np.nan)},
    ],
    ids=["other name", "3-d", "1-d", "too narrow", "no rows", "NaN"],
)
def test_broken_weights_are_refused(tmp_path, tensors):
    with pytest.raises(PolicyFileError):
        load_policy(write_file(tmp_path / "broken.poem", tensors))


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(PolicyFileError, match=r"no policy file at .*nowhere\.poem.*Check the path"):
        load_policy(tmp_path / "nowhere.poem")
    with pytest.raises(PolicyFileError, match="no policy file at"):
        load_policy(tmp_path)


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_a_pickle_is_never_executed(tmp_path):
    sprung, path = tmp_path / "sprung", tmp_path / "policy.poem"
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        path.write_bytes(pickle.dumps(Trap(sprung), protocol=protocol))
        with pytest.raises(PolicyFileError, match="not a whole policy file"):
            load_policy(path)
    assert not sprung.exists()
    pickle.loads(path.read_bytes())
    assert sprung.exists()  # the trap works


# ---- whole or not at all --------------------------------------------------------------------------


@pytest.fixture
def old_file(tmp_path):
    return write_file(tmp_path / "policy.poem")


@pytest.fixture
def new_policy(rows):
    return poem.supervised(rows.X, rows.y)


def fail(*_, **__):
    raise OSError("the disk is full")


def interrupt(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize("failure", [fail, interrupt])
@pytest.mark.parametrize(
    "where", [(os, "replace"), (Path, "replace"), (Path, "chmod"), (os, "fdopen")], ids=lambda w: w[1]
)
def test_a_failing_write_leaves_the_old_file_alone(old_file, new_policy, monkeypatch, where, failure):
    before = old_file.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(*where, failure)
        try:
            new_policy.save(old_file)
        except (OSError, KeyboardInterrupt):
            assert old_file.read_bytes() == before
    assert [path.name for path in old_file.parent.iterdir()] == ["policy.poem"]


def test_a_failing_replace_is_reported(old_file, new_policy, monkeypatch):
    before = old_file.read_bytes()
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="the disk is full"):
        new_policy.save(old_file)
    assert old_file.read_bytes() == before


def test_a_missing_folder_is_an_error_and_stays_missing(new_policy, tmp_path):
    with pytest.raises(InputError, match=r"there is no folder .*nowhere.* Make it first"):
        new_policy.save(tmp_path / "nowhere" / "policy.poem")
    assert list(tmp_path.iterdir()) == []


def test_an_old_file_is_replaced_whole(old_file, new_policy):
    new_policy.save(old_file)
    assert_same_policy(load_policy(old_file), new_policy)
    assert [path.name for path in old_file.parent.iterdir()] == ["policy.poem"]
