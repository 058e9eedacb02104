"""How wide the DR intervals of evaluate are on tabular logs, and how often they cover the truth.

python -m benchmarks.tabular_intervals --data DIR [--sets iris,wine,…] [--logs 56] [--first-seed 0] [--out runs.csv]
    [--before EARLIER.csv]

Half of a set fits two policies to true classes: a weak one that logs, and a better one that is judged. Contexts of a
log are drawn with replacement from the other half, as many as it has. So the better policy's loss on that half is the
truth. Every log is appended to the CSV file. ``--before`` compares widths with the file of another version, log by log.
Logs of fewer than two effective rows have no interval: they are counted, and have no part in widths and coverage.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import poem
from benchmarks.runs import append, names, read
from benchmarks.tabular import SETS, set_named

FIELDS = ("set", "seed", "width", "covers", "model")
WEAK, GOOD = 1e-3, 1.0  # C of the two policies


def policies_of(X: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> tuple[poem.Policy, poem.Policy]:
    """Return the policy that logs, fitted to a tenth of the rows but to at least 20, and the one that is judged."""
    some = rng.permutation(len(X))[: max(20, len(X) // 10)]
    labels = range(int(y.max()) + 1)
    weak = poem.supervised(X[some], y[some], C=WEAK, labels=labels)
    return weak, poem.supervised(X, y, C=GOOD, labels=labels)


def judged(name: str, folder: Path, seed: int) -> dict[str, object]:
    """Draw a log, judge the better policy on it, and look the truth up."""
    X, y = set_named(name, folder)
    y = np.unique(y, return_inverse=True)[1]
    rng = np.random.default_rng([seed, 23])
    order = rng.permutation(len(X))
    learnt, rest = order[: len(X) // 2], order[len(X) // 2 :]
    X = (X - X[learnt].mean(axis=0)) / np.maximum(X[learnt].std(axis=0), 1e-9)
    weak, good = policies_of(X[learnt], y[learnt], rng)
    drawn = rng.choice(rest, len(rest))
    log = poem.simulate(X[drawn], y[drawn], weak, replay=1, rng=rng)
    found = poem.evaluate(good, log, "DR", loss_bounds=(0, 1), n_jobs=1, seed=seed)
    line, truth = found["policy", "DR"], good.expected_loss(X[rest], y[rest])
    return {
        "width": f"{line.high - line.low:.6g}",
        "covers": bool(line.low <= truth <= line.high),
        "model": found.model,
    }


def summary(rows: list[dict[str, str]], before: list[dict[str, str]]) -> str:
    """Return a line per set and one for all: widths, their ratio to those of another version, and coverage."""
    known = len(rows)
    rows = [row for row in rows if np.isfinite(float(row["width"]))]
    earlier = {(row["set"], row["seed"]): float(row["width"]) for row in before if np.isfinite(float(row["width"]))}
    lines, ratios = [], []
    for name in dict.fromkeys(row["set"] for row in rows):
        mine = [row for row in rows if row["set"] == name]
        pairs = [(float(row["width"]), earlier.get((name, row["seed"]))) for row in mine]
        both = [(width, old) for width, old in pairs if old is not None]
        ratio = np.sum([width for width, _ in both]) / np.sum([old for _, old in both]) if both else np.nan
        ratios.append(ratio)
        lines.append(
            f"{name:<14} {len(mine):>4} logs, width {np.mean([width for width, _ in pairs]):.4f}, ratio {ratio:.3f}, "
            f"covers {np.mean([row['covers'] == 'True' for row in mine]):.1%}"
        )
    covered = np.mean([row["covers"] == "True" for row in rows])
    return "\n".join(
        [
            *lines,
            f"{'all':<14} {len(rows):>4} logs, mean ratio {np.mean(ratios):.3f}, covers {covered:.1%}; "
            f"{known - len(rows)} without an interval",
        ]
    )


def main() -> None:
    """Judge what the file lacks, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the sets")
    parser.add_argument("--sets", type=names, default=",".join(SETS))
    parser.add_argument("--logs", type=int, default=56)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("tabular_intervals.csv"))
    parser.add_argument("--before", type=Path)
    asked = parser.parse_args()
    had = {(row["set"], int(row["seed"])) for row in read(asked.out)}
    for name in asked.sets:
        for seed in range(asked.first_seed, asked.first_seed + asked.logs):
            if (name, seed) not in had:
                append(asked.out, FIELDS, [{"set": name, "seed": seed, **judged(name, asked.data, seed)}])
        print(name, file=sys.stderr, flush=True)
    print(summary(read(asked.out), read(asked.before) if asked.before else []))


if __name__ == "__main__":
    main()
