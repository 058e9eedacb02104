"""What a policy does otherwise than the log: which outputs and kinds of action rise and fall, where, and by what."""

from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.data import BanditLog
from poem.policies import Policy, without_floor
from poem.report.effects import effects_of, linear_part, tree_trends
from poem.report.kinds import Kind, find_kinds
from poem.report.segments import Segment, find_segments, moments_of, name_of
from poem.report.sums import AnyPolicy, Outputs, expected_sums, of_policy, sums_by_column

FEW_ROWS = 30  # logged rows under which an output is hardly supported
FEATURES_PER_OUTPUT = 5


@dataclass(frozen=True)
class Change:
    """One output: its share of the decisions in the log and under the policy, and what supports it.

    ``weighted`` is the share that the weighted log gives it, with its standard error; it estimates ``new``.
    ``available`` is the share of the rows in which it could be chosen, where rows have lists of their own.
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
    available: float | None = None

    @property
    def change(self) -> float:
        """How much its share rises."""
        return self.new - self.logged


@dataclass(frozen=True)
class Pull:
    """One output, or kind of action, and the features that make it more and less likely.

    A feature is (name, weight × standard deviation).
    """

    label: str
    up: tuple[tuple[str, float], ...]
    down: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Changes:
    """All of it; outputs and kinds in the order of their change, the greatest rise first.

    ``otherwise`` is the share of the logged decisions that the policy would have made otherwise, ``never_logged`` that
    of its decisions on outputs that were never logged.
    """

    outputs: tuple[Change, ...]
    kinds: tuple[Kind, ...]
    segments: tuple[Segment, ...]
    pulls: tuple[Pull, ...]
    otherwise: float
    never_logged: float


def find_changes(policy: AnyPolicy, log: BanditLog, ratio: FloatArray, sign: float, other: AnyPolicy | None) -> Changes:
    """Compare a policy with a log; ``ratio`` are its weights, ``sign`` turns losses into what the user calls them."""
    outputs = _outputs(log, _shares(policy, log), None if other is None else _shares(other, log), ratio, sign)
    (mean, spread), kinds = moments_of(log), find_kinds(policy, log, ratio, other)
    plain = without_floor(policy)
    pulls = (
        _pulls_of_kinds(plain, log, mean, spread, kinds)
        if kinds
        else _pulls(plain, log, spread, _most_changed(outputs))
    )
    return Changes(
        tuple(sorted(outputs, key=lambda one: -one.change)),
        kinds,
        find_segments(policy, log, spread),
        pulls,
        1.0 - float(np.mean(ratio * np.exp(log.log_propensity))),
        sum(one.new for one in outputs if one.rows == 0),
    )


# ---- shares ---------------------------------------------------------------------------------


def _shares(policy: AnyPolicy, log: BanditLog) -> FloatArray:
    """Return the share of the decisions that each output has under a policy."""
    return np.asarray(expected_sums(Outputs(log), log, of_policy(policy, log))[0] / len(log))


def _outputs(log: BanditLog, new: FloatArray, other: FloatArray | None, ratio: FloatArray, sign: float) -> list[Change]:
    def weights(rows: slice) -> FloatArray:
        r = ratio[rows]
        return np.column_stack([np.ones(len(r)), log.loss[rows], r, r * r])

    n = len(log)
    rows, loss, weight, square = sums_by_column(Outputs(log), log, weights, 4)
    mean = sign * np.divide(loss, rows, out=np.full(len(rows), np.nan), where=rows > 0.0)
    error = np.sqrt(np.maximum(square / n - (weight / n) ** 2, 0.0) / n)
    # A label can be off in too few rows as well.
    support = rows if log.structure.one_each else np.minimum(rows, np.abs(n - rows))
    available = _available(log)
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
            available=None if available is None else float(available[i]),
        )
        for i, label in enumerate(log.labels)
    ]


def _available(log: BanditLog) -> FloatArray | None:
    """Return the share of the rows in which each output could be chosen; None if all could in all rows."""
    if log.available is None:
        return None
    seen = np.bincount(log.context, minlength=log.n_contexts)
    there = np.bincount(log.available.action, np.repeat(seen, log.available.counts()), minlength=len(log.labels))
    return np.asarray(there / len(log))


# ---- features -------------------------------------------------------------------------------


def _most_changed(outputs: list[Change], each: int = 5) -> list[int]:
    """Return the outputs that rise most, and those that fall most."""
    change = np.array([one.change for one in outputs])
    order = np.argsort(-change, kind="stable")
    chosen = np.unique(np.concatenate([order[:each], order[-each:]]))
    return [int(i) for i in sorted(chosen, key=lambda i: -change[i])]


def _pulls(policy: Policy, log: BanditLog, spread: FloatArray, outputs: list[int]) -> tuple[Pull, ...]:
    if policy.structure.described:
        return ()  # actions have no weights of their own to show
    effects = effects_of(policy, log, spread)
    shared = effects.mean(axis=1) if policy.structure.shared_scores else 0.0
    names = _names(policy, len(spread))
    return tuple(_pull(str(policy.labels[i]), names, effects[:, i] - shared) for i in outputs)


def _pulls_of_kinds(
    policy: Policy, log: BanditLog, mean: FloatArray, spread: FloatArray, kinds: tuple[Kind, ...]
) -> tuple[Pull, ...]:
    """Return what draws the policy to kinds of action: in the average context, and by features of the context.

    What trees say of contexts and actions has no such parts: its trend counts with the average context.
    """
    names = ["in the average context", *_names(policy, len(spread))]
    weights, features = linear_part(policy), [kind.feature for kind in kinds]
    average = mean @ weights[: len(mean)] + (weights[-1] if policy.intercept else 0.0)
    overall = average[features] * [kind.spread for kind in kinds]
    if policy.forest is not None:
        overall = overall + tree_trends(policy, log, features)
    return tuple(
        _pull(kind.name, names, np.append(own, weights[: len(spread), kind.feature] * spread * kind.spread))
        for kind, own in zip(kinds, overall, strict=True)
    )


def _names(policy: Policy, count: int) -> list[str]:
    return [name_of(policy, None, feature) for feature in range(count)]


def _pull(label: str, names: list[str], strength: FloatArray) -> Pull:
    order = np.argsort(-strength, kind="stable")

    def named(features: IntArray, way: float) -> tuple[tuple[str, float], ...]:
        told = [int(j) for j in features[:FEATURES_PER_OUTPUT] if way * strength[j] > 1e-9]
        return tuple((names[j], float(strength[j])) for j in told)

    return Pull(label, named(order, 1.0), named(order[::-1], -1.0))
