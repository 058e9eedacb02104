"""Did the logging policy learn while it logged? Find propensities that change with time or follow past rewards.

A policy that does not learn gives the same context and output the same propensity, whatever happened before. Let e and
ρ be the parts of log p and of the reward that context and output do not explain. Without learning, e correlates with
the ρ of earlier rows as much as with the ρ of later rows. A policy that learns knows the past and not the future:

    D = Σᵢ eᵢ wᵢ (Σ over earlier rows j of k(i, j)·ρⱼ) − the same with later rows,

where k(i, j) = (1[yᵢ = yⱼ] − 1/K)·(1 + x̃ᵢ·x̃ⱼ) is how much row j tells about the decision of row i. D is linear in ρ,
D = Σⱼ cⱼρⱼ, and changes its sign if time is reversed. So its mean is 0 for every policy that does not learn, however
poorly e and ρ are modelled.

Where each row has available actions of its own, p depends on these too. What one linear policy for all rows says of
contexts and lists is taken off log p first (:mod:`poem.certificates.choices`).
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse, special

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.certificates.choices import choices_of
from poem.compute import Matrix, compact, is_sparse
from poem.data import BanditLog
from poem.packed import context_hashes

LEAST_ROWS = 100  # below which nothing can be told
MOST_ROWS = 100_000  # the earliest rows, which are enough
MOST_LISTS = 20_000  # the earliest rows with available actions of their own: each is a whole list
MOST_FEATURES = 8  # that stand for the context
ROWS_PER_FEATURE = 20  # of each output
FOLLOWS = 0.01  # how often a policy that does not learn may be called one that does …
CHANGES = 0.005  # … and one that does not change, one that changes
CAME_BACK = 0.5  # share of the rows whose context and output were there before, in a log in which most come back
FLAT = 1e-6  # a spread of log p that is rounding
CLOSE = 0.05  # a spread, relative to that of log p, that is no more than the error of a fitted policy


@dataclass(frozen=True)
class Adaptation:
    """Whether the logging policy changed while it logged.

    Attributes
    ----------
    changes : bool
        Propensities for the same context and output change with time.
    follows_rewards : bool
        They agree with earlier rewards more than with later ones: the logger learnt.
    p_value : float
        How often a policy that does not learn gives evidence of learning at least this strong.
    timed : bool
        Whether the log has times; if not, rows are assumed to be in time order.
    """

    changes: bool
    follows_rewards: bool
    p_value: float
    timed: bool


def adapts(log: BanditLog) -> Adaptation:
    """Test whether propensities change with time, and whether they follow past rewards.

    This tests only logged propensities of outputs of which one is chosen, in the earliest MOST_ROWS rows.
    """
    timed = log.time is not None and bool(log.time.min() < log.time.max())
    nothing = Adaptation(False, False, 1.0, timed)
    if len(log) < LEAST_ROWS or log.propensities != "logged" or not log.structure.one_each:
        return nothing
    some = log.take(earliest_rows(log))
    rows = None if _is_constant(some) else _Rows.of(some)
    if rows is None:
        return nothing
    p_value = _follows(rows)
    follows = p_value < FOLLOWS
    return Adaptation(follows or _changes(rows) < CHANGES, follows, p_value, timed)


def _is_constant(log: BanditLog) -> bool:
    """Tell whether contexts come back, and each output then has the propensity that it had in them before."""
    place = context_hashes(log)[log.context]
    order = np.lexsort((log.y, place))
    first, second = order[:-1], order[1:]
    again = (place[first] == place[second]) & (log.y[first] == log.y[second])
    same = log.log_propensity[first] == log.log_propensity[second]
    return bool(again.mean() >= CAME_BACK and same[again].all())


def earliest_rows(log: BanditLog) -> IntArray:
    """Return the rows that are tested, in the order of time."""
    order = np.arange(len(log)) if log.time is None else np.argsort(log.time, kind="stable")
    return np.asarray(order[: MOST_ROWS if log.available is None else MOST_LISTS])


@dataclass(frozen=True)
class _Rows:
    """Rows in time order.

    ``log_p`` is the part of log p that context and output do not explain, ``noise`` that of the reward, and
    ``reward`` the whole reward minus its mean. ``features`` are 1 and some features of the context, ``counts`` the
    number of rows per output.
    """

    log_p: FloatArray
    noise: FloatArray
    reward: FloatArray
    code: IntArray
    counts: IntArray
    unit: IntArray
    features: FloatArray

    @staticmethod
    def of(log: BanditLog) -> "_Rows | None":
        """Prepare the rows; None if log p or the reward has nothing left to test."""
        code = np.unique(log.y, return_inverse=True)[1].astype(np.int64)
        log_p, reward = _relative(log), 0.0 - log.loss
        counts = np.bincount(code).astype(np.int64)
        features = _features(log.X[log.context], code, log_p, len(code) // (ROWS_PER_FEATURE * len(counts)))
        left, noise = (_left_over(values, code, counts, features) for values in (log_p, reward))
        size = float(np.abs(reward).max())
        least = FLAT if log.available is None else FLAT + CLOSE * float(log.log_propensity.std())
        if len(counts) < 2 or left.std() < least or not np.isfinite(size) or noise.std() <= FLAT * size:
            return None
        return _Rows(left, noise, reward - reward.mean(), code, counts, log.units(), features)


def _relative(log: BanditLog) -> FloatArray:
    """Return log p of each row, relative to what its list of available actions explains."""
    if log.available is None:
        return log.log_propensity
    return log.log_propensity - np.log(np.maximum(choices_of(log, log.available).of_logged(log), 1e-300))


# ---- what the context and the output explain --------------------------------------------------------


def unexplained(X: Matrix, code: IntArray, values: FloatArray) -> FloatArray:
    """Return the residuals of values from a linear function of the most relevant features, one per output.

    ``code`` numbers the outputs that occur from 0.
    """
    counts = np.bincount(code).astype(np.int64)
    features = _features(X, code, values, len(code) // (ROWS_PER_FEATURE * len(counts)))
    return _left_over(values, code, counts, features)


def _features(X: Matrix, code: IntArray, target: FloatArray, most: int) -> FloatArray:
    """Return 1 and the standardised features that correlate most with the target among the rows of an output."""
    if most < 1:
        return np.ones((len(code), 1))
    _, X = compact(X)
    columns = _telling(X, code, target)[: min(most, MOST_FEATURES)]
    values = X[:, columns].toarray() if is_sparse(X) else X[:, columns]
    spread = values.std(axis=0)
    there = spread > 1e-12
    values = (values[:, there] - values[:, there].mean(axis=0)) / spread[there]
    return np.column_stack([np.ones(len(code)), values])


def _telling(X: Matrix, code: IntArray, target: FloatArray) -> IntArray:
    """Return the varying columns of X, those most correlated with the target within outputs first."""
    n = X.shape[0]
    outputs = sparse.csr_array((np.ones(n), (code, np.arange(n))))
    counts = np.bincount(code)
    centred = outputs * (target - (outputs @ target / counts)[code])
    mean = np.asarray(X.sum(axis=0)).ravel() / n
    squares = np.asarray((X * X).sum(axis=0)).ravel() / n - mean**2
    together = sparse.diags_array(counts**-0.5) @ (centred @ X)
    score = np.asarray((together * together).sum(axis=0)).ravel() / np.maximum(squares, 1e-300)
    score[squares <= 1e-12 * (squares + mean**2)] = -1.0
    return np.argsort(-score, kind="stable")[: int((score >= 0.0).sum())]


def _left_over(values: FloatArray, code: IntArray, counts: IntArray, features: FloatArray) -> FloatArray:
    """Return the residuals of a linear function of the context, one per output."""
    if features.shape[1] == 1:
        return np.asarray(values - (np.bincount(code, values) / counts)[code])
    left = np.empty(len(values))
    ridge = np.full(features.shape[1], 1.0)
    ridge[0] = 1e-9
    for rows in np.split(np.argsort(code, kind="stable"), np.cumsum(counts)[:-1]):
        F = features[rows]
        left[rows] = values[rows] - F @ np.linalg.solve(F.T @ F + np.diag(ridge), F.T @ values[rows])
    return left


# ---- the tests --------------------------------------------------------------------------------------


def _follows(rows: _Rows) -> float:
    """Return the p-value of D under no learning: the smallest of four versions (Bonferroni)."""
    contexts = (rows.features[:, :1], rows.features)[: rows.features.shape[1]]
    p_values = [p for features in contexts for p in _two_tails(rows, features)]
    return min(1.0, len(p_values) * min(p_values))


def _two_tails(rows: _Rows, features: FloatArray) -> tuple[float, float]:
    """Return the p-values of D with the reward's noise and with the whole reward.

    Noise does not depend on log p, so the variance of D = Σ cⱼρⱼ is Σ cⱼ²ρⱼ². The whole reward does depend on it
    under any good policy. The variance is then at most the sum of the squares of what D loses with each row (Efron
    and Stein): what the row tells others, cⱼρⱼ, and what others tell it.
    """
    pairs = _Pairs.of(rows, features)
    told = pairs.told()
    noise = np.bincount(rows.unit, told * rows.noise)
    whole = np.bincount(rows.unit, told * rows.reward)
    lost = whole + np.bincount(rows.unit, rows.log_p * pairs.heard())
    return _upper_tail(noise.sum(), noise), _upper_tail(whole.sum(), lost)


def _upper_tail(total: float, terms: AnyArray) -> float:
    size = float(np.sqrt(terms @ terms))
    return float(special.ndtr(-total / size)) if size > 0.0 else 1.0


@dataclass(frozen=True)
class _Pairs:
    """The pairs of rows in D: what each row tells all others, and what they tell it."""

    rows: _Rows
    features: FloatArray
    by_output: IntArray
    rank: FloatArray

    @staticmethod
    def of(rows: _Rows, features: FloatArray) -> "_Pairs":
        """Count the earlier rows of each row's output."""
        by_output = np.argsort(rows.code, kind="stable")
        rank = np.empty(len(rows.code))
        rank[by_output] = np.arange(len(rank)) - np.repeat(np.cumsum(rows.counts) - rows.counts, rows.counts)
        return _Pairs(rows, features, by_output, rank)

    def told(self) -> FloatArray:
        """Return c: what each row tells later rows minus what it tells earlier ones."""
        past, future = self._weights()
        later, _ = self._sums(past * self.rows.log_p)
        _, earlier = self._sums(future * self.rows.log_p)
        return later - earlier

    def heard(self) -> FloatArray:
        """Return what earlier rows tell each row minus what later rows tell it."""
        past, future = self._weights()
        later, earlier = self._sums(self.rows.reward)
        return past * earlier - future * later

    def _weights(self) -> tuple[FloatArray, FloatArray]:
        """Return 1/√(1 + rows of the same output before, and after)."""
        after = self.rows.counts[self.rows.code] - 1.0 - self.rank
        return 1.0 / np.sqrt(1.0 + self.rank), 1.0 / np.sqrt(1.0 + after)

    def _sums(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return Σ k(i, j)·valueᵢ over all rows i after j, and over all before."""
        counts = self.rows.counts
        weighted = values[:, None] * self.features
        every = weighted.sum(axis=0) - weighted
        until = np.cumsum(weighted, axis=0) - weighted
        sums = np.cumsum(weighted[self.by_output], axis=0)
        ends = sums[np.cumsum(counts) - 1]
        begins = np.concatenate([np.zeros((1, sums.shape[1])), ends[:-1]])
        of_output = (ends - begins)[self.rows.code] - weighted
        same = np.empty_like(weighted)
        same[self.by_output] = sums - np.repeat(begins, counts, axis=0)
        same -= weighted
        before, both = same - until / len(counts), of_output - every / len(counts)
        return self._along(both - before), self._along(before)

    def _along(self, sums: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("ij,ij->i", self.features, sums))


def _changes(rows: _Rows) -> float:
    """Return the p-value of the correlation of log p with time if nothing changes.

    For each output and feature f, Σ e·f·(time − mean time) has mean 0; the smallest p-value counts (Bonferroni).
    """
    n, width = rows.features.shape
    rank = np.arange(n) / n
    rank -= (np.bincount(rows.code, rank) / rows.counts)[rows.code]
    terms = (rows.log_p * rank)[:, None] * rows.features
    pair, code_of = _pairs(rows)
    often = rows.counts >= ROWS_PER_FEATURE
    p_values = [1.0]
    for column in terms.T:
        added = np.bincount(pair, column)
        total, squares = np.bincount(code_of, added), np.bincount(code_of, added * added)
        z = np.abs(total) / np.sqrt(np.maximum(squares, 1e-300))
        p_values.append(float(2.0 * special.ndtr(-z[often].max(initial=0.0))))
    return float(min(1.0, width * int(often.sum()) * min(p_values)))


def _pairs(rows: _Rows) -> tuple[IntArray, IntArray]:
    """Number the pairs of unit and output; return the pair of each row and the output of each pair."""
    keys, pair = np.unique(rows.unit * len(rows.counts) + rows.code, return_inverse=True)
    return pair.astype(np.int64), keys % len(rows.counts)
