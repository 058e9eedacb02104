"""Logs of choices among candidates, with known truth or judged on a uniform log, and their text for Vowpal Wabbit."""

import bz2
import io
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import scipy.sparse as sp
from scipy.special import expit

import poem

Array = np.ndarray


@dataclass(frozen=True, eq=False)
class Requests:
    """Contexts with their candidates: those of request i are ``starts[i]`` to ``starts[i + 1]``.

    ``row`` (N,) says which row of ``Z`` (rows, k) describes each candidate. In a catalogue that row is also the id of
    the action. ``value`` (N,) is the true mean reward of each candidate; None if nobody knows it.
    """

    X: sp.csr_array
    Z: sp.csr_array
    starts: Array
    row: Array
    value: Array | None = None
    catalogue: bool = True

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def owner(self) -> Array:
        """The request of each candidate, (N,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.starts))

    def take(self, requests: Array) -> "Requests":
        """Return some of the requests, in the order given."""
        starts, at = _ranges(self.starts, requests)
        value = None if self.value is None else self.value[at]
        return Requests(self.X[requests], self.Z, starts, self.row[at], value, self.catalogue)

    def best(self, scores: Array) -> Array:
        """Return the candidate of the highest score in each request, (n,), counted over all requests."""
        order = np.lexsort((-scores, self.owner))
        return order[self.starts[:-1]]

    def softmax(self, scores: Array) -> Array:
        """Return a softmax over each request's candidates, (N,)."""
        raised = np.exp(scores - np.maximum.reduceat(scores, self.starts[:-1])[self.owner])
        return raised / np.add.reduceat(raised, self.starts[:-1])[self.owner]

    def given(self) -> dict[str, object]:
        """Return what poem is told about the candidates, in the log and in requests."""
        if self.catalogue:
            ids = range(self.Z.shape[0])
            return {"available": np.split(self.row, self.starts[1:-1]), "actions": poem.Catalogue(ids, self.Z)}
        return {"available": np.diff(self.starts), "actions": self.Z[self.row]}


@dataclass(frozen=True, eq=False)
class Logged:
    """What was chosen in each request, counted over all candidates, with its reward and propensity; all (n,)."""

    requests: Requests
    chosen: Array
    reward: Array
    propensity: Array
    same: Array | None = None  # rows with the same number have the same request
    independent: bool = False  # even where requests are the same

    def __len__(self) -> int:
        return len(self.chosen)

    @property
    def position(self) -> Array:
        """The place of the chosen candidate in its list, (n,)."""
        return self.chosen - self.requests.starts[:-1]

    def take(self, rows: Array) -> "Logged":
        """Return some of the rows."""
        requests = self.requests.take(rows)
        same = None if self.same is None else self.same[rows]
        chosen = requests.starts[:-1] + self.position[rows]
        return Logged(requests, chosen, self.reward[rows], self.propensity[rows], same, self.independent)

    def log(self, **options: object) -> poem.BanditLog:
        """Return the log as poem takes it; the same request is stored once."""
        there, context = self.requests, None
        y = there.row[self.chosen] if there.catalogue else self.position
        if self.same is not None:
            _, first, context = np.unique(self.same, return_index=True, return_inverse=True)
            there = there.take(first)
        group = np.arange(len(self)) if self.independent else None
        columns = {"reward": self.reward, "propensity": self.propensity, "context": context, "group": group}
        return poem.BanditLog(there.X, y, **columns, **there.given(), **options)


def _ranges(starts: Array, wanted: Array) -> tuple[Array, Array]:
    """Return the starts of some ranges put one after another, and where their members were."""
    sizes = np.diff(starts)[wanted]
    new = np.concatenate([[0], np.cumsum(sizes)])
    return new, np.repeat(starts[wanted] - new[:-1], sizes) + np.arange(new[-1])


def draw(requests: Requests, probability: Array, rng: np.random.Generator, same: Array | None = None) -> Logged:
    """Choose one candidate per request, and draw its reward, 0 or 1."""
    key = np.log(rng.random(len(probability))) / probability  # the largest of U^(1/p) is a draw from p
    chosen = requests.best(key)
    reward = (rng.random(len(chosen)) < requests.value[chosen]).astype(float)
    return Logged(requests, chosen, reward, probability[chosen], same)


