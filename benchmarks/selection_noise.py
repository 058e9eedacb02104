"""How often a rule of selection picks the wrong λ, and what that costs: POEM on the paper's Yeast logs.

python -m benchmarks.selection_noise --data DIR [--dataset yeast] [--runs 20]

The seven candidates of each run are judged on the same held-out quarter of the rows by plain IPS (the paper's rule), by
SNIPS and by the doubly robust estimate, and compared with the candidate of the lowest true test loss.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np

import poem

JUDGES = {"IPS": poem.IPS(None), "SNIPS": poem.SNIPS(None), "DR": poem.DoublyRobust(None)}


def one_run(data: poem.Dataset, run: int) -> dict[str, tuple[bool, float]]:
    """Return for each judge whether it picked another λ than the best one, and by how much the test loss is higher."""
    rng = np.random.default_rng([run, 77])
    logger = poem.logging_policy(data.X_train, data.y_train, fraction=0.05, C=0.1, rng=rng)
    log = poem.simulate(data.X_train, data.y_train, logger, replay=4, rng=rng)
    found = {}
    for name, judge in JUDGES.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = poem.fit(log, lam="auto", selection=poem.Selection(select_by=judge, guard=False), seed=run)
        truth = {c.lam: c.policy.expected_loss(data.X_test, data.y_test) for c in result.table}
        best = min(truth, key=truth.__getitem__)
        found[name] = result.chosen.lam != best, truth[result.chosen.lam] - truth[best]
    return found


def main() -> None:
    """Print how often each rule was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--dataset", default="yeast")
    parser.add_argument("--runs", type=int, default=20)
    asked = parser.parse_args()
    if asked.data:
        os.environ["POEM_DATA"] = str(asked.data)
    data = poem.load_dataset(asked.dataset)
    runs = [one_run(data, run) for run in range(asked.runs)]
    print(f"{'judge':<8} wrong λ   mean cost   largest cost")
    for name in JUDGES:
        wrong, cost = (np.array(column, dtype=float) for column in zip(*(run[name] for run in runs), strict=True))
        print(f"{name:<8} {wrong.mean():7.0%}   {cost.mean():9.3f}   {cost.max():12.3f}")


if __name__ == "__main__":
    main()
