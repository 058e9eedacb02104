"""What is made of a packed log when it is read belongs to it: other propensities make another log."""

from dataclasses import replace

import numpy as np
import pytest
from easy_logs import a_policy, easy, logged_by
from packing import packed
from test_laws_risk import make_log

import poem
from poem.errors import CheckpointError, InputError
from poem.policies import was_trained_on


def unlogged(folder, n=1200):
    """Return a packed log without propensities that does not fit into its memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 5))
    y = (rng.random(n) < 1 / (1 + np.exp(-X[:, 0]))).astype(int)
    reward = (rng.random(n) < np.where(y == (X[:, 1] > 0), 0.7, 0.3)).astype(float)
    found = packed(poem.BanditLog(X, y, reward=reward, propensity="missing"), folder, 4)
    return found.replaced(memory=int(found.nbytes * 8 * 0.6))


def test_other_propensities_are_another_log(tmp_path):
    log = unlogged(tmp_path / "p")
    weak, strong, again = (poem.estimate_propensities(log, C=C).log for C in (1e-4, 100.0, 1e-4))
    assert weak.fingerprint() == again.fingerprint()
    assert len({log.fingerprint(), weak.fingerprint(), strong.fingerprint()}) == 3
    alone = {"lam": 0.0, "selection": poem.Selection(validation=None, guard=False), "checkpoint": tmp_path / "state"}
    poem.fit(weak, **alone)
    with pytest.raises(CheckpointError, match="belongs to another log"):
        poem.fit(strong, **alone)


def test_other_loggers_are_another_log(tmp_path):
    log = make_log("classes", "csr")
    found = packed(log.with_loggers(np.array(["old", "new"])[np.arange(len(log)) % 2]), tmp_path / "p", 2)
    marks = [one.fingerprint() for one in (found, found.of_logger("old"), found.of_logger("new"))]
    assert len(set(marks)) == 3


def test_views_are_taken_one_after_the_other(tmp_path):
    """Wrong loggers are refused by the rows of any shard, as they are in memory."""
    loggers = {name: a_policy(poem.MultiClass(3), seed) for seed, name in enumerate(("first", "second"))}
    logs = [
        logged_by(policy, easy, seed, contexts=100, replay=2).with_loggers([name] * 200)
        for seed, (name, policy) in enumerate(loggers.items())
    ]
    whole = poem.BanditLog.concat(logs)
    found = packed(whole, tmp_path / "p", 3)
    one = poem.balanced(poem.estimate_propensities(found).log, loggers)
    assert (one.propensities, one.to_log().propensities) == ("balanced", "balanced")
    np.testing.assert_allclose(one.to_log().log_propensity, poem.balanced(whole, loggers).log_propensity, rtol=1e-12)
    wrong = {"first": loggers["first"], "second": a_policy(poem.MultiClass(3), 7)}
    with pytest.raises(InputError, match="Pass the policy that made these rows"):
        poem.balanced(found, wrong).to_log()


@pytest.mark.parametrize(("first", "second"), [(0.3, 0.6), (0.15, 0.149), (0.6, 1.1), (1.1, 0.6)])
def test_a_fit_is_resumed_with_the_memory_that_it_had(tmp_path, first, second):
    """How much is sampled and held out depends on the memory."""
    log = packed(make_log("classes", "dense", contexts=2000, replay=1), tmp_path / "p", 4)
    options = {"learners": "dr", "loss_bounds": (-1, 0), "checkpoint": tmp_path / "state"}
    one, two = (log.replaced(memory=int(log.nbytes * 8 * share)) for share in (first, second))
    whole = poem.fit(one, **options)
    with pytest.raises(CheckpointError, match=rf"could take {one.memory} bytes .*memory={one.memory}\)") as error:
        poem.fit(two, **options)
    assert f"--memory {one.memory}" in str(error.value)
    again = poem.fit(one, **options)
    assert again.certificate.gain_at_least == whole.certificate.gain_at_least


def test_a_policy_knows_the_units_that_it_was_trained_on(tmp_path):
    rng = np.random.default_rng(0)
    X, chosen = rng.normal(size=(3000, 3)).round(3), rng.integers(0, 2, 3000)
    reward = (rng.random(3000) < np.where(chosen == (X[:, 0] > 0), 0.8, 0.2)).astype(float)
    memory = poem.BanditLog(X, chosen, reward=reward, propensity=np.full(3000, 0.5))
    log, other = packed(memory, tmp_path / "p", 3), packed(memory.take(np.arange(2999)), tmp_path / "q", 3)
    small = log.replaced(memory=4 * log.nbytes)
    quick = {"learners": "direct", "loss_bounds": (0, 1)}
    whole, sampled, part = (poem.fit(one, **quick).policy for one in (log, small, small.part(0.0, 0.5)))
    for policy in (whole, sampled, part):
        policy.save(tmp_path / "policy.poem")
        for one in (policy, poem.load_policy(tmp_path / "policy.poem"), policy.with_floor(0.1)):
            assert was_trained_on(one, log)
            assert was_trained_on(one, small.part(0.0, 0.3))
            assert not was_trained_on(one, other)
            assert not was_trained_on(one, other.to_log())
    # Where all rows were in memory, the same rows elsewhere are recognised as well.
    assert was_trained_on(whole, memory)
    assert was_trained_on(whole, log.part(0.9, 1.0))
    assert was_trained_on(sampled, small.part(0.8, 1.0))  # it judged
    assert not was_trained_on(part, small.part(0.5, 1.0))
    for odd in ("", "x", "zz/0-1", log.fingerprint() + "0" * 40):
        assert not was_trained_on(replace(whole, record=replace(whole.record, log=odd)), log)
    with pytest.raises(InputError, match="start was learnt from this very log"):
        poem.fit(small, start=sampled, loss_bounds=(0, 1))
    estimated = poem.estimate_propensities(log).log
    assert was_trained_on(whole, estimated)