# ---- learning to rank ------------------------------------------------------------------------------------------------

DECISIONS, LOGGER_QUERIES, UNIFORM = 25, 10, 0.1  # per query; labelled ones for the logger; its share of chance


def ranking(folder: Path, seed: int) -> tuple[Logged, Requests, Array]:
    """Return a log of one document chosen per query, the test queries, and the logger's probabilities there.

    Each seed splits the 251 queries into 201 and 50. A candidate's features are those of the document; contexts have
    none. The reward is a click, with a probability of a quarter of the grade. The logger is a softmax of a ridge
    regression on the documents of 10 queries, mixed with chance.
    """
    rng = np.random.default_rng([seed, 16, 1])
    every = _queries(folder)
    order = rng.permutation(len(every))
    train, test = every.take(order[:201]), every.take(order[201:])
    weights = _ridge(train.take(np.arange(LOGGER_QUERIES)), 10.0)
    repeated = np.tile(np.arange(len(train)), DECISIONS)
    shown = train.take(repeated)
    return draw(shown, _weak(shown, weights), rng, repeated), test, _weak(test, weights)


def _queries(folder: Path) -> Requests:
    """Read both parts, without the queries of a single document."""
    from sklearn.datasets import load_svmlight_file

    parts = []
    for part in ("train", "test"):
        with bz2.open(folder / f"rank.{part}.svm.bz2") as file:
            X, grade = load_svmlight_file(file, n_features=300, zero_based=False)
        parts.append((sp.csr_array(X), grade, np.loadtxt(folder / f"rank.{part}.query", dtype=int)))
    documents, grades, counts = zip(*parts, strict=True)
    Z, grade, sizes = sp.vstack(documents, "csr"), np.concatenate(grades), np.concatenate(counts)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    whole = Requests(sp.csr_array((len(sizes), 0)), Z, starts, np.arange(len(grade)), grade / 4.0, catalogue=False)
    return whole.take(np.flatnonzero(sizes > 1))


def _ridge(queries: Requests, penalty: float) -> Array:
    """Return a regression of relevance on features, of unit spread over the documents."""
    Z = queries.Z[queries.row].toarray()
    centred = Z - Z.mean(axis=0)
    w = np.linalg.solve(centred.T @ centred + penalty * np.eye(Z.shape[1]), centred.T @ queries.value)
    return w / (centred @ w).std()


def _weak(requests: Requests, weights: Array) -> Array:
    sizes = np.diff(requests.starts)[requests.owner]
    return (1.0 - UNIFORM) * requests.softmax(requests.Z[requests.row] @ weights) + UNIFORM / sizes


# ---- articles, a fifth of them new -----------------------------------------------------------------------------------

ARTICLES, NEW, TOPICS, TONES, NOISE = 300, 60, 12, 3, 5


def articles(seed: int, rows: int = 10_000, tests: int = 4_000, new: int = NEW) -> tuple[Logged, Requests, Array]:
    """Return a log of 5 to 20 of 240 articles per request, test requests of 300, and the logger's probabilities there.

    An article has a topic and three numbers for its tone; a reader has interests, tastes and five numbers that do not
    matter. Whether an article is read depends on interest × topic, on taste × tone, and on a quality of its own that
    no feature shows. The logger prefers some topics and one tone, for all readers, and has 15% of chance.
    """
    rng = np.random.default_rng([seed, 16, 3])
    topic, tone = rng.integers(0, TOPICS, ARTICLES), rng.normal(size=(ARTICLES, TONES))
    quality, popular = 0.3 * rng.normal(size=ARTICLES), 0.5 * rng.normal(size=TOPICS)
    Z = sp.csr_array(np.hstack([np.eye(TOPICS)[topic], tone]))

    def requests(n: int, known: Array) -> Requests:
        interests = rng.dirichlet(np.full(TOPICS, 0.3), n)
        tastes, noise = rng.normal(size=(n, TONES)), rng.normal(size=(n, NOISE))
        sizes = rng.integers(5, 21, n)
        owner = np.repeat(np.arange(n), sizes)
        row = np.concatenate([rng.choice(known, size, replace=False) for size in sizes])
        score = 3.0 * interests[owner, topic[row]] + 0.5 * (tastes[owner] * tone[row]).sum(axis=1) + quality[row] - 1.8
        X = sp.csr_array(np.hstack([interests, tastes, noise]))
        return Requests(X, Z, np.concatenate([[0], np.cumsum(sizes)]), row, expit(score))

    def logger(there: Requests) -> Array:
        sizes = np.diff(there.starts)[there.owner]
        return 0.85 * there.softmax(popular[topic[there.row]] + 0.5 * tone[there.row, 0]) + 0.15 / sizes

    old = np.sort(rng.permutation(ARTICLES)[new:])
    shown, test = requests(rows, old), requests(tests, np.arange(ARTICLES))
    return draw(shown, logger(shown), rng), test, logger(test)


