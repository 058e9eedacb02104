"""From a log to a policy: hold out → calibrate → minimise each candidate's risk → select."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np

from poem.arrays import FloatArray
from poem.calibrate import Calibration, LossBounds, calibrate, check_learnable, clip_for
from poem.checkpoint import Checkpoint, fingerprint
from poem.errors import InputError, MismatchError
from poem.estimators import IPS, SNIPS, Estimate, Estimator, Objective, Rows, Weighted
from poem.kernel import OneBlasThread, Threads, count_threads
from poem.layout import Layout
from poem.log import BanditLog
from poem.optimizers import LBFGS, AdaGrad, Optimizer, Trace
from poem.policy import Policy
from poem.progress import Progress
from poem.risk import Risk
from poem.select import Candidate, Table, choose, find_problems
from poem.structures import Structure, structure_of

MULTIPLIERS = tuple(10.0**power for power in range(-6, 1))  # the paper's c
PROBED_CONTEXTS = 2000

Lam = float | Sequence[float] | Literal["auto"]


@dataclass(frozen=True)
class Fit:
    """What :func:`fit` found.

    Attributes
    ----------
    policy : Policy
        The one to use.
    chosen : Candidate
        Its row of the table.
    table : Table
        Every candidate that was tried.
    calibration : Calibration
        Loss scale, clip and λ*, and where they come from.
    n_train, n_validation : int
        How many rows were trained on and held out.
    logged : Estimate or None
        The loss that was logged on the held-out rows, to compare with.
    """

    policy: Policy
    chosen: Candidate
    table: Table
    calibration: Calibration
    n_train: int
    n_validation: int
    logged: Estimate | None

    def __repr__(self) -> str:
        lines = [
            str(self.policy),
            f"trained on {self.n_train:,} rows, selected on {self.n_validation:,}; {self.calibration}",
            *(
                ["propensities are estimated, not logged"]
                if self.policy.training.get("propensities") == "estimated"
                else []
            ),
            str(self.table),
        ]
        if self.logged is not None and self.chosen.validation is not None:
            better = self.chosen.validation.interval()[1] < self.logged.value
            verdict = "is estimated to be better" if better else "is not shown to be better"
            lines.append(f"logged loss on the held-out rows {self.logged}: the chosen policy {verdict}")
        return "\n".join(lines)


def fit(
    log: BanditLog,
    structure: Structure | None = None,
    *,
    estimator: Objective | None = None,
    lam: Lam = "auto",
    l2: float = 0.0,
    optimizer: Optimizer | None = None,
    loss_bounds: LossBounds = "auto",
    fit_intercept: bool = True,
    validation: float | BanditLog | None = 0.25,
    select_by: Literal["ips", "snips"] | Estimator = "ips",
    start: Policy | FloatArray | None = None,
    guard: bool = True,
    force: bool = False,
    n_jobs: int | None = -1,
    seed: int = 0,
    progress: bool = False,
    checkpoint: str | Path | None = None,
) -> Fit:
    """Learn a policy from a log by counterfactual risk minimization.

    Parameters
    ----------
    log : BanditLog
    structure : Structure, optional
        Inferred from y: (n, q) of 0/1 is MultiLabel, (n,) is MultiClass.
    estimator : Objective, optional
        The risk to minimise; ``IPS()`` by default, ``SNIPS()`` gives Norm-POEM.
    lam : "auto", float or sequence of float
        λ of the variance penalty on the scaled loss. ``"auto"`` tries c·λ* for c = 1e-6 … 1 (POEM);
        0 is the plain estimator.
    l2 : float
        Adds ½·l2·‖w‖² to the objective.
    optimizer : Optimizer, optional
        ``LBFGS()`` by default; ``AdaGrad()`` is the paper's stochastic variant.
    loss_bounds : (lowest, highest) or "auto"
        What a loss can be; ``"auto"`` takes the extremes of the log and says so in the result.
    fit_intercept : bool
        Add a constant feature.
    validation : float, BanditLog or None
        The share of rows (or groups) held out for selection, a log of its own, or none.
    select_by : "ips", "snips" or Estimator
        How held-out rows are judged; ``"ips"`` is the paper's rule.
    start : Policy or array, optional
        Where to start; w = 0 by default.
    guard : bool
        Never choose a policy that avoids the log, and one with other problems only if there is
        nothing else. False gives the paper's plain rule.
    force : bool
        Go on although the logging policy was deterministic.
    n_jobs : int
        Threads; -1 is all cores. The answer does not depend on it.
    seed : int
        For the split and for stochastic optimizers.
    progress : bool
        Show a line on stderr.
    checkpoint : path, optional
        A folder for finished candidates; a fit that was interrupted resumes from it.
    """
    _check_kinds(log, estimator, optimizer, l2, seed, n_jobs)
    check_learnable(log, force)
    structure = _checked_structure(structure, log)
    if log.n_features + int(fit_intercept) == 0:
        raise InputError(
            "X has no columns, and fit_intercept is False: there is nothing to learn with. Allow one of them."
        )
    estimator = IPS() if estimator is None else estimator
    optimizer = LBFGS() if optimizer is None else optimizer
    train, held = _hold_out(log, validation, seed)
    judge = _judge(select_by, train)
    calibration = calibrate(train, estimator, loss_bounds, held)
    grid = _grid(lam, calibration)
    if held is None and len(grid) > 1:
        raise InputError(
            "several λ can be told apart on held-out rows only; pass validation=0.25, or one number as lam."
        )
    settings = {
        "structure": repr(structure),
        "estimator": estimator.name,
        "clip": estimator.clip,
        "lam": [value for value, _ in grid],
        "l2": l2,
        "optimizer": optimizer.settings(),
        "loss_bounds": loss_bounds,
        "fit_intercept": fit_intercept,
        "seed": seed,
        "start": "zero" if start is None else "given",
        "propensities": "estimated" if "estimated" in (train.propensities, held and held.propensities) else "logged",
    }
    begin = _start_weights(start, train, structure, fit_intercept)
    work = _Work(
        layout=Layout(train, structure, fit_intercept),
        held=None if held is None else _Held(held, Layout(held, structure, fit_intercept)),
        train=train,
        calibration=calibration,
        estimator=estimator.with_clip(calibration.clip),
        judge=judge,
        optimizer=optimizer,
        l2=l2,
        start=begin,
        seed=seed,
        settings=settings,
        kept=Checkpoint(
            checkpoint, fingerprint(log, {**settings, "validation": repr(validation)}, begin) if checkpoint else ""
        ),
        threads=Threads(count_threads(n_jobs) if len(grid) == 1 else 1),
    )
    with OneBlasThread(), Progress("fit", len(grid), progress) as line:
        candidates = _run_all(work, grid, min(count_threads(n_jobs), len(grid)), line)
    chosen = choose(candidates, guard)
    held_rows = 0 if held is None else len(held)
    return Fit(chosen.policy, chosen, Table(candidates, chosen), calibration, len(train), held_rows, work.logged())


def warm_up(log: BanditLog) -> None:
    """Compile or load all kernels for a log's kind, so that what is timed afterwards is learning."""
    few = log.take(np.arange(min(len(log), 200)))
    for optimizer in (LBFGS(max_iterations=2), AdaGrad(max_batches=2, min_epochs=1)):
        fit(few, lam=0.0, optimizer=optimizer, guard=False, force=True)


