"""One run: make the log, learn with each method, and measure on the test set."""

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from threadpoolctl import threadpool_limits

from poem.arrays import AnyArray
from poem.compute import Matrix
from poem.data import BanditLog
from poem.estimators import IPS
from poem.experiments.protocol import Protocol
from poem.experiments.spec import Logging, Run
from poem.learning import Selection, fit, warm_up
from poem.policies import Policy, logging_policy, supervised
from poem.simulation import Dataset, load_dataset, simulate
from poem.structures import CERTAIN, MultiLabel
from poem.version import VERSION

SKYLINE_C = tuple(10.0**power for power in range(-2, 3))
HELD_OUT = 0.25

_LOADED: dict[tuple[str, str | None], Dataset] = {}


@dataclass(frozen=True)
class Result:
    """What one fit gave: a line of the record.

    ``c`` is λ/λ* for POEM and C for the CRF; of the fits that differ in it one is ``chosen``, by
    ``validation``. ``cpu_seconds`` is the mean over them. ``problems`` are those of a degenerate policy.
    """

    protocol: str
    dataset: str
    data: str
    logger_C: float | None
    fraction: float | None
    temperature: float | None
    replay: int | None
    seed: int
    method: str
    c: float | None
    lam: float | None
    steps: int | None
    chosen: bool
    expected_loss: float
    map_loss: float
    validation: float | None
    cpu_seconds: float | None
    problems: str
    poem: str

    @property
    def logging(self) -> Logging | None:
        """How the log was made; None for methods that see the labels."""
        if self.logger_C is None or self.fraction is None or self.temperature is None or self.replay is None:
            return None
        return Logging(self.logger_C, self.fraction, self.temperature, self.replay)


@dataclass(frozen=True)
class _Fitted:
    """One policy of a method; ``expected`` is what its expected loss is taken of, if not itself."""

    policy: Policy
    c: float | None = None
    lam: float | None = None
    steps: int | None = None
    chosen: bool = True
    validation: float | None = None
    cpu_seconds: float | None = None
    problems: str = ""
    expected: Policy | None = None


def data_named(name: str, folder: str | None, progress: bool = False) -> Dataset:
    """Load a data set once in a process."""
    if (name, folder) not in _LOADED:
        _LOADED[name, folder] = load_dataset(name, folder, progress=progress)
    return _LOADED[name, folder]


def perform(run: Run, protocol: Protocol, folder: str | None) -> list[Result]:
    """Do one run; the same run gives the same numbers, whatever else is run."""
    data = data_named(run.dataset, folder)
    with threadpool_limits(1):  # seconds are those of one core
        methods = _from_labels(run, data) if run.logging is None else _from_log(run, run.logging, data, protocol)
        return [_measured(run, data, protocol, method, fitted) for method, fitted in methods]


def _measured(run: Run, data: Dataset, protocol: Protocol, method: str, fitted: _Fitted) -> Result:
    logging = run.logging
    return Result(
        protocol=protocol.name,
        dataset=data.name,
        data=data.version,
        logger_C=None if logging is None else logging.C,
        fraction=None if logging is None else logging.fraction,
        temperature=None if logging is None else logging.temperature,
        replay=None if logging is None else logging.replay,
        seed=run.seed,
        method=method,
        c=fitted.c,
        lam=fitted.lam,
        steps=fitted.steps,
        chosen=fitted.chosen,
        expected_loss=(fitted.expected or fitted.policy).expected_loss(data.X_test, data.y_test),
        map_loss=fitted.policy.map_loss(data.X_test, data.y_test),
        validation=fitted.validation,
        cpu_seconds=fitted.cpu_seconds,
        problems=fitted.problems,
        poem=VERSION,
    )


# ---- methods that learn from a log -----------------------------------------------------------


def _from_log(run: Run, logging: Logging, data: Dataset, protocol: Protocol) -> Iterator[tuple[str, _Fitted]]:
    X, y = data.X_train, data.y_train
    h0 = logging_policy(
        X,
        y,
        fraction=logging.fraction,
        temperature=logging.temperature,
        C=logging.C,
        unseen=protocol.unseen,
        rng=np.random.default_rng([run.seed, 0]),
    )
    if "h0" in run.methods:
        yield "h0", _Fitted(h0, expected=_unsure(h0, logging) if protocol.unseen_is_coin_flip else None)
    log = simulate(X, y, h0, replay=logging.replay, rng=np.random.default_rng([run.seed, 1]))
    warm_up(log)
    for method in run.methods:
        if method != "h0":
            yield from ((method, fitted) for fitted in _learnt(method, log, run.seed, protocol))


def _unsure(policy: Policy, logging: Logging) -> Policy:
    """Let labels that were never seen be coin flips."""
    certain = np.abs(policy.weights[-1]) >= CERTAIN * logging.temperature
    return replace(policy, weights=np.where(certain, 0.0, policy.weights))


def _learnt(method: str, log: BanditLog, seed: int, protocol: Protocol) -> Iterator[_Fitted]:
    q = log.y.shape[1]
    batch = method.endswith("(B)")
    begin = time.process_time()
    as_published = Selection(
        validation=HELD_OUT,
        select_by=protocol.select_by,
        guard=False,  # what is degenerate is recorded, not avoided
        force=True,  # Figure 3 goes to where the logging policy hardly explores
    )
    found = fit(
        log,
        estimator=IPS() if batch else protocol.stochastic_estimator,
        lam="auto" if method.startswith("POEM") else 0.0,
        optimizer=protocol.lbfgs(q) if batch else protocol.adagrad(q),
        loss_bounds=(0.0, float(q)),
        selection=as_published,
        n_jobs=1,
        seed=seed,
    )
    seconds = (time.process_time() - begin) / len(found.table)
    for candidate in found.table:
        assert candidate.policy is not None  # there is one fold
        yield _Fitted(
            candidate.policy,
            c=candidate.c,
            lam=candidate.lam,
            steps=candidate.trace.steps,
            chosen=candidate is found.chosen,
            validation=candidate.score,
            cpu_seconds=seconds,
            problems="; ".join(candidate.problems),
        )


# ---- methods that see the labels --------------------------------------------------------------


def _from_labels(run: Run, data: Dataset) -> Iterator[tuple[str, _Fitted]]:
    p, q = data.X_train.shape[1], data.y_train.shape[1]
    for method in run.methods:
        if method == "CRF":
            yield from ((method, fitted) for fitted in _skylines(data.X_train, data.y_train, run.seed))
        else:
            weights = np.zeros((p + 1, q))
            weights[-1] = 0.0 if method == "uniform" else -CERTAIN
            yield method, _Fitted(Policy(MultiLabel(q), weights, True, tuple(range(q))))


def _skylines(X: Matrix, y: AnyArray, seed: int) -> Iterator[_Fitted]:
    """Fit to true labels; C is chosen by the MAP loss on held-out rows, and nothing is fitted again."""
    order = np.random.default_rng([seed, 2]).permutation(len(y))
    held, train = np.split(order, [round(HELD_OUT * len(y))])
    begin = time.process_time()
    policies = [supervised(X[train], y[train], C=C, unseen="never") for C in SKYLINE_C]
    seconds = (time.process_time() - begin) / len(policies)
    losses = [policy.map_loss(X[held], y[held]) for policy in policies]
    best = int(np.argmin(losses))
    for position, (policy, loss) in enumerate(zip(policies, losses, strict=True)):
        yield _Fitted(policy, c=SKYLINE_C[position], chosen=position == best, validation=loss, cpu_seconds=seconds)
