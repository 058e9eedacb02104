"""poem's default fit against Vowpal Wabbit on choices among candidates with features.

python -m benchmarks.candidate_quality --data DIR [--worlds ranking,articles,men] [--seeds 10] [--first-seed 0]
    [--methods poem,vw] [--out runs.csv] [--markdown FILE.md]

Worlds: ``ranking``, one document chosen per query of the learning-to-rank data; ``articles``, 5 to 20 of 300 articles,
60 of which are in test requests only; ``all``, ``men`` and ``women``, the campaigns of the Open Bandit data, learnt
from Thompson sampling's log and judged on the uniform one. Rewards are those of the most probable candidate, and in
brackets the expected ones under a stochastic policy.

Vowpal Wabbit has three kinds of learning × four rates, after one and after eight passes. It learns on 80% of the rows,
its settings are compared by IPS on the others, and the best one learns on all rows ("vw"). "vw, best by test" is the
setting with the highest mean test reward, which no log can tell; the Open Bandit data is too small for it. Where poem
certifies nothing, the logger stays. poem certifies its policy on rows that it did not learn from; "refit" then learns
it again from all rows, and "certify=False" is the best that it found, without a certificate.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np

import poem
from benchmarks.candidate_logs import CAMPAIGNS, Array, Logged, Requests, articles, lines, open_bandit, ranking
from benchmarks.runs import append, read
from poem.files.whole import write_whole

FIELDS = ("world", "seed", "method", "held_out", "reward", "expected", "stderr", "seconds", "detail")
KINDS, RATES, PASSES = ("ips", "dr", "mtr"), (0.02, 0.1, 0.5, 2.0), (1, 8)
FITS = {
    "poem": {},
    "poem, refit": {"selection": poem.Selection(refit=True)},
    "poem, certify=False": {"certify": False},
}
HELD_OUT = 5  # one part in so many, for Vowpal Wabbit's settings
WORLDS = ("ranking", "articles", *CAMPAIGNS)

Row = dict[str, object]
Judge = Callable[[Array], tuple[float, float]]  # of probabilities of all test candidates: reward and its standard error


# ---- what a policy is worth ------------------------------------------------------------------------------------------


def truth(requests: Requests) -> Judge:
    """Return a judge that knows every candidate's mean reward."""

    def judge(probability: Array) -> tuple[float, float]:
        each = np.add.reduceat(probability * requests.value, requests.starts[:-1])
        return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))

    return judge


def uniform_log(test: Logged) -> Judge:
    """Return a judge by IPS on a log with known propensities."""

    def judge(probability: Array) -> tuple[float, float]:
        each = probability[test.chosen] * test.reward / test.propensity
        return float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))

    return judge


def greedy(requests: Requests, scores: Array) -> Array:
    """Return probability 1 for the best candidate of each request, (N,)."""
    return _certain(requests, requests.best(scores))


def _certain(requests: Requests, chosen: Array) -> Array:
    probability = np.zeros(len(requests.row))
    probability[chosen] = 1.0
    return probability


def world(name: str, folder: Path, seed: int) -> tuple[Logged, Requests, Judge, tuple[float, float, float]]:
    """Return a log, test requests, their judge, and the logger's reward: by its best guess, expected, and its error."""
    if name in CAMPAIGNS:
        log, test = open_bandit(folder / "obd_small_obp-0.4.1.tar.xz", name, seed)
        own = log.reward.mean()
        return log, test.requests, uniform_log(test), (own, own, log.reward.std(ddof=1) / np.sqrt(len(log)))
    log, test, logger = ranking(folder / "ranking", seed) if name == "ranking" else articles(seed)
    judge = truth(test)
    expected, error = judge(logger)
    return log, test, judge, (judge(greedy(test, logger))[0], expected, error)


# ---- Vowpal Wabbit ---------------------------------------------------------------------------------------------------


