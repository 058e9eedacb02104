"""Choices among candidates: an AdaGrad epoch and an objective with its gradient against passes of Vowpal Wabbit.

100,000 requests of 10 candidates, 20 non-zeros of 1,000 context features and 5 of 200 action features, all of them
crossed. Every candidate has features of its own, as if they differed from request to request.
"""

import json
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import poem
from benchmarks.candidate_logs import Logged, Requests, articles, lines
from benchmarks.timing import ratio, side_by_side
from poem.compute.kernels import Threads
from poem.data.layout import Layout
from poem.evaluation.calibration import calibrate
from poem.objectives.risk import Risk

CONTEXT, ACTION = (1_000, 20), (200, 5)  # features, and non-zeros of them
FEW, MANY = 1, 3  # what is between them is epochs alone, without start and end


def spread(n: int, shape: tuple[int, int], rng: np.random.Generator) -> sp.csr_array:
    """Return n rows with the same number of non-zeros, spread over the columns."""
    width, filled = shape
    block = width // filled
    columns = block * np.arange(filled) + rng.integers(0, block, (n, filled))
    starts = filled * np.arange(n + 1)
    return sp.csr_array((rng.random(n * filled) + 0.1, columns.ravel(), starts), shape=(n, width))


def logged(sizes: np.ndarray, seed: int = 0) -> Logged:
    """Return a uniform log of requests with so many candidates each."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    X, Z = spread(len(sizes), CONTEXT, rng), spread(starts[-1], ACTION, rng)
    requests = Requests(X, Z, starts, np.arange(starts[-1]), catalogue=False)
    chosen = starts[:-1] + rng.integers(0, sizes)
    return Logged(requests, chosen, (rng.random(len(sizes)) < 0.3).astype(float), 1.0 / sizes)


def risk_over(log: poem.BanditLog, threads: int = 2) -> Risk:
    """Return POEM's objective over a log."""
    calibration = calibrate(log, poem.IPS(), (0, 1))
    layout = Layout(log, log.structure, intercept=True)
    estimator = poem.IPS(calibration.clip)
    return Risk(layout, calibration.scale(layout.loss), estimator, lam=1.0, threads=Threads(threads))


def epochs(risk: Risk, count: int) -> None:
    """Run some epochs of AdaGrad."""
    rules = poem.AdaGrad(max_batches=1, min_epochs=count, patience=10_000, tol=0.0)
    rules.minimize(risk, rng=np.random.default_rng(0))


def speed(rounds: int) -> dict[str, float]:
    """Print candidates per second, and return those of poem over those of Vowpal Wabbit."""
    from vowpalwabbit import Workspace

    data = logged(np.full(100_000, 10))
    risk = risk_over(data.log())
    w = 0.05 * np.random.default_rng(1).normal(size=(CONTEXT[0] + 1, ACTION[0]))
    with tempfile.TemporaryDirectory() as folder:
        text, cache = Path(folder) / "log.vw", Path(folder) / "log.cache"
        with text.open("w") as file:
            file.writelines(lines(data.requests, data))
        options = f"-d {text} --cache_file {cache} -q sa -b 20 --quiet --holdout_off --cb_adf"
        Workspace(f"{options} --cb_type ips").finish()  # writes the cache

        def passes(kind: str, count: int) -> None:
            Workspace(f"{options} --cb_type {kind} --passes {count}").finish()

        seconds = side_by_side(
            {
                "poem, few": lambda: epochs(risk, FEW),
                "poem, many": lambda: epochs(risk, MANY),
                "objective": lambda: risk(w),
                "ips, few": lambda: passes("ips", FEW),
                "ips, many": lambda: passes("ips", MANY),
                "mtr, few": lambda: passes("mtr", FEW),
                "mtr, many": lambda: passes("mtr", MANY),
            },
            rounds,
        )
    times = {name: np.array(values) for name, values in seconds.items()}
    one = {name: (times[f"{name}, many"] - times[f"{name}, few"]) / (MANY - FEW) for name in ("poem", "ips", "mtr")}
    one["objective"] = times["objective"]
    for name, values in one.items():
        print(f"candidates, {name}: {len(data.requests.row) / np.median(values):,.0f} candidates per second")
    return {
        f"candidates per second, {mine} / Vowpal Wabbit's {kind}": float(np.median(one[kind] / one[own]))
        for kind in ("ips", "mtr")
        for mine, own in (("AdaGrad", "poem"), ("objective", "objective"))
    }


