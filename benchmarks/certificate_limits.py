"""How often any certificate of the policy of poem.fit(log, certify=False) could succeed, on the paper's label sets.

python -m benchmarks.certificate_limits --data DIR [--datasets yeast,scene] [--runs 10] [--first-run 0] [--share 0.5]

Imagine a second world in which some outputs that the policy chooses, but the log hardly has, have the worst loss: so
many of them that the policy is no better than the log. Unless a row has one of these outputs, no rule can tell the
worlds apart. A certificate that errs in at most 5% of logs of the second world thus succeeds in at most 5% of those of
the first one, plus the share of logs with such a row. The outputs are those with the most harm per expected row.

Columns: the policy's gain; the expected rows with such an output in the whole log; and the limit, in percent, if a
share of the log certifies. The limit is for certificates that assume nothing of losses but their bounds.
"""

import argparse
import warnings
from pathlib import Path

import numpy as np

import poem
from benchmarks.best_policy import load
from benchmarks.runs import names

ALPHA = 0.05
REPLAY = 4
DRAWS = 50  # outputs of the policy in each context


def drawn_log_prob(marginals: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Return the log-probability of draws (…, n, q) under independent labels."""
    least = 1e-300
    on, off = np.log(np.maximum(marginals, least)), np.log(np.maximum(1.0 - marginals, least))
    return np.asarray(np.where(draws > 0.0, on, off).sum(axis=-1))


def gain_of(policy: np.ndarray, logger: np.ndarray, truth: np.ndarray) -> float:
    """Return how many labels fewer a policy has wrong than the logging policy; (n, q) marginals."""
    return float((np.abs(truth - logger) - np.abs(truth - policy)).sum(axis=1).mean())


def telling_rows(policy: np.ndarray, logger: np.ndarray, truth: np.ndarray, rng: np.random.Generator) -> float:
    """Return how many rows of the log, as expected, tell a policy from one that is no better than the log."""
    n, q = truth.shape
    draws = (rng.random((DRAWS, n, q)) < policy).astype(np.float64)
    odds = (drawn_log_prob(policy, draws) - drawn_log_prob(logger, draws)).ravel()
    room = (q - np.abs(draws - truth).sum(axis=-1)).ravel()  # how much worse the loss could be
    with np.errstate(divide="ignore"):
        order = np.argsort(-(odds + np.log(room)))
    harm = np.cumsum(room[order]) / (DRAWS * n)
    enough = min(int(np.searchsorted(harm, gain_of(policy, logger, truth))) + 1, len(harm))
    return float(np.exp(-odds[order[:enough]]).sum() * REPLAY / DRAWS)


def one_run(name: str, folder: Path | None, run: int) -> tuple[float, float]:
    """Return the gain of the policy of one log, and the rows that tell it from one without a gain."""
    data = load(name, folder)
    rng = np.random.default_rng([run, 77])  # the logs of benchmarks.best_policy
    logger = poem.logging_policy(data.X_train, data.y_train, fraction=0.05, C=0.1, rng=rng)
    log = poem.simulate(data.X_train, data.y_train, logger, replay=REPLAY, rng=rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = poem.fit(log, certify=False, progress=False).policy
    truth = np.asarray(data.y_train).astype(np.float64)
    assert found is not None  # without a certificate, there is always a policy
    mine, theirs = found.marginals(data.X_train), logger.marginals(data.X_train)
    return gain_of(mine, theirs, truth), telling_rows(mine, theirs, truth, rng)


def limit(rows: float, share: float) -> float:
    """Return the largest probability with which a certificate on a share of the log succeeds."""
    return min(1.0, ALPHA - float(np.expm1(-share * rows)))


def main() -> None:
    """Print one line per run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data files (default: POEM_DATA)")
    parser.add_argument("--datasets", type=names, default="yeast,scene")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-run", type=int, default=0)
    parser.add_argument("--share", type=float, default=0.5, help="of the log that certifies")
    asked = parser.parse_args()
    if asked.runs < 1 or asked.first_run < 0 or not 0.0 < asked.share <= 1.0:
        parser.error("--runs must be at least 1, --first-run at least 0, and --share above 0 and at most 1")
    print(f"{'set':<10}{'run':>5}{'gain':>8}{'rows':>9}{'limit':>8}")
    for name in asked.datasets:
        for run in range(asked.first_run, asked.first_run + asked.runs):
            gain, rows = one_run(name, asked.data, run)
            print(f"{name:<10}{run:>5}{gain:>8.3f}{rows:>9.1f}{limit(rows, asked.share):>8.0%}", flush=True)


if __name__ == "__main__":
    main()
