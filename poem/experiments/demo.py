"""A whole round on real data in a minute: log, learn, judge, and compare with the truth."""

import io
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from poem.data import BanditLog
from poem.errors import DegenerateWarning, InputError
from poem.estimators import IPS, SNIPS, Estimate
from poem.evaluation import estimate
from poem.files import write_whole
from poem.learning import Fit, Selection, fit, warm_up
from poem.optimizers import LBFGS, AdaGrad, Optimizer
from poem.policies import Policy, constant_policy, supervised, uniform_policy
from poem.progress import tell_line
from poem.simulation import simulate
from poem.text import Grid

REPLAY = 64  # how often each image is decided on: enough to see what each method makes of a log
DEFAULT = "poem.fit(log)"
DETERMINISTIC = 1e6  # a temperature at which a policy is its own MAP rule


@dataclass(frozen=True)
class Row:
    """One line of the demo's table; losses are wrong labels an image."""

    name: str
    expected_loss: float
    map_loss: float
    estimate: Estimate
    seconds: float | None
    remark: str


@dataclass(frozen=True)
class Demo:
    """What the demo found: its table, its fits and the policies behind the rows."""

    rows: list[Row]
    fits: dict[str, Fit]
    log: BanditLog


def run_demo(seed: int = 0, n_jobs: int = -1, progress: bool = True) -> Demo:
    """Log with a weak policy on the digits, learn from the log, and compare with the truth."""
    if seed < 0:
        raise InputError(f"seed must be a whole number, 0 or above; found {seed}.")
    rng = np.random.default_rng(seed)
    X, y, X_test, y_test = _digits(rng)
    _say(progress, f"digits: {len(X)} images to log on, {len(X_test)} to test on, ten yes/no labels each")

    first = rng.permutation(len(X))[: round(0.05 * len(X))]
    logger = supervised(X[first], y[first], C=0.1)
    log = simulate(X, y, logger, replay=REPLAY, rng=rng)
    # Judged on fresh decisions of the same logging policy, which no fit has seen.
    judge_log = simulate(X_test, y_test, logger, replay=REPLAY, rng=rng)
    _say(progress, f"logging policy fitted on {len(first)} images; it made {len(log)} logged decisions")

    policies: list[tuple[str, Policy, float | None]] = [
        ("logging policy", logger, None),
        ("logging policy, MAP", logger.at_temperature(DETERMINISTIC), None),
        ("no label", constant_policy(log, np.zeros(10, dtype=int)), None),
        ("uniform", uniform_policy(log), None),
    ]
    begin = time.perf_counter()
    warm_up(log)
    _say(progress, f"kernels compiled or loaded in {time.perf_counter() - begin:.1f} s")
    fits = {}
    for name, options in _methods().items():
        _say(progress, f"learning {name} …")
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateWarning)  # the table has a column for it
            fits[name] = fit(log, loss_bounds=(0, 10), n_jobs=n_jobs, seed=seed, progress=progress, **options)
        found = fits[name].policy
        if not isinstance(found, Policy):  # nothing was certified
            continue
        policies.append((name, found, time.perf_counter() - begin))
        if name == "POEM (batch)":
            policies.append((f"{name}, MAP", found.at_temperature(DETERMINISTIC), None))
    begin = time.perf_counter()
    skyline = supervised(X, y, C=1.0)
    policies.append(("full-information skyline", skyline, time.perf_counter() - begin))

    rows = [
        Row(
            name,
            policy.expected_loss(X_test, y_test),
            policy.map_loss(X_test, y_test),
            estimate(policy, judge_log),
            seconds,
            ", ".join(fits[name].chosen.problems) if name in fits else "",
        )
        for name, policy, seconds in policies
    ]
    return Demo(rows, fits, log)


