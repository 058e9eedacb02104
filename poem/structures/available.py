"""What could be chosen in each context, ragged: nothing is padded."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from poem.arrays import AnyArray, BoolArray, FloatArray, IntArray, frozen
from poem.compute import Matrix, exact_kernel, ragged_places
from poem.errors import LogError

MOST_CANDIDATES = 10_000  # of one context


@dataclass(frozen=True, eq=False)
class Available:
    """The candidates of each context.

    Attributes
    ----------
    starts : (m + 1,) int
        Candidates ``starts[c]`` to ``starts[c + 1]`` belong to context c.
    action : (N,) int
        Which action each candidate is: a position in the labels.
    features : CSR matrix, optional
        Features of actions. Without them an action is known by its identity alone, as a class is.
    row : (N,) int, optional
        The row of ``features`` that describes each candidate; its own, if not given.
    more : (N,) float, optional
        One more feature of each candidate, before the others: what trees say of it. Catalogues stay small.
    """

    starts: IntArray
    action: AnyArray
    features: Matrix | None = None
    row: AnyArray | None = None
    more: FloatArray | None = None

    def __post_init__(self) -> None:
        for name, kind in (("starts", np.int64), ("action", np.int32), ("row", np.int32), ("more", np.float64)):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, frozen(value, kind))
        if self.features is not None:
            object.__setattr__(self, "features", _frozen_csr(self.features))

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__post_init__()  # copies of read-only arrays can be written to

    @property
    def n_contexts(self) -> int:
        """The number of contexts."""
        return len(self.starts) - 1

    @property
    def nbytes(self) -> int:
        """The memory that the arrays take."""
        return sum(array.nbytes for array in self.arrays())

    def __len__(self) -> int:
        return int(self.starts[-1])

    def counts(self) -> IntArray:
        """Return how many candidates each context has."""
        return np.diff(self.starts)

    def of(self, contexts: IntArray) -> "Available":
        """Return the candidates of some contexts; features are shared, not copied."""
        places = self.places(contexts)
        starts = np.append(0, np.cumsum(self.starts[contexts + 1] - self.starts[contexts]))
        row = places if self.row is None and self.features is not None else self.row
        row = row if row is None or self.row is None else self.row[places]
        return Available(
            starts, self.action[places], self.features, row, None if self.more is None else self.more[places]
        )

    def places(self, contexts: IntArray) -> IntArray:
        """Return where the candidates of some contexts are among all candidates."""
        first = self.starts[contexts]
        return ragged_places(first, self.starts[contexts + 1] - first)

    def positions(self, context: IntArray, codes: AnyArray) -> AnyArray:
        """Return the position of each row's output among the candidates of its context; −1 if it is none of them."""
        out = np.empty(len(codes), dtype=np.int32)
        _find(self.starts, self.action, context, frozen(codes, np.int32), out)
        return out

    def chance_of(self, probabilities: FloatArray, actions: BoolArray) -> FloatArray:
        """Return the probability of any of some actions in each context, (m,)."""
        wanted = probabilities * actions[self.action]
        return np.asarray(np.add.reduceat(wanted, self.starts[:-1]))

    def by_action(self, values: FloatArray, n_actions: int) -> Matrix:
        """Return values of candidates as a matrix of contexts × actions; what is not available is 0."""
        return sp.csr_array((values, self.action, self.starts), shape=(self.n_contexts, n_actions))

    def features_or_identity(self, n_actions: int) -> tuple[IntArray, AnyArray, FloatArray, AnyArray]:
        """Return the features as CSR arrays (pointers, columns, values), and the row of each candidate."""
        if self.features is None:
            every = np.arange(n_actions + 1)
            return frozen(every, np.int64), frozen(every[:-1], np.int32), frozen(np.ones(n_actions)), self.action
        row = np.arange(len(self), dtype=np.int32) if self.row is None else self.row
        z = self.features
        return frozen(z.indptr, np.int64), frozen(z.indices, np.int32), frozen(z.data), frozen(row)

    def joined(self) -> "Available":
        """Return the same candidates, with the feature that is kept apart among their own."""
        if self.more is None:
            return self
        assert self.features is not None
        z = self.features if self.row is None else self.features[self.row]
        at = z.indptr[:-1]
        parts = np.insert(z.data, at, self.more), np.insert(z.indices + 1, at, 0)
        pointers = z.indptr.astype(np.int64) + np.arange(len(self) + 1)
        return Available(self.starts, self.action, sp.csr_array((*parts, pointers), (len(self), z.shape[1] + 1)))

    @staticmethod
    def concat(parts: Sequence["Available"]) -> "Available":
        """Return the candidates of all contexts of several logs with the same labels."""
        starts = np.append(0, np.cumsum(np.concatenate([part.counts() for part in parts])))
        action = np.concatenate([part.action for part in parts])
        first = parts[0]
        if first.features is None:
            return Available(starts, action)
        if all(part.row is not None and _same(part.features, first.features) for part in parts):
            return Available(starts, action, first.features, np.concatenate([part._rows() for part in parts]))
        offsets = np.cumsum([0, *(part.features.shape[0] for part in parts[:-1] if part.features is not None)])
        row = np.concatenate([part._rows() + offset for part, offset in zip(parts, offsets, strict=True)])
        every: Any = [part.features for part in parts]
        stacked = sp.csr_array(sp.vstack(every, format="csr"))
        return Available(starts, action, stacked, row)

    def mean_square(self) -> float:
        """Return the mean squared norm of a candidate's features; 1 without features."""
        if self.features is None:
            return 1.0
        squares = np.asarray(self.features.multiply(self.features).sum(axis=1)).ravel()
        mean = float(squares.mean() if self.row is None else squares[self.row].mean())
        return mean + (0.0 if self.more is None else float(np.mean(self.more**2))) or 1.0

    def keys(self) -> Iterator[bytes]:
        """Yield bytes for each context that are equal where its candidates are."""
        for first, last in zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True):
            key = self.action[first:last].tobytes()
            if self.row is not None:
                key += self.row[first:last].tobytes()
            elif self.features is not None:
                some = self.features[first:last]
                key += some.indptr.tobytes() + some.indices.tobytes() + some.data.tobytes()
            yield key

    def arrays(self) -> list[AnyArray]:
        """Return all arrays, for a digest."""
        z = [] if self.features is None else [self.features.data, self.features.indices, self.features.indptr]
        return [self.starts, self.action, *z, *(one for one in (self.row, self.more) if one is not None)]

    def _rows(self) -> AnyArray:
        return np.arange(len(self)) if self.row is None else self.row

    def check(self, labels: Sequence[Any], place: Callable[[int], str] = "context {}".format) -> None:
        """Raise LogError for a context without candidates, with too many, or with one of them twice.

        ``place`` names a context in messages.
        """
        counts = self.counts()
        if len(counts) and counts.min() < 1:
            context = int(np.argmin(counts))
            raise LogError(f"{place(context)} has no candidates. Each decision needs at least one; drop such rows.")
        if len(counts) and counts.max() > MOST_CANDIDATES:
            context = int(np.argmax(counts))
            raise LogError(
                f"{place(context)} has {counts[context]:,} candidates; {MOST_CANDIDATES:,} is the most. Choose among "
                "fewer, as a first stage of ranking does."
            )
        keys = np.sort(np.repeat(np.arange(self.n_contexts), counts) * len(labels) + self.action)
        same = np.diff(keys) == 0
        if same.any():
            context, action = divmod(int(keys[np.argmax(same)]), len(labels))
            raise LogError(f"{place(context)} has the candidate {labels[action]!r} twice. Name each one once.")


def _same(one: Matrix, two: Matrix) -> bool:
    """Tell whether two CSR matrices are equal, and stored alike."""
    if one is two:
        return True
    alike = one.shape == two.shape and one.nnz == two.nnz
    return alike and all(
        np.array_equal(getattr(one, name), getattr(two, name)) for name in ("indptr", "indices", "data")
    )


def _frozen_csr(matrix: Matrix) -> Matrix:
    view = sp.csr_array(matrix.shape, dtype=np.float64)
    kind = np.int32 if max(matrix.nnz, *matrix.shape) < 2**31 else np.int64  # one for equal matrices
    view.data, view.indices, view.indptr = (
        frozen(matrix.data),
        frozen(matrix.indices, kind),
        frozen(matrix.indptr, kind),
    )
    return view


@exact_kernel
def _find(starts: IntArray, action: AnyArray, context: IntArray, codes: AnyArray, out: AnyArray) -> None:
    for i in range(codes.shape[0]):
        out[i] = -1
        first = starts[context[i]]
        for a in range(first, starts[context[i] + 1]):
            if action[a] == codes[i]:
                out[i] = a - first
                break
