"""Recipes × training rows × held-out rows → candidates, several at a time, kept on disk if wanted."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.certificates import CAPS, Control, Evidence, Forecast, can_control, forecast, paired_terms, ratios
from poem.compute import Threads
from poem.data import BanditLog, Layout
from poem.estimators import IPS, Estimate, Estimator, Rows, Terms, standard_error
from poem.evaluation import Calibration, UnseenRows
from poem.learning.checkpoint import Checkpoint
from poem.learning.portfolio import Recipe
from poem.learning.selection import MEANING, OVERFITS, Candidate, Gain, find_problems, overfits
from poem.learning.training import Training
from poem.models import ContextLosses
from poem.optimizers import Trace
from poem.policies import Policy
from poem.progress import Progress

WORST_ERRORS = 0.95  # quantile of a loss model's errors that counts as a bad one


class _CancelledError(Exception):
    """Ends the work of other threads after Ctrl-C or an error."""


class HeldOut:
    """Held-out rows, laid out once for all candidates.

    ``stream`` tells the random numbers of a certificate from those of forecasts.
    """

    def __init__(self, log: BanditLog, training: Training, units: IntArray, with_model: bool, stream: int = 0) -> None:
        calibration = training.calibration
        self.layout = Layout(log, training.structure, training.intercept)
        self.units: IntArray = units[self.layout.order]
        self.loss = calibration.scale(self.layout.loss)
        losses: ContextLosses | None = None
        self._control: Control | None = None
        if with_model:  # one that has not seen these rows
            fold = np.zeros(log.n_contexts, dtype=np.int64)
            losses = ContextLosses(self.layout, (training.model,), fold, calibration.bounds, training.threads)
            if can_control(log, training.structure, units):
                self._control = Control(training.logger.scores(self.layout), losses, (training.seed, stream))
        self._unseen = UnseenRows(self.layout, self.loss, losses)

    def rows(self, policy: Policy, threads: Threads) -> Rows:
        """Return what estimators may know of these rows under a policy."""
        return self._unseen.under_weights(policy.weights, threads)

    def paired(self, policy: Policy, threads: Threads) -> FloatArray:
        """Return the paired terms of these rows under a policy, for each cap."""
        return paired_terms(self.layout, self.loss, policy.weights, self._control, threads)

    def evidence(self, policy: Policy, cap: int, threads: Threads) -> Evidence:
        """Return what these rows say of a policy that has not seen them."""
        ratio = ratios(self.layout, policy.weights, threads)
        caps = (CAPS[cap],)
        terms = paired_terms(self.layout, self.loss, policy.weights, self._control, threads, caps, ratio)[:, 0]
        return Evidence(terms, CAPS[cap], ratio, -self.loss, self.units, float(self.layout.loss.mean()))


class Jury:
    """The held-out rows of all folds, and the estimator that judges on them.

    A jury that ``foresees`` also says what certificate a candidate may expect.
    """

    def __init__(
        self, judge: Estimator, folds: Sequence[HeldOut], calibration: Calibration, foresees: bool = False
    ) -> None:
        self.judge, self.folds, self.calibration, self.foresees = judge, folds, calibration, foresees
        self.units: IntArray = np.unique(np.concatenate([fold.units for fold in folds]), return_inverse=True)[1]
        self._loss = np.concatenate([fold.loss for fold in folds])
        self._logged = Terms(self._loss).by_unit(self.units)

    def verdict(self, parts: Sequence[Rows]) -> tuple[Estimate, Gain]:
        """Return the estimated loss of the policies of all folds, and its difference to what was logged."""
        rows = _joined(parts)
        judge = self.judge.tuned(rows)
        sums = judge.terms(rows).by_unit(self.units)
        found = judge.summary(sums, rows, self.units)
        span = self.calibration.loss_high - self.calibration.loss_low
        typical, worst = _errors(judge, rows, found)
        gain = Gain(
            value=span * (found.value - self._logged.value()),
            stderr=span * standard_error(sums.shares() - self._logged.shares()) if np.isfinite(found.value) else np.inf,
            freedom=min(found.effective_n, found.units) - 1.0,
            mean_weight=found.mean_weight,
            weight_stderr=found.weight_stderr,
            typical=span * typical,
            room=span * worst,
        )
        return found.rescaled(*self.calibration.bounds), gain

    def forecast(self, parts: Sequence[FloatArray]) -> Forecast:
        """Return the certificate that a candidate may expect, from the paired terms of all folds."""
        return forecast(np.concatenate(parts), self.units)

    def logged(self) -> Estimate:
        """Return the mean loss that was logged."""
        found = IPS(None).judge(Rows(np.zeros(len(self._loss)), self._loss), self.units)
        return found.rescaled(*self.calibration.bounds)


def _errors(judge: Estimator, rows: Rows, found: Estimate) -> tuple[float, float]:
    """Return how much worse than estimated decisions are that the log lacks, typically and at worst, of [−1, 0].

    A loss model errs by its root mean squared error, and is rarely more wrong than in the worst twentieth of the
    rows; where few losses differ from the rest, that is less. Without a model it may be the worst loss, which
    pessimistic estimators have taken it to be.
    """
    if judge.pessimistic or not np.isfinite(found.value):
        return 0.0, 0.0
    if rows.predicted is None:
        return -found.value, -found.value
    errors = rows.loss - rows.predicted
    worst = max(0.0, float(np.quantile(errors, WORST_ERRORS)))
    return min(worst, float(np.sqrt(np.mean(errors**2)))), worst


def _joined(parts: Sequence[Rows]) -> Rows:
    """Return the rows of all folds as one."""
    if len(parts) == 1:
        return parts[0]
    columns = zip(*((p.log_ratio, p.loss, p.log_propensity, p.predicted, p.expected) for p in parts), strict=True)
    return Rows(*(None if column[0] is None else np.concatenate(column) for column in columns))  # type: ignore[arg-type]


@dataclass
class Contest:
    """One set of recipes on the training rows of each fold, judged on the held-out ones."""

    trainings: Sequence[Training]
    jury: Jury | None
    recipes: Sequence[Recipe]
    settings: dict[str, Any]
    kept: Checkpoint
    seed: int
    cancelled: threading.Event = field(default_factory=threading.Event)

    def run(self, line: Progress) -> list[Candidate]:
        """Make and judge every candidate: several at a time, or one with all threads."""
        every = self.trainings[0].threads
        workers = min(every.count, len(self.recipes))
        threads = every if len(self.recipes) == 1 else Threads()

        def one(position: int) -> Candidate:
            return self._candidate(position, self.recipes[position], threads, line)

        if workers == 1:
            return [one(position) for position in range(len(self.recipes))]
        pool = ThreadPoolExecutor(workers, thread_name_prefix="poem-fit")
        try:
            return list(pool.map(one, range(len(self.recipes))))
        except BaseException:
            self.cancelled.set()
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)

    def _candidate(self, position: int, recipe: Recipe, threads: Threads, line: Progress) -> Candidate:
        """Make one candidate in each fold, or take it from the checkpoint, and judge it."""
        first, rows, terms, problems = None, [], [], set()
        for fold, training in enumerate(self.trainings):
            number = fold * len(self.recipes) + position
            policy = self.kept.load(number)
            if policy is None:
                policy = self._made(training, number, recipe, threads, line)
                self.kept.keep(number, policy)
            problems |= set(find_problems(policy, training.probed, policy.training["trace"]["mean_weight"]))
            if self.jury is not None:
                rows.append(self.jury.folds[fold].rows(policy, threads))
                if self.jury.foresees:
                    terms.append(self.jury.folds[fold].paired(policy, threads))
            first = first or policy
            line.part_done()
        assert first is not None
        validation, gain = (None, None) if self.jury is None else self.jury.verdict(rows)
        if validation is not None and overfits(validation):
            problems.add(OVERFITS)
        foreseen = self.jury.forecast(terms) if self.jury is not None and terms else None
        found = tuple(problem for problem in MEANING if problem in problems)
        return _candidate(first, recipe, validation, gain, foreseen, found)

    def _made(self, training: Training, number: int, recipe: Recipe, threads: Threads, line: Progress) -> Policy:
        def on_step(step: int, value: float) -> None:
            if self.cancelled.is_set():
                raise _CancelledError
            line.note(f"({recipe.label}: step {step}, objective {value:.4f})")

        # Each candidate has its own order of batches: seven unlucky ones are rarer than one.
        rng = np.random.default_rng([self.seed, 1, number])
        return training.policy(recipe, rng, on_step, self.settings, threads)


def _candidate(
    policy: Policy,
    recipe: Recipe,
    validation: Estimate | None,
    gain: Gain | None,
    foreseen: Forecast | None,
    problems: tuple[str, ...],
) -> Candidate:
    record = policy.training["trace"]
    return Candidate(
        policy=policy,
        recipe=recipe,
        lam=policy.training["lam"],
        objective=record["value"],
        mean_weight=record["mean_weight"],
        clipped_share=record["clipped_share"],
        validation=validation,
        gain=gain,
        forecast=foreseen,
        problems=problems,
        seconds=record["seconds"],
        trace=Trace(
            policy.weights,
            record["value"],
            record["steps"],
            record["seconds"],
            record["converged"],
            record["reason"],
            [(moment, value) for moment, value in record["curve"]],
        ),
    )