def _methods() -> dict[str, dict[str, Any]]:
    batch: Optimizer = LBFGS()
    stochastic: Optimizer = AdaGrad()
    return {
        "IPS (batch)": {"estimator": IPS(), "lam": 0.0, "optimizer": batch},
        "IPS (stochastic)": {"estimator": IPS(), "lam": 0.0, "optimizer": stochastic},
        "POEM (batch)": {"estimator": IPS(), "optimizer": batch},
        "POEM (stochastic)": {"estimator": IPS(), "optimizer": stochastic},
        "Norm-POEM (batch)": {"estimator": SNIPS(), "optimizer": batch, "selection": Selection(select_by="snips")},
        DEFAULT: {},
    }


def _digits(rng: np.random.Generator) -> tuple[Any, Any, Any, Any]:
    from sklearn.datasets import load_digits

    images, digit = load_digits(return_X_y=True)
    order = rng.permutation(len(images))
    X, y = images[order] / 16.0, (digit[order, None] == np.arange(10)).astype(np.uint8)
    half = len(X) // 2
    return X[:half], y[:half], X[half:], y[half:]


def _say(enabled: bool, text: str) -> None:
    if enabled:
        tell_line(text)


# ---- output ---------------------------------------------------------------------------------


def table_of(rows: list[Row]) -> Grid:
    """Return the rows as a table of text."""
    head = ("policy", "expected loss", "MAP loss", "off-policy estimate", "95% interval", "seconds", "remark")
    return Grid(head, [_cells(row) for row in rows])


def _cells(row: Row) -> tuple[str, ...]:
    low, high = row.estimate.interval()
    return (
        row.name,
        f"{row.expected_loss:.3f}",
        f"{row.map_loss:.3f}",
        f"{row.estimate.value:.3f}",
        f"[{low:.3f}, {high:.3f}]",
        "" if row.seconds is None else f"{row.seconds:.2f}",
        row.remark,
    )


def draw(demo: Demo, path: Path) -> Path:
    """Draw learning curves, and estimates against the truth, into a PNG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="constrained")
    curves, truth = figure.subplots(1, 2)
    _draw_curves(curves, demo.fits)
    _draw_truth(truth, demo.rows)
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=150)
    return write_whole(path, picture.getvalue())


def _draw_curves(axes: Any, fits: dict[str, Fit]) -> None:
    for name, found in fits.items():
        if len(found.chosen.trace.curve) < 2:  # a loss model's own policy: nothing was minimised
            continue
        seconds, values = (np.array(part) for part in zip(*found.chosen.trace.curve, strict=True))
        # Objectives of different λ and estimators cannot be compared; how fast each falls can.
        left = (values - values.min()) / max(values[0] - values.min(), 1e-12)
        axes.plot(np.maximum(seconds, 1e-3), left, marker=".", markersize=3, label=name)
    axes.set(
        xscale="log",
        xlabel="seconds",
        ylabel="share of the way down that is left",
        title="Learning curves: each method's own objective",
    )
    axes.legend(frameon=False, fontsize=8)
    axes.grid(alpha=0.3)


def _draw_truth(axes: Any, rows: list[Row]) -> None:
    shown = [row for row in rows if "MAP" not in row.name and np.isfinite(row.estimate.interval()[0])]
    shown = [row for row in shown if row.name != "uniform"]  # so far off that the others would crowd
    for row in shown:
        low, high = row.estimate.interval()
        reach = [[row.estimate.value - low], [high - row.estimate.value]]
        axes.errorbar(row.expected_loss, row.estimate.value, yerr=reach, fmt="o", capsize=4, label=row.name)
    ends = [0.0, 1.15 * max(row.expected_loss for row in shown)]
    axes.plot(ends, ends, color="0.6", linewidth=1, zorder=0)
    axes.set(
        xlabel="true expected test loss", ylabel="off-policy estimate, 95% interval", title="Estimate against truth"
    )
    axes.legend(frameon=False, fontsize=8, loc="upper left")
    axes.grid(alpha=0.3)
