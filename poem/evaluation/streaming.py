"""Evaluation of a packed log: shards are read once, one at a time, and only sums are kept."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from poem.backends import Backend
from poem.compute import OneBlasThread
from poem.errors import InputError, MismatchError
from poem.estimators import Estimate, Estimator, MomentSums, Replicates, Scheme, estimate_of, replicates_of
from poem.evaluation.diagnostics import diagnosed
from poem.evaluation.found import Found, Part, unclipped
from poem.evaluation.lines import Options, Table
from poem.evaluation.pilot import Pilot, facts_of, fold_models, pilot, sample_of, with_ratios
from poem.evaluation.shard_sums import EVENTS, LOGGED, WEIGHTS, Candidate, FoldModels, Key, ShardSums, ShardTask
from poem.evaluation.table import Evaluation
from poem.evaluation.uncertainty import Uncertainty
from poem.packed import PackedLog, logger_counts
from poem.policies import UNSUPPORTED, by_context_alone, check_all_packed, judge_one, named_policies
from poem.progress import PATIENCE, Progress

STREAMED = ("t", "normal", "bernstein", "bootstrap")  # intervals that sums suffice for


@dataclass(frozen=True)
class Request:
    """What is asked of a packed log.

    Attributes
    ----------
    policies : list of (name, policy)
    estimators : dict
    against : str
    model : "auto", "linear", a regressor or None
    folds : int
    options : Options
    backend : Backend
    """

    policies: Sequence[tuple[str, Any]]
    estimators: Mapping[str, Estimator]
    against: str
    model: Any
    folds: int
    options: Options
    backend: Backend

    @property
    def wants_model(self) -> bool:
        """Whether any estimator asks for a loss model, and there may be one."""
        return self.model is not None and any(one.needs_model for one in self.estimators.values())


def checked_policies(policies: Any) -> list[tuple[str, Any]]:
    """Return policies with their names; each must be one that can be asked about any part of a log."""
    return [(name, by_context_alone(name, policy)) for name, policy in named_policies(policies)]


def check_interval(interval: str) -> None:
    """Refuse intervals that look at all units at once."""
    if interval not in STREAMED:
        raise InputError(
            f"interval={interval!r} looks at all units at once; for a packed log, use one of {', '.join(STREAMED)}, or "
            "read a part of the log into memory: log.part(0, 0.1).to_log()."
        )


def evaluate_packed(
    log: PackedLog,
    request: Request,
    *,
    weighted: PackedLog | None = None,
    estimated: PackedLog | None = None,
    progress: bool | None = None,
) -> tuple[Evaluation, Evaluation | None]:
    """Judge all policies on a packed log; and on the rows of each logger alone, if it has several.

    ``weighted`` is the same log with the propensities to judge by, if they are others. What is found by a third kind,
    those of ``estimated``, is returned beside.
    """
    check_interval(request.options.interval)
    _check_fitting(log, request)
    names = logger_counts(log, request.backend) if log.propensities != "missing" else {}
    alone = {name: log.of_logger(name) for name in names}
    parts = [log, *alone.values(), *([] if estimated is None else [estimated])]
    with OneBlasThread(), _shown(progress, sum(map(len, parts))) as line:
        whole = Streamed(log if weighted is None else weighted, request, line)
        for name, supported in zip(whole.names, whole.sums.supported, strict=True):
            if not supported:
                raise MismatchError(UNSUPPORTED.format(name=name))

        def by(part: PackedLog) -> Evaluation:
            return Streamed(part, request, line, whole.model).evaluation()

        beside = None if estimated is None else by(estimated)
        return replace(whole.evaluation(), by_logger={name: by(part) for name, part in alone.items()}), beside


def estimate_packed(log: PackedLog, policy: Any, estimator: Estimator, options: Options, backend: Backend) -> Estimate:
    """Judge one policy by one estimator."""
    named = [("the policy", by_context_alone("the policy", policy))]
    model = "auto" if estimator.needs_model else None
    request = Request(named, {"only": estimator}, LOGGED, model, 2, options, backend)
    _check_fitting(log, request)
    with OneBlasThread(), _shown(None, len(log)) as line:
        (part,) = Streamed(log, request, line).parts
    return part.found["only"].estimate


def _check_fitting(log: PackedLog, request: Request) -> None:
    """Ask all policies about one row, so that one for other outputs is refused before any work is done."""
    check_all_packed(request.policies, log)
    for name, policy in request.policies:
        judge_one(name, policy, log.kind, 1)


def _shown(wanted: bool | None, rows: int) -> Progress:
    if wanted is None:
        return Progress("evaluate", rows, sys.stderr is not None and sys.stderr.isatty(), "rows", after=PATIENCE)
    return Progress("evaluate", rows, wanted, "rows")


class Streamed:
    """All policies on one packed log, as sums over its shards.

    ``model`` is a loss model that was fitted before; without one, a model is fitted if one is asked for.
    """

    def __init__(self, log: PackedLog, request: Request, line: Progress, model: FoldModels | None = None) -> None:
        self.log, self.request, self.line = log, request, line
        options, backend = request.options, request.backend
        self.whole, self.clips, unlogged = facts_of(log, options.bounds[1], backend)
        sample = sample_of(log)
        several = log.n_units > 1  # one unit alone cannot be left out of a model
        line.note("(working on a sample first)")
        if model is None and request.wants_model and several:
            model = fold_models(sample, request.model, request.folds, options.bounds, options.seed, options.threads)
        self.model, self.sampled = model, None if sample.whole else int(sample.log.units().max()) + 1
        known = pilot(request.policies, sample, model, request.estimators, self.clips, self.whole, options)
        line.prepared()
        task = ShardTask(
            log=log,
            candidates=known.candidates,
            bounds=options.bounds,
            model=model,
            whole=self.whole,
            unlogged=unlogged,
            clip=self.clips.auto,
            units=log.n_units,
            scheme=known.scheme(request.against, options),
            interval=options.interval,
        )
        if known.again:
            task = replace(task, candidates=self._settled(task, known))
        self.candidates, self.keys, self.scheme = task.candidates, known.keys, task.scheme
        self.sums = self._pass(task)
        self.of = _all_sums(self.scheme, self.sums, self.keys)

    @property
    def names(self) -> list[str]:
        """The names of the policies."""
        return [one.name for one in self.candidates]

    def _settled(self, task: ShardTask, known: Pilot) -> tuple[Candidate, ...]:
        """Return policies whose estimators know their totals, which a pass of its own finds."""
        self.line.total += len(self.log)
        scheme = Scheme(known.references)
        found = _all_sums(scheme, self._pass(replace(task, scheme=scheme)), known.keys)
        ratios = {(policy, name): found[policy, "of", name].ratio() for policy, name in known.again}
        means = {one.name: found[one.name, WEIGHTS].value() for one in known.candidates}
        return with_ratios(known.candidates, ratios, means, self.whole)

    def _pass(self, task: ShardTask) -> ShardSums:
        """Sum over all shards, in their order."""
        total: ShardSums | None = None
        for found in self._results(task):
            if total is None:
                total = found
            else:
                total.add(found)
        assert total is not None
        return total

    def _results(self, task: ShardTask) -> Iterator[ShardSums]:
        for found in self.request.backend.each(task, self.log.shards):
            self.line.reached(self.line.done + found.rows)
            yield found

    @property
    def parts(self) -> list[Part]:
        """All estimates, policy by policy."""
        shares = iter((self.sums.clipped / self.sums.rows).tolist())
        found = []
        for one, weights, support in zip(self.candidates, self.sums.weights, self.sums.support, strict=True):
            facts = weights.facts(self.of[one.name, WEIGHTS], self.of[one.name, EVENTS], self.whole.least_loss)
            known = None if support is None else support.support(self.log.kind)
            estimates = {}
            for name, estimator in one.estimators.items():
                sums = self.of[one.name, "of", name]
                estimate = estimate_of(sums, facts.mean, next(shares), facts.effective)
                estimates[name] = Found(estimator, estimate, sums, self.of.get((one.name, "clipped", name)))
            findings = diagnosed(facts, known, unclipped(one.estimators, self.request.options.interval))
            found.append(Part(one.name, estimates, findings, one.skipped, facts.unsupported))
        return found

    def evaluation(self) -> Evaluation:
        """Return the answer."""
        options, parts, logged = self.request.options, self.parts, self.of[LOGGED,]
        estimates = [found.sums for part in parts for found in part.found.values()]
        drawn: Replicates | None = None
        if options.interval == "bootstrap":
            drawn = replicates_of([*(self.of[key] for key in self.keys if key[1:2] == ("of",)), logged])
        uncertainty = Uncertainty(options.best, logged, estimates, drawn, **options.interval_kind)
        found = Table(parts, logged, self.request.against, options, uncertainty).evaluation(self.log.kind)
        model = None if self.model is None else self.model.name
        shares = {one.name: one.opinion.share for one in self.candidates if one.opinion is not None}
        return replace(found, model=model, shares=shares, sampled=self.sampled)


def _all_sums(scheme: Scheme, sums: ShardSums, keys: Sequence[Key]) -> dict[Key, MomentSums]:
    return {key: MomentSums(scheme, sums.moments, number) for number, key in enumerate(keys)}