# ---- what the arguments mean ------------------------------------------------------------------


def _checked_structure(structure: Structure | None, log: BanditLog) -> Structure:
    inferred = structure_of(log)
    if structure is not None and structure != inferred:
        raise MismatchError(
            f"structure is {structure}, but the log's y needs {inferred}. Leave structure out, or mend y."
        )
    return inferred


def _check_kinds(log: Any, estimator: Any, optimizer: Any, l2: Any, seed: Any, n_jobs: Any) -> None:
    for name, value, kind, example in (
        ("log", log, BanditLog, "poem.BanditLog(X, y, loss=…, propensity=…)"),
        ("estimator", estimator, Objective | None, "poem.IPS()"),
        ("optimizer", optimizer, Optimizer | None, "poem.LBFGS()"),
        ("n_jobs", n_jobs, int | None, "2, or -1 for all cores"),
    ):
        if not isinstance(value, kind):
            raise InputError(f"{name} must be such as {example}; found {value!r}.")
    if not isinstance(l2, int | float | np.number) or not (np.isfinite(l2) and l2 >= 0.0):
        raise InputError(f"l2 must be finite and not negative; found {l2!r}.")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number, 0 or above; found {seed!r}.")


def _judge(select_by: str | Estimator, train: BanditLog) -> Estimator:
    if isinstance(select_by, Weighted):
        select_by = select_by.with_clip(clip_for(train, select_by)[0])
    if isinstance(select_by, Estimator):
        if select_by.needs_model:
            raise InputError(f"select_by must do without a loss model; found {select_by!r}. Use 'ips' or 'snips'.")
        return select_by
    named: dict[str, Estimator] = {"ips": IPS(clip=None), "snips": SNIPS(clip=None)}
    if select_by not in named:
        raise InputError(f"select_by must be 'ips', 'snips' or an estimator; found {select_by!r}.")
    return named[select_by]


