"""Regression trees as arrays: what they add to the scores of a context, and the leaves that it falls into.

Nothing here grows a tree. The two children of a node are neighbours, and a leaf is its own left child with a threshold
that nothing exceeds, so that a fixed number of steps without a branch leads from any root to a leaf.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.compute.kernels import Threads, inlined, kernel
from poem.compute.matrix import Matrix, is_sparse

BLOCK = 1 << 13  # contexts that a thread takes at a time
TILE = 64  # contexts that go through one tree after the other: they and the tree stay in the fastest memory
ARRAYS = {"feature": np.int32, "threshold": np.float64, "left": np.int32, "value": np.float64}
PER_TREE = {"root": np.int32, "column": np.int32}


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees over contexts; each adds the value of one leaf to one column.

    Attributes
    ----------
    feature, threshold, left, value : (nodes,) array
        A context goes to the node ``left`` if its ``feature`` is at most ``threshold``, else to the next one.
    root, column : (trees,) array
        Where each tree begins, and what it adds to.
    n_features, n_columns : int
    leafy : int
        How many of the first trees have leaves that are features of their own.
    """

    feature: AnyArray
    threshold: FloatArray
    left: AnyArray
    value: FloatArray
    root: AnyArray
    column: AnyArray
    n_features: int
    n_columns: int
    leafy: int = 0

    def __post_init__(self) -> None:
        for name, kind in (ARRAYS | PER_TREE).items():
            object.__setattr__(self, name, frozen(getattr(self, name), kind))
        _check(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # copies of read-only arrays can be written to

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Forest) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __len__(self) -> int:
        return len(self.root)

    @property
    def nbytes(self) -> int:
        """The memory that the arrays take."""
        return sum(getattr(self, name).nbytes for name in ARRAYS | PER_TREE)

    @cached_property
    def digest(self) -> str:
        """The same for the same trees."""
        sizes = np.array([self.n_features, self.n_columns, self.leafy])
        parts = [sizes, *(getattr(self, name) for name in ARRAYS | PER_TREE)]
        return hashlib.blake2b(b"".join(part.tobytes() for part in parts), digest_size=16).hexdigest()

    @cached_property
    def depth(self) -> int:
        """How many steps lead from any root to a leaf."""
        here, steps = np.unique(self.root), 0
        while len(inner := here[self.left[here] != here]):
            here, steps = np.concatenate([self.left[inner], self.left[inner] + 1]), steps + 1
        return steps

    # ---- what it says of contexts -----------------------------------------------------------

    def scores(self, X: Matrix, threads: Threads | None = None) -> FloatArray:
        """Return the sum of the trees of each column, (m, columns)."""
        out = np.zeros((X.shape[0], self.n_columns))
        root, column = _unsigned(self.root), _unsigned(self.column)

        def one(rows: slice) -> None:
            part, nodes = self._dense(X, rows), self._nodes(X)
            _add_scores(part, *nodes, self.value, root, column, self.depth, out[rows])

        (threads or Threads()).map(one, _blocks(X.shape[0]))
        return out

    def scores_of_used(self, seen: FloatArray) -> FloatArray:
        """Return the same for contexts with only those features that any tree looks at, (m, used)."""
        out = np.zeros((len(seen), self.n_columns))
        nodes = _unsigned(self._places), self.threshold, _unsigned(self.left)
        trees = _unsigned(self.root), _unsigned(self.column)
        _add_scores(frozen(seen), *nodes, self.value, *trees, self.depth, out)
        return out

    def leaves(self, X: Matrix, threads: Threads | None = None) -> Matrix:
        """Return a column of 0/1 for each leaf of the first trees, (m, leaves), sparse."""
        m, trees = X.shape[0], self.leafy
        node = np.empty((m, trees), dtype=np.int32)

        def one(rows: slice) -> None:
            part, nodes = self._dense(X, rows), self._nodes(X)
            _find_leaves(part, *nodes, _unsigned(self.root[:trees]), self.depth, node[rows])

        (threads or Threads()).map(one, _blocks(m))
        place = np.sort(self._leaf_number[node], axis=1).ravel()
        borders = np.arange(0, m * trees + 1, max(trees, 1), dtype=np.int32)[: m + 1]
        return sp.csr_array((np.ones(m * trees), place, borders), shape=(m, self.n_leaves))

    @property
    def n_leaves(self) -> int:
        """The number of leaves that are features."""
        return int(self._leaf_number.max(initial=-1)) + 1 if self.leafy else 0

    @property
    def width(self) -> int:
        """The number of columns of :meth:`extended`."""
        return self.n_features + self.n_columns + self.n_leaves

    def extended(self, X: Matrix, threads: Threads | None = None) -> Matrix:
        """Return contexts with the trees' scores, and with their leaves if these are features, (m, width)."""
        scores = self.scores(X, threads)
        if not is_sparse(X) and not self.leafy:
            return np.hstack([X, scores])
        parts = [sp.csr_array(X), sp.csr_array(scores)] + ([self.leaves(X, threads)] if self.leafy else [])
        joined = sp.csr_array(sp.hstack(parts, format="csr"))
        joined.indices, joined.indptr = joined.indices.astype(np.int32), joined.indptr.astype(np.int32)
        return joined

    def _dense(self, X: Matrix, rows: slice) -> FloatArray:
        """Return the features of some contexts that any tree looks at."""
        if is_sparse(X):
            return frozen(X[rows][:, self.used].toarray())
        return frozen(X[rows])

    @cached_property
    def used(self) -> IntArray:
        """The features that any tree looks at."""
        inner = self.left != np.arange(len(self.left))
        return np.unique(self.feature[inner]).astype(np.int64)

    def _nodes(self, X: Matrix) -> tuple[AnyArray, FloatArray, AnyArray]:
        """Return the nodes, with features numbered as :meth:`_dense` has them."""
        feature = self._places if is_sparse(X) else self.feature
        return _unsigned(feature), self.threshold, _unsigned(self.left)

    @cached_property
    def _places(self) -> AnyArray:
        """The place of each node's feature among those that are used; a leaf looks at the first."""
        inner = self.left != np.arange(len(self.left))
        return frozen(np.where(inner, np.searchsorted(self.used, self.feature), 0), np.int32)

    @cached_property
    def _leaf_number(self) -> IntArray:
        """The number of each leaf of the first trees among all of them, by node."""
        last = len(self.left) if self.leafy >= len(self) else int(self.root[self.leafy])
        leaf = self.left[:last] == np.arange(last)
        return np.where(leaf, np.cumsum(leaf) - 1, -1).astype(np.int32)

    # ---- parts and files --------------------------------------------------------------------

    def scaled(self, factor: float) -> "Forest":
        """Return the same trees with other values."""
        return replace(self, value=self.value * factor)

    def for_columns(self, count: int, leafy: int = 0) -> "Forest":
        """Return the trees of the first columns; the first of these have leaves that are features."""
        kept = np.flatnonzero(self.column < count)
        ends = np.append(self.root, len(self.left))[1:]
        nodes = [np.arange(self.root[tree], ends[tree]) for tree in kept]
        sizes = np.array([len(part) for part in nodes], dtype=np.int64)
        root = np.concatenate([[0], np.cumsum(sizes)])[:-1]
        place = np.concatenate([*nodes, np.empty(0, dtype=np.int64)]).astype(np.int64)
        moved = np.repeat(root - self.root[kept], sizes)
        return Forest(
            self.feature[place],
            self.threshold[place],
            self.left[place] + moved,
            self.value[place],
            root,
            self.column[kept],
            self.n_features,
            count,
            min(leafy, len(kept)),
        )

    def first_with(self, leaves: int) -> int:
        """Return how many of the first trees have at most so many leaves together."""
        leaf = self.left == np.arange(len(self.left))
        ends = np.append(self.root, len(self.left))[1:]
        return int(np.searchsorted(np.cumsum(leaf)[ends - 1], leaves, side="right")) if len(self) else 0

    def to_arrays(self, prefix: str) -> dict[str, AnyArray]:
        """Return everything as arrays for a file."""
        sizes = np.array([self.n_features, self.n_columns, self.leafy], dtype=np.int64)
        return {f"{prefix}.sizes": sizes} | {f"{prefix}.{name}": np.array(getattr(self, name)) for name in _NAMES}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray], prefix: str) -> "Forest | None":
        """Undo :meth:`to_arrays`; None if there are no trees. ValueError or KeyError say that arrays are broken."""
        if f"{prefix}.sizes" not in arrays:
            return None
        n_features, n_columns, leafy = (int(size) for size in arrays[f"{prefix}.sizes"])
        found = [arrays[f"{prefix}.{name}"] for name in _NAMES]
        wanted = [np.dtype(kind) for kind in (ARRAYS | PER_TREE).values()]
        if [part.dtype for part in found] != wanted or any(len(part.shape) != 1 for part in found):
            raise ValueError("trees of a wrong type")
        feature, threshold, left, value, root, column = found
        return cls(feature, threshold, left, value, root, column, n_features, n_columns, leafy)


