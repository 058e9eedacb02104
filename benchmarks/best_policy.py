"""What poem.fit(log) makes of logs of label sets, beside POEM, the direct method and the full-information skyline.

python -m benchmarks.best_policy --data DIR [--runs 10] [--first-run 0] [--datasets scene,yeast,lyrl,tmc]
    [--losses hamming,zero-one,f1] [--methods h0,default,POEM,direct,skyline] [--out runs.csv] [--markdown FILE.md]

The paper's protocol: a logging policy fitted on 5% of the training rows with C = 0.1, four passes. Learners see the
log alone. A name that is none of the paper's stands for NAME_train.svm and NAME_test.svm in DIR, multi-label LibSVM
files of your own. Every run is appended to the CSV file, and what is in it already is not run again; the tables are
of all that it holds. There are two more methods for Hamming loss: "additive" is the default with the logging policy and
the promise that losses are sums over labels, and the skyline is a logistic regression on the true labels.
"""

import argparse
import os
import sys
import time
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np

import poem
from benchmarks.runs import append, names, read
from poem.files.whole import write_whole
from poem.simulation.datasets import CATALOG
from poem.simulation.logs import losses_of

FIELDS = ("dataset", "loss", "run", "method", "expected", "map", "seconds", "learner")
LOSSES = ("hamming", "zero-one", "f1")
METHODS = {
    "default": {},
    "refit": {"selection": poem.Selection(refit=True)},
    "uncertified": {"certify": False},
    "additive": {"selection": poem.Selection(additive=True)},
    "POEM": {"lam": "auto", "selection": poem.Selection(guard=False)},
    "direct": {"learners": "direct"},
}
SUMS = ("additive", "skyline")  # for Hamming loss only
DRAWS = 20  # samples of each test output, for losses whose mean under a policy has no closed form
NAMES = {"scene": "Scene", "yeast": "Yeast", "lyrl": "LYRL", "tmc": "TMC", "hamming": "Hamming", "zero-one": "0/1"}


def true_losses(policy: poem.Policy, data: poem.Dataset, loss: str) -> tuple[float, float]:
    """Return the expected test loss of a policy, and that of its most probable outputs."""
    truth = np.asarray(data.y_test)
    most_probable = float(losses_of(loss, truth, policy.predict(data.X_test), policy.structure).mean())
    if loss == "hamming":
        return policy.expected_loss(data.X_test, truth), most_probable
    rng = np.random.default_rng(0)
    drawn = [losses_of(loss, truth, policy.sample(data.X_test, rng), policy.structure).mean() for _ in range(DRAWS)]
    return float(np.mean(drawn)), most_probable


def files_of(name: str, folder: Path | None) -> tuple[Path, Path]:
    """Return where the two parts of a set of one's own are."""
    place = folder or Path(os.environ.get("POEM_DATA", "."))
    return place / f"{name}_train.svm", place / f"{name}_test.svm"


def load(name: str, folder: Path | None) -> poem.Dataset:
    """Load a set of the paper by its name, or any other from its two files."""
    if name in CATALOG:
        return poem.load_dataset(name, folder)
    train, test = files_of(name, folder)
    return poem.load_dataset(str(train), test=str(test))


def one_run(dataset: str, folder: Path | None, loss: str, run: int, wanted: set[str]) -> Iterator[dict[str, object]]:
    """Yield a row for each of some methods."""
    data = load(dataset, folder)
    rng = np.random.default_rng([run, 77])
    logger = poem.logging_policy(data.X_train, data.y_train, fraction=0.05, C=0.1, rng=rng)
    log = poem.simulate(data.X_train, data.y_train, logger, replay=4, loss=loss, rng=rng)

    def row(method: str, policy: poem.Policy, seconds: float = 0.0, learner: str = "") -> dict[str, object]:
        expected, most_probable = true_losses(policy, data, loss)
        numbers = {"expected": f"{expected:.6g}", "map": f"{most_probable:.6g}", "seconds": f"{seconds:.2f}"}
        return {"dataset": dataset, "loss": loss, "run": run, "method": method, **numbers, "learner": learner}

    if "h0" in wanted:
        yield row("h0", logger)
    for method, options in METHODS.items():
        if method not in wanted:
            continue
        begin = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            known = {"logging_policy": logger} if method == "additive" else {}
            result = poem.fit(log, **options, **known)
        name = "not certified" if result.certified is False else result.chosen.learner
        yield row(method, result.policy or logger, time.perf_counter() - begin, name)
    if "skyline" in wanted:
        yield row("skyline", poem.supervised(data.X_train, data.y_train, C=1.0))


def run_all(path: Path, folder: Path | None, every: list[tuple[str, str, int]], methods: set[str]) -> None:
    """Append each of some runs (loss, data set, number) that is not in the file."""
    had = {(row["dataset"], row["loss"], int(row["run"]), row["method"]) for row in read(path)}
    for number, (loss, dataset, run) in enumerate(every, start=1):
        able = methods if loss == "hamming" else methods - set(SUMS)
        wanted = {method for method in able if (dataset, loss, run, method) not in had}
        if not wanted:
            continue
        print(f"{number}/{len(every)}: {dataset}, {loss}, run {run}", file=sys.stderr, flush=True)
        for row in one_run(dataset, folder, loss, run, wanted):
            append(path, FIELDS, [row])


