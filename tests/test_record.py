"""The record that travels with a policy: typed in memory, plain data in files, whatever they hold."""

import json
import math
import pickle
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import poem
from poem import Record
from poem.errors import InputError
from poem.policies import TraceRecord

TRACE = {
    "value": -0.25,
    "steps": 3,
    "seconds": 0.5,
    "converged": True,
    "reason": "the gradient is small",
    "curve": [[0.0, -0.125], [0.5, -0.25]],
    "mean_weight": 1.5,
    "clipped_share": 0.0,
}
# As it is in policy files.
WRITTEN = {
    "structure": "MultiClass(k=2)",
    "loss_bounds": [0, 1],
    "seed": 0,
    "estimator": "IPS",
    "clip": None,
    "optimizer": {"name": "LBFGS", "max_iterations": 100},
    "learner": "POEM",
    "start": "zero",
    "lam": 0.1,
    "temperature": 2,
    "propensities": "logged",
    "calibration": {"loss_low": 0.0, "clips": {"auto": 3.0}},
    "trace": TRACE,
    "n_train": 200,
    "candidates": [{"learner": "POEM", "lam": 0.1, "gain": None}],
    "certificate": {"certified": False, "objections": ["too few rows"]},
    "explanation": ["Chosen: POEM"],
    "columns": {"output": ["item"], "loss": "cost"},
    "log": "0f",
}
NAMES = [one.name for one in fields(Record) if one.name != "settings"]
SETTINGS = ("structure", "loss_bounds", "seed", "estimator", "clip", "optimizer")

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5) | st.sampled_from(list(TRACE)), part),
    max_leaves=8,
)
written = st.dictionaries(st.sampled_from([*NAMES, "settings", "estimator"]), plain)


def through_json(record):
    return Record.from_data(json.loads(json.dumps(record.to_data())))


def test_what_is_in_policy_files_is_read():
    record = Record.from_data(WRITTEN)
    assert (record.learner, record.lam, record.temperature, record.n_train) == ("POEM", 0.1, 2.0, 200)
    assert record.trace == TraceRecord(**(TRACE | {"curve": ((0.0, -0.125), (0.5, -0.25))}))
    assert record.candidates == (WRITTEN["candidates"][0],)
    assert record.explanation == ("Chosen: POEM",)
    assert record.settings == {name: WRITTEN[name] for name in SETTINGS}
    assert record.to_data() == WRITTEN


def test_an_empty_record_is_empty_data():
    assert Record().to_data() == {}
    assert Record.from_data({}) == Record() == Record.from_data({"certificate": None, "made_by": None})


@given(data=written)
@settings(max_examples=300, derandomize=True, database=None, deadline=None)
def test_whatever_a_file_holds_is_read_and_comes_back_equal(data):
    record = Record.from_data(data)
    assert record == through_json(record)
    for name in ("made_by", "log", "learner", "start", "propensities"):
        assert isinstance(getattr(record, name), str | None)
    for name in ("lam", "temperature"):
        assert isinstance(getattr(record, name), float | None)
    assert all(isinstance(line, str) for line in record.explanation)
    assert all(isinstance(row, dict) for row in record.candidates)
    assert isinstance(record.trace, TraceRecord | None)


@pytest.mark.parametrize("data", [None, [], "text", 3])
def test_what_is_no_record_is_refused(data):
    with pytest.raises(TypeError, match="a record of type"):
        Record.from_data(data)


@pytest.mark.parametrize("name", TRACE)
def test_a_trace_of_another_version_is_left_out(name):
    short = {one: value for one, value in TRACE.items() if one != name}
    assert Record.from_data({"trace": short}).trace is None
    assert Record.from_data({"trace": TRACE | {name: [[1]]}}).trace is None or name in ("converged", "reason")


def test_numbers_of_numpy_become_those_of_python():
    record = Record(
        n_train=np.int64(3),
        lam=np.float64(0.5),
        columns={"output": ("a", "b")},
        settings={"bounds": (np.int64(0), np.float32(1.0)), "values": np.arange(2), "on": np.bool_(True)},
    )
    assert (type(record.n_train), type(record.lam)) == (int, float)
    assert record.settings == {"bounds": [0, 1.0], "values": [0, 1], "on": True}
    assert record == through_json(record)


def test_what_cannot_be_saved_is_refused():
    with pytest.raises(InputError, match=r"plain data only; found \{1\}, a set"):
        Record(settings={"some": {1}})
    with pytest.raises(InputError, match="must not repeat its fields; found lam"):
        Record(settings={"lam": 3.0})
    with pytest.raises(InputError, match=r"record must be a poem\.Record; found dict"):
        poem.Policy(poem.MultiClass(2), np.zeros((1, 2)), True, ("a", "b"), record={})


def test_a_record_is_a_copy_and_can_be_copied():
    about = {"seed": [1]}
    record = Record(settings=about, explanation=("Chosen: POEM",))
    about["seed"].append(2)
    record.to_data()["seed"].append(3)
    assert record.settings == {"seed": [1]}
    assert pickle.loads(pickle.dumps(record)) == record == replace(record)


def test_infinity_comes_back():
    record = Record(lam=math.inf, settings={"clip": -math.inf})
    assert through_json(record) == record
