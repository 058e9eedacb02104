"""Results → the paper's figures, its own points beside ours."""

import io
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from poem.arrays import FloatArray
from poem.experiments import paper
from poem.experiments.document import Grid, Picture, Section, Text
from poem.experiments.protocol import Protocol
from poem.experiments.spec import Sweep
from poem.experiments.summary import Results
from poem.experiments.tables import TITLES, problem_counts, spread

COLOURS = {"h0": "#b5483a", "h0, MAP": "#c99a2e", "CRF": "#3567a8", "POEM(S)": "#2d7d46"}
AXES: dict[str, dict[str, Any]] = {
    "figure1": {"xlabel": "replay count", "base": 2},
    "figure2": {"xlabel": "share f of the training set that h0 is fitted on", "base": None},
    "figure3": {"xlabel": "temperature α of h0", "base": 2},
}
TOPICS = {
    "figure1": "Figure 1: more data",
    "figure2": "Figure 2: a better logging policy",
    "figure3": "Figure 3: a more deterministic logging policy",
}


@dataclass(frozen=True)
class Curves:
    """For each curve of a figure, the values of all runs (points × runs); and what is wrong with POEM's policies."""

    x: FloatArray
    ours: dict[str, FloatArray]
    paper: dict[str, dict[float, float]]
    problems: list[str]


def curves_of(sweep: Sweep, dataset: str, protocol: Protocol, results: Results) -> Curves:
    """Collect what a figure draws; the paper's points are shown on the paper's data set only."""
    loggings = sweep.loggings(protocol)
    ours = {
        method: np.array([results.values(dataset, logging, method) for logging in loggings]) for method in sweep.methods
    }
    if sweep.name == "figure3":
        ours["h0, MAP"] = np.array([results.values(dataset, logging, "h0", "map_loss") for logging in loggings])
    if sweep.skyline:
        ours["CRF"] = np.tile(results.values(dataset, None, "CRF", protocol.skyline), (len(loggings), 1))
    published = paper.CURVES[sweep.name] if dataset == sweep.dataset else {}
    problems = [problem_counts(results.chosen(dataset, logging, "POEM(S)")) for logging in loggings]
    return Curves(np.array(sweep.values), ours, published, problems)


def section_of(sweep: Sweep, dataset: str, curves: Curves, version: str, stem: str) -> tuple[Section, dict[str, bytes]]:
    """Return a figure with its points and what they say, and its files by name."""
    svg, png = _drawn(sweep, curves)
    title = f"{TOPICS[sweep.name]} ({TITLES[dataset]})"
    alt = f"{title}: test loss against {AXES[sweep.name]['xlabel']}" + (
        ", ours and the paper's" if curves.paper else ""
    )
    finding = {"figure1": _falls, "figure2": _never_above, "figure3": _recovers}[sweep.name](curves)
    text = Text(f"{finding} Data: {TITLES[dataset]}: {version}.")
    section = Section(title, [text, Picture(f"{stem}.png", svg, alt), _points(sweep, curves)])
    return section, {f"{stem}.svg": svg, f"{stem}.png": png}


def _points(sweep: Sweep, curves: Curves) -> Grid:
    head = [sweep.knob]
    for method in curves.ours:
        head += [f"{method}, paper", f"{method}, poem"] if method in curves.paper else [f"{method}, poem"]
    head.append("POEM(S), degenerate")
    rows = []
    for position, x in enumerate(curves.x):
        row = [f"{x:g}"]
        for method, values in curves.ours.items():
            row += [f"{curves.paper[method][x]:.3f}"] if method in curves.paper else []
            row.append(spread(values[position]))
        rows.append([*row, curves.problems[position] or "none"])
    return Grid(head, rows)


def _mean(curves: Curves, method: str) -> FloatArray:
    mean: FloatArray = curves.ours[method].mean(axis=1)
    return mean


def _falls(curves: Curves) -> str:
    rank = float(stats.spearmanr(curves.x, _mean(curves, "POEM(S)")).statistic)
    return f"Spearman's rank correlation of POEM's mean loss with the replay count is {rank:.2f}."


def _never_above(curves: Curves) -> str:
    below = _mean(curves, "POEM(S)") <= _mean(curves, "h0")
    return f"POEM's mean loss is at or below h0's at {int(below.sum())} of {len(below)} values of f."


def _recovers(curves: Curves) -> str:
    poem, logger, mode = (_mean(curves, name) for name in ("POEM(S)", "h0", "h0, MAP"))
    below = ", ".join(f"{x:g}" for x, better in zip(curves.x, poem < logger, strict=True) if better)
    apart = ", ".join(f"{100 * gap:+.1f}% at {x:g}" for x, gap in zip(curves.x, poem / mode - 1, strict=True))
    return f"POEM's mean loss is below h0's at α = {below or 'none'}. Against the MAP of h0 it is {apart}."


def _drawn(sweep: Sweep, curves: Curves) -> tuple[bytes, bytes]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context({"svg.hashsalt": "poem"}):  # the same picture is the same file
        figure = Figure(figsize=(7.5, 4.5), layout="constrained")
        _draw(figure.subplots(), sweep, curves)
        files = []
        for kind, about in (("svg", {"Date": None}), ("png", {})):
            file = io.BytesIO()
            figure.savefig(file, format=kind, dpi=150, metadata=about)
            files.append(file.getvalue())
    return files[0], files[1]


def _draw(axes: Any, sweep: Sweep, curves: Curves) -> None:
    for method, values in curves.ours.items():
        colour, mean = COLOURS[method], values.mean(axis=1)
        error = values.std(axis=1, ddof=1) if values.shape[1] > 1 else np.zeros(len(values))
        axes.errorbar(curves.x, mean, yerr=error, color=colour, marker="o", capsize=3, label=method)
    for method, points in curves.paper.items():
        x, y = np.array(list(points.items())).T
        axes.plot(x, y, color=COLOURS[method], linestyle="--", marker="x", alpha=0.6, label=f"{method}, paper")
    axes.set(xlabel=AXES[sweep.name]["xlabel"], ylabel="test Hamming loss (± sd over runs)")
    if AXES[sweep.name]["base"]:
        axes.set_xscale("log", base=AXES[sweep.name]["base"])
        axes.set_xticks(curves.x, [f"{x:g}" for x in curves.x])
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, fontsize=8, ncols=2)
