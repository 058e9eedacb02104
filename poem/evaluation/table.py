"""The answer of an evaluation: a table that prints, plots and exports itself."""

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from scipy import special

from poem.errors import InputError
from poem.estimators import ONLY_FOR, Estimate, check_level
from poem.evaluation.diagnostics import Diagnostics, Verdict
from poem.text import Grid, Sheet

TOO_GOOD = "{name} was trained on this very log; its estimates are too good"
LEAST_SHARE = 0.005  # that is shown


@dataclass(frozen=True)
class Line:
    """One policy by one estimator, as losses or rewards, whichever the log has.

    ``low`` and ``high`` contain the stated bias of clipped weights (``bias_bound``). ``difference`` is to what
    was evaluated against: of losses negative is better, of rewards positive. ``probability_better`` is that of a
    difference on the better side of 0, ``freedom`` the degrees of freedom of the standard error, ``bias_above`` the
    part of the bias at the worse end: ``high`` of a loss, ``low`` of a reward.
    """

    policy: str
    estimator: str
    value: float
    low: float
    high: float
    stderr: float
    bias_bound: float
    difference: float
    difference_low: float
    difference_high: float
    probability_better: float
    verdict: Verdict
    freedom: float
    bias_above: float

    def as_outcome(self, outcome: str) -> "Line":
        """Return a line of losses as one of the log's own outcome: a reward is a negated loss."""
        if outcome == "loss":
            return self
        return replace(
            self,
            value=0.0 - self.value,
            low=0.0 - self.high,
            high=0.0 - self.low,
            difference=0.0 - self.difference,
            difference_low=0.0 - self.difference_high,
            difference_high=0.0 - self.difference_low,
        )


