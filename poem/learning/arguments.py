"""What the arguments of a fit mean: checked, and turned into the parts that do the work."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from poem.arrays import FloatArray, IntArray
from poem.data import BanditLog, folds_of
from poem.errors import InputError, MismatchError
from poem.estimators import IPS, SNIPS, DoublyRobust, Estimator, Objective
from poem.evaluation import Clips
from poem.learning.portfolio import Lam, Learner, learners_for
from poem.optimizers import LBFGS, Optimizer
from poem.packed import how_to_open
from poem.policies import FlooredPolicy, Policy, made_log
from poem.structures import Structure

Validation = float | int | BanditLog | Literal["auto"] | None

FOLDS, SHARE = 5, 0.25  # of "auto"


@dataclass(frozen=True)
class Split:
    """Rows to train on, rows to judge on, and the independent unit of each of the latter."""

    train: BanditLog
    held: BanditLog | None
    units: IntArray | None


def check_kinds(log: Any, estimator: Any, optimizer: Any, l2: Any, confidence: Any, seed: Any, n_jobs: Any) -> None:
    """Refuse arguments of a wrong kind."""
    for name, value, kind, example in (
        ("log", log, BanditLog, "poem.BanditLog(X, y, loss=…, propensity=…)"),
        ("estimator", estimator, Objective | None, "poem.IPS()"),
        ("optimizer", optimizer, Optimizer | None, "poem.LBFGS()"),
        ("n_jobs", n_jobs, int | None, "2, or -1 for all cores"),
    ):
        if not isinstance(value, kind):
            advice = how_to_open(value) if name == "log" else ""
            raise InputError(f"{name} must be such as {example}; found {value!r}.{advice}")
    if l2 is not None and not (isinstance(l2, int | float | np.number) and np.isfinite(l2) and l2 >= 0.0):
        raise InputError(f"l2 must be finite and not negative; found {l2!r}.")
    if not isinstance(confidence, float | np.floating) or not 0.5 <= confidence < 1.0:
        raise InputError(f"confidence must be at least 0.5 and below 1; found {confidence!r}. Use 0.95 for 95%.")
    if not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError(f"seed must be a whole number, 0 or above; found {seed!r}.")


def check_asked(certify: bool, refit: bool, imitate: bool) -> None:
    """Refuse wishes that contradict each other."""
    if not certify and (refit or imitate):
        raise InputError("refit= and imitate= are about certificates; leave them out with certify=False.")


def check_learners(learners: Sequence[Learner], additive: bool, doubly_robust: bool) -> None:
    """Refuse sums over labels where nothing would make use of them, and learners that need them."""
    if additive and not doubly_robust:
        raise InputError(
            "additive=True needs several learners that a loss model judges on held-out rows. Leave out either it or "
            "what asks for another rule: estimator=, lam=, l2=, optimizer=, select_by=, guard=False or validation=None."
        )
    if not additive and any(learner.additive for learner in learners):
        raise InputError(
            "an additive learner takes losses that are sums over labels. If they are, say so by additive=True; else "
            "leave the learner out."
        )


def check_features(log: BanditLog, fit_intercept: bool) -> None:
    """Refuse a log with nothing to learn with."""
    if log.n_features + int(fit_intercept) == 0:
        raise InputError(
            "X has no columns, and fit_intercept is False: there is nothing to learn with. Allow one of them."
        )


def check_additive(additive: bool, logging_policy: Any, *logs: BanditLog) -> None:
    """Refuse sums over labels where the probabilities of single labels are not known."""
    if not isinstance(additive, bool):
        raise InputError(f"additive must be True or False; found {additive!r}.")
    if not additive:
        return
    structure = logs[0].structure
    if not structure.independent:
        raise InputError(
            "additive=True is for label sets, in which each label has a probability of its own; outputs are "
            f"{structure.describe()}. Leave it out."
        )
    if not isinstance(logging_policy, Policy):
        found = "none was passed" if logging_policy is None else f"found {type(logging_policy).__name__}"
        if isinstance(logging_policy, FlooredPolicy):
            found = "this one has a floor, which ties labels together"
        raise InputError(
            "additive=True takes the probabilities of single labels, which a log does not hold. Pass the policy that "
            f"made the log, without a floor, as logging_policy=; {found}."
        )
    if not all(made_log(logging_policy, log) for log in logs):
        raise InputError(
            "additive=True takes the probabilities of single labels from logging_policy=, but the propensities of this "
            "log are not that policy's. Pass the policy that made all of its rows, or leave additive= out."
        )


def asked_for(
    learners: Any,
    estimator: Objective | None,
    lam: Lam | None,
    l2: float | None,
    optimizer: Optimizer | None,
    started: bool,
    select_by: str | Estimator | None,
) -> tuple[tuple[Learner, ...], str | Estimator, bool]:
    """Return the learners that were asked for, how to choose among their candidates, and whether it is one's own."""
    if estimator is None and lam is None and l2 is None and optimizer is None:
        return learners_for(learners, started), "dr" if select_by is None else select_by, False
    if not (isinstance(learners, str) and learners == "auto"):
        raise InputError("pass learners=, or a learner of your own by estimator=, lam=, l2= and optimizer=; not both.")
    estimator = IPS() if estimator is None else estimator
    plain = lam is not None and not isinstance(lam, str) and not np.any(np.asarray(lam))
    own = Learner(
        name=estimator.name if plain else {"IPS": "POEM", "SNIPS": "Norm-POEM"}.get(estimator.name, estimator.name),
        estimator=estimator,
        start="given" if started else "zero",
        lam="auto" if lam is None else lam,
        l2=l2 or 0.0,
        optimizer=optimizer or LBFGS(),
    )
    return (own,), "ips" if select_by is None else select_by, True


