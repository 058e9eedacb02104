"""poem's default learner against IPS, POEM and Vowpal Wabbit on the classes that scikit-learn brings along.

python -m benchmarks.multiclass [--seeds 10] [--first-seed 0] [--jobs 2] [--markdown FILE]

Each seed splits digits, wine, breast cancer and iris anew, fits a weak logging policy to 5% of the training rows, and
lets it act on all of them; every method sees that log and nothing else. The loss is the share of test rows on which the
most probable class is wrong. Vowpal Wabbit learns on the same rows in the same order and has a grid of settings, of
which the table takes the one with the least mean *test* loss for each data set and ``--cb_type``: that favours Vowpal
Wabbit, since no log can tell which one that is. poem has no such help.
"""

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from threadpoolctl import threadpool_limits

import poem
from poem.errors import DegenerateWarning
from poem.files.whole import write_whole
from poem.learning.fitting import warm_up
from poem.progress import Progress
from poem.text import Grid

if TYPE_CHECKING:
    from vowpalwabbit import Workspace

SETS = {"digits": load_digits, "wine": load_wine, "breast cancer": load_breast_cancer, "iris": load_iris}
TRAIN_SHARE, LOGGER_SHARE, LOGGER_C, REPLAY = 0.75, 0.05, 0.1, 4

DEFAULT, SKYLINE = "poem.fit(log)", "all labels known"
FITS = {
    DEFAULT: {},
    "IPS": {"lam": 0.0, "selection": poem.Selection(guard=False)},
    "POEM": {"lam": "auto", "selection": poem.Selection(guard=False)},
    "direct": {"learners": "direct", "certify": False},
}

KINDS, RATES, PASSES = ("ips", "dr", "mtr"), (0.1, 0.5, 2.0), (1, 10)
LEAST_COSTS = (0.0, -1.0)  # costs in [0, 1], or in [−1, 0]: what was not observed counts as 0, so that it matters
SPACING = 64  # of features' numbers: for VW they are places, and the weights of all actions must fit in between
RIVALS = ("IPS", "POEM", *(f"VW {kind}" for kind in KINDS))
HEAD = ("data", "method", "test loss", "its expected loss", "default − it", "setting")


@dataclass(frozen=True)
class Problem:
    """One split of labelled data, its logging policy and its log."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    h0: poem.Policy
    log: poem.BanditLog


class Setting(NamedTuple):
    """One setting of Vowpal Wabbit."""

    kind: str
    rate: float
    passes: int
    least_cost: float

    def __str__(self) -> str:
        plural = "es" if self.passes > 1 else ""
        return f"-l {self.rate:g}, {self.passes} pass{plural}, costs in [{self.least_cost:g}, {self.least_cost + 1:g}]"


@dataclass(frozen=True)
class Trial:
    """What came of one seed: test losses of the MAP and of the stochastic policy, and the seconds of the default."""

    data: str
    losses: dict[str | Setting, float]
    expected: dict[str | Setting, float]
    seconds: float


class Result(NamedTuple):
    """One method on one data set, with one loss for each seed; those of a policy that is not stochastic are alone."""

    data: str
    method: str
    losses: np.ndarray
    expected: np.ndarray | None
    setting: str


# ---- one seed -------------------------------------------------------------------------------


def problem_of(data: str, seed: int) -> Problem:
    """Split a data set, fit the logging policy and let it act."""
    X, y = SETS[data](return_X_y=True)
    rng = np.random.default_rng(seed)
    return logged(X / 16.0, y, rng, standardise=False) if data == "digits" else logged(X, y, rng)


def logged(
    X: np.ndarray,
    y: np.ndarray,
    rng: np.random.Generator,
    *,
    train_share: float = TRAIN_SHARE,
    replay: int = REPLAY,
    standardise: bool = True,
) -> Problem:
    """Split labelled data at random, fit the logging policy to a few training rows and let it act on all of them."""
    train, test = np.split(rng.permutation(len(y)), [int(train_share * len(y))])
    if standardise:
        spread = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    labels = np.unique(y).tolist()
    h0 = poem.logging_policy(X[train], y[train], fraction=LOGGER_SHARE, C=LOGGER_C, labels=labels, rng=rng)
    log = poem.simulate(X[train], y[train], h0, replay=replay, loss="zero-one", rng=rng)
    return Problem(X[train], y[train], X[test], y[test], h0, log)


def policies(problem: Problem) -> Iterator[tuple[str, poem.Policy, float]]:
    """Yield every method's policy, and the seconds that it took."""
    warm_up(problem.log)
    makers: dict[str, Callable[[], poem.Policy]] = {
        name: lambda options=options: poem.fit(problem.log, n_jobs=1, **options).policy
        for name, options in FITS.items()
    }
    makers |= {
        "h0": lambda: problem.h0,
        SKYLINE: lambda: poem.supervised(problem.X_train, problem.y_train, C=1.0),
    }
    for name, make in makers.items():
        begin = time.perf_counter()
        policy = make()
        yield name, policy, time.perf_counter() - begin