def table(rows: list[dict[str, str]], loss: str) -> str:
    """Return the mean test losses as Markdown: of the most probable outputs, and in brackets the expected ones."""
    mine = [row for row in rows if row["loss"] == loss]
    datasets = list(dict.fromkeys(row["dataset"] for row in mine))
    methods = [method for method in ("h0", *METHODS, "skyline") if any(row["method"] == method for row in mine)]
    lines = [
        f"| {NAMES.get(loss, loss)} | {' | '.join(NAMES.get(name, name) for name in datasets)} |",
        "| --- |" + " ---: |" * len(datasets),
    ]
    for method in methods:
        found = [_numbers(mine, name, method) for name in datasets]
        most = 1 if method == "skyline" else max(len(numbers) for numbers in found)  # the skyline knows no chance
        cells = [_cell(numbers, most) for numbers in found]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _numbers(rows: list[dict[str, str]], dataset: str, method: str) -> np.ndarray:
    mine = [row for row in rows if (row["dataset"], row["method"]) == (dataset, method)]
    return np.array([[float(row["map"]), float(row["expected"])] for row in mine])


def _cell(numbers: np.ndarray, most: int) -> str:
    """Write the mean with its standard error, and the number of runs if others have more."""
    if len(numbers) == 0:
        return ""
    mean, runs = numbers.mean(axis=0), len(numbers)
    if runs == 1 or not numbers.std(axis=0).any():
        return f"{mean[0]:.3f} ({mean[1]:.3f})" + (", 1 run" if runs == 1 < most else "")
    error = numbers.std(axis=0, ddof=1) / np.sqrt(runs)
    fewer = f", {runs} runs" if runs < most else ""
    return f"{mean[0]:.3f} ± {error[0]:.3f} ({mean[1]:.3f} ± {error[1]:.3f}){fewer}"


def worse_than_logger(rows: list[dict[str, str]]) -> list[str]:
    """Return the runs in which the default's test loss is above that of the logging policy's most probable outputs."""
    logger = {(r["dataset"], r["loss"], r["run"]): float(r["map"]) for r in rows if r["method"] == "h0"}
    mine = [row for row in rows if row["method"] == "default" and row["loss"] == "hamming"]

    def limit(row: dict[str, str]) -> float:  # none where the logging policy was not asked for
        return logger.get((row["dataset"], row["loss"], row["run"]), np.inf)

    worse = [row for row in mine if max(float(row["map"]), float(row["expected"])) > limit(row)]
    return [f"{row['dataset']}, run {row['run']}" for row in worse]


def check(parser: argparse.ArgumentParser, asked: argparse.Namespace) -> None:
    """Refuse what cannot be run, before anything is."""
    known = {"losses": LOSSES, "methods": ("h0", *METHODS, "skyline")}
    for option, choices in known.items():
        unknown = [name for name in getattr(asked, option) if name not in choices]
        if unknown:
            parser.error(f"--{option}: there is no {', '.join(unknown)}; choose from {', '.join(choices)}")
    if asked.first_run < 0 or asked.runs < 1:
        parser.error(f"--first-run must be at least 0 and --runs at least 1; found {asked.first_run} and {asked.runs}")
    if asked.data and not asked.data.is_dir():
        parser.error(f"--data: {asked.data} is not a folder")
    if not asked.out.parent.is_dir():
        parser.error(f"--out: {asked.out.parent} is not a folder")
    for name in asked.datasets:
        missing = [path for path in files_of(name, asked.data) if name not in CATALOG and not path.is_file()]
        if missing:
            parser.error(
                f"--datasets: {name} is none of {', '.join(CATALOG)}, and there is no file {missing[0]} of its own"
            )


def main() -> None:
    """Run what was asked for and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data",
        type=Path,
        help="folder of the data files (default: POEM_DATA; Scene, Yeast and TMC can be downloaded)",
    )
    parser.add_argument("--datasets", type=names, default="scene,yeast,lyrl,tmc")
    parser.add_argument("--losses", type=names, default=",".join(LOSSES))
    parser.add_argument("--methods", type=names, default=",".join(("h0", *METHODS, "skyline")))
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-run", type=int, default=0, help="the number, and so the seed, of the first run")
    parser.add_argument("--out", type=Path, default=Path("best_policy.csv"))
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    check(parser, asked)
    runs = range(asked.first_run, asked.first_run + asked.runs)
    run_all(asked.out, asked.data, list(product(asked.losses, asked.datasets, runs)), set(asked.methods))
    rows = read(asked.out)
    tables = [table(rows, loss) for loss in asked.losses]
    worse = worse_than_logger(rows)
    tables.append(f"Hamming runs of the default above the logging policy's MAP loss: {', '.join(worse) or 'none'}.")
    print("\n\n".join(tables))
    if asked.markdown:
        write_whole(asked.markdown, ("\n\n".join(tables) + "\n").encode())


if __name__ == "__main__":
    main()
