"""Where a policy moves: the contexts in which it does otherwise than elsewhere."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from poem.arrays import BoolArray, FloatArray, IntArray
from poem.compute import is_sparse
from poem.data import BanditLog
from poem.policies import Policy, without_floor
from poem.report.effects import context_influence, effects_of, influence_of
from poem.report.sums import (
    LEAST_MOVE,
    LEAST_SHARE,
    AnyPolicy,
    Columns,
    columns_of,
    expected_sums,
    logged_sums,
    of_policy,
)

SEGMENTS_TRIED, SEGMENTS_SHOWN = 24, 5
LEAST_SEGMENT = 0.02  # of the rows, on either side
SHIFTS_PER_SEGMENT = 3


@dataclass(frozen=True)
class Shift:
    """One output, or one feature of actions, within a segment; ``share`` says whether its means are shares."""

    label: str
    logged: float
    new: float
    share: bool = True


@dataclass(frozen=True)
class Segment:
    """Some contexts, and the outputs that rise and fall most there."""

    name: str
    rows: int
    rises: tuple[Shift, ...]
    falls: tuple[Shift, ...]


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


def find_segments(policy: AnyPolicy, log: BanditLog, spread: FloatArray) -> tuple[Segment, ...]:
    """Return the segments on whose two sides the policy moves most differently, if that is more than noise."""
    columns = columns_of(log)
    cuts = _cuts(without_floor(policy), log, spread, columns)
    inside = _inside(log, cuts)
    new, old = expected_sums(columns, log, of_policy(policy, log), inside), logged_sums(columns, log, inside)
    n = len(log)
    share = (np.bincount(log.context, minlength=log.n_contexts) @ inside) / n
    moved = (new - old) / columns.scale
    above, below = moved[1:] / (n * share[:, None]), (moved[:1] - moved[1:]) / (n * (1.0 - share[:, None]))
    contrast = np.abs(above - below).sum(axis=1) * np.sqrt(share * (1.0 - share))
    noise = float((np.sqrt(columns.variance(old[0] / n) / n) / columns.scale).sum())
    shown = [int(i) for i in np.argsort(-contrast, kind="stable") if contrast[i] > 2.0 * noise][:SEGMENTS_SHOWN]
    found = []
    for i in shown:
        found.append(_segment(columns, cuts[i].above, new[1 + i], old[1 + i], n * share[i]))
        other_side = cuts[i].below
        if other_side is not None:
            found.append(_segment(columns, other_side, new[0] - new[1 + i], old[0] - old[1 + i], n * (1.0 - share[i])))
    return tuple(found)


def _segment(columns: Columns, name: str, new: FloatArray, old: FloatArray, rows: float) -> Segment:
    after, before = new / rows, old / rows
    scale, shares, names = columns.scale, columns.shares, columns.names
    change, noise = (after - before) / scale, np.sqrt(columns.variance(before) / rows) / scale
    least = np.where(shares, LEAST_SHARE, LEAST_MOVE)
    order = np.argsort(-change, kind="stable")

    def shifts(chosen: IntArray, way: float) -> tuple[Shift, ...]:
        told = [i for i in chosen if way * change[i] > 2.0 * noise[i] and abs(change[i]) >= least[i]]
        few = told[:SHIFTS_PER_SEGMENT]
        return tuple(Shift(names[i], float(before[i]), float(after[i]), bool(shares[i])) for i in few)

    return Segment(name, round(rows), shifts(order, 1.0), shifts(order[::-1], -1.0))


# ---- cuts -----------------------------------------------------------------------------------


def moments_of(log: BanditLog) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the standard deviation of each feature of the context over the rows."""
    counts = np.bincount(log.context, minlength=log.n_contexts) / len(log)
    X = log.X
    if is_sparse(X):
        squares = sp.csr_array((X.data**2, X.indices, X.indptr), shape=X.shape).T @ counts
        mean = X.T @ counts
    else:
        mean, squares = counts @ X, np.einsum("c,cj,cj->j", counts, X, X)
    variance = squares - mean**2
    return np.asarray(mean), np.asarray(np.sqrt(np.where(variance > 1e-12 * squares, variance, 0.0)))


def _cuts(policy: Policy, log: BanditLog, spread: FloatArray, columns: Columns) -> list[_Cut]:
    """Return the features to look at: those by which the policy tells contexts apart most."""
    influence = _influence(policy, log, spread, columns)
    best = np.lexsort((-spread, -influence))[:SEGMENTS_TRIED]
    found = (_cut(log, int(feature), name_of(policy, log, int(feature))) for feature in best if spread[feature] > 0.0)
    return [cut for cut in found if cut is not None]


def _influence(policy: Policy, log: BanditLog, spread: FloatArray, columns: Columns) -> FloatArray:
    """Return how far each feature of the context moves scores apart."""
    effects = effects_of(policy, log, spread)
    if not policy.structure.described:
        return influence_of(effects, log.structure.shared_scores)
    scale = np.ones(effects.shape[1])
    scale[: len(columns.scale)] = columns.scale[: len(scale)]
    influence = influence_of(effects * scale, False)
    if policy.forest is not None:
        weighed = np.flatnonzero(policy.weights[: log.n_features, 0])  # features that say how much trees count
        seen = np.union1d(policy.forest.used[policy.forest.used < log.n_features], weighed)
        influence[seen] = context_influence(policy, log, seen.tolist())
    return influence


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


def name_of(policy: Policy, log: BanditLog | None, feature: int) -> str:
    """Return the name of a feature of the context."""
    names = policy.feature_names or (None if log is None else log.feature_names)
    return f"feature {feature}" if names is None else str(names[feature])
