"""One AdaGrad epoch against Vowpal Wabbit's pass over its cache, in rows a second."""

import tempfile
import time
from pathlib import Path

import numpy as np

import poem
from benchmarks.data import LABELS, tmc_like
from benchmarks.objective import risk_over
from benchmarks.timing import ratio, side_by_side


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
    rules = poem.AdaGrad(max_batches=1, min_epochs=1)
    with tempfile.TemporaryDirectory() as folder:
        text, cache = Path(folder) / "log.vw", Path(folder) / "log.cache"
        write_vw(log, text)
        options = f"--cb {LABELS} --cb_type ips -d {text} --cache_file {cache} -b 20 --quiet"
        Workspace(options).finish()  # writes the cache
        seconds = side_by_side(
            {
                "poem": lambda: rules.minimize(risk, rng=np.random.default_rng(0)),
                "vw": lambda: Workspace(options).finish(),
            },
            rounds,
        )
    for name, values in seconds.items():
        print(f"one epoch, {name}: {len(log) / np.median(values):,.0f} rows a second")
    return {"AdaGrad rows a second / Vowpal Wabbit's": ratio(seconds, "vw", "poem")}


if __name__ == "__main__":
    begin = time.perf_counter()
    print(run(), time.perf_counter() - begin)