def features(X: np.ndarray) -> list[str]:
    """Write contexts as Vowpal Wabbit's text; it adds the constant itself."""
    return [" ".join(f"{SPACING * column}:{value:.9g}" for column, value in enumerate(row)) for row in X.tolist()]


def examples(log: poem.BanditLog, least_cost: float) -> list[str]:
    """Write the rows of a log as ``action:cost:probability | features``; actions count from 1."""
    texts = features(log.X)
    columns = (log.y + 1, log.loss + least_cost, np.exp(log.log_propensity), log.context)
    return [
        f"{action}:{cost:g}:{probability:.9g} | {texts[context]}"
        for action, cost, probability, context in zip(*(column.tolist() for column in columns), strict=True)
    ]


def models(log: poem.BanditLog, kind: str, rate: float, least_cost: float) -> Iterator[tuple[int, "Workspace"]]:
    """Yield a model of Vowpal Wabbit after each number of passes."""
    from vowpalwabbit import LabelType, Workspace

    model = Workspace(f"--cb {len(log.labels)} --cb_type {kind} -l {rate} -b 18 --quiet")
    rows = [model.parse(row, LabelType.CONTEXTUAL_BANDIT) for row in examples(log, least_cost)]
    for number in range(1, max(PASSES) + 1):
        for row in rows:
            model.learn(row)
        if number in PASSES:
            yield number, model
    for row in rows:
        model.finish_example(row)
    model.finish()


def chosen(model: "Workspace", X: np.ndarray) -> np.ndarray:
    """Return the code of the class that a model of Vowpal Wabbit chooses in each context."""
    return np.array([model.predict(f"| {text}") for text in features(X)]) - 1


def vowpal_wabbit(problem: Problem) -> dict[Setting, float]:
    """Return the test loss of every setting; a model of many passes is judged after fewer as well."""
    return {
        Setting(kind, rate, passes, least_cost): float(np.mean(chosen(model, problem.X_test) != problem.y_test))
        for least_cost, kind, rate in product(LEAST_COSTS, KINDS, RATES)
        for passes, model in models(problem.log, kind, rate, least_cost)
    }


def trial(data: str, seed: int) -> Trial:
    """Run all methods on one split."""
    losses, expected, seconds = {}, {}, {}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", DegenerateWarning)
        problem = problem_of(data, seed)
        for name, policy, seconds[name] in policies(problem):
            losses[name] = policy.map_loss(problem.X_test, problem.y_test)
            expected[name] = policy.expected_loss(problem.X_test, problem.y_test)
        losses |= vowpal_wabbit(problem)
    return Trial(data, losses, expected, seconds[DEFAULT])


# ---- all seeds ------------------------------------------------------------------------------


def trials(seeds: range, jobs: int) -> dict[str, list[Trial]]:
    """Run all seeds in fresh processes, the longest first; return them by data set and in the order of the seeds."""
    found = {data: {} for data in SETS}
    with (
        Progress("multiclass", len(SETS) * len(seeds), True, "trials") as line,
        ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool,
    ):
        futures = {pool.submit(trial, data, seed): (data, seed) for data, seed in product(SETS, seeds)}
        for future in as_completed(futures):
            data, seed = futures[future]
            found[data][seed] = future.result()
            line.part_done(f"({data}, seed {seed})")
    return {data: [done[seed] for seed in seeds] for data, done in found.items()}


