"""Off-policy estimates on the Open Bandit data against what the other logger really saw.

python -m benchmarks.open_bandit obd_small_obp-0.4.1.tar.xz [--picture FILE.png]

Two loggers ran side by side on a fashion site, uniform and Thompson sampling, in three campaigns. From each
log we estimate the other's click rate, and compare with the other log's own mean.
"""

import argparse
import io
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

import poem

CAMPAIGNS = ("all", "men", "women")


@dataclass(frozen=True)
class Case:
    """One policy judged from the other logger's log, by its clicks."""

    campaign: str
    policy: str
    truth: float
    truth_interval: tuple[float, float]
    evaluation: poem.Evaluation


def read(archive: Path, logger: str, campaign: str) -> pd.DataFrame:
    """Read one log."""
    with tarfile.open(archive) as tar:
        file = tar.extractfile(f"obd/{logger}/{campaign}/{campaign}.csv")
        return pd.read_csv(io.BytesIO(file.read()), index_col=0)


def log_of(frame: pd.DataFrame) -> poem.BanditLog:
    """Turn a frame into a log: the context is the position, one of three."""
    return poem.BanditLog(
        np.eye(3),
        frame["item_id"].to_numpy(),
        reward=frame["click"].to_numpy(),
        propensity=frame["propensity_score"].to_numpy(),
        context=frame["position"].to_numpy() - 1,
        group=np.arange(len(frame)),  # users are not named: each row is one of its own
        labels=range(int(frame["item_id"].max()) + 1),
    )


def mean_policy(frame: pd.DataFrame, n_items: int) -> np.ndarray:
    """Return how often a logger showed each item in each position, (3, items): its policy, averaged over the week."""
    table = np.zeros((3, n_items))
    np.add.at(table, (frame["position"] - 1, frame["item_id"]), 1.0)
    return table / table.sum(axis=1, keepdims=True)


def cases(archive: Path, **options) -> list[Case]:
    """Judge each logger's policy from the other one's log, in all campaigns."""
    found = []
    for campaign in CAMPAIGNS:
        frames = {logger: read(archive, logger, campaign) for logger in ("random", "bts")}
        logs = {logger: log_of(frame) for logger, frame in frames.items()}
        n_items = len(logs["random"].labels)
        policies = {"random": np.full((3, n_items), 1.0 / n_items), "bts": mean_policy(frames["bts"], n_items)}
        for policy, other in (("random", "bts"), ("bts", "random")):
            own = frames[policy]["click"]
            reach = 1.96 * own.std(ddof=1) / np.sqrt(len(own))
            evaluation = poem.evaluate({policy: policies[policy]}, logs[other], **options)
            found.append(Case(campaign, policy, own.mean(), (own.mean() - reach, own.mean() + reach), evaluation))
    return found


def covered(case: Case, estimator: str) -> bool:
    """Return whether the other log's own mean is in the interval."""
    line = case.evaluation[case.policy, estimator]
    return line.low <= case.truth <= line.high


def draw(found: list[Case], path: Path) -> None:
    """Draw all estimates beside what the policy's own log says."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.5), layout="constrained")
    for axes, case in zip(figure.subplots(2, 3).T.ravel(), found, strict=True):
        for position, line in enumerate(case.evaluation.lines):
            reach = [[100 * (line.value - line.low)], [100 * (line.high - line.value)]]
            axes.errorbar(100 * line.value, position, xerr=reach, fmt="o", color="C0", capsize=3)
        axes.axvspan(*(100 * end for end in case.truth_interval), color="0.85", zorder=0)
        axes.axvline(100 * case.truth, color="0.4", linewidth=1)
        axes.set_yticks(range(len(case.evaluation.lines)), [line.estimator for line in case.evaluation.lines])
        axes.invert_yaxis()
        axes.set_title(f"{case.policy}, “{case.campaign}”: {case.evaluation.diagnostics[case.policy].verdict}")
        axes.set(xlabel="clicks in a hundred", xlim=(-0.2, 1.4))
    figure.savefig(path, dpi=130)


def main() -> None:
    """Print one line for each case and estimator, and how many intervals hold the truth."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("archive", type=Path)
    parser.add_argument("--picture", type=Path)
    options = parser.parse_args()
    found = cases(options.archive)
    print("| campaign | policy | its own log | estimator | from the other log | 95% interval | holds |")
    print("|---|---|---:|---|---:|---:|---|")
    for case in found:
        for line in case.evaluation.lines:
            ends = f"[{100 * line.low:.2f}, {100 * line.high:.2f}]"
            holds = "yes" if covered(case, line.estimator) else "no"
            cells = (case.campaign, case.policy, f"{100 * case.truth:.2f}", line.estimator, f"{100 * line.value:.2f}")
            print(f"| {' | '.join((*cells, ends, holds))} |")
    for case in found:
        print(f"{case.campaign}, {case.policy}: {case.evaluation.diagnostics[case.policy]}")
    names = [line.estimator for line in found[0].evaluation.lines]
    for name in names:
        print(
            f"{name}: {sum(covered(case, name) for case in found)} of {len(found)} intervals hold the other log's mean"
        )
    if options.picture:
        draw(found, options.picture)


if __name__ == "__main__":
    main()
