"""Peak memory of a fit, in a process of its own, against the log's own arrays and weight vectors."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from benchmarks.data import tmc_like

CHILD = """
import json, sys
import numpy as np, scipy.sparse as sp
import poem

def resident(key):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(key))

folder, jobs, kind = sys.argv[1], int(sys.argv[2]), sys.argv[3]
rules = {
    "default": {},
    "LBFGS": {"optimizer": poem.LBFGS(max_iterations=25)},
    "AdaGrad": {"optimizer": poem.AdaGrad(max_batches=200, min_epochs=1)},
}[kind]
if rules:
    rules |= {"loss_bounds": (0, 22), "selection": poem.Selection(guard=False)}
rng = np.random.default_rng(0)
tiny = poem.BanditLog(
    sp.random_array((400, 5), density=0.3, rng=rng), rng.integers(0, 2, (400, 3)), loss=22 * rng.random(400),
    propensity=np.full(400, 0.1),
)
poem.fit(tiny, **rules)  # kernels are loaded before the count begins
before = resident("VmRSS")
X = sp.load_npz(f"{folder}/X.npz")
rows = {name: np.load(f"{folder}/{name}.npy") for name in ("y", "loss", "log_propensity", "context")}
log = poem.BanditLog(X, rows.pop("y"), **rows)
del X, rows
open("/proc/self/clear_refs", "w").write("5")  # the peak so far is forgotten
poem.fit(log, n_jobs=jobs, **rules)
weights = 8 * (log.n_features + 1) * len(log.labels)
print(json.dumps({"peak": resident("VmHWM") - before, "log": log.nbytes, "weights": weights}))
"""

LOGS = {"LBFGS": 2, "AdaGrad": 2, "default": 3}  # sizes of the log that a fit may take, and 30 weight vectors a worker


def run() -> dict[str, float]:
    """Print and return peak / allowed, which must not exceed 1: for two fits of one learner, and for a default fit."""
    log = tmc_like(4)
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        sp.save_npz(Path(folder) / "X.npz", log.X, compressed=False)
        for name in ("y", "loss", "log_propensity", "context"):
            np.save(Path(folder) / f"{name}.npy", getattr(log, name))
        for kind, logs in LOGS.items():
            for jobs in (1, 2):
                command = [sys.executable, "-c", CHILD, folder, str(jobs), kind]
                found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
                allowed = logs * found["log"] + 30 * jobs * found["weights"]
                mebibytes = {name: round(value / 2**20) for name, value in found.items()}
                print(f"memory of a fit, {kind}, {jobs} worker(s), MiB: {mebibytes}")
                figures[f"peak memory / allowed, {kind}, {jobs} worker(s)"] = found["peak"] / allowed
    return figures