def best_setting(kind: str, done: Sequence[Trial]) -> Setting:
    """Return Vowpal Wabbit's setting of the least mean test loss."""
    settings = (setting for setting in done[0].losses if isinstance(setting, Setting) and setting.kind == kind)
    return min(settings, key=lambda setting: np.mean([one.losses[setting] for one in done]))


def results(data: str, done: Sequence[Trial]) -> list[Result]:
    """Return the losses of every method on one data set."""

    def result(method: str, key: str | Setting, setting: str = "") -> Result:
        expected = np.array([one.expected[key] for one in done]) if key in done[0].expected else None
        return Result(data, method, np.array([one.losses[key] for one in done]), expected, setting)

    best = {kind: best_setting(kind, done) for kind in KINDS}
    seconds = np.median([one.seconds for one in done])
    return [
        result("h0", "h0"),
        result(DEFAULT, DEFAULT, f"{seconds:.1f} s a fit"),
        *(result(name, name) for name in FITS if name != DEFAULT),
        *(result(f"VW {kind}", setting, str(setting)) for kind, setting in best.items()),
        result(SKYLINE, SKYLINE),
    ]


# ---- what is shown --------------------------------------------------------------------------


def with_error(values: np.ndarray, sign: str = "") -> str:
    """Write the mean over seeds with its standard error."""
    error = values.std(ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{values.mean():{sign}.4f} ± {error:.4f}"


def cells(result: Result, default: Result) -> tuple[str, ...]:
    """Write one line of the table."""
    own = result.method == DEFAULT
    return (
        result.data,
        result.method,
        with_error(result.losses),
        "" if result.expected is None else with_error(result.expected),
        "" if own else with_error(default.losses - result.losses, "+"),
        result.setting,
    )


def of_method(found: Sequence[Result], method: str) -> Result:
    """Return the result of one method."""
    return next(result for result in found if result.method == method)


def verdict(data: str, found: Sequence[Result]) -> str:
    """Say which of IPS, POEM and Vowpal Wabbit have a lower mean loss than the default."""
    default = of_method(found, DEFAULT)
    ahead = [
        f"{name} by {with_error(default.losses - rival.losses)}"
        for name in RIVALS
        if (rival := of_method(found, name)).losses.mean() < default.losses.mean()
    ]
    return f"{data}: {'ahead of the default: ' + '; '.join(ahead) if ahead else 'nothing is ahead of the default'}"


def about(seeds: range) -> str:
    """Say what the figures are."""
    return (
        f"Mean ± standard error over the seeds {seeds[0]} to {seeds[-1]}; negative differences are in favour of the "
        f"default. Vowpal Wabbit's settings are the best of {len(RATES) * len(PASSES) * len(LEAST_COSTS)} by these "
        "very test losses, which favours it."
    )


def markdown(lines: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """Return the table and what is said of it as Markdown."""
    rows = [HEAD, ("---", "---", "---:", "---:", "---:", "---"), *lines]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return "\n\n".join([table, *notes]) + "\n"


def main() -> None:
    """Print one table for each data set and where the default is not the best; write them as Markdown if wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0, help="the seeds are this one and those after it")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--markdown", type=Path)
    options = parser.parse_args()
    if options.seeds < 1 or options.first_seed < 0:
        parser.error(f"--seeds must be at least 1 and --first-seed 0; found {options.seeds} and {options.first_seed}")
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    lines, notes = [], [about(seeds)]
    for data, done in trials(seeds, options.jobs).items():
        found = results(data, done)
        rows = [cells(result, of_method(found, DEFAULT)) for result in found]
        print(f"{data}\n{Grid(HEAD[1:], [row[1:] for row in rows])}\n")
        lines += rows
        notes.append(verdict(data, found))
    print("\n".join(notes))
    if options.markdown:
        write_whole(options.markdown, markdown(lines, notes).encode())


if __name__ == "__main__":
    main()