SHAPES = {  # all of 510,000 candidates
    "ragged": np.concatenate([np.full(50_000, 5), [10_000], np.full(50_000, 5)]),
    "requests of 5": np.full(102_000, 5),
    "requests of 10": np.full(51_000, 10),
}


def ragged(rounds: int) -> dict[str, float]:
    """Return what one request of 10,000 candidates and 100,000 of 5 cost, over even requests."""
    w = 0.05 * np.random.default_rng(1).normal(size=(CONTEXT[0] + 1, ACTION[0]))
    risks = {name: risk_over(logged(sizes).log()) for name, sizes in SHAPES.items()}
    objective = side_by_side({name: lambda risk=risk: risk(w) for name, risk in risks.items()}, rounds)
    epoch = side_by_side({name: lambda risk=risk: epochs(risk, 1) for name, risk in risks.items()}, rounds)
    return {
        f"510,000 candidates, ragged / {other}, {kind}": ratio(seconds, "ragged", other)
        for other in ("requests of 5", "requests of 10")
        for kind, seconds in (("objective", objective), ("AdaGrad", epoch))
    }


def default_fit() -> dict[str, float]:
    """Return the seconds of a default fit of 60,000 requests with 5 to 20 of 300 articles."""
    data, _, _ = articles(0, rows=60_000, new=0)
    figures = {}
    for name, identity in (("features", False), ("features and identities", True)):
        log = data.log(identity=identity)
        begin = time.perf_counter()
        fit = poem.fit(log)
        figures[f"default fit, 60,000 requests, {name}, s"] = time.perf_counter() - begin
        print(f"60,000 requests, {name}: {fit.origin}, {fit.chosen.learner}")
    return figures


CHILD = """
import json, sys
import numpy as np
import poem
from benchmarks.candidates import logged

def resident(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))

requests, jobs, kind = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
optimizers = {"LBFGS": poem.LBFGS(max_iterations=25), "AdaGrad": poem.AdaGrad(max_batches=200, min_epochs=1)}
rules = {"optimizer": optimizers[kind], "loss_bounds": (0, 1), "selection": poem.Selection(guard=False)}
poem.fit(logged(np.full(400, 3)).log(), n_jobs=jobs, **rules)  # kernels are loaded before the count begins
before = resident("VmRSS")
log = logged(np.full(requests, 10)).log()
open("/proc/self/clear_refs", "w").write("5")  # the peak so far is forgotten
poem.fit(log, n_jobs=jobs, **rules)
weights = 8 * (log.n_features + 1) * log.structure.n_scores
print(json.dumps({"peak": resident("VmHWM") - before, "log": log.nbytes, "weights": weights}))
"""


def memory(requests: int = 100_000) -> dict[str, float]:
    """Return peak / allowed: twice the log, and 30 weight vectors per worker."""
    figures = {}
    for kind, jobs in product(("LBFGS", "AdaGrad"), (1, 2)):
        command = [sys.executable, "-c", CHILD, str(requests), str(jobs), kind]
        found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
        print(f"memory of a fit among candidates, {kind}, {jobs} worker(s), MiB:", _mebibytes(found))
        allowed = 2 * found["log"] + 30 * jobs * found["weights"]
        figures[f"peak memory / allowed, candidates, {kind}, {jobs} worker(s)"] = found["peak"] / allowed
    return figures


def _mebibytes(found: dict[str, int]) -> dict[str, int]:
    return {name: round(value / 2**20) for name, value in found.items()}


def run(rounds: int = 5) -> dict[str, float]:
    """Return all figures."""
    return speed(rounds) | ragged(rounds) | memory() | default_fit()