def _hold_out(log: BanditLog, validation: float | BanditLog | None, seed: int) -> tuple[BanditLog, BanditLog | None]:
    if validation is None:
        return log, None
    if isinstance(validation, BanditLog):
        alike = ("labels", "n_features", "feature_names")
        validation.need_propensities()
        if validation.y.ndim != log.y.ndim or any(getattr(validation, name) != getattr(log, name) for name in alike):
            raise MismatchError("the validation log has other outputs or features than the log. Build both alike.")
        return log, validation
    if not isinstance(validation, int | float | np.number) or not 0.0 < validation < 1.0:
        raise InputError(f"validation must be a share between 0 and 1, a log, or None; found {validation!r}.")
    return log.split(validation, np.random.default_rng([seed, 0]))


def _grid(lam: Lam, calibration: Calibration) -> list[tuple[float, float | None]]:
    """Return (λ, c) pairs in ascending order."""
    if isinstance(lam, str):
        if lam != "auto":
            raise InputError(f"lam must be 'auto', a number or several numbers; found {lam!r}.")
        return [(c * calibration.lam_star, c) for c in MULTIPLIERS]
    try:
        values = np.atleast_1d(np.asarray(lam, dtype=np.float64))
    except (TypeError, ValueError) as error:
        raise InputError(f"lam must be 'auto', a number or several numbers; found {lam!r}.") from error
    if values.ndim != 1 or len(values) == 0 or not np.all(np.isfinite(values)) or np.any(values < 0.0):
        raise InputError(f"lam must be finite and not negative; found {lam!r}.")
    return [(float(value), None) for value in np.sort(values)]


def _start_weights(
    start: Policy | FloatArray | None, log: BanditLog, structure: Structure, fit_intercept: bool
) -> FloatArray | None:
    if start is None:
        return None
    if isinstance(start, Policy):
        theirs, ours = (start.labels, start.feature_names), (log.labels, log.feature_names)
        if theirs != ours or start.intercept != fit_intercept:
            raise MismatchError(
                f"start has other labels, features or intercept than this fit: {start.labels[:8]} against "
                f"{log.labels[:8]}, {start.feature_names} against {log.feature_names}. Start from one of the same kind."
            )
    weights = start.weights if isinstance(start, Policy) else np.asarray(start, dtype=np.float64)
    wanted = (log.n_features + int(fit_intercept), structure.n_scores)
    if weights.shape != wanted:
        raise MismatchError(f"start has weights of shape {weights.shape}; this log needs {wanted}.")
    if not np.all(np.isfinite(weights)):
        raise InputError("start must be finite; it holds NaN or infinity.")
    return weights


# ---- the candidates ---------------------------------------------------------------------------


