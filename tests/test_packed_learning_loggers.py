"""Loggers that learn while they log, in a packed log: all rows in memory tell, in the order of packing."""

import numpy as np
import pytest
from packing import packed

import poem
from poem.certificates import adapts
from poem.learning.sampled import in_parts

N, OUTPUTS, EPSILON, STEP = 6000, 3, 0.3, 300


def learning_log(seed):
    """A log of an epsilon-greedy policy that learns from its own rows, now and then."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(N, 3)).astype(float)
    best, cell = (X[:, 0] + X[:, 1]).astype(int), (2 * X[:, 0] + X[:, 1]).astype(int)
    sums, counts = np.zeros((OUTPUTS, 4)), np.ones((OUTPUTS, 4))
    y, p, reward = np.empty(N, dtype=int), np.empty(N), np.empty(N)
    for t in range(N):
        if t % STEP == 0:
            greedy = (sums / counts).argmax(axis=0)
        chances = np.full(OUTPUTS, EPSILON / OUTPUTS)
        chances[greedy[cell[t]]] += 1 - EPSILON
        y[t] = rng.choice(OUTPUTS, p=chances)
        p[t], reward[t] = chances[y[t]], rng.random() < (0.8 if y[t] == best[t] else 0.2)
        sums[y[t], cell[t]] += reward[t]
        counts[y[t], cell[t]] += 1
    return poem.BanditLog(X, y, reward=reward, propensity=p)


@pytest.mark.parametrize("times", ["none", "constant", "daily"])
def test_a_small_sample_is_not_all_that_tells(tmp_path, times):
    log = learning_log(1)
    moments = {"none": None, "constant": np.zeros(N), "daily": np.arange(N) // 2000 * 1.0}
    log = log.replaced(time=moments[times])
    found = packed(log, tmp_path / "p", 3, parts=2)
    few = found.replaced(memory=int(found.nbytes * 8 * 0.1))
    sample, choice, _, shards = in_parts(few, poem.Selection(), 1, warm=True)
    assert len(sample) + len(choice.validation) < N / 4
    assert not adapts(sample).changes
    assert shards.adaptive
    result = poem.fit(few, learners="dr", loss_bounds=(0, 1))
    assert not result.certified
    assert "propensities change with time" in result.explain()