class VowpalWabbit:
    """Models of one folder; each data set is written once, with its cache."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, requests: Requests, logged: Logged | None = None) -> None:
        """Write requests as text; of a log with its labels."""
        (self.folder / name).write_text("".join(lines(requests, logged)))

    def learn(self, name: str, kind: str, rate: float) -> dict[int, Path]:
        """Learn, and return the models after some numbers of passes."""
        model = self.folder / f"{name}.{kind}.{rate}"
        data = f"-d {self.folder / name} --cache_file {self.folder / name}.cache --passes {max(PASSES)} --holdout_off"
        self._run(f"--cb_adf --cb_type {kind} -l {rate} -q sa -b 18 {data} -f {model} --save_per_pass")
        return {passes: model.with_name(f"{model.name}.{passes}") for passes in PASSES}

    def choose(self, name: str, model: Path, requests: Requests) -> Array:
        """Return the chosen candidate of each request, counted over all requests."""
        answers = self.folder / "answers"
        self._run(f"-t -i {model} -d {self.folder / name} -p {answers}")
        first = answers.read_text().split()
        return requests.starts[:-1] + np.array(first, dtype=int)

    def _run(self, options: str) -> None:
        from vowpalwabbit import Workspace

        Workspace(f"{options} --quiet").finish()


def parts(log: Logged) -> tuple[Logged, Logged]:
    """Split off the last fifth of the rows, or of the queries."""
    unit = np.arange(len(log)) if log.same is None or log.independent else log.same
    late = unit >= (1.0 - 1.0 / HELD_OUT) * (unit.max() + 1)
    return log.take(np.flatnonzero(~late)), log.take(np.flatnonzero(late))


def vowpal_wabbit(log: Logged, test: Requests, judge: Judge) -> Iterator[Row]:
    """Yield every setting, learnt from 80% of the log, and then the one that the others like best, learnt from all."""
    early, late = parts(log)
    order = np.random.default_rng(0).permutation(len(log))  # learning is online: repeated queries must be mixed
    shuffled, begin, found = log.take(order), time.perf_counter(), []
    with tempfile.TemporaryDirectory() as name:
        vw = VowpalWabbit(Path(name))
        vw.write("early", *_with(early.take(np.random.default_rng(1).permutation(len(early)))))
        vw.write("log", *_with(shuffled))
        vw.write("late", late.requests)
        vw.write("test", test)
        for kind, rate in product(KINDS, RATES):
            for passes, model in vw.learn("early", kind, rate).items():
                guess = vw.choose("late", model, late.requests) == late.chosen
                row = _judged(f"vw {kind} -l {rate} × {passes}", vw.choose("test", model, test), test, judge)
                found.append((float(np.mean(guess * late.reward / late.propensity)), kind, rate, passes))
                yield row | {"held_out": found[-1][0]}
        estimate, kind, rate, passes = max(found)
        chosen = vw.choose("test", vw.learn("log", kind, rate)[passes], test)
        row = _judged("vw", chosen, test, judge)
        yield row | {
            "held_out": estimate,
            "detail": f"{kind} -l {rate} × {passes}",
            "seconds": time.perf_counter() - begin,
        }


def _with(log: Logged) -> tuple[Requests, Logged]:
    return log.requests, log


def _judged(method: str, chosen: Array, test: Requests, judge: Judge) -> Row:
    reward, error = judge(_certain(test, chosen))
    return {"method": method, "reward": reward, "stderr": error}


# ---- poem ------------------------------------------------------------------------------------------------------------


def by_poem(method: str, logged: Logged, test: Requests, judge: Judge, logger: tuple[float, float, float]) -> Row:
    """Fit, and judge the policy; without one, the logger stays."""
    log = logged.log()
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = poem.fit(log, **FITS[method])
    row = {"method": method, "seconds": time.perf_counter() - begin, "detail": f"{fit.origin}: {fit.chosen.learner}"}
    if fit.policy is None:  # the logger stays, and is as random as it was
        return row | dict(zip(("reward", "expected", "stderr"), (logger[1], *logger[1:]), strict=True))
    probability = fit.policy.marginals(test.X, **test.given())
    expected, error = judge(probability)
    return row | {"reward": judge(greedy(test, probability))[0], "expected": expected, "stderr": error}


# ---- all runs --------------------------------------------------------------------------------------------------------


def trial(name: str, folder: Path, seed: int, methods: set[str]) -> Iterator[Row]:
    """Yield a row for each method and setting."""
    log, test, judge, logger = world(name, folder, seed)
    if "logger" in methods:
        yield {"method": "logger", **dict(zip(("reward", "expected", "stderr"), logger, strict=True))}
        sizes = np.diff(test.starts)[test.owner]
        expected, error = judge(1.0 / sizes)
        yield {"method": "chance", "reward": expected, "expected": expected, "stderr": error}
        if test.value is not None:
            yield _judged("best possible", test.best(test.value), test, judge)
    for method in FITS:
        if method in methods:
            yield by_poem(method, log, test, judge, logger)
    if "vw" in methods:
        yield from vowpal_wabbit(log, test, judge)


def run_all(path: Path, folder: Path, every: list[tuple[str, int]], methods: set[str]) -> None:
    """Append each world and seed that is not in the file."""
    had = {(row["world"], int(row["seed"]), row["method"]) for row in read(path)}
    for name, seed in every:
        wanted = {method for method in methods if (name, seed, method) not in had}
        if not wanted:
            continue
        print(f"{name}, seed {seed}: {', '.join(sorted(wanted))}", file=sys.stderr, flush=True)
        rows = [{"world": name, "seed": seed, **row} for row in trial(name, folder, seed, wanted)]
        append(path, FIELDS, ({key: _text(value) for key, value in row.items()} for row in rows))


def _text(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


# ---- what is shown ---------------------------------------------------------------------------------------------------


def numbers(rows: list[dict[str, str]], method: str, field: str) -> dict[str, float]:
    """Return one figure of a method by seed."""
    return {row["seed"]: float(row[field]) for row in rows if row["method"] == method and row[field]}


def table(name: str, rows: list[dict[str, str]]) -> str:
    """Return the mean test rewards of a world as Markdown, and how far the default is above each method."""
    settings = {row["method"] for row in rows if row["method"].startswith("vw ") and name not in CAMPAIGNS}
    best = max(settings, key=lambda method: np.mean([*numbers(rows, method, "reward").values()]), default=None)
    shown = {m: m for m in ("chance", "logger", *FITS, "vw")} | ({"vw, best by test": best} if best else {})
    lines = [f"| {name} | test reward (expected) | poem − it | seconds | |", "| --- | ---: | ---: | ---: | --- |"]
    for label, method in (shown | {"best possible": "best possible"}).items():
        reward = numbers(rows, method, "reward")
        if reward:
            lines.append(f"| {label} | {_cells(name, rows, method, reward)} |")
    return "\n".join(lines)


def _cells(name: str, rows: list[dict[str, str]], method: str, reward: dict[str, float]) -> str:
    default, expected = numbers(rows, "poem", "reward"), numbers(rows, method, "expected")
    differences = [] if method == "poem" else [default[seed] - reward[seed] for seed in reward if seed in default]
    errors = [*numbers(rows, method, "stderr").values()] if name in CAMPAIGNS else None  # one test log for all seeds
    seconds = [*numbers(rows, method, "seconds").values()]
    what = [row["detail"] for row in rows if row["method"] == method and row["detail"]]
    return " | ".join(
        [
            _mean([*reward.values()], errors) + (f" ({np.mean([*expected.values()]):.4f})" if expected else ""),
            _mean(differences, None, "+") if differences else "",
            f"{np.median(seconds):.1f}" if seconds else "",
            "; ".join(f"{what.count(one)} × {one}" for one in sorted(set(what))) if what else method,
        ]
    )


def _mean(values: list[float], errors: list[float] | None, sign: str = "") -> str:
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):{sign}.4f} ± {np.mean(errors) if errors else spread:.4f}"


def main() -> None:
    """Run what was asked for and print one table for each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with ranking/ and the Open Bandit archive")
    parser.add_argument("--worlds", default=",".join(WORLDS), help=f"of {', '.join(WORLDS)}")
    parser.add_argument("--methods", default=";".join(("logger", *FITS, "vw")), help="separated by ;")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("candidate_quality.csv"))
    parser.add_argument("--markdown", type=Path)
    asked = parser.parse_args()
    seeds, names = range(asked.first_seed, asked.first_seed + asked.seeds), asked.worlds.split(",")
    run_all(asked.out, asked.data, list(product(names, seeds)), set(asked.methods.split(";")))
    rows = [row for row in read(asked.out) if int(row["seed"]) in seeds]
    tables = [table(name, [row for row in rows if row["world"] == name]) for name in names]
    print("\n\n".join(tables))
    if asked.markdown:
        write_whole(asked.markdown, ("\n\n".join(tables) + "\n").encode())


if __name__ == "__main__":
    main()
