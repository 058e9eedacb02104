"""A new output space is one class and one line in KINDS: a ranking, whose codes are no 0/1, joins here for a test."""

from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np
import pytest
from easy_logs import BRIEF

import poem
from poem.structures import KINDS, Fixed

ITEMS = ("ads", "news", "shop")


@dataclass(frozen=True)
class Ranking(Fixed):
    """An order of all items: h(y|x) ∝ exp(Σ score · number of items behind it), by enumeration."""

    n_items: int
    name: ClassVar[str] = "ranking"
    shared_scores: ClassVar[bool] = True

    @classmethod
    def encode(cls, y, labels=None):
        values = np.asarray(y)
        labels = tuple(np.unique(values).tolist()) if labels is None else labels
        return np.argmax(values[:, :, None] == np.array(labels), axis=2).astype(np.int32), labels

    @classmethod
    def of(cls, codes, labels, **sizes):
        return cls(len(labels), **sizes)

    @classmethod
    def from_lists(cls, row, item, shape):
        return item.reshape(shape[0], -1).astype(np.int32)

    def decode(self, codes, labels):
        return np.asarray(labels)[codes]

    def check(self, codes):
        if not np.array_equal(np.sort(codes, axis=1), np.tile(np.arange(self.n_items), (len(codes), 1))):
            raise poem.errors.LogError("each row must rank all items")

    def to_arrow(self, codes, labels):
        import pyarrow as pa

        starts = np.arange(0, codes.size + 1, self.n_items, dtype=np.int32)
        return pa.ListArray.from_arrays(starts, labels.take(pa.array(codes.ravel())))

    def logged_columns(self, codes):
        return slice(None)

    def unlogged(self, codes):
        return np.zeros(self.n_items, dtype=bool), np.zeros(self.n_items, dtype=bool)

    def chance_of_any(self, marginals, on, off):
        return np.zeros(len(marginals))

    def keys(self, codes):
        return codes.astype(np.int64)

    def describe(self):
        return f"an order of {self.n_items} items"

    def phrase(self, code, labels):
        return " > ".join(str(labels[item]) for item in code)

    @property
    def n_outputs(self):
        return len(self.every(10**9))

    @property
    def n_scores(self):
        return self.n_items

    def every(self, most):
        orders = np.array(list(permutations(range(self.n_items))), dtype=np.int32)
        return orders if len(orders) <= most else None

    def behind(self, codes):
        """How many items stand behind each item, (n, k)."""
        return self.n_items - 1 - np.argsort(codes, axis=1)

    def distribution(self, scores):
        linear = scores @ self.behind(self.every(10**9)).T
        linear = np.exp(linear - linear.max(axis=1, keepdims=True))
        return linear / linear.sum(axis=1, keepdims=True)

    def chosen(self, scores, y, starts):
        return (np.repeat(scores, np.diff(starts), axis=0) * self.behind(y)).sum(axis=1)

    def spread(self, coef, y, starts):
        out = np.zeros((len(starts) - 1, self.n_items))
        np.add.at(out, np.repeat(np.arange(len(out)), np.diff(starts)), coef[:, None] * self.behind(y))
        return out

    def log_prob(self, scores, y, starts):
        linear = scores @ self.behind(self.every(10**9)).T
        top = linear.max(axis=1)
        total = top + np.log(np.exp(linear - top[:, None]).sum(axis=1))
        return np.minimum(self.chosen(scores, y, starts) - np.repeat(total, np.diff(starts)), 0.0)

    def pull_back(self, scores, y, starts, coef):
        total = self.spread(coef, y, starts) * 0.0
        np.add.at(total, np.repeat(np.arange(len(scores)), np.diff(starts)), coef[:, None])
        return self.spread(coef, y, starts) - total * self.marginals(scores)

    def marginals(self, scores):
        return self.distribution(scores) @ self.behind(self.every(10**9))

    def pull_back_expected(self, scores, values, coef):
        p, features = self.distribution(scores), self.behind(self.every(10**9))
        of_output = values @ features.T
        centred = of_output - (p * of_output).sum(axis=1, keepdims=True)
        return coef[:, None] * ((p * centred) @ features)

    def sample(self, scores, rng):
        cumulative = np.cumsum(self.distribution(scores), axis=1)
        drawn = np.argmax(rng.random((len(scores), 1)) < cumulative / cumulative[:, -1:], axis=1)
        return self.every(10**9)[drawn]

    def argmax(self, scores):
        return np.argsort(-scores, axis=1, kind="stable").astype(np.int32)

    def loss(self, truth, y):
        return np.count_nonzero(truth != y, axis=1).astype(float)

    def expected_loss(self, scores, truth):
        wrong = (truth[:, None, :] != self.every(10**9)[None]).sum(axis=2)
        return (self.distribution(scores) * wrong).sum(axis=1)

    def variation(self, scores):
        p = self.distribution(scores)
        return float(np.abs(p - p.mean(axis=0)).sum(axis=1).mean() / 2.0)

    def constant_scores(self, y):
        return self.behind(np.asarray(y)[None])[0].astype(float)


@pytest.fixture
def log(monkeypatch):
    monkeypatch.setitem(KINDS, "ranking", Ranking)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    logger = poem.Policy(Ranking(3), 0.3 * rng.normal(size=(3, 3)), True, ITEMS)
    best = np.array(ITEMS)[np.argsort(-np.c_[X, np.zeros(600)], axis=1)]
    return poem.simulate(X, best, logger, replay=1, rng=rng)


def test_it_is_learnt_certified_and_judged(log):
    found = poem.fit(log, learners=BRIEF, loss_bounds=(0, 3))
    assert found.certified
    assert np.array_equal(np.sort(found.policy.predict(log.X), axis=1), np.tile(ITEMS, (600, 1)))
    assert poem.evaluate(found.policy, log)["policy", "DR"].value < log.loss.mean()


def test_its_files_are_read_as_they_were_written(log, tmp_path):
    poem.write_log(log, tmp_path / "log.parquet")
    again = poem.read_log(tmp_path / "log.parquet")
    assert again.fingerprint() == log.fingerprint()
    policy = poem.constant_policy(log, ["shop", "ads", "news"])
    loaded = poem.load_policy(policy.with_floor(0.1).save(tmp_path / "policy.poem"))
    assert loaded.structure == Ranking(3)
    assert loaded.predict(log.X[:1]).tolist() == [["shop", "ads", "news"]]


def test_pages_and_checks_speak_of_it(log, tmp_path):
    assert "an order of 3 items: ads, news, shop" in repr(log)
    assert "an order of 3 items" in str(poem.inspect(log))
    page = poem.write_report(poem.uniform_policy(log), log, tmp_path / "page.html")
    assert "an order of 3 items" in page.read_text()