_NAMES = tuple(ARRAYS | PER_TREE)


def _check(forest: Forest) -> None:
    """Raise ValueError for arrays that are no trees: kernels trust them."""
    nodes, trees = len(forest.left), len(forest.root)
    alike = all(len(getattr(forest, name)) == nodes for name in ARRAYS) and len(forest.column) == trees
    if not alike or forest.n_columns < 1 or forest.n_features < 0 or not 0 <= forest.leafy <= trees:
        raise ValueError("trees of different sizes")
    place = np.arange(nodes)
    inner = forest.left != place
    ends = np.append(forest.root, nodes)
    whole = trees == 0 or (forest.root[0] == 0 and np.all(np.diff(ends) > 0) and int(ends[-2]) < nodes)
    if not whole or (nodes and trees == 0):
        raise ValueError("trees that do not follow each other")
    end = np.repeat(ends[1:], np.diff(ends)) if trees else place
    # Children come after their parents and within their tree, so that every path ends at a leaf.
    if np.any(forest.left[inner] <= place[inner]) or np.any(forest.left[inner] + 1 >= end[inner]):
        raise ValueError("a tree with a child outside of it")
    if np.any(forest.feature[inner] < 0) or np.any(forest.feature[inner] >= forest.n_features):
        raise ValueError("a tree with a feature that is not there")
    if np.any(forest.column < 0) or np.any(forest.column >= forest.n_columns):
        raise ValueError("a tree for a column that is not there")
    if not np.isfinite(forest.value).all() or not np.isfinite(forest.threshold[inner]).all():
        raise ValueError("a tree with numbers that are not finite")
    if np.any(forest.feature[~inner] != 0) or np.any(forest.threshold[~inner] != np.inf):
        raise ValueError("a leaf that looks at a feature")


