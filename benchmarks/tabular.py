"""poem's default on tabular logs of classes, beside boosted trees, Vowpal Wabbit and full information.

python -m benchmarks.tabular --data DIR [--sets iris,wine,…] [--replays 1,4] [--seeds 10] [--first-seed 0]
    [--methods logger,default,…] [--out runs.csv] [--before EARLIER.csv] [--markdown FILE.md]

DIR holds sets as name.csv.bz2, the class in the last column; four more come with scikit-learn. Each seed splits a set
into two thirds to learn from and one third to test on, standardised by the former. A weak logging policy, fitted to 5%
of the training rows, acts on all of them, once per replay. The loss is 1 for a wrong class. Methods see that log alone:

* default, refit, uncertified: poem.fit(log, logging_policy=logger), with Selection(refit=True), with certify=False;
* boosted-dm: scikit-learn's HistGradientBoostingRegressor of the logged loss on context and one-hot action, the action
  with the lowest prediction;
* vw: three kinds of learning × four rates, ten passes over 80% of the contexts, compared by IPS on the others; the best
  setting learns again from all rows. "vw, best by test" is the one with the lowest mean test loss, which no log tells;
* skylines: logistic regression and HistGradientBoostingClassifier on all true classes.

Every run is appended to the CSV file, and what is in it already is not run again. ``--before`` adds the default of
another version from its own file. One process does everything with one thread; seconds are those of the processor.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

import poem
from benchmarks import multiclass
from benchmarks.data import labelled
from benchmarks.runs import append, names, read
from benchmarks.tabular_tables import tables
from poem.files.whole import write_whole
from poem.learning.fitting import warm_up

SETS = ("iris", "wine", "ecoli", "breast cancer", "vehicle", "yeast", "digits", "page-blocks", "optdigits")
FIELDS = ("set", "replay", "seed", "method", "expected", "map", "seconds", "certified", "above_logger", "z", "learner")
FITS = {"default": {}, "refit": {"selection": poem.Selection(refit=True)}, "uncertified": {"certify": False}}
METHODS = ("logger", *FITS, "boosted-dm", "vw", "skyline-linear", "skyline-boosted")
TRAIN_SHARE = 2.0 / 3.0
RATES, LEAST_COST, HELD_OUT = (0.05, 0.1, 0.5, 1.0), -1.0, 0.2  # of Vowpal Wabbit

Problem = multiclass.Problem
Array = np.ndarray
Row = dict[str, object]


@dataclass(frozen=True)
class Found:
    """What a method makes of a log: probabilities of all classes in each test row, (m, k)."""

    probability: Array
    learner: str = ""
    certified: bool | None = None


# ---- logs ------------------------------------------------------------------------------------------------------------


def set_named(name: str, folder: Path) -> tuple[Array, Array]:
    """Return the contexts of a set and their true classes."""
    X, y = multiclass.SETS[name](return_X_y=True) if name in multiclass.SETS else labelled(folder / f"{name}.csv.bz2")
    return X.astype(np.float64), y


def problem_of(name: str, folder: Path, replay: int, seed: int) -> Problem:
    """Split a set, fit the logging policy and let it act."""
    rng = np.random.default_rng([seed, 17])
    return multiclass.logged(*set_named(name, folder), rng, train_share=TRAIN_SHARE, replay=replay)


def certain(choice: Array, k: int) -> Array:
    """Return probability 1 for the chosen classes, (m, k)."""
    return np.eye(k)[choice]


# ---- methods ---------------------------------------------------------------------------------------------------------


def by_poem(method: str, problem: Problem, seed: int) -> Found:
    """Fit; what poem refuses, and what is not certified, leaves the logging policy in place."""
    try:
        fit = poem.fit(problem.log, n_jobs=1, seed=seed, progress=False, **_options(method, problem))
    except poem.PoemError as refused:
        return Found(problem.h0.marginals(problem.X_test), f"refused: {str(refused)[:60]}", False)
    return Found((fit.policy or problem.h0).marginals(problem.X_test), fit.chosen.learner, fit.certified)


def _options(method: str, problem: Problem) -> dict[str, object]:
    return FITS[method] if method == "uncertified" else FITS[method] | {"logging_policy": problem.h0}


def boosted(problem: Problem, seed: int) -> Found:
    """Regress the logged loss on context and action, and take the action with the lowest prediction."""
    log, actions = problem.log, np.eye(len(problem.log.labels))
    model = HistGradientBoostingRegressor(random_state=seed)
    model.fit(np.hstack([log.X[log.context], actions[log.y]]), log.loss)
    X = problem.X_test
    losses = [model.predict(np.hstack([X, np.tile(action, (len(X), 1))])) for action in actions]
    return Found(certain(np.argmin(losses, axis=0), len(actions)))


def vw_choices(log: poem.BanditLog, X: Array) -> dict[str, Array]:
    """Return what each setting of Vowpal Wabbit chooses in some contexts, learnt from all rows of a log."""
    return {
        f"{kind} -l {rate}": multiclass.chosen(model, X)
        for kind, rate in product(multiclass.KINDS, RATES)
        for passes, model in multiclass.models(log, kind, rate, LEAST_COST)
        if passes == max(multiclass.PASSES)
    }


def vw(problem: Problem, seed: int) -> Iterator[tuple[str, Found]]:
    """Yield the setting that held-out rows prefer, and then all of them, each learnt from all rows."""
    log = problem.log
    late = log.context >= (1.0 - HELD_OUT) * log.n_contexts
    early, held_out = log.take(np.flatnonzero(~late)), log.take(np.flatnonzero(late))
    weight = (1.0 - held_out.loss) / np.exp(held_out.log_propensity)
    guesses = vw_choices(early, held_out.X)
    rewards = {name: np.mean(weight * (guess[held_out.context] == held_out.y)) for name, guess in guesses.items()}
    best = max(rewards, key=lambda name: rewards[name])
    found = {name: certain(choice, len(log.labels)) for name, choice in vw_choices(log, problem.X_test).items()}
    yield "vw", Found(found[best], best)
    for name, probability in found.items():
        yield f"vw {name}", Found(probability)


def skyline(problem: Problem, seed: int) -> Found:
    """Learn boosted trees from all true classes."""
    model = HistGradientBoostingClassifier(random_state=seed).fit(problem.X_train, problem.y_train)
    probability = np.zeros((len(problem.X_test), len(problem.log.labels)))
    probability[:, model.classes_] = model.predict_proba(problem.X_test)
    return Found(probability)


def linear_skyline(problem: Problem, seed: int) -> Found:
    """Learn a logistic regression from all true classes."""
    policy = poem.supervised(problem.X_train, problem.y_train, C=1.0, labels=problem.log.labels)
    return Found(policy.marginals(problem.X_test))


ONE: dict[str, Callable[[Problem, int], Found]] = {
    "logger": lambda problem, seed: Found(problem.h0.marginals(problem.X_test)),
    "boosted-dm": boosted,
    "skyline-linear": linear_skyline,
    "skyline-boosted": skyline,
}


def all_of(method: str, problem: Problem, seed: int) -> Iterator[tuple[str, Found]]:
    """Yield what a method found, under its name; Vowpal Wabbit's settings have names of their own."""
    if method == "vw":
        yield from vw(problem, seed)
    elif method in FITS:
        yield method, by_poem(method, problem, seed)
    else:
        yield method, ONE[method](problem, seed)


