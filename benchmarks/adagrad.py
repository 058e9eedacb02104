"""One AdaGrad epoch against one pass of Vowpal Wabbit over its cache, in rows a second."""

import tempfile
from pathlib import Path

import numpy as np

import poem
from benchmarks.data import LABELS, tmc_like
from benchmarks.objective import risk_over
from benchmarks.timing import side_by_side

FEW, MANY = 1, 4  # what is between them is epochs alone, without start and end


def write_vw(log: poem.BanditLog, path: Path) -> None:
    """Write a log of the same features with one of 22 actions a row, for ``--cb 22``."""
    rng = np.random.default_rng(2)
    X = log.X
    texts = []
    for start, stop in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        pairs = zip(X.indices[start:stop].tolist(), X.data[start:stop].tolist(), strict=True)
        texts.append(" ".join(f"{column}:{value:.5f}" for column, value in pairs))
    action = rng.integers(1, LABELS + 1, len(log))
    cost = (log.loss - LABELS) / LABELS
    with path.open("w") as file:
        for row, context in enumerate(log.context.tolist()):
            file.write(f"{action[row]}:{cost[row]:.4f}:{1 / LABELS:.4f} | {texts[context]}\n")


def run(rounds: int = 5) -> dict[str, float]:
    """Print rows a second of both and return their ratio."""
    from vowpalwabbit import Workspace

    log = tmc_like(4)
    risk = risk_over(log, 2)

    def epochs(count: int) -> None:
        rules = poem.AdaGrad(max_batches=1, min_epochs=count, patience=10_000, tol=0.0)
        rules.minimize(risk, rng=np.random.default_rng(0))

    with tempfile.TemporaryDirectory() as folder:
        text, cache = Path(folder) / "log.vw", Path(folder) / "log.cache"
        write_vw(log, text)
        options = f"--cb {LABELS} --cb_type ips -d {text} --cache_file {cache} -b 20 --quiet --holdout_off"
        Workspace(options).finish()  # writes the cache

        def passes(count: int) -> None:
            Workspace(f"{options} --passes {count}").finish()

        seconds = side_by_side(
            {
                "poem, few": lambda: epochs(FEW),
                "poem, many": lambda: epochs(MANY),
                "vw, few": lambda: passes(FEW),
                "vw, many": lambda: passes(MANY),
            },
            rounds,
        )
    rates = {}
    for name in ("poem", "vw"):
        one = (np.array(seconds[f"{name}, many"]) - np.array(seconds[f"{name}, few"])) / (MANY - FEW)
        rates[name] = len(log) / one
        print(f"one epoch, {name}: {np.median(rates[name]):,.0f} rows a second")
    return {"AdaGrad rows a second / Vowpal Wabbit's": float(np.median(rates["poem"] / rates["vw"]))}
