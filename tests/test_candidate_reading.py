"""Policies refuse files that do not say what they need: what is available, and features that they know."""

import json

import numpy as np

import poem
from poem.cli import main
from poem.policies import uniform_policy, with_columns
from poem.readers import read_raw


def test_a_policy_that_was_learnt_from_lists_wants_them(tmp_path, capsys):
    """Without lists it would choose what is sold out."""
    rng = np.random.default_rng(0)
    stock = [sorted(rng.permutation(list("abcd"))[: rng.integers(2, 5)].tolist()) for _ in range(300)]
    rows = [
        {"x": float(rng.normal()), "candidates": one, "output": one[0], "reward": 1.0, "propensity": 1 / len(one)}
        for one in stock
    ]
    log, other, policy = tmp_path / "log.jsonl", tmp_path / "other.jsonl", tmp_path / "p.poem"
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    other.write_text(
        "".join(json.dumps({"in_stock" if k == "candidates" else k: v for k, v in row.items()}) + "\n" for row in rows)
    )
    with_columns(uniform_policy(poem.read_log(log)), read_raw(log), poem.read_log(log)).save(policy)
    for command in (("predict", policy, other), ("evaluate", policy, other)):
        assert main([str(word) for word in (*command, "--quiet")]) == 2
        assert "learnt from a log that says what was available (column 'candidates')" in capsys.readouterr().err
    assert main(["predict", str(policy), str(other), "--candidates", "in_stock", "--quiet"]) == 0


def test_rows_without_any_known_feature_are_refused(tmp_path, capsys):
    block = "shared |u x{0}\n0:0.5:0.5 |a y{0}\n|a z{0}\n\n"
    for name, space in (("log.vw", "a"), ("other.vw", "article")):
        (tmp_path / name).write_text("".join(block.replace("|a", f"|{space}").format(i % 3) for i in range(40)))
    log = poem.read_log(tmp_path / "log.vw")
    policy = with_columns(uniform_policy(log), read_raw(tmp_path / "log.vw"), log).save(tmp_path / "p.poem")
    assert main(["predict", str(policy), str(tmp_path / "other.vw"), "--quiet"]) == 2
    assert "none of the 6 features of actions that p.poem knows occurs" in capsys.readouterr().err


def test_requests_without_a_label_keep_their_time(tmp_path):
    actions = [{"a": {"f": 1}}, {"a": {"g": 2}}]
    request = {"Timestamp": "2026-01-31T12:00:00Z", "c": {"u": {"x": 1}, "_multi": actions}}
    label = {"_label_cost": -1, "_label_probability": 0.5, "_label_Action": 1, "_labelIndex": 0}
    other = request | {"c": {"u": {"x": 2}, "_multi": [*actions, {"a": {"h": 3}}]}}
    log, requests = tmp_path / "log.dsjson", tmp_path / "requests.dsjson"
    log.write_text("".join(json.dumps(label | one) + "\n" for one in (request, other) * 5))
    requests.write_text(json.dumps(request) + "\n")
    policy = with_columns(uniform_policy(poem.read_log(log)), read_raw(log), poem.read_log(log))
    (decided,) = poem.decide(policy, requests).to_pylist()
    assert decided["time"] == "2026-01-31T12:00:00Z"
    assert len(decided["ranking"]) == 2
