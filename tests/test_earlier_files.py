"""Files that poem wrote before logs had structures are read as ever, and files of plain logs are still written so."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors import safe_open
from safetensors.numpy import save

import poem

X = [[0.5, -1.0], [2.0, 0.0], [0.5, -1.0], [-0.25, 3.0]]
WEIGHTS = np.arange(9.0).reshape(3, 3) / 4

# What the last version without structures wrote, and the digests that it gave these logs.
ROLES = {"context": ["features"], "output": ["output"], "loss": None, "reward": None, "propensity": "log_propensity"}
ROLES |= {"unit": "log", "group": None, "time": None, "logger": None, "candidates": None, "distribution": None}
ABOUT = {"encoded": True, "estimated": False, "missing": False, "feature_names": None, "recipe": None}
CLASSES = {
    "made": lambda: poem.BanditLog(
        X,
        ["tea", "cake", "tea", "soup"],
        reward=[1.0, 0.0, 0.5, 1.0],
        propensity=[0.5, 0.25, 0.5, 0.25],
        time=[1.0, 2.0, 3.0, 4.0],
        group=["u", "v", "u", "w"],
    ),
    "columns": {
        "output": ["tea", "cake", "tea", "soup"],
        "reward": [1.0, -0.0, 0.5, 1.0],
        "log_propensity": np.log([0.5, 0.25, 0.5, 0.25]),
        "group": ["u", "v", "u", "w"],
        "time": [1.0, 2.0, 3.0, 4.0],
    },
    "roles": ROLES | {"reward": "reward", "group": "group", "time": "time", "context_id": None},
    "labels": ["cake", "soup", "tea"],
    "structure": "multiclass",
    "fingerprint": "33c94cd6703f7df5afd884868912e1c7df2c721ec17989a3e02db8fa630b3d60",
    "log_prob": [-0.9788138555830073, -2.02797574385531, -0.9788138555830073, -1.3724984042132506],
}
LABELS = {
    "made": lambda: poem.BanditLog(
        X,
        [[1, 0, 1], [0, 0, 0], [1, 1, 1], [0, 1, 0]],
        loss=[1.0, 0.0, 2.0, 3.0],
        propensity=[0.5, 0.25, 0.5, 0.125],
        labels=["a", "b", "c"],
    ),
    "columns": {
        "output": [["a", "c"], [], ["a", "b", "c"], ["b"]],
        "loss": [1.0, 0.0, 2.0, 3.0],
        "log_propensity": np.log([0.5, 0.25, 0.5, 0.125]),
    },
    "roles": ROLES | {"loss": "loss", "context_id": None},
    "labels": ["a", "b", "c"],
    "structure": "multilabel",
    "fingerprint": "61cc3ba4c0fb8b82e5457a06d62fe565f9a99a231d8ce83c2bdab01a714c5d1a",
    "log_prob": [-1.9235772746381787, -7.100207188473242, -1.0485772746381787, -9.411013070538594],
}
every_kind = pytest.mark.parametrize("kind", [CLASSES, LABELS], ids=["classes", "labels"])


def notes_of(kind):
    features = [{"kind": "vector", "column": "features", "size": 2}]
    known = {"roles": kind["roles"], "labels": kind["labels"], "features": features, "about": ABOUT}
    return {"format": "poem.log", "version": 1, **known}


def about_policy(kind):
    said = {"format": "poem.policy", "version": 1, "floor": None, "structure": kind["structure"], "intercept": True}
    return said | {"labels": kind["labels"], "feature_names": None, "training": {}, "features": None}


@every_kind
def test_an_earlier_log_is_the_log_that_is_made_now(kind, tmp_path):
    table = pa.table(kind["columns"] | {"features": X}).replace_schema_metadata({"poem": json.dumps(notes_of(kind))})
    pq.write_table(table, tmp_path / "log.parquet")
    read, made = poem.read_log(tmp_path / "log.parquet"), kind["made"]()
    assert read.structure == made.structure
    assert read.fingerprint() == made.fingerprint() == kind["fingerprint"]


@every_kind
def test_an_earlier_policy_gives_the_same_probabilities(kind, tmp_path):
    path = tmp_path / "policy.poem"
    path.write_bytes(save({"weights": WEIGHTS}, metadata={"poem": json.dumps(about_policy(kind))}))
    policy = poem.load_policy(path)
    assert policy.structure.name == kind["structure"]
    np.testing.assert_allclose(policy.log_prob_of(kind["made"]()), kind["log_prob"], rtol=1e-14)


@every_kind
def test_plain_logs_are_written_as_before_and_policies_with_a_checksum(kind, tmp_path):
    log = kind["made"]()
    assert json.loads(pq.read_schema(poem.write_log(log, tmp_path / "log.parquet")).metadata[b"poem"]) == notes_of(kind)
    policy = poem.Policy(log.structure, WEIGHTS, True, log.labels)
    with safe_open(policy.save(tmp_path / "policy.poem"), framework="numpy") as file:
        about = json.loads(file.metadata()["poem"])
    assert len(about.pop("checksum")) == 64
    assert about == about_policy(kind) | {"version": 5}


@every_kind
def test_an_earlier_policy_knows_its_own_log(kind, tmp_path):
    path, about = tmp_path / "policy.poem", about_policy(kind)
    about["training"] = {"log": kind["fingerprint"]}
    path.write_bytes(save({"weights": WEIGHTS}, metadata={"poem": json.dumps(about)}))
    assert poem.policies.was_trained_on(poem.load_policy(path), kind["made"]())
