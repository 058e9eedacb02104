"""What a policy does otherwise than the log: which outputs rise and fall, where, and by which features.

Contexts and rows are gone through block by block: nothing of the size rows × outputs is ever held.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from poem.arrays import BoolArray, FloatArray, IntArray
from poem.compute import is_sparse
from poem.data import BanditLog
from poem.policies import FlooredPolicy, Policy

AnyPolicy = Policy | FlooredPolicy

BLOCK = 1 << 21  # numbers that one block holds
FEW_ROWS = 30  # logged rows under which an output is hardly supported
SEGMENTS_TRIED, SEGMENTS_SHOWN = 24, 5
LEAST_SEGMENT = 0.02  # of the rows, on either side
OUTPUTS_PER_SEGMENT, FEATURES_PER_OUTPUT = 3, 5


@dataclass(frozen=True)
class Change:
    """One output: its share of the decisions in the log and under the policy, and what supports it.

    ``weighted`` is the share that the weighted log gives it, with its standard error; it estimates ``new``.
    """

    label: str
    logged: float
    new: float
    other: float | None
    rows: int
    outcome: float
    few: bool
    weighted: float
    weighted_error: float

    @property
    def change(self) -> float:
        """How much its share rises."""
        return self.new - self.logged


@dataclass(frozen=True)
class Shift:
    """One output within a segment."""

    label: str
    logged: float
    new: float


@dataclass(frozen=True)
class Segment:
    """Some contexts, and the outputs that rise and fall most there."""

    name: str
    rows: int
    rises: tuple[Shift, ...]
    falls: tuple[Shift, ...]


@dataclass(frozen=True)
class Pull:
    """One output, and the features that make it more and less likely: (name, weight × standard deviation)."""

    label: str
    up: tuple[tuple[str, float], ...]
    down: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Changes:
    """All of it; outputs in the order of their change, the greatest rise first.

    ``otherwise`` is the share of the logged decisions that the policy would have made otherwise.
    """

    outputs: tuple[Change, ...]
    segments: tuple[Segment, ...]
    pulls: tuple[Pull, ...]
    otherwise: float


def find_changes(policy: AnyPolicy, log: BanditLog, ratio: FloatArray, sign: float, other: AnyPolicy | None) -> Changes:
    """Compare a policy with a log; ``ratio`` are its weights, ``sign`` turns losses into what the user calls them."""
    spread = _spread(log)
    cuts = _cuts(policy, log, spread)
    inside = _inside(log, cuts)
    new, old = _policy_sums(policy, log, inside), _logged_sums(log, inside)
    theirs = None if other is None else _policy_sums(other, log, inside[:, :0])[0] / len(log)
    outputs = _outputs(log, new[0] / len(log), theirs, ratio, sign)
    ordered = sorted(outputs, key=lambda one: -one.change)
    return Changes(
        tuple(ordered),
        _segments(log, cuts, inside, new, old),
        _pulls(policy, spread, _most_changed(outputs)),
        1.0 - float(np.mean(ratio * np.exp(log.log_propensity))),
    )


# ---- shares ---------------------------------------------------------------------------------


def _policy_sums(policy: AnyPolicy, log: BanditLog, inside: BoolArray) -> FloatArray:
    """Return the expected number of rows with each output, of all rows and of those in each segment: (1 + s, k)."""
    counts = np.bincount(log.context, minlength=log.n_contexts).astype(np.float64)
    used = np.flatnonzero(counts)
    total = np.zeros((1 + inside.shape[1], len(log.labels)))
    width = len(log.labels) if is_sparse(log.X) else max(len(log.labels), log.n_features)
    for block in _blocks(len(used), width):
        contexts = used[block]
        parts = np.column_stack([np.ones(len(contexts)), inside[contexts]]) * counts[contexts, None]
        total += parts.T @ policy.marginals(log.X[contexts])
    return total


def _logged_sums(log: BanditLog, inside: BoolArray) -> FloatArray:
    """Return the number of logged rows with each output, of all rows and of those in each segment: (1 + s, k)."""

    def columns(rows: slice) -> FloatArray:
        here = inside[log.context[rows]]
        return np.column_stack([np.ones(len(here)), here])

    return _sums_by_output(log, columns, 1 + inside.shape[1])


def _sums_by_output(log: BanditLog, columns: Callable[[slice], FloatArray], width: int) -> FloatArray:
    """Add up columns (n, w) over the rows with each output: (w, k)."""
    total = np.zeros((width, len(log.labels)))
    for rows in _blocks(len(log), max(width, log.y[0].size)):
        total += columns(rows).T @ log.structure.indicators(log.y[rows])
    return total


def _outputs(log: BanditLog, new: FloatArray, other: FloatArray | None, ratio: FloatArray, sign: float) -> list[Change]:
    def columns(rows: slice) -> FloatArray:
        r = ratio[rows]
        return np.column_stack([np.ones(len(r)), log.loss[rows], r, r * r])

    n = len(log)
    rows, loss, weight, square = _sums_by_output(log, columns, 4)
    mean = sign * np.divide(loss, rows, out=np.full(len(rows), np.nan), where=rows > 0.0)
    error = np.sqrt(np.maximum(square / n - (weight / n) ** 2, 0.0) / n)
    support = (
        rows if log.structure.lists_outputs else np.minimum(rows, np.abs(n - rows))
    )  # a label can be off in too few rows as well
    return [
        Change(
            label=str(label),
            logged=float(rows[i] / n),
            new=float(new[i]),
            other=None if other is None else float(other[i]),
            rows=int(rows[i]),
            outcome=float(mean[i]),
            few=bool(support[i] < FEW_ROWS),
            weighted=float(weight[i] / n),
            weighted_error=float(error[i]),
        )
        for i, label in enumerate(log.labels)
    ]


def _blocks(length: int, width: int) -> Iterator[slice]:
    height = max(1, BLOCK // max(width, 1))
    for first in range(0, length, height):
        yield slice(first, min(first + height, length))


# ---- segments -------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cut:
    """One feature cut in two: above a threshold, and not."""

    name: str
    feature: int
    threshold: float
    binary: bool

    @property
    def above(self) -> str:
        if not self.binary:
            return f"{self.name}\u00a0>\u00a0{self.threshold:.4g}"
        return self.name if "=" in self.name else f"{self.name}\u00a0=\u00a01"

    @property
    def below(self) -> str | None:
        """The other side has a name of its own only where values have an order."""
        return None if self.binary else f"{self.name}\u00a0≤\u00a0{self.threshold:.4g}"


def _spread(log: BanditLog) -> FloatArray:
    """Return the standard deviation of each feature over the rows."""
    counts = np.bincount(log.context, minlength=log.n_contexts) / len(log)
    X = log.X
    if is_sparse(X):
        squares = sp.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape).T @ counts
        mean = X.T @ counts
    else:
        mean, squares = counts @ X, np.einsum("c,cj,cj->j", counts, X, X)
    variance = squares - mean**2
    return np.asarray(np.sqrt(np.where(variance > 1e-12 * squares, variance, 0.0)))


def _cuts(policy: AnyPolicy, log: BanditLog, spread: FloatArray) -> list[_Cut]:
    """Return the features to look at: those by which the policy tells contexts apart most."""
    weights = _plain(policy).weights[: log.n_features]
    squares = np.einsum("jk,jk->j", weights, weights)
    if log.structure.shared_scores:  # what all outputs share says nothing
        squares = squares - len(log.labels) * weights.mean(axis=1) ** 2
    influence = spread * np.sqrt(np.maximum(squares, 0.0))
    best = np.lexsort((-spread, -influence))[:SEGMENTS_TRIED]
    found = (_cut(log, int(feature), _name(policy, log, int(feature))) for feature in best if spread[feature] > 0.0)
    return [cut for cut in found if cut is not None]


def _cut(log: BanditLog, feature: int, name: str) -> _Cut | None:
    values = _column(log, feature)
    binary = bool(np.all((values == 0.0) | (values == 1.0)))
    seen = values[log.context]
    middle = 0.0 if binary else float(np.median(seen))
    share = float(np.mean(seen > middle))
    return _Cut(name, feature, middle, binary) if LEAST_SEGMENT <= share <= 1.0 - LEAST_SEGMENT else None


def _column(log: BanditLog, feature: int) -> FloatArray:
    column = log.X[:, [feature]]
    return np.asarray(column.toarray()[:, 0] if is_sparse(column) else column[:, 0])


def _inside(log: BanditLog, cuts: list[_Cut]) -> BoolArray:
    """Return which contexts are above each cut: (contexts, cuts)."""
    inside = np.zeros((log.n_contexts, len(cuts)), dtype=bool)
    for position, cut in enumerate(cuts):
        inside[:, position] = _column(log, cut.feature) > cut.threshold
    return inside


def _segments(
    log: BanditLog, cuts: list[_Cut], inside: BoolArray, new: FloatArray, old: FloatArray
) -> tuple[Segment, ...]:
    """Return the segments on whose two sides the policy moves most differently, if that is more than noise."""
    n = len(log)
    share = (np.bincount(log.context, minlength=log.n_contexts) @ inside) / n
    moved = new - old
    above, below = moved[1:] / (n * share[:, None]), (moved[:1] - moved[1:]) / (n * (1.0 - share[:, None]))
    contrast = np.abs(above - below).sum(axis=1) * np.sqrt(share * (1.0 - share))
    everywhere = old[0] / n
    noise = float(np.sqrt(np.abs(everywhere * (1.0 - everywhere)) / n).sum())
    shown = [int(i) for i in np.argsort(-contrast, kind="stable") if contrast[i] > 2.0 * noise][:SEGMENTS_SHOWN]
    found = []
    for i in shown:
        found.append(_segment(log, cuts[i].above, new[1 + i], old[1 + i], n * share[i]))
        other_side = cuts[i].below
        if other_side is not None:
            found.append(_segment(log, other_side, new[0] - new[1 + i], old[0] - old[1 + i], n * (1.0 - share[i])))
    return tuple(found)


def _segment(log: BanditLog, name: str, new: FloatArray, old: FloatArray, rows: float) -> Segment:
    after, before = new / rows, old / rows
    change, noise = after - before, np.sqrt(np.abs(before * (1.0 - before)) / rows)
    order = np.argsort(-change, kind="stable")

    def shifts(chosen: IntArray, way: float) -> tuple[Shift, ...]:
        told = [i for i in chosen if way * change[i] > 2.0 * noise[i] and abs(change[i]) >= 0.001]
        return tuple(Shift(str(log.labels[i]), float(before[i]), float(after[i])) for i in told[:OUTPUTS_PER_SEGMENT])

    return Segment(name, round(rows), shifts(order, 1.0), shifts(order[::-1], -1.0))


# ---- features -------------------------------------------------------------------------------


def _most_changed(outputs: list[Change], each: int = 5) -> list[int]:
    """Return the outputs that rise most, and those that fall most."""
    change = np.array([one.change for one in outputs])
    order = np.argsort(-change, kind="stable")
    chosen = np.unique(np.concatenate([order[:each], order[-each:]]))
    return [int(i) for i in sorted(chosen, key=lambda i: -change[i])]


def _pulls(policy: AnyPolicy, spread: FloatArray, outputs: list[int]) -> tuple[Pull, ...]:
    plain = _plain(policy)
    weights = plain.weights[: len(spread)]
    shared = weights.mean(axis=1) if plain.structure.shared_scores else 0.0
    return tuple(_pull(plain, (weights[:, i] - shared) * spread, i) for i in outputs)


def _pull(policy: Policy, strength: FloatArray, output: int) -> Pull:
    order = np.argsort(-strength, kind="stable")

    def named(features: IntArray, way: float) -> tuple[tuple[str, float], ...]:
        told = [int(j) for j in features[:FEATURES_PER_OUTPUT] if way * strength[j] > 1e-9]
        return tuple((_name(policy, None, j), float(strength[j])) for j in told)

    return Pull(str(policy.labels[output]), named(order, 1.0), named(order[::-1], -1.0))


def _plain(policy: AnyPolicy) -> Policy:
    found: Policy = policy.policy if isinstance(policy, FlooredPolicy) else policy
    return found


def _name(policy: AnyPolicy, log: BanditLog | None, feature: int) -> str:
    names = policy.feature_names or (None if log is None else log.feature_names)
    return f"feature {feature}" if names is None else str(names[feature])
