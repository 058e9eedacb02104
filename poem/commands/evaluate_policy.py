"""poem evaluate: would this policy have been better?"""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import (
    add_columns,
    add_command,
    add_common,
    add_loss_bounds,
    add_seed,
    log_for,
    loss_bounds_of,
    names,
    read_raw_log,
    remark,
    share,
    show,
    working,
)
from poem.text import Sheet

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.policies import FlooredPolicy, Policy
    from poem.readers import RawLog


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "evaluate",
        "POLICY LOG",
        "would this policy have been better?",
        "Estimate how a policy would have done on a log that it was not trained on, by ten estimators with intervals, "
        "and say whether to believe it. The answer is that of the doubly robust estimate (DR); where "
        "--estimators leaves it out, of SNIPS, else of the first one.",
        "poem evaluate policy.poem log.parquet --against old.poem",
        {
            0: "better than what was logged, or than --against, at the level of confidence",
            1: "not shown to be better, or not to be believed",
        },
    )
    parser.add_argument("policy", type=Path, metavar="POLICY", help="a file that poem train wrote")
    parser.add_argument("log", type=Path, metavar="LOG", help="file or folder of part files")
    parser.add_argument(
        "--against", type=Path, metavar="POLICY", help="compare with this one, not with what was logged"
    )
    parser.add_argument("--estimators", type=names, metavar="NAMES", help="such as IPS,SNIPS,DR (default: all)")
    parser.add_argument(
        "--interval",
        default="t",
        choices=("t", "normal", "bootstrap", "bernstein", "truncated", "ls", "betting", "clopper-pearson"),
        metavar="KIND",
        help="t (default), normal, bootstrap, bernstein, truncated, ls, betting or clopper-pearson",
    )
    add_loss_bounds(parser)
    parser.add_argument("--level", type=share, default=0.95, metavar="P", help="of the intervals (default: 0.95)")
    add_seed(parser, "folds and bootstrap")
    add_common(parser)
    add_columns(parser, encoding=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table of estimates."""
    from poem.evaluation import conclude, evaluate
    from poem.policies import load_policy, was_trained_on

    policy = load_policy(options.policy)
    other = None if options.against is None else load_policy(options.against)
    raw = read_raw_log(options, policy)
    log = log_for(policy, options.policy, raw, options)
    seen = bool(was_trained_on(policy, log))
    policies: dict[str, Any] = {"policy": policy}
    if other is not None:
        policies["other"] = as_seen(other, policy, raw, log, options)
    with working(options, "evaluating"):
        found = evaluate(
            policies,
            log,
            estimators="all" if options.estimators is None else list(options.estimators),
            interval=options.interval,
            level=options.level,
            against="logged" if options.against is None else "other",
            loss_bounds=loss_bounds_of(options, log),
            n_jobs=options.jobs,
            seed=options.seed,
        )
    conclusion = conclude(found, seen=seen)
    content = {"better": conclusion.better, "answer": str(conclusion), "trained_on_this_log": seen}
    show(options, Sheet(*found.sheet().parts, str(conclusion)), content | json.loads(found.to_json()))
    return 0 if conclusion.better else 1


# ---- a policy of other features -------------------------------------------------------------------


class Classifier:
    """A policy over classes whose features are not those of the log, with the features that it needs."""

    def __init__(self, policy: "Policy | FlooredPolicy", X: Any) -> None:
        self.classes_, self._policy, self._own = policy.labels, policy, X

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of all classes in each context of the log."""
        return self._policy.marginals(self._own)


class Chooser:
    """The same for label sets."""

    def __init__(self, policy: "Policy | FlooredPolicy", own: "BanditLog") -> None:
        self._policy, self._own = policy, own

    def log_prob_of(self, log: "BanditLog") -> Any:
        """Return the log-probabilities of the logged outputs."""
        return self._policy.log_prob_of(self._own)


def as_seen(
    other: "Policy | FlooredPolicy",
    policy: "Policy | FlooredPolicy",
    raw: "RawLog",
    log: "BanditLog",
    options: argparse.Namespace,
) -> Any:
    """Return the policy to compare with, in a form that can be judged on a log which was read for the first one."""
    from poem.policies import check_recipe, recipe_of, was_trained_on

    if (other.features, other.feature_names, other.labels) == (policy.features, policy.feature_names, policy.labels):
        if was_trained_on(other, log):
            remark(options, f"warning: {options.against} was trained on this very log; its estimates are too good.")
        return other
    if not log.structure.lists_outputs:
        return Chooser(other, log_for(other, options.against, raw, options))
    from poem.readers import log_of

    own = log_of(raw, features=recipe_of(other), labels=policy.labels, missing=True)
    check_recipe(other, own.features, raw.origin.name, options.against.name)
    return Classifier(other, own.X)
