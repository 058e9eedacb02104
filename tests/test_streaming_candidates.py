"""Logs with candidates, read block by block."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from offered_logs import CATALOGUE, by_position, offered_rows, only_ids
from same_logs import write
from test_streaming import assert_same_rows, blocks_of

import poem
from poem.errors import InputError
from poem.readers import Columns, LogStream

IGNORED = Columns(ignore=("candidates.*",))
ROWS = offered_rows(60)


def with_prices_late(rows):
    return [
        row | {"candidates": [one | ({"stock": at} if at > 40 else {}) for one in row["candidates"]]}
        for at, row in enumerate(rows)
    ]


def all_available(rows):
    return [row | {"candidates": [f"a{i}" for i in range(8)], "distribution": [0.125] * 8} for row in rows]


FORMS = {
    "features": (lambda rows: rows, {}),
    "features and ids": (lambda rows: rows, {"identity": True}),
    "scaled": (lambda rows: rows, {"features": poem.Encoding(scale=True)}),
    "ids": (only_ids, {}),
    "classes at first": (lambda rows: all_available(rows[:40]) + only_ids(rows[40:]), {}),
    "classes": (all_available, {}),
    "positions": (by_position, {}),
    "late fields": (with_prices_late, {}),
    "catalogue": (only_ids, {"actions": CATALOGUE}),
    "whole catalogue": (
        lambda rows: [{k: v for k, v in row.items() if k not in ("candidates", "distribution")} for row in rows],
        {"actions": CATALOGUE},
    ),
    "known labels": (only_ids, {"labels": [f"a{i}" for i in range(9)]}),
}


def assert_same_offers(one, two):
    """Expect the same candidates with the same features."""
    assert (one.available is None) == (two.available is None)
    assert (one.action_names, one.action_features) == (two.action_names, two.action_features)
    if one.available is None:
        return
    for name in ("starts", "action"):
        np.testing.assert_array_equal(getattr(one.available, name), getattr(two.available, name))
    if one.available.features is not None:
        found = [log.available.features[_rows(log.available)].toarray() for log in (one, two)]
        np.testing.assert_allclose(*found, rtol=1e-12, atol=1e-12)


def _rows(available):
    return np.arange(available.features.shape[0]) if available.row is None else available.row


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_logs_with_candidates(tmp_path, form, suffix):
    change, options = FORMS[form]
    rows, path = change(ROWS), tmp_path / f"log{suffix}"
    if suffix == ".jsonl":
        write(path, "".join(json.dumps(row) + "\n" for row in rows))
    else:
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=7)
    whole = poem.read_log(path, **options)
    for size in (1 << 20, 2000, 700):
        stream = LogStream([path], block_bytes=size, **options)
        kind = stream.learn()
        logs = list(stream.logs(kind))
        assert (len(logs) > 1) == (size < 1 << 20)
        joined = poem.BanditLog.concat(logs)
        if form == "scaled":
            joined, whole = joined.with_features(whole.features), whole
            np.testing.assert_allclose(joined.X.toarray(), whole.X.toarray(), rtol=1e-12, atol=1e-12)
            assert kind.action_features.names() == whole.action_features.names()
            continue
        assert_same_rows(joined, whole)
        assert_same_offers(joined, whole)
        assert (kind.structure, kind.action_features) == (whole.structure, whole.action_features)


@pytest.mark.parametrize("context", [None, np.arange(60) // 7])
def test_logs_of_poems_own(tmp_path, context):
    log = poem.read_log(write(tmp_path / "log.jsonl", "".join(json.dumps(row) + "\n" for row in ROWS)))
    if context is not None:
        log = log.take(np.repeat(np.arange(0, 60, 3), 3))
    path = poem.write_log(log, tmp_path / "log.parquet")
    whole = poem.read_log(path)
    stream = LogStream([path], block_bytes=900)
    logs = list(stream.logs(stream.learn()))
    assert len(logs) > 2
    joined = poem.BanditLog.concat(logs)
    assert_same_rows(joined, whole)
    np.testing.assert_array_equal(joined.available.of(joined.context).action, whole.available.of(whole.context).action)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("log.vw", "shared | a\n0:1:0.5 | b\n| c\n\n" * 20),
        ("log.vw", "ccb shared | a\nccb action | b\nccb action | c\nccb slot 0:1:0.5 | s\n\n" * 20),
        ("log.vw", "1:1:0.5 2 | a\n2:1:0.5 | b\n" * 20),
    ],
)
def test_what_cannot_be_cut_yet_is_refused(tmp_path, name, content):
    path = write(tmp_path / name, content)
    poem.read_log(path)
    with pytest.raises(InputError, match="block by block"):
        blocks_of(path, 4)


def ds_line(at, prices):
    actions = [{"price": price} for price in prices]
    label = {"_label_cost": at % 2, "_label_probability": 0.5, "_labelIndex": at % 2}
    return json.dumps(label | {"c": {"u": {"x": at}, "_multi": actions}}) + "\n"


def test_actions_of_dsjson_that_differ_between_blocks(tmp_path):
    same = write(tmp_path / "same.dsjson", "".join(ds_line(at, (1.0, 2.0)) for at in range(60)))
    assert_same_rows(poem.BanditLog.concat(blocks_of(same, 5)), poem.read_log(same))
    for differ in (lambda at: 2.0 + (at > 40), lambda at: 2.0 + at):
        path = write(tmp_path / "log.dsjson", "".join(ds_line(at, (1.0, differ(at))) for at in range(60)))
        for blocks in (5, 60):
            joined, whole = poem.BanditLog.concat(blocks_of(path, blocks)), poem.read_log(path)
            assert_same_rows(joined, whole)
            assert_same_offers(joined, whole)
