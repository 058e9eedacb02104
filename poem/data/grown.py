"""What trees add to a log: features of its contexts or, where actions have features, of its candidates.

Trees over pairs see the features of a context first and then those of an action, without the 0/1 features of ids. Their
sum is one more feature of each candidate, before all others: a policy with trees is linear in it.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import Forest, Matrix, Threads, is_sparse
from poem.data.log import BanditLog
from poem.structures import Available

WIDEST = 1024  # columns that classes or actions may add to dense contexts
PAIRS = 1 << 13  # that a thread takes at a time, about


def beside(X: Matrix, more: Matrix) -> Any:
    """Return contexts with more columns; dense ones stay so unless there are many."""
    if not is_sparse(X) and more.shape[1] <= WIDEST:
        return np.hstack([X, more.toarray()])
    joined = sp.csr_array(sp.hstack([sp.csr_array(X), more], format="csr"))
    # Trees want narrow indices.
    joined.indices, joined.indptr = joined.indices.astype(np.int32), joined.indptr.astype(np.int32)
    return joined


def pair_width(log: BanditLog) -> int:
    """Return how many features trees see of a context and an action."""
    return log.n_features + log.structure.n_scores - len(log.structure.known_labels(log.labels))


def logged_pairs(log: BanditLog, context: IntArray, position: AnyArray) -> Any:
    """Return what trees see of some rows: the features of their contexts and of the actions chosen there."""
    available = log.available
    assert available is not None
    assert available.features is not None
    places = available.starts[context] + position
    rows = places if available.row is None else available.row[places]
    return beside(log.X[context], available.features[rows][:, : pair_width(log) - log.n_features])


def pair_scores(
    forest: Forest, X: Matrix, available: Available, contexts: IntArray | None = None, threads: Threads | None = None
) -> FloatArray:
    """Return the sum of all trees for each candidate of all or some contexts, flat."""
    contexts = np.arange(available.n_contexts) if contexts is None else contexts
    counts = available.starts[contexts + 1] - available.starts[contexts]
    ends = np.cumsum(counts)
    out = np.empty(int(counts.sum()))
    used, d, Z = forest.used, X.shape[1], available.features
    assert Z is not None
    of_context, of_action = used[used < d], used[used >= d] - d

    def one(some: IntArray) -> None:
        """Fill what neighbouring contexts have."""
        here, places = contexts[some], available.places(contexts[some])
        x = np.repeat(_dense(X[here], of_context), counts[some], axis=0)
        z = _dense(Z[places if available.row is None else available.row[places]], of_action)
        out[ends[some[0]] - counts[some[0]] : ends[some[-1]]] = forest.scores_of_used(np.hstack([x, z]))[:, 0]

    cuts = np.flatnonzero(np.diff(ends // PAIRS)) + 1
    (threads or Threads()).map(one, [some for some in np.split(np.arange(len(contexts)), cuts) if len(some)])
    return out


def _dense(rows: Matrix, columns: IntArray) -> FloatArray:
    return np.asarray(rows[:, columns].toarray() if is_sparse(rows) else rows[:, columns])


def grown_offers(
    X: Matrix, available: Available, forest: Forest, contexts: IntArray | None = None, threads: Threads | None = None
) -> Available:
    """Return candidates with what trees say of each as their first feature; 0 in all but some contexts, if given."""
    scores = pair_scores(forest, X, available, contexts, threads)
    if contexts is None:
        return replace(available, more=scores)
    more = np.zeros(len(available))
    more[available.places(contexts)] = scores
    return replace(available, more=more)


def grown_log(log: BanditLog, forest: Forest, threads: Threads | None = None) -> BanditLog:
    """Return a log with the features that trees add; of candidates, in contexts that any row saw."""
    if not log.structure.described:
        return log.with_contexts(forest.extended(log.X, threads))
    assert log.available is not None
    offers = grown_offers(log.X, log.available, forest, np.unique(log.context), threads)
    return log.replaced(available=offers, structure=log.structure.grown(), action_names=None)
