"""One of what is available: a softmax over the candidates of each context, which differ from context to context.

Scores, probabilities and values are flat: one per candidate, context after context. An output y is a position among the
candidates of its context.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from poem.arrays import AnyArray, FloatArray, IntArray
from poem.compute import exp_down, inlined, kernel
from poem.structures.space import Space


@dataclass(frozen=True, eq=False)
class Offered(Space):
    """Candidates ``borders[c]`` to ``borders[c + 1]`` belong to context c; ``borders`` is (m + 1,) and starts at 0."""

    borders: IntArray

    def log_prob(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        out = np.empty(len(y))
        _log_prob(scores, self.borders, y, starts, out)
        return out

    def pull_back(self, scores: FloatArray, y: AnyArray, starts: IntArray, coef: FloatArray) -> FloatArray:
        out = np.empty(len(scores))
        _pull_back(scores, self.borders, y, starts, coef, out)
        return out

    def chosen(self, scores: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        return np.asarray(scores[self._places(y, starts)])

    def spread(self, coef: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        return np.asarray(np.bincount(self._places(y, starts), coef, int(self.borders[-1])), dtype=np.float64)

    def sample(self, scores: FloatArray, rng: Generator) -> AnyArray:
        out = np.empty(len(self.borders) - 1, dtype=np.int32)
        _sample(scores, self.borders, rng.random(len(out)), out)
        return out

    def outputs(self, scores: FloatArray, rng: Generator, count: int) -> tuple[AnyArray, FloatArray, IntArray, bool]:
        positions = np.arange(len(scores)) - np.repeat(self.borders[:-1], np.diff(self.borders))
        return positions.astype(np.int32), self.marginals(scores), self.borders, True

    def argmax(self, scores: FloatArray) -> AnyArray:
        out = np.empty(len(self.borders) - 1, dtype=np.int32)
        _argmax(scores, self.borders, out)
        return out

    def marginals(self, scores: FloatArray) -> FloatArray:
        """Return the probability of each candidate, flat."""
        out = np.empty(len(scores))
        _marginals(scores, self.borders, out)
        return out

    def expected(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        out = np.empty(len(self.borders) - 1)
        _expected(scores, self.borders, values, out)
        return out

    def pull_back_expected(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        out = np.empty(len(scores))
        _pull_back_expected(scores, self.borders, values, coef, out)
        return out

    def variation(self, scores: FloatArray) -> float:
        """Return the mean total variation from the uniform choice among the candidates."""
        even = self._each(1.0 / np.diff(self.borders))
        return float(np.abs(self.marginals(scores) - even).sum() / 2.0 / max(1, len(self.borders) - 1))

    def predicted(self, values: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        return self.chosen(values, y, starts)

    def spread_predicted(self, coef: FloatArray, y: AnyArray, starts: IntArray) -> FloatArray:
        return self.spread(coef, y, starts)

    def mean(self, probabilities: FloatArray, values: FloatArray) -> FloatArray:
        return np.asarray(np.add.reduceat(probabilities * values, self.borders[:-1]))

    def repeated(self, probabilities: FloatArray) -> FloatArray:
        return self.mean(probabilities, probabilities)

    def mean_under(self, scores: FloatArray, values: FloatArray) -> FloatArray:
        return self.expected(scores, values)

    def pull_back_mean(self, scores: FloatArray, values: FloatArray, coef: FloatArray) -> FloatArray:
        return self.pull_back_expected(scores, values, coef)

    def _places(self, y: AnyArray, starts: IntArray) -> IntArray:
        """Return where each logged output is among all candidates."""
        return np.asarray(np.repeat(self.borders[:-1], np.diff(starts)) + y)

    def _each(self, by_context: FloatArray) -> FloatArray:
        return np.asarray(np.repeat(by_context, np.diff(self.borders)))


@inlined
def _fill_unscaled(scores: FloatArray, borders: IntArray, out: FloatArray) -> None:
    """Fill e^(s − the highest of its context); exponentials are taken in one long loop, which can be vectorised."""
    for c in range(borders.shape[0] - 1):
        own, below = scores[borders[c] : borders[c + 1]], out[borders[c] : borders[c + 1]]
        highest = own[0]
        for a in range(1, own.shape[0]):
            highest = max(highest, own[a])
        for a in range(own.shape[0]):
            below[a] = own[a] - highest
    for a in range(out.shape[0]):
        out[a] = exp_down(out[a])


@kernel
def _log_prob(scores: FloatArray, borders: IntArray, y: AnyArray, starts: IntArray, out: FloatArray) -> None:
    unscaled = np.empty(scores.shape[0])
    _fill_unscaled(scores, borders, unscaled)
    for c in range(borders.shape[0] - 1):
        if starts[c] == starts[c + 1]:
            continue
        own = scores[borders[c] : borders[c + 1]]
        highest, total = own[0], 0.0
        for a in range(own.shape[0]):
            highest = max(highest, own[a])
            total += unscaled[borders[c] + a]
        log_total = np.log(total)
        for i in range(starts[c], starts[c + 1]):
            out[i] = (own[y[i]] - highest) - log_total


@kernel
def _pull_back(
    scores: FloatArray, borders: IntArray, y: AnyArray, starts: IntArray, coef: FloatArray, out: FloatArray
) -> None:
    _fill_unscaled(scores, borders, out)
    for c in range(borders.shape[0] - 1):
        slopes = out[borders[c] : borders[c + 1]]
        coefficients, total = 0.0, 0.0
        for i in range(starts[c], starts[c + 1]):
            coefficients += coef[i]
        for a in range(slopes.shape[0]):
            total += slopes[a]
        scale = -coefficients / total
        for a in range(slopes.shape[0]):
            slopes[a] *= scale
        for i in range(starts[c], starts[c + 1]):
            slopes[y[i]] += coef[i]


@kernel
def _marginals(scores: FloatArray, borders: IntArray, out: FloatArray) -> None:
    _fill_unscaled(scores, borders, out)
    for c in range(borders.shape[0] - 1):
        shares, total = out[borders[c] : borders[c + 1]], 0.0
        for a in range(shares.shape[0]):
            total += shares[a]
        for a in range(shares.shape[0]):
            shares[a] /= total


@kernel
def _expected(scores: FloatArray, borders: IntArray, values: FloatArray, out: FloatArray) -> None:
    unscaled = np.empty(scores.shape[0])
    _fill_unscaled(scores, borders, unscaled)
    for c in range(out.shape[0]):
        total, weighted = 0.0, 0.0
        for a in range(borders[c], borders[c + 1]):
            total += unscaled[a]
            weighted += unscaled[a] * values[a]
        out[c] = weighted / total


@kernel
def _pull_back_expected(
    scores: FloatArray, borders: IntArray, values: FloatArray, coef: FloatArray, out: FloatArray
) -> None:
    _fill_unscaled(scores, borders, out)
    for c in range(borders.shape[0] - 1):
        total, weighted = 0.0, 0.0
        for a in range(borders[c], borders[c + 1]):
            total += out[a]
            weighted += out[a] * values[a]
        mean, scale = weighted / total, coef[c] / total
        for a in range(borders[c], borders[c + 1]):
            out[a] *= scale * (values[a] - mean)


@kernel
def _argmax(scores: FloatArray, borders: IntArray, out: AnyArray) -> None:
    for c in range(out.shape[0]):
        out[c] = np.argmax(scores[borders[c] : borders[c + 1]])


@kernel
def _sample(scores: FloatArray, borders: IntArray, draws: FloatArray, out: AnyArray) -> None:
    for c in range(out.shape[0]):
        own = scores[borders[c] : borders[c + 1]]
        highest, total = own.max(), 0.0
        for a in range(own.shape[0]):
            total += np.exp(own[a] - highest)
        left, chosen = draws[c] * total, 0
        for a in range(own.shape[0]):
            share = np.exp(own[a] - highest)
            if share > 0.0:
                chosen = a
            left -= share
            if left < 0.0:
                break
        out[c] = chosen
