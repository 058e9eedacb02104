"""Policies × log × estimators → a table of estimates that one can decide on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from poem.arrays import FloatArray, IntArray
from poem.compute import OneBlasThread, Threads, count_threads
from poem.data import BanditLog
from poem.errors import InputError
from poem.estimators import (
    FLOORED,
    IPS,
    METHODS,
    ONLY_FOR,
    SNIPS,
    DirectMethod,
    DoublyRobust,
    Estimate,
    Estimator,
    ImplicitExploration,
    LogSmoothing,
    Method,
    Replicates,
    Rows,
    SelfNormalisedDR,
    ShrinkageDR,
    SwitchDR,
    Terms,
    UnitSums,
    Weighted,
    bca,
    bernstein,
    bootstrap,
    check_level,
    clopper_pearson,
    least_mean,
    normal,
    standard_error,
    student,
)
from poem.evaluation.calibration import LossBounds, clip_for, loss_range
from poem.evaluation.diagnostics import Diagnostics, diagnose, provably_unsupported
from poem.evaluation.estimated_propensities import PropensityFit, balanced
from poem.evaluation.model_means import Model, expectations, model_for, unsupported_share
from poem.evaluation.table import Evaluation, Line
from poem.policies import NO_POLICY, FlooredPolicy, Judged, Policy, judge_all

ALL: dict[str, Estimator] = {
    "IPS": IPS(None),
    "clipped IPS": IPS("auto"),
    "SNIPS": SNIPS(None),
    "DM": DirectMethod(),
    "DR": DoublyRobust(),
    "SNDR": SelfNormalisedDR(),
    "SWITCH-DR": SwitchDR(),
    "DRos": ShrinkageDR(),
    "IX": ImplicitExploration(),
    "LS": LogSmoothing(),
}


def estimate(policy: Policy | FlooredPolicy | None, log: BanditLog, estimator: Estimator | None = None) -> Estimate:
    """Estimate the mean loss that a policy would have had on a log it was not trained on.

    Self-normalised without clipping by default. IPS is taken around the worst logged loss, so that what
    the log does not cover counts as bad, not as good. Rows of one group, or of one context if there are
    no groups, are not taken to be independent. :func:`evaluate` does more.
    """
    if policy is None:
        raise InputError(NO_POLICY.format(name="the policy"))
    if not isinstance(policy, Policy | FlooredPolicy) or not isinstance(log, BanditLog):
        raise InputError(f"estimate takes (policy, log); found {type(policy).__name__} and {type(log).__name__}.")
    if estimator is not None and not isinstance(estimator, Estimator):
        raise InputError(f"estimator must be one such as poem.IPS(); found {estimator!r}.")
    log.need_propensities()
    chosen = _calibrated(SNIPS(clip=None) if estimator is None else estimator, log)
    worst = float(np.max(log.loss))
    rows = Rows(policy.log_prob_of(log) - log.log_propensity, log.loss - worst, log.log_propensity)
    return chosen.judge(rows, log.units()).rescaled(worst - 1.0, worst)


def evaluate(
    policies: Any,
    log: BanditLog,
    estimators: Any = "all",
    *,
    interval: Method = "t",
    level: float = 0.95,
    against: str = "logged",
    model: Any = "linear",
    folds: int = 2,
    loggers: Mapping[Any, Any] | None = None,
    estimated: PropensityFit | None = None,
    loss_bounds: LossBounds = "auto",
    replicates: int = 1000,
    n_jobs: int | None = -1,
    seed: int = 0,
) -> Evaluation:
    """Say how policies would have done on a log that they were not trained on, and whether to believe it.

    Parameters
    ----------
    policies : policy, list, or dict of names and policies
        poem's own; any object with ``predict_proba(X)``; an array of the probabilities of the logged outputs
        (n,), or of all classes (n, k).
    log : BanditLog
    estimators : "all", names, or Estimators
        Of IPS, clipped IPS, SNIPS, DM, DR, SNDR, SWITCH-DR, DRos, IX and LS.
    interval : "t", "normal", "bootstrap", "bernstein", "truncated", "ls", "betting" or "clopper-pearson"
        Student's t or normal by the delta method; BCa; empirical Bernstein, for clipped IPS; for IPS, the truncated
        bound of Thomas et al. (2015), logarithmic smoothing (Sakhi et al., 2024), and betting; Clopper and Pearson's,
        for IPS where all weights are equal. The first three are approximate; the others hold for any number of
        independent units if propensities and ``loss_bounds`` are right.
    level : float
    against : "logged" or a policy's name
        What the differences are to: the logged losses themselves, or another policy.
    model : "linear", a scikit-learn regressor, or None
        What DM and DR rest on; a regressor is for classes.
    folds : int
        A row's loss is predicted by a model that has not seen its fold.
    loggers : dict, optional
        The policies of a log of several loggers: estimates then use the balanced weights of
        :func:`poem.balanced`. Each logger's own rows are also judged alone, in ``by_logger``.
    estimated : PropensityFit, optional
        What :func:`poem.estimate_propensities` made of this log: every policy is judged by it as well, in lines of
        its own, so that both answers stand side by side.
    loss_bounds : (lowest, highest) or "auto"
        What a loss can be. ``"auto"`` takes the extremes of the log; bounds for any n hold for losses within them.
    replicates : int
        Of the bootstrap.
    n_jobs, seed
        Threads, and the seed of folds and bootstrap.
    """
    check_level(level)
    if interval not in METHODS:
        raise InputError(f"interval must be one of {', '.join(METHODS)}; found {interval!r}.")
    if not isinstance(log, BanditLog):
        raise InputError(f"evaluate takes (policies, log); found {type(log).__name__} as the log.")
    whole = log if loggers is None else balanced(log, loggers)
    whole.need_propensities()
    judged = judge_all(policies, log)
    known = ["logged", *(policy.name for policy in judged)]
    if not isinstance(against, str) or against not in known:
        raise InputError(f"against must be one of {', '.join(known)}; found {against!r}.")
    chosen = _estimators(estimators)
    for name, value in (("replicates", replicates), ("seed", seed)):
        if not isinstance(value, int | np.integer) or value < 0:
            raise InputError(f"{name} must be a whole number, 0 or above; found {value!r}.")
    if model is None and not any(not estimator.needs_model for estimator in chosen.values()):
        raise InputError(f"{', '.join(chosen)} need a loss model. Leave model= as it is, or choose other estimators.")
    if not isinstance(n_jobs, int | None):
        raise InputError(f"n_jobs must be such as 2, or -1 for all cores; found {n_jobs!r}.")
    threads = Threads(count_threads(n_jobs))
    with OneBlasThread():
        several = int(log.units().max()) > 0  # one unit alone cannot be left out of a model
        usable = model is not None and several and any(policy.has_marginals for policy in judged)
        wanted = any(estimator.needs_model for estimator in chosen.values())
        fitted = model_for(log, model, folds, seed, threads) if usable and wanted else None
        options = (threads, interval, level, replicates, seed, loss_range(log.loss, loss_bounds))
        found = _Work(whole, fitted, *options).evaluated(judged, chosen, against)
        if estimated is not None:
            found = _beside(
                found, _Work(_same_rows(estimated, log), fitted, *options).evaluated(judged, chosen, against)
            )
        if log.logger is None or log.propensities == "missing":
            return found
        alone = {}
        for name in np.unique(log.logger).tolist():
            rows = np.flatnonzero(log.logger == name)
            part = None if fitted is None else fitted.of_rows(rows)
            own = [policy.of_rows(rows) for policy in judged]
            alone[name] = _Work(log.take(rows), part, *options).evaluated(own, chosen, against)
    return replace(found, by_logger=alone)


def _same_rows(estimated: PropensityFit, log: BanditLog) -> BanditLog:
    if not isinstance(estimated, PropensityFit) or len(estimated.log) != len(log):
        raise InputError("estimated must be what poem.estimate_propensities made of this very log.")
    return estimated.log


def _beside(logged: Evaluation, estimated: Evaluation) -> Evaluation:
    """Join the answers by logged and by estimated propensities; the names say which is which."""

    def named(name: str) -> str:
        return f"{name}, p estimated"

    lines = tuple(replace(line, policy=named(line.policy)) for line in estimated.lines)
    diagnostics = {named(name): found for name, found in estimated.diagnostics.items()}
    return replace(logged, lines=logged.lines + lines, diagnostics=logged.diagnostics | diagnostics)


def _estimators(given: Any) -> dict[str, Estimator]:
    if isinstance(given, str) and given == "all":
        return ALL
    many = list(given) if isinstance(given, list | tuple | set) else [given]
    found = {}
    for one in many:
        if isinstance(one, Estimator):
            found[_name_of(one) if _name_of(one) not in found else repr(one)] = one
        elif isinstance(one, str) and one in ALL:
            found[one if one not in found else repr(ALL[one])] = ALL[one]
        else:
            raise InputError(f"there is no estimator {one!r}; choose from {', '.join(ALL)}.")
    if not found:
        raise InputError(f"no estimator was given; choose from {', '.join(ALL)}.")
    return found


def _name_of(estimator: Estimator) -> str:
    clipped = isinstance(estimator, Weighted) and estimator.clip is not None
    return f"clipped {estimator.name}" if clipped else estimator.name


def _calibrated(estimator: Estimator, log: BanditLog) -> Estimator:
    return estimator.with_clip(clip_for(log, estimator)[0]) if isinstance(estimator, Weighted) else estimator


@dataclass(frozen=True)
class _Found:
    """One estimate of one policy, as its terms."""

    estimator: Estimator
    estimate: Estimate
    sums: UnitSums
    rows: Rows


@dataclass(frozen=True)
class _Part:
    """All estimates of one policy."""

    name: str
    found: dict[str, _Found]
    diagnostics: Diagnostics
    skipped: bool
    unsupported: float  # probability that certainly has no support


class _Work:
    """What all policies share: the log around its worst loss, its units, and the model."""

    def __init__(
        self,
        log: BanditLog,
        model: Model | None,
        threads: Threads,
        interval: Method,
        level: float,
        replicates: int,
        seed: int,
        bounds: tuple[float, float],
    ) -> None:
        self.log, self.model, self.threads = log, model, threads
        self.interval, self.level, self.tail = interval, level, (1.0 - level) / 2.0
        self.replicates, self.seed = replicates, seed
        self.worst, self.best = bounds[1], bounds[0] - bounds[1]  # the best one around the worst one
        self.loss: FloatArray = log.loss - self.worst
        units = log.units()
        self.unit: IntArray | None = None if int(units.max()) + 1 == len(log) else units
        self.logged = Terms(self.loss).by_unit(self.unit)

    def judge(self, policy: Judged, estimators: dict[str, Estimator]) -> _Part:
        rows = Rows(policy.log_prob - self.log.log_propensity, self.loss, self.log.log_propensity)
        with_model = rows
        if self.model is not None and policy.has_marginals:
            predicted, expected = expectations(policy, self.log, self.model, self.threads)
            with_model = replace(rows, predicted=predicted - self.worst, expected=expected - self.worst)
        found = {}
        skipped = False
        for name, estimator in estimators.items():
            if estimator.needs_model and with_model is rows:
                skipped = True
                continue
            seen = with_model if estimator.needs_model else rows
            ready = _calibrated(estimator, self.log).tuned(seen)
            sums = ready.terms(seen).by_unit(self.unit)
            found[name] = _Found(ready, ready.summary(sums, seen, self.unit), sums, seen)
        clip = clip_for(self.log, IPS("auto"))[0]
        unsupported = unsupported_share(policy, self.log)
        return _Part(
            policy.name, found, diagnose(rows, self.unit, unsupported, clip), skipped, provably_unsupported(rows)
        )

    # ---- the table ------------------------------------------------------------------------

    def evaluated(self, judged: Sequence[Judged], estimators: dict[str, Estimator], against: str) -> Evaluation:
        """Judge all policies."""
        return self._evaluation([self.judge(policy, estimators) for policy in judged], against)

    def _evaluation(self, parts: Sequence[_Part], against: str) -> Evaluation:
        base = next((part for part in parts if part.name == against), None)
        columns = [found.sums for part in parts for found in part.found.values()] + [self.logged]
        drawn = None
        if self.interval == "bootstrap":
            drawn = bootstrap(columns, self.replicates, seed=self.seed, threads=self.threads)
        place = {id(sums): position for position, sums in enumerate(columns)}
        lines = []
        for part in parts:
            for name, found in part.found.items():
                versus = None if base is None or part is base else base.found.get(name)
                other = versus.sums if versus else (self.logged if base is None else None)
                lines.append(self._line(part, name, found, other, base, versus, drawn, place))
        mean = Estimate(
            self.logged.value() + self.worst,
            standard_error(self.logged.shares()),
            len(self.log),
            len(self.logged),
            1.0,
            0.0,
            float(len(self.log)),
        )
        return Evaluation(
            lines=tuple(lines),
            diagnostics={part.name: part.diagnostics for part in parts},
            logged=mean,
            interval=self.interval,
            level=self.level,
            against=against,
            propensities=self.log.propensities,
            outcome=self.log.outcome,
            skipped=tuple(part.name for part in parts if part.skipped),
        )

    def _line(
        self,
        part: _Part,
        name: str,
        found: _Found,
        other: UnitSums | None,
        base: _Part | None,
        versus: _Found | None,
        drawn: Replicates | None,
        place: dict[int, int],
    ) -> Line:
        estimate = found.estimate
        freedom = _freedom(found)
        low, high = self._interval(found, freedom, drawn, place)
        difference = better = np.nan
        ends = (np.nan, np.nan)
        if other is not None:
            least = freedom if versus is None else min(freedom, _freedom(versus))
            difference, ends, better = self._difference(found, other, versus, least, drawn, place)
        bias, above = self._bias(part, found)
        below = 0.0 if self.interval == "bernstein" else bias  # its low end has the bias in it
        others = (0.0, 0.0) if versus is None or base is None else self._bias(base, versus)
        ends = ends[0] - bias - others[1], ends[1] + above + others[0]
        if bias + others[0] > 0.0 and ends[0] <= 0.0 <= ends[1]:
            better = np.nan  # the bias alone may decide it
        return Line(
            policy=part.name,
            estimator=name,
            value=estimate.value + self.worst,
            low=low - below + self.worst,
            high=high + above + self.worst,
            stderr=estimate.stderr,
            bias_bound=bias,
            difference=difference,
            difference_low=ends[0],
            difference_high=ends[1],
            probability_better=better,
            verdict=part.diagnostics.verdict,
            freedom=freedom,
            bias_above=above,
        )

    def _bias(self, part: _Part, found: _Found) -> tuple[float, float]:
        """Return how far the true loss can be below and above the estimate because weight was held back or is missing.

        What certainly has no support may cost anything within the range of the loss; pessimistic estimators have
        taken it to be the worst, and intervals that hold for any n count it themselves.
        """
        missing = 0.0 if self.interval in ONLY_FOR else -self.best * part.unsupported
        bias = found.estimate.bias_bound + missing
        return bias, 0.0 if found.estimator.pessimistic else bias

    def _interval(
        self, found: _Found, freedom: float, drawn: Replicates | None, place: dict[int, int]
    ) -> tuple[float, float]:
        value, stderr = found.estimate.value, found.estimate.stderr
        if not np.isfinite(value):
            return -np.inf, np.inf
        if drawn is not None and freedom >= 1.0 - 1e-9:
            return drawn.interval(place[id(found.sums)], found.sums, self.tail)
        if self.interval == "bernstein":
            return self._bernstein(found)
        if self.interval in FLOORED:
            return self._floored(found, self.tail)
        if self.interval == "clopper-pearson":
            return self._clopper_pearson(found)
        if self.interval == "normal" and freedom >= 1.0 - 1e-9:
            return normal(value, stderr, self.tail)
        return student(value, stderr, freedom, self.tail)

    def _bernstein(self, found: _Found) -> tuple[float, float]:
        """Bound the loss by clipped IPS, which is too high by at most the range times the weight that is missing.

        That is 1 less the mean of the clipped weights, which has a Bernstein bound of its own.
        """
        estimator = found.estimator
        if not isinstance(estimator, IPS) or estimator.clip is None:
            return -np.inf, np.inf
        clip = float(np.exp(estimator.log_clip))
        _, high = bernstein(found.sums, clip * -self.best, self.tail)
        low, _ = bernstein(found.sums, clip * -self.best, self.tail / 2.0)
        weights = Terms(estimator.ratios(found.rows.log_ratio)).by_unit(self.unit)
        weight, _ = bernstein(weights, clip, self.tail / 2.0)
        return low + self.best * max(1.0 - weight, 0.0), high

    def _clopper_pearson(self, found: _Found) -> tuple[float, float]:
        """Bound the gain over the worst loss, which is 0 or the weight times the range of the loss."""
        if found.estimator != IPS(None):
            return -np.inf, np.inf
        if self.best == 0.0:
            return 0.0, 0.0
        size = len(self.log) / len(found.sums)
        weight = found.rows.weights(self.unit)
        low, high = clopper_pearson(found.sums.top / (self.best * size), weight / size, self.tail)
        return self.best * high, self.best * low

    def _floored(self, found: _Found, tail: float, less: float = 0.0) -> tuple[float, float]:
        """Bound the loss of a policy, or with ``less=1`` its difference to the logged loss, with error ``tail`` each.

        With the reward R, 0 for the worst loss and 1 for the best, (r − less)·R is at least −less, and so is
        (r − less)·(1 − R). The first bounds the loss from above: what the log does not support counts as the worst.
        The second bounds it from below: there it counts as the best.
        """
        if found.estimator != IPS(None):
            return -np.inf, np.inf
        if self.best == 0.0:
            return 0.0, 0.0
        reward: FloatArray = self.loss / self.best
        excess, value = found.rows.ratio - less, found.estimate.value - less * self.logged.value()
        bounds = []
        for part in (excess * reward, excess * (1.0 - reward)):
            sums = Terms(part).by_unit(self.unit)
            bounds.append(least_mean(self.interval, sums.top, sums.count, -less, tail, self.seed))
        high, low = self.best * bounds[0], (1.0 - less) * self.best - self.best * bounds[1]
        return min(low, value), max(high, value)

    def _floored_difference(self, found: _Found, versus: _Found | None) -> tuple[float, float]:
        """Bound the difference to the logged loss by paired terms, to another policy by the bounds of both."""
        if versus is None:
            return self._floored(found, self.tail, less=1.0)
        low, high = self._floored(found, self.tail / 2.0)
        other_low, other_high = self._floored(versus, self.tail / 2.0)
        return low - other_high, high - other_low

    def _difference(
        self,
        found: _Found,
        other: UnitSums,
        versus: _Found | None,
        freedom: float,
        drawn: Replicates | None,
        place: dict[int, int],
    ) -> tuple[float, tuple[float, float], float]:
        value = found.estimate.value - other.value()
        if not np.isfinite(value):
            return np.nan, (-np.inf, np.inf), np.nan
        if self.interval in FLOORED:
            return value, self._floored_difference(found, versus), np.nan
        if self.interval not in ("t", "normal", "bootstrap"):
            return value, (-np.inf, np.inf), np.nan  # these know single means only
        if freedom < 1.0 - 1e-9:
            return value, (-np.inf, np.inf), np.nan
        if drawn is not None:
            replicates = drawn.values[:, place[id(found.sums)]] - drawn.values[:, place[id(other)]]
            ends = bca(replicates, value, found.sums.left_out() - other.left_out(), self.tail)
            good = replicates[np.isfinite(replicates)]
            return value, ends, float(np.mean(good < 0.0) + 0.5 * np.mean(good == 0.0))
        stderr = standard_error(found.sums.shares() - other.shares())
        if stderr <= 1e-12 * (-self.best):  # rounding, not a difference
            if abs(value) <= 1e-12 * (-self.best):
                return 0.0, (0.0, 0.0), 0.5
            return value, (value, value), float(value < 0.0)
        better = float(special.stdtr(freedom, -value / stderr))
        if self.interval == "normal":
            return value, normal(value, stderr, self.tail), better
        return value, student(value, stderr, freedom, self.tail), better


def _freedom(found: _Found) -> float:
    """Return the degrees of freedom of a standard error: effective independent units less one."""
    return found.estimate.effective_n - 1.0