# ---- the Open Bandit data --------------------------------------------------------------------------------------------

CAMPAIGNS = ("all", "men", "women")
TRAINED = 0.8  # of Thompson sampling's log, another part for each seed


def open_bandit(archive: Path, campaign: str, seed: int) -> tuple[Logged, Logged]:
    """Return a part of Thompson sampling's log and all of the uniform one: contexts are positions and users."""
    with tarfile.open(archive) as tar:
        frames = [
            pd.read_csv(io.BytesIO(tar.extractfile(f"obd/{name}").read()), index_col=0)
            for name in (f"bts/{campaign}/{campaign}.csv", f"random/{campaign}/{campaign}.csv")
        ]
        items = pd.read_csv(io.BytesIO(tar.extractfile(f"obd/random/{campaign}/item_context.csv").read()), index_col=0)
    items = items.sort_values("item_id")
    kinds = pd.get_dummies(items[[f"item_feature_{j}" for j in (1, 2, 3)]], dtype=float)
    Z = sp.csr_array(np.column_stack([items["item_feature_0"], kinds]))
    both = pd.concat(frames)
    columns = ["position", *(f"user_feature_{j}" for j in range(4))]
    X = sp.csr_array(pd.get_dummies(both[columns].astype(str), dtype=float).to_numpy())
    n, size = len(both), len(items)
    requests = Requests(X, Z, size * np.arange(n + 1), np.tile(np.arange(size), n))
    chosen = requests.starts[:-1] + both["item_id"].to_numpy()
    same = both.groupby(columns).ngroup().to_numpy()
    every = Logged(requests, chosen, both["click"].to_numpy(float), both["propensity_score"].to_numpy(), same, True)
    rng, first = np.random.default_rng([seed, 16, 2]), len(frames[0])
    part = np.sort(rng.permutation(first)[: round(TRAINED * first)])
    return every.take(part), every.take(np.arange(first, n))


# ---- Vowpal Wabbit's text --------------------------------------------------------------------------------------------


def _texts(X: sp.csr_array, letter: str) -> list[str]:
    """Write the non-zeros of each row as ``name:value``."""
    bounds = X.indptr.tolist()
    words = [f"{letter}{column}:{value:.6g}" for column, value in zip(X.indices.tolist(), X.data.tolist(), strict=True)]
    return [" ".join(words[start:stop]) for start, stop in pairwise(bounds)]


def lines(requests: Requests, logged: Logged | None = None) -> Iterator[str]:
    """Yield the requests as multi-line text, with costs of minus the reward: what was not seen counts as 0."""
    shared, actions = _texts(requests.X, "x"), _texts(requests.Z, "z")
    starts, row = requests.starts.tolist(), requests.row.tolist()
    labels = {}
    if logged:
        columns = (logged.chosen.tolist(), logged.reward.tolist(), logged.propensity.tolist())
        labels = {at: f"0:{-reward:g}:{p:.9g} " for at, reward, p in zip(*columns, strict=True)}
    for i, text in enumerate(shared):
        if text:
            yield f"shared |s {text}\n"
        for at in range(starts[i], starts[i + 1]):
            yield f"{labels.get(at, '')}|a {actions[row[at]]}\n"
        yield "\n"