# ---- runs ------------------------------------------------------------------------------------------------------------


def judged(found: Found, problem: Problem) -> Row:
    """Return the true losses, and those of the policy minus those of the logger in standard errors over test rows."""
    rows, truth = np.arange(len(problem.y_test)), problem.y_test
    wrong = 1.0 - found.probability[rows, truth]
    more = wrong - (1.0 - problem.h0.marginals(problem.X_test)[rows, truth])
    error = more.std(ddof=1) / np.sqrt(len(more))
    return {
        "expected": f"{wrong.mean():.6g}",
        "map": f"{np.mean(found.probability.argmax(axis=1) != truth):.6g}",
        "certified": "" if found.certified is None else found.certified,
        "above_logger": bool(more.mean() > 0.0),
        "z": f"{more.mean() / error:.3g}" if error > 0.0 else "",
        "learner": found.learner,
    }


def trial(problem: Problem, seed: int, methods: list[str]) -> Iterator[Row]:
    """Yield a row per method; Vowpal Wabbit has one per setting as well. Compiling kernels does not count."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        warm_up(problem.log)
        for method in methods:
            begin = time.process_time()
            found = list(all_of(method, problem, seed))
            seconds = f"{time.process_time() - begin:.2f}"
            for name, one in found:
                yield {"method": name, "seconds": seconds if name == method else "", **judged(one, problem)}


def run_all(path: Path, folder: Path, every: list[tuple[str, int, int]], methods: list[str]) -> None:
    """Append each run (set, replay, seed) that is not in the file."""
    had = {(row["set"], int(row["replay"]), int(row["seed"]), row["method"]) for row in read(path)}
    for number, (name, replay, seed) in enumerate(every, start=1):
        wanted = [method for method in methods if (name, replay, seed, method) not in had]
        if not wanted:
            continue
        print(f"{number}/{len(every)}: {name}, replay {replay}, seed {seed}", file=sys.stderr, flush=True)
        for row in trial(problem_of(name, folder, replay, seed), seed, wanted):
            append(path, FIELDS, [{"set": name, "replay": replay, "seed": seed, **row}])


def check(parser: argparse.ArgumentParser, asked: argparse.Namespace) -> None:
    """Refuse what cannot be run, before anything is."""
    unknown = [method for method in asked.methods if method not in METHODS]
    if unknown:
        parser.error(f"--methods: there is no {', '.join(unknown)}; choose from {', '.join(METHODS)}")
    missing = [name for name in asked.sets if name not in multiclass.SETS]
    missing = [name for name in missing if not (asked.data / f"{name}.csv.bz2").is_file()]
    if missing:
        parser.error(f"--sets: there is no {missing[0]}.csv.bz2 in {asked.data}")
    if asked.first_seed < 0 or asked.seeds < 1:
        parser.error(f"--first-seed must be at least 0 and --seeds 1; found {asked.first_seed} and {asked.seeds}")


def main() -> None:
    """Run what was asked for and print the tables of all that the file holds of these seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the sets")
    parser.add_argument("--sets", type=names, default=",".join(SETS))
    parser.add_argument("--replays", type=names, default="1,4")
    parser.add_argument("--methods", type=names, default=",".join(METHODS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("tabular.csv"))
    parser.add_argument("--before", type=Path, help="runs of another version; its default is one more rival")
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    check(parser, asked)
    seeds, replays = range(asked.first_seed, asked.first_seed + asked.seeds), [int(one) for one in asked.replays]
    run_all(asked.out, asked.data, list(product(asked.sets, replays, seeds)), asked.methods)
    earlier = (
        [row | {"method": "before"} for row in read(asked.before) if row["method"] == "default"] if asked.before else []
    )
    rows = [row for row in read(asked.out) + earlier if int(row["seed"]) in seeds]
    text = tables(rows, asked.sets, replays)
    print(text)
    if asked.markdown:
        write_whole(asked.markdown, text.encode())


if __name__ == "__main__":
    main()