@dataclass(frozen=True)
class Evaluation:
    """What :func:`poem.evaluate` found.

    Attributes
    ----------
    lines : tuple of Line
    diagnostics : dict of Diagnostics
        By the name of the policy: whether to believe its lines.
    logged : Estimate
        The mean loss or reward that was logged.
    interval, level, against
        How the intervals were made, and what the differences are to.
    propensities : "logged" or "estimated"
    outcome : "loss" or "reward"
        What the log has, and so what all figures are: losses (lower is better) or rewards (higher is better).
    by_logger : dict of Evaluation
        For a log of several loggers, each one's rows judged alone.
    skipped : tuple of str
        Policies without estimates from a loss model, because there is none, or because only the logged
        outputs' probabilities are known.
    model : str or None
        The loss model that DM and DR rest on: "linear", "hidden truth", or the name of the regressor's class.
    shares : dict of float
        By the name of the policy: the share of its own probabilities in what the loss model predicts.
    sampled : int or None
        For a packed log, how many independent units the loss model and automatic thresholds come from; None for all.
    trained_on_log : tuple of str
        Of a packed log, the policies that were trained on it, or on units of the same part: their estimates are too
        good.
    """

    lines: tuple[Line, ...]
    diagnostics: dict[str, Diagnostics]
    logged: Estimate
    interval: str
    level: float
    against: str
    propensities: str = "logged"
    skipped: tuple[str, ...] = ()
    outcome: str = "loss"
    by_logger: dict[Any, "Evaluation"] = field(default_factory=dict)
    model: str | None = None
    shares: dict[str, float] = field(default_factory=dict)
    sampled: int | None = None
    trained_on_log: tuple[str, ...] = ()

    def __getitem__(self, key: tuple[str, str]) -> Line:
        """Return the line of (policy, estimator)."""
        for line in self.lines:
            if (line.policy, line.estimator) == key:
                return line
        known = sorted({(line.policy, line.estimator) for line in self.lines})
        raise InputError(f"there is no line {key!r}; there are {known[:12]}.")

    def __repr__(self) -> str:
        return str(self.sheet())

    def _repr_html_(self) -> str:
        return self.sheet().html()

    def sheet(self) -> Sheet:
        """Return the table with what is said around it, to be shown."""
        percent = f"{100.0 * self.level:g}%"
        head = (
            "policy",
            "estimator",
            self.outcome,
            f"{percent} interval",
            f"− {self.against}",
            "interval",
            "P(better)",
            "bias ≤",
        )
        rows = [
            (
                line.policy,
                line.estimator,
                f"{line.value:.4g}",
                self._ends(line.low, line.high),
                "" if np.isnan(line.difference) else f"{line.difference:+.4g}",
                "" if np.isnan(line.difference) else self._ends(line.difference_low, line.difference_high),
                "" if np.isnan(line.probability_better) else f"{line.probability_better:.3f}",
                "" if line.bias_bound == 0.0 else f"{line.bias_bound:.2g}",
            )
            for line in self.lines
        ]
        low, high = self.logged.interval(self.level)
        parts: list[str | Grid] = [
            f"logged {self.outcome} {self.logged.value:.4g} {self._ends(low, high)} over "
            f"{self.logged.n:,} rows, {self.logged.units:,} independent; {self.interval} intervals{self._estimated()}",
            Grid(head, rows),
        ]
        if without := self._without_interval():
            parts.append(
                f"{self.interval} intervals exist for {ONLY_FOR[self.interval]} only, not for {', '.join(without)}; "
                "t and bootstrap intervals exist for all"
            )
        if self.model is not None:
            parts.append(f"loss model: {self.model}{self._shared()}")
        if self.sampled is not None:
            of = f"{self.sampled:,} of {self.logged.units:,} independent units"
            parts.append(f"automatic thresholds{' and the loss model' if self.model else ''} come from {of}")
        if self.skipped:
            parts.append(f"no estimates from a loss model for {', '.join(self.skipped)}")
        parts += [TOO_GOOD.format(name=name) for name in self.trained_on_log]
        parts += [f"{name}: {diagnostics}" for name, diagnostics in self.diagnostics.items()]
        parts += [
            f"{name} chooses {found.most_probable()}" for name, found in self.diagnostics.items() if found.actions
        ]
        return Sheet(*parts)

    def _shared(self) -> str:
        """Return how much policies have a say in the loss model."""
        heard = [f"{name} {100.0 * share:.0f}%" for name, share in self.shares.items() if share >= LEAST_SHARE]
        return f"; share of policies' own probabilities in it: {', '.join(heard)}" if heard else ""

    def _worse_end(self, line: Line) -> float:
        """Return the end of an interval that bounds how bad a policy is."""
        return line.high if self.outcome == "loss" else line.low

    def _without_interval(self) -> list[str]:
        """Return the estimators for which the chosen interval is not made."""
        known = ONLY_FOR.get(self.interval)
        return list(dict.fromkeys(line.estimator for line in self.lines if known and np.isinf(self._worse_end(line))))

    def _ends(self, low: float, high: float) -> str:
        if self.interval in ONLY_FOR and not np.isfinite([low, high]).any():
            return ""
        return f"[{low:.4g}, {high:.4g}]"

    def _estimated(self) -> str:
        return "; propensities estimated, not logged" if self.propensities == "estimated" else ""

    def bound(self, policy: str, estimator: str, level: float = 0.95) -> float:
        """Return the loss that a policy stays below, or the reward that it exceeds, with this probability."""
        line = self[policy, estimator]
        if self.interval != "t":
            # One end of a two-sided interval is a one-sided bound with half of the error.
            if abs(check_level(level) - (1.0 + self.level) / 2.0) > 1e-9:
                raise InputError(
                    f"one-sided bounds by {self.interval!r} are ends of intervals: evaluate with "
                    f"level={2.0 * level - 1.0:g} for a bound at {level:g}."
                )
            return self._worse_end(line)
        worse = 1.0 if self.outcome == "loss" else -1.0
        freedom = max(line.freedom, 1.0)
        if not np.isfinite(line.stderr) or line.freedom < 1.0 - 1e-9:
            return worse * np.inf
        reach = special.stdtrit(freedom, check_level(level)) * line.stderr
        return float(line.value + worse * reach + worse * line.bias_above)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return one plain dict for each line."""
        return [asdict(line) for line in self.lines]

    def to_frame(self) -> Any:
        """Return the lines as a pandas data frame."""
        try:
            import pandas
        except ImportError as error:
            raise InputError("to_frame needs pandas: pip install pandas. to_dicts() does without.") from error
        return pandas.DataFrame(self.to_dicts())

    def to_json(self) -> str:
        """Return all of it as JSON. Unbounded or unknown is null."""
        content = {
            "level": self.level,
            "interval": self.interval,
            "against": self.against,
            "outcome": self.outcome,
            "skipped": list(self.skipped),
            "model": self.model,
            "shares": self.shares,
            "sampled": self.sampled,
            "trained_on_log": list(self.trained_on_log),
            "propensities": self.propensities,
            "logged": {name: value for name, value in asdict(self.logged).items() if name != "estimator"},
            "lines": self.to_dicts(),
            "diagnostics": {name: found.to_dict() for name, found in self.diagnostics.items()},
            "by_logger": {str(name): json.loads(found.to_json()) for name, found in self.by_logger.items()},
        }
        return json.dumps(_finite(content), ensure_ascii=False, indent=2)

    def plot(self) -> Any:
        """Draw every estimate with its interval beside what was logged; return a matplotlib figure."""
        from matplotlib.figure import Figure

        names = list(self.diagnostics)
        figure = Figure(figsize=(8.0, 1.2 + 0.32 * len(self.lines)), layout="constrained")
        axes = figure.subplots()
        for position, line in enumerate(self.lines):
            colour = f"C{names.index(line.policy) % 10}"
            reach = [[max(line.value - line.low, 0.0)], [max(line.high - line.value, 0.0)]]
            bounded = np.isfinite(reach).all() and np.isfinite(line.value)
            axes.errorbar(line.value, position, xerr=reach if bounded else None, fmt="o", color=colour, capsize=3)
            if not bounded:
                axes.axhline(position, color=colour, alpha=0.3, linewidth=6)
        low, high = self.logged.interval(self.level)
        if np.isfinite([low, high]).all():
            axes.axvspan(low, high, color="0.85", zorder=0)
        axes.axvline(self.logged.value, color="0.4", linewidth=1, label="logged")
        axes.set_yticks(
            range(len(self.lines)), [f"{line.policy} ({line.verdict}): {line.estimator}" for line in self.lines]
        )
        axes.invert_yaxis()
        axes.set(xlabel=f"{self.outcome}, {100 * self.level:g}% interval{self._estimated()}")
        axes.grid(axis="x", alpha=0.3)
        axes.legend(frameon=False)
        return figure


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
