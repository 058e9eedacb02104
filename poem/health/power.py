"""What a log can teach: the suggested clip and λ*, and the smallest improvement that it can show."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from poem.arrays import FloatArray
from poem.errors import LearningError, LogError
from poem.estimators import IPS, Terms, effective_number, standard_error
from poem.evaluation import calibrate, check_learnable
from poem.health.facts import Facts, mixed, numbered
from poem.health.finding import Finding, Verdict, percent

# 1.96 for 95% confidence and 0.84 for a chance of 80% to find what is there.
DETECTABLE = 2.8
FEW_EFFECTIVE = 100.0  # effective rows below which an estimate depends on a few of them
ESTIMATE = "Pass --propensity estimate to inspect, train, evaluate and report (poem.estimate_propensities)."
WORTH = 0.1  # an improvement that people hope for, of the mean or of a standard deviation


def learning(facts: Facts) -> Iterator[Finding]:
    """Report the settings for learning, and the smallest improvement that stands out from noise."""
    try:
        check_learnable(facts.log)
        calibration = calibrate(facts.log if facts.packed is None else facts.packed, IPS())
    except (LearningError, LogError) as error:
        why, _, advice = str(error).partition(". ")
        advice = advice if facts.has_propensities else ESTIMATE
        yield Finding("learning", "refused", None, "unfit", f"learning would refuse this log: {why}", advice)
        return
    clip = f"clip M = {calibration.clip:.4g} ({calibration.clip_rule})"
    yield Finding("learning", "clip", calibration.clip, "fit", f"suggested {clip} and λ* = {calibration.lam_star:.4g}")
    if facts.one_each:
        yield _effective_rows(facts)
    yield _power(facts)


def _effective_rows(facts: Facts) -> Finding:
    """Report the effective rows of a uniform policy: the fewer, the less was explored."""
    n, effective = facts.n_rows, effective_number(facts.inverse * _share_of_each(facts)) / facts.share
    text = f"{effective:,.0f} of {n:,} rows count for a policy that chooses uniformly (effective sample size)"
    verdict: Verdict = "fit" if effective >= FEW_EFFECTIVE else "with care"
    advice = "" if verdict == "fit" else "Estimates will depend on a few rows; collect more, or explore more evenly."
    return Finding("learning", "effective rows", effective, verdict, text, advice)


def _power(facts: Facts) -> Finding:
    log = facts.log
    units = DETECTABLE * float(np.sqrt(facts.share))  # errors of all rows, by those of some
    near, far = units * error_of_logged(facts), units * error_of_others(facts)
    scale = _scale(log.loss)
    shown = float(log.loss.mean()) * (1.0 if log.outcome == "loss" else -1.0)
    other = "that decides otherwise" if facts.one_each else "that is twice as sharp as the logging one"
    text = (
        f"an improvement of {_size(far, scale)} on the mean {log.outcome} of {shown:.4g} can be told from noise for a "
        f"policy {other} (at 95% confidence, in 80% of cases); for one near the log, {_size(near, scale)}"
    )
    if far <= scale.size:
        return Finding("learning", "detectable improvement", far, "fit", text)
    advice = f"Expect that only policies near the logged one can be judged; {_rows_needed(facts, far, scale)}."
    return Finding("learning", "detectable improvement", far, "with care", text, advice)


@dataclass(frozen=True)
class Scale:
    """The scale of improvements: the mean if all losses have one sign, otherwise the standard deviation."""

    size: float
    is_mean: bool


def _scale(loss: FloatArray) -> Scale:
    one_sign = bool(loss.min() >= 0.0 or loss.max() <= 0.0)
    return Scale(abs(float(loss.mean())) if one_sign else float(loss.std()), one_sign)


def _size(improvement: float, scale: Scale) -> str:
    if not np.isfinite(improvement):
        return "no size"
    return f"{improvement:.2g}" + (f" ({percent(improvement / scale.size)})" if scale.is_mean and scale.size else "")


def _rows_needed(facts: Facts, far: float, scale: Scale) -> str:
    worth = WORTH * scale.size
    needed = facts.n_rows * (far / worth) ** 2 if worth > 0.0 else np.inf  # a mean of tiny losses may round to 0
    if not np.isfinite(needed):
        return "collect more, and more evenly explored rows"
    return f"to show {_size(worth, scale)}, others need about {float(f'{needed:.1e}'):,.0f} rows"


def error_of_logged(facts: Facts) -> float:
    """Return the standard error of the logged mean loss; every estimate is at least as uncertain."""
    return standard_error(Terms(facts.log.loss).by_unit(facts.units).shares())


def error_of_others(facts: Facts) -> float:
    """Return the standard error of SNIPS for policies that decide differently from the log.

    For classes, this is the mean over all policies that always choose one random output per context. Such a policy
    gives a row with K available outputs the weight 1/p with probability 1/K and 0 otherwise, so its error is
    √(Σ (1/K)·((δ − μ)/p)²)/Σ 1/(K·p). Rows of one unit with the same output get a weight together, or none.
    For label sets, it is for a policy twice as sharp as the logging policy, h ∝ p². Its weights are p itself, up to a
    constant per context that is taken to be one.
    """
    log = facts.log
    if not facts.one_each:
        p = np.exp(log.log_propensity - log.log_propensity.max())
        return standard_error(Terms(p * log.loss, p).by_unit(facts.units).shares())
    share = _share_of_each(facts)
    weight = facts.inverse * share  # on average
    centred = facts.inverse * (log.loss - float(weight @ log.loss) / float(weight.sum()))
    together = _added(facts, np.sqrt(share) * centred)
    return float(np.sqrt(together @ together) / weight.sum())


def _share_of_each(facts: Facts) -> FloatArray:
    """Return 1/K of each row: the chance of its output, if all that were available had the same."""
    k = np.full(len(facts.log), float(len(facts.log.labels))) if facts.choices is None else facts.choices
    return np.asarray(1.0 / k)


def _added(facts: Facts, values: FloatArray) -> FloatArray:
    """Sum values over rows with the same unit and output."""
    if int(facts.units.max()) + 1 == len(values):
        return values
    return np.bincount(numbered(mixed([facts.units, facts.code])), values).astype(np.float64)