def main_estimator(learners: Sequence[Learner]) -> Estimator:
    """Return the estimator whose clip a calibration tells of: that of a single learner, or else IPS."""
    only = learners[0].estimator if len(learners) == 1 else None
    return IPS() if only is None else only


def judge_of(select_by: str | Estimator, clips: Clips) -> Estimator:
    """Return the estimator that judges held-out rows, with its clip set."""
    if isinstance(select_by, Estimator):
        return clips.set_in(select_by)
    named: dict[str, Estimator] = {"dr": DoublyRobust(clip=None), "ips": IPS(clip=None), "snips": SNIPS(clip=None)}
    if select_by not in named:
        raise InputError(f"select_by must be 'dr', 'ips', 'snips' or an estimator; found {select_by!r}.")
    return named[select_by]


def splits_of(log: BanditLog, validation: Validation, seed: int, *, by_unit: bool) -> list["Split"]:
    """Return the rows to train on and those to judge on: one pair, or one for each fold."""
    if isinstance(validation, str):
        if validation != "auto":
            raise InputError(f"validation must be 'auto', a number, a log, or None; found {validation!r}.")
        units = int(log.units().max()) + 1
        validation = min(FOLDS, units) if by_unit and units > 1 else SHARE
    if validation is None:
        return [Split(log, None, None)]
    if isinstance(validation, BanditLog):
        check_alike(log, validation)
        return [Split(log, validation, validation.units())]
    unit = log.units()
    if isinstance(validation, int | np.integer) and not isinstance(validation, bool) and validation > 1:
        fold = folds_of(log, int(validation), seed)
        return [Split(log.take(fold != part), log.take(fold == part), unit[fold == part]) for part in range(validation)]
    share = check_share(validation)
    by: Literal["unit", "row"] | None = None
    if by_unit:
        by = "unit" if int(unit.max()) > 0 else "row"  # one unit alone cannot be held out; its rows can
    train, held = log.split(share, np.random.default_rng([seed, 0]), by=by)
    return [Split(train, held, held.units())]


def check_alike(log: BanditLog, validation: BanditLog) -> None:
    """Refuse a validation log of another kind."""
    alike = ("structure", "labels", "n_features", "feature_names")
    validation.need_propensities()
    if any(getattr(validation, name) != getattr(log, name) for name in alike):
        raise MismatchError("the validation log has other outputs or features than the log. Build both alike.")


def check_share(validation: Any) -> float:
    """Return the share to hold out, or say what is wrong with it."""
    if not isinstance(validation, float | np.floating) or not 0.0 < validation < 1.0:
        raise InputError(
            f"validation must be a share between 0 and 1, a number of folds above 1, a log, or None; "
            f"found {validation!r}."
        )
    return float(validation)


def _differences(policy: Policy, log: BanditLog, structure: Structure, fit_intercept: bool) -> Iterator[str]:
    """Yield how a policy differs from those that are learnt from a log."""
    if policy.structure != structure:
        yield f"its outputs are {policy.structure.describe()}, and those of the log {structure.describe()}"
    elif policy.labels != structure.known_labels(log.labels):
        yield f"its labels are {_some(policy.labels)}, and those of the log {_some(log.labels)}"
    for what, theirs, mine in (
        ("features", policy.feature_names, log.feature_names),
        ("features of actions", policy.action_names, log.action_names),
    ):
        if theirs != mine:
            yield f"its {what} are {_some(theirs)}, and those of the log {_some(mine)}"
    if policy.intercept != fit_intercept:
        yield f"it has {'an' if policy.intercept else 'no'} intercept, and fit_intercept is {fit_intercept}"


def _some(names: Sequence[Any] | None) -> str:
    """Return some names, such as those of features."""
    if names is None:
        return "without names"
    return f"{', '.join(map(str, names[:8]))}{', …' if len(names) > 8 else ''} ({len(names)})"


def weights_of(
    policy: Policy | FlooredPolicy | FloatArray | None,
    name: str,
    log: BanditLog,
    structure: Structure,
    fit_intercept: bool,
) -> FloatArray | None:
    """Return the weights of a policy of the log's kind (without its floor), or those that were given as an array.

    A logging policy with trees has none for these features.
    """
    if policy is None:
        return None
    if isinstance(policy, FlooredPolicy):
        policy = policy.policy
    if isinstance(policy, Policy):
        differences = list(_differences(policy, log, structure, fit_intercept))
        if differences:
            raise MismatchError(f"{name} does not fit the log: {'; '.join(differences)}. Pass one of the same kind.")
        if policy.forest is not None and name == "logging_policy":
            return None
        if policy.forest is not None:
            raise InputError(
                f"{name} has trees, so that no learner can begin from its weights. Pool its log with the earlier ones "
                "(poem.balanced), or pass the policy as logging_policy=."
            )
    try:
        weights = policy.weights if isinstance(policy, Policy) else np.asarray(policy, dtype=np.float64)
    except (TypeError, ValueError) as error:
        hint = " Pass result.policy." if hasattr(policy, "policy") else " Read a file with poem.load_policy."
        raise InputError(f"{name} must be a policy or its weights; found {type(policy).__name__}.{hint}") from error
    wanted = (log.n_features + int(fit_intercept), structure.n_scores)
    if weights.shape != wanted:
        raise MismatchError(f"{name} has weights of shape {weights.shape}; this log needs {wanted}.")
    if not np.all(np.isfinite(weights)):
        raise InputError(f"{name} must be finite; it holds NaN or infinity.")
    return weights
