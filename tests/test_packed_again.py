"""A folder that is packed anew, and processes that have seen what it held before."""

import json
import pickle
import shutil

import numpy as np
import pytest
from dask_clusters import cluster

import poem
from poem.errors import PackedError
from poem.packed import pack_log


def shop(folder, prices):
    """Pack a log of four items whose catalogue says what they cost; rewards follow the prices."""
    shutil.rmtree(folder, ignore_errors=True)
    rng = np.random.default_rng(0)
    chosen = rng.integers(0, 4, 400)
    clicks = rng.random(400) < 0.2 + 0.2 * np.array(prices)[chosen]
    rows = [
        {"x": float(x), "output": int(item), "reward": int(click), "propensity": 0.25}
        for x, item, click in zip(rng.normal(size=400).round(3), chosen, clicks, strict=True)
    ]
    log, items = folder.with_suffix(".jsonl"), folder.with_suffix(".csv")
    log.write_text("".join(json.dumps(row) + "\n" for row in rows))
    items.write_text("id,price\n" + "".join(f"{number},{price}\n" for number, price in enumerate(prices)))
    return pack_log(log, folder, actions=items)


def test_a_process_that_lives_on_sees_the_new_log(tmp_path):
    """Such as a worker: it opened the folder before."""
    for prices in ((0, 1, 2, 3), (3, 2, 1, 0)):
        log = shop(tmp_path / "p", prices)
        sent = pickle.loads(pickle.dumps(log))
        for one, two in zip(log.logs(), sent.logs(), strict=True):
            np.testing.assert_array_equal(one.available.features.toarray(), two.available.features.toarray())


def test_a_log_that_was_opened_before_is_refused(tmp_path):
    log = shop(tmp_path / "p", (0, 1, 2, 3))
    travels = pickle.dumps(log)
    log.to_log()
    shop(tmp_path / "p", (3, 2, 1, 0))
    with pytest.raises(PackedError, match="was packed anew after the log was opened"):
        pickle.loads(travels)
    with pytest.raises(PackedError, match=r"cut off or was changed|its checksum differs"):
        log.to_log()


def test_workers_that_live_on_answer_for_the_new_log(tmp_path):
    with cluster(1) as client:
        policy = None
        for prices in ((0, 1, 2, 3), (3, 2, 1, 0)):
            shop(tmp_path / "p", prices)
            here, there = (poem.open_log(tmp_path / "p", backend=backend) for backend in (None, poem.Dask(client)))
            policy = policy or poem.fit(here, learners="direct", certify=False).policy
            one, two = (poem.evaluate(policy, log, ["IPS"]).lines[0].value for log in (here, there))
            assert one == two
