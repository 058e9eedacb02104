"""One trial: draw a log, fit, and compare what is claimed with the truth."""

import csv
import math
import time
import warnings
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import poem
from benchmarks.worlds import WORLDS

TOLERANCE = 1e-12  # what rounding may make of a gain of 0


@dataclass(frozen=True)
class Claim:
    """What a result says about its policy; gains are positive if the policy is better than what was logged."""

    certified: bool
    gain: float
    at_least: float
    low: float
    high: float
    policy: Any
    chosen: str


@dataclass(frozen=True)
class Trial:
    """One row of the file of trials."""

    world: str
    n: int
    seed: int
    certified: bool
    gain: float
    at_least: float
    low: float
    high: float
    true_gain: float
    best_gain: float
    seconds: float
    chosen: str

    @property
    def false_claim(self) -> bool:
        return self.certified and self.true_gain <= TOLERANCE


NOTHING = Claim(False, math.nan, math.nan, math.nan, math.nan, None, "")


def claim_of(result: poem.Fit) -> Claim:
    """Return what the certificate claims."""
    found = result.certificate
    if found is None:
        return NOTHING
    low, high = found.interval
    chosen = result.chosen.learner
    return Claim(found.certified, found.gain, found.gain_at_least, low, high, found.policy, chosen)


def run_trial(name: str, n: int, seed: int) -> Trial:
    """Draw one log, fit it and look up the truth. What poem refuses to fit is no claim."""
    world = WORLDS[name]
    sample = world.sample(n, world.rng(n, seed))
    begin = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            claim = claim_of(poem.fit(sample.log, n_jobs=1, seed=seed, progress=False, **world.options))
    except poem.PoemError as refused:
        claim = Claim(**{**asdict(NOTHING), "chosen": f"refused: {str(refused)[:60]}"})
    seconds = time.perf_counter() - begin
    return Trial(
        name,
        n,
        seed,
        claim.certified,
        claim.gain,
        claim.at_least,
        claim.low,
        claim.high,
        math.nan if claim.policy is None else sample.true_gain(claim.policy),
        sample.best_gain(),
        round(seconds, 3),
        claim.chosen,
    )


# ---- the file of trials -----------------------------------------------------------------------


def read(path: Path | None) -> list[Trial]:
    """Return the trials that a file holds; none if there is no file yet."""
    if path is None or not path.exists():
        return []
    with path.open(newline="") as file:
        return [_parsed(row) for row in csv.DictReader(file)]


def append(path: Path | None, trial: Trial) -> None:
    """Add a trial to a file."""
    if path is None:
        return
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow([column.name for column in fields(Trial)])
        writer.writerow(asdict(trial).values())


def _parsed(row: dict[str, str]) -> Trial:
    kinds: dict[Any, Any] = {bool: "True".__eq__, int: int, float: float, str: str}
    return Trial(**{column.name: kinds[column.type](row[column.name]) for column in fields(Trial)})
