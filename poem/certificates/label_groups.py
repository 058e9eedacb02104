"""Groups of labels: the additive terms of each grouping, and the variance that it promises.

The docstring of additive.py says which terms these are.
"""

import numpy as np

from poem.arrays import AnyArray, FloatArray, IntArray, frozen
from poem.certificates.forms import Form
from poem.compute import kernel
from poem.data import Piece

SIZES = (8, 6, 5, 4, 3, 2, 1)  # of the groups that labels are cut into; a group of 8 has 256 outputs
LARGEST_LOG = 50.0  # of a ratio


def groupings(labels: int) -> list[IntArray]:
    """Return where groups begin and end, for each way to cut labels into groups, the fewest groups first."""
    counts = sorted({-(-labels // size) for size in SIZES})
    return [np.linspace(0, labels, count + 1).round().astype(np.int64) for count in counts]


def terms_of_piece(
    piece: Piece,
    policy: FloatArray,
    logger: FloatArray,
    values: FloatArray,
    loss: FloatArray,
    noise: float,
    forms: tuple[Form, ...],
) -> FloatArray:
    """Return the terms of a piece: in each context, of the grouping that promises the least noise."""
    m, floors = len(piece.starts) - 1, frozen(np.array([-form.floor for form in forms]))
    rewards = frozen(-values[:, :-1])
    mean = frozen(-values[:, -1] + (np.exp(logger[1]) * rewards).sum(axis=1))
    least, terms = np.full((m, len(forms)), np.inf), np.empty((len(piece.y), len(forms)))
    at = np.repeat(np.arange(m), np.diff(piece.starts))
    for borders in groupings(rewards.shape[1]):
        spread, found = np.empty((m, len(forms))), np.empty((len(piece.y), len(forms)))
        _grouped(
            frozen(policy),
            frozen(logger),
            rewards,
            mean,
            frozen(piece.y),
            piece.starts,
            frozen(-loss),
            borders,
            floors,
            noise,
            spread,
            found,
        )
        better = spread < least
        least = np.where(better, spread, least)
        terms = np.where(better[at], found, terms)
    return terms


@kernel
def _list_outputs(policy: FloatArray, logger: FloatArray, c: int, first: int, last: int, out: FloatArray) -> int:
    """Write log h and log p of all outputs of a group of labels; return their number."""
    out[:, 0] = 0.0
    count = 1
    for label in range(first, last):
        for o in range(count):
            out[0, count + o] = out[0, o] + policy[1, c, label]
            out[1, count + o] = out[1, o] + logger[1, c, label]
        for o in range(count):
            out[0, o] += policy[0, c, label]
            out[1, o] += logger[0, c, label]
        count *= 2
    return count


@kernel
def _list_rewards(
    rewards: FloatArray, logger: FloatArray, mean: float, c: int, first: int, last: int, out: FloatArray
) -> None:
    """Write the expected reward of each output of a group, if other labels are chosen by the logging policy."""
    out[0] = mean
    count = 1
    for label in range(first, last):
        on = np.exp(logger[1, c, label])
        for o in range(count):
            out[count + o] = out[o] + (1.0 - on) * rewards[c, label]
            out[o] -= on * rewards[c, label]
        count *= 2
    for o in range(count):
        out[o] = min(max(out[o], 0.0), 1.0)


@kernel
def _lowered(wanted: FloatArray, least: FloatArray, chance: FloatArray, order: AnyArray, count: int, f: float) -> float:
    """Return the c at which max(wanted − c, least − f) has a mean of 0; ``order`` is that of wanted − least."""
    held, left, mass = 0.0, 0.0, 0.0
    for o in range(count):
        left += chance[o] * wanted[o]
        mass += chance[o]
    c = left / mass
    for i in range(count):  # lift those that would fall below their limit, one after the other
        o = order[i]
        if wanted[o] - c >= least[o] - f:
            break
        held += chance[o] * (least[o] - f)
        left -= chance[o] * wanted[o]
        mass -= chance[o]
        if mass <= 0.0:
            return np.inf
        c = (left + held) / mass
    return c


@kernel
def _grouped(
    policy: FloatArray,
    logger: FloatArray,
    rewards: FloatArray,
    mean: FloatArray,
    y: AnyArray,
    starts: IntArray,
    reward: FloatArray,
    borders: IntArray,
    floors: FloatArray,
    noise: float,
    spread: FloatArray,
    terms: FloatArray,
) -> None:
    """Write the terms of one grouping, and the variance that they promise; infinity where a floor cannot be had."""
    groups, most = len(borders) - 1, 1 << np.max(borders[1:] - borders[:-1])
    logs, q = np.empty((2, most)), np.empty(most)
    chance, ratio, wanted, least = np.empty(most), np.empty(most), np.empty(most), np.empty(most)
    variation = np.empty(groups)
    for c in range(len(starts) - 1):
        for b in range(groups):
            count = _list_outputs(policy, logger, c, borders[b], borders[b + 1], logs)
            variation[b] = 0.0
            for o in range(count):
                variation[b] += max(np.exp(logs[1, o]) - np.exp(logs[0, o]), 0.0)
            variation[b] = min(variation[b], 1.0)
        rooms = (floors - variation.sum()) / groups
        for k in range(len(floors)):
            spread[c, k] = 0.0 if rooms[k] >= 0.0 else np.inf
            terms[starts[c] : starts[c + 1], k] = 0.0
        for b in range(groups):
            count = _list_outputs(policy, logger, c, borders[b], borders[b + 1], logs)
            _list_rewards(rewards, logger, mean[c], c, borders[b], borders[b + 1], q)
            square, gain = 0.0, 0.0
            for o in range(count):
                chance[o] = np.exp(logs[1, o])
                ratio[o] = np.exp(min(logs[0, o] - logs[1, o], LARGEST_LOG))
                gain += chance[o] * (ratio[o] - 1.0) * q[o]
                square += chance[o] * ratio[o] ** 2
            for o in range(count):
                wanted[o] = gain - (ratio[o] - 1.0) * q[o]
                least[o] = max(1.0 - ratio[o], 0.0)
            order = np.argsort(wanted[:count] - least[:count])
            for k in range(len(floors)):
                if rooms[k] < 0.0:
                    continue
                f = variation[b] + rooms[k]
                lowered = _lowered(wanted, least, chance, order, count, f)
                spread[c, k] += noise * max(square - 1.0, 0.0)
                for o in range(count):
                    z = max(wanted[o] - lowered, least[o] - f)
                    spread[c, k] += chance[o] * ((ratio[o] - 1.0) * q[o] + z - gain) ** 2
                for i in range(starts[c], starts[c + 1]):
                    own = 0
                    for label in range(borders[b], borders[b + 1]):
                        own += int(y[i, label]) << (label - borders[b])
                    z = max(wanted[own] - lowered, least[own] - f)
                    terms[i, k] += (ratio[own] - 1.0) * reward[i] + z