def _unsigned(numbers: AnyArray) -> AnyArray:
    """Return whole numbers of which a loop knows that none is negative: it need not look, and is twice as fast."""
    return numbers.view(np.uint32)


def _blocks(m: int) -> list[slice]:
    return [slice(first, min(first + BLOCK, m)) for first in range(0, m, BLOCK)]


@inlined
def _leaf(x: FloatArray, node: int, feature: AnyArray, threshold: FloatArray, left: AnyArray, depth: int) -> int:
    """Return the leaf that a context ends in, from a root."""
    for _ in range(depth):
        node = left[node] + (x[feature[node]] > threshold[node])
    return node


@kernel
def _add_scores(
    X: FloatArray,
    feature: AnyArray,
    threshold: FloatArray,
    left: AnyArray,
    value: FloatArray,
    root: AnyArray,
    column: AnyArray,
    depth: int,
    out: FloatArray,
) -> None:
    for first in range(0, X.shape[0], TILE):
        last = min(first + TILE, X.shape[0])
        for tree in range(len(root)):
            for i in range(first, last):
                out[i, column[tree]] += value[_leaf(X[i], root[tree], feature, threshold, left, depth)]


@kernel
def _find_leaves(
    X: FloatArray,
    feature: AnyArray,
    threshold: FloatArray,
    left: AnyArray,
    root: AnyArray,
    depth: int,
    out: AnyArray,
) -> None:
    for i in range(X.shape[0]):
        for tree in range(len(root)):
            out[i, tree] = _leaf(X[i], root[tree], feature, threshold, left, depth)