class _CancelledError(Exception):
    """Ends the work of other threads after Ctrl-C or an error."""


class _Held:
    """The held-out rows, laid out once for all candidates."""

    def __init__(self, log: BanditLog, layout: Layout) -> None:
        self.layout, self.units = layout, log.units()[layout.order]


@dataclass
class _Work:
    """All that the candidates of one fit share."""

    layout: Layout
    held: "_Held | None"
    train: BanditLog
    calibration: Calibration
    estimator: Objective
    judge: Estimator
    optimizer: Optimizer
    l2: float
    start: FloatArray | None
    seed: int
    settings: dict[str, Any]
    kept: Checkpoint
    threads: Threads
    cancelled: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.loss = self.calibration.scale(self.layout.loss)
        step = max(1, self.train.n_contexts // PROBED_CONTEXTS)
        self.contexts = self.train.X[::step]

    def candidate(self, position: int, lam: float, c: float | None, line: Progress) -> Candidate:
        """Fit one candidate, or take it from the checkpoint, and judge it."""
        policy = self.kept.load(position)
        if policy is None:
            policy = self._fit(position, lam, line)
            self.kept.keep(position, policy)
        record = policy.training["trace"]
        validation = self._judge(policy)
        problems = find_problems(policy, self.contexts, record["mean_weight"], validation)
        return Candidate(
            policy=policy,
            lam=lam,
            c=c,
            objective=record["value"],
            mean_weight=record["mean_weight"],
            clipped_share=record["clipped_share"],
            validation=validation,
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

    def _fit(self, position: int, lam: float, line: Progress) -> Policy:
        risk = Risk(self.layout, self.loss, self.estimator, lam=lam, l2=self.l2, threads=self.threads)

        def on_step(step: int, value: float) -> None:
            if self.cancelled.is_set():
                raise _CancelledError
            line.note(f"(λ {lam:.3g}: step {step}, objective {value:.4f})")

        # Each candidate has its own order of batches: seven unlucky ones are rarer than one.
        rng = np.random.default_rng([self.seed, 1, position])
        trace = self.optimizer.minimize(risk, self.start, rng=rng, on_step=on_step)
        ratio = risk.ratios(trace.weights)
        record = {name: value for name, value in vars(trace).items() if name != "weights"}
        record["mean_weight"] = float(ratio.mean())
        record["clipped_share"] = float(self.estimator.clipped(ratio).mean())
        training = {**self.settings, "lam": lam, "calibration": asdict(self.calibration), "trace": record}
        return Policy(
            self.layout.structure,
            trace.weights,
            self.layout.design.intercept,
            self.train.labels,
            self.train.feature_names,
            {**training, "n_train": len(self.train)},
        )

    def _judge(self, policy: Policy) -> Estimate | None:
        if self.held is None:
            return None
        layout = self.held.layout
        return self._valued(self.judge, layout.log_prob(policy.weights, self.threads) - layout.log_propensity)

    def logged(self) -> Estimate | None:
        """Return the mean loss of the logging policy on the held-out rows."""
        return None if self.held is None else self._valued(IPS(None), np.zeros(len(self.held.layout)))

    def _valued(self, estimator: Estimator, log_ratio: FloatArray) -> Estimate:
        assert self.held is not None
        layout, scale = self.held.layout, self.calibration
        rows = Rows(log_ratio, scale.scale(layout.loss), layout.log_propensity)
        found = estimator.judge(rows, self.held.units)
        return found.rescaled(scale.loss_low, scale.loss_high)


def _run_all(work: _Work, grid: list[tuple[float, float | None]], workers: int, line: Progress) -> list[Candidate]:
    def one(position: int) -> Candidate:
        found = work.candidate(position, *grid[position], line)
        line.part_done()
        return found

    if workers == 1:
        return [one(position) for position in range(len(grid))]
    pool = ThreadPoolExecutor(workers, thread_name_prefix="poem-fit")
    try:
        return list(pool.map(one, range(len(grid))))
    except BaseException:
        work.cancelled.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
