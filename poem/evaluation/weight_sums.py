"""What the weights of a policy are like, from sums over the parts of a log."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.certificates import LEAST_TAIL, shape_of_largest, tail_size
from poem.estimators import LARGEST_LOG_RATIO, MomentSums, Rows
from poem.evaluation.weight_facts import (
    ALIKE,
    CLIPS,
    TIED,
    WeightFacts,
    clip_curve,
    events_of,
    moved_by,
    share_of,
    unsupported_rows,
)

# Bins of the logarithms of ratios: a quantile is known to 0.1%. If the mean is 1, the 99th percentile is at most 100.
# Beyond e^8, which only wrong propensities lead to, bins are 1 wide.
LOWEST, WIDTH, FINE = -12.0, 0.001, 20_000
HIGHEST = LOWEST + WIDTH * FINE
BINS = FINE + round(LARGEST_LOG_RATIO - HIGHEST) + 1


@dataclass
class WeightSums:
    """Sums over the rows of a part of a log.

    Attributes
    ----------
    total, kept : float
        Σr, and the same with the clip.
    largest_ratio, least, most : float
        The largest ratio of a row, and the least and the largest weight of a unit.
    curve : (clips + 1,)
        Σ min(r, clip)·loss for each clip, and for none.
    unsupported : float
    cut : int
    top : (at most ``size``,)
        The largest weights of units.
    bins : (4, BINS)
        By the ratio: the number of rows, Σr, Σr·loss and Σloss.
    size : int
        How many of the largest weights are kept.
    """

    total: float
    kept: float
    largest_ratio: float
    least: float
    most: float
    curve: FloatArray
    unsupported: float
    cut: int
    top: FloatArray
    bins: FloatArray
    size: int

    def add(self, other: "WeightSums") -> None:
        """Add those of other rows."""
        self.total, self.kept = self.total + other.total, self.kept + other.kept
        self.largest_ratio, self.most = max(self.largest_ratio, other.largest_ratio), max(self.most, other.most)
        self.least = min(self.least, other.least)
        self.curve, self.bins = self.curve + other.curve, self.bins + other.bins
        self.unsupported, self.cut = self.unsupported + other.unsupported, self.cut + other.cut
        self.top = _largest(np.concatenate([self.top, other.top]), self.size)

    def facts(self, weights: MomentSums, events: MomentSums, least_loss: float) -> WeightFacts:
        """Return the facts of all rows.

        ``weights`` are the sums of the weights themselves, ``events`` those of SNIPS without a clip.
        """
        n, units = weights.n_rows, weights.n_units
        return WeightFacts(
            units=units,
            effective=weights.effective_number(),
            mean=self.total / n,
            stderr=weights.stderr(),
            largest=share_of(self.most, self.total, 1.0),
            clipped=1.0 - share_of(self.kept, self.total, 1.0),
            shape=self._shape(units),
            moved=self._moved(n),
            events=self._events(events, least_loss),
            unsupported=self.unsupported / n,
            cut=self.cut,
            clip_curve=clip_curve(self.largest_ratio, [float(value) / n for value in self.curve]),
        )

    def _shape(self, units: int) -> float:
        if tail_size(units) < LEAST_TAIL:
            return -np.inf if self.least == self.most else np.nan
        return shape_of_largest(np.sort(_largest(self.top, tail_size(units) + 1)), tied=TIED)

    def _moved(self, n: int) -> float:
        """Return how far the estimate moves if the largest 1% of the ratios are cut back, to 0.1% of a ratio."""
        count, ratio, weighted, loss = self.bins
        ends, place = np.cumsum(count), 0.99 * (n - 1)
        one, two = np.searchsorted(ends, [np.floor(place), np.ceil(place)], side="right").tolist()
        low, high = ratio[one] / count[one], ratio[two] / count[two]
        limit = low + (high - low) * (place - np.floor(place))
        cut = float(weighted[: one + 1].sum() + limit * loss[one + 1 :].sum())
        return moved_by(cut, float(self.curve[-1]))

    def _events(self, sums: MomentSums, least_loss: float) -> float | None:
        if not self.total > 0.0 or not sums.largest_share > ALIKE * -least_loss / sums.n_units:
            return None
        return events_of(*sums.scaled(), sums.n_units)


def weight_sums(rows: Rows, weights: FloatArray, clip: float, units: int) -> WeightSums:
    """Look at some rows of a log and the weights of their units; the whole log has so many units."""
    ratio, size = rows.ratio, tail_size(units) + 1
    weighted = ratio * rows.loss
    number = _bins(rows.log_ratio)
    bins = [np.bincount(number, values, BINS) for values in (None, ratio, weighted, rows.loss)]
    return WeightSums(
        total=float(ratio.sum()),
        kept=float(np.minimum(ratio, clip).sum()),
        largest_ratio=float(ratio.max()),
        least=float(weights.min()),
        most=float(weights.max()),
        curve=np.array([*(float(np.minimum(ratio, clip) @ rows.loss) for clip in CLIPS), float(weighted.sum())]),
        unsupported=float(unsupported_rows(rows).sum()),
        cut=int(np.count_nonzero(rows.log_ratio > LARGEST_LOG_RATIO)),
        top=_largest(weights, size),
        bins=np.stack(bins),
        size=size,
    )


def _bins(log_ratio: FloatArray) -> IntArray:
    """Return the bin of each ratio."""
    number = np.clip((log_ratio - LOWEST) * (1.0 / WIDTH), 0, FINE).astype(np.int64)
    beyond = np.flatnonzero(number == FINE)
    number[beyond] += np.minimum(log_ratio[beyond] - HIGHEST, BINS - 1 - FINE).astype(np.int64)
    return number


def _largest(values: FloatArray, size: int) -> FloatArray:
    """Return the largest so many of some numbers, in any order."""
    return values if len(values) <= size else np.partition(values, len(values) - size)[len(values) - size :]
