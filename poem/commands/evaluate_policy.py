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
    check_recipe,
    log_for,
    loss_bounds_of,
    names,
    plain,
    read_raw_log,
    recipe_of,
    remark,
    share,
    show,
    working,
)

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.evaluation import Evaluation, Line
    from poem.policies import FlooredPolicy, Policy
    from poem.readers import RawLog

SEEN = (
    "Answer: cannot be told: the policy was trained on this very log, and its estimates are too good. Pass another log."
)
HEADLINE = ("DR", "SNIPS")  # whose difference decides on the exit status, unless the interval is for another one


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
    from poem.evaluation import evaluate
    from poem.policies import load_policy

    policy = load_policy(options.policy)
    other = None if options.against is None else load_policy(options.against)
    raw = read_raw_log(options, policy)
    log = log_for(policy, options.policy, raw, options)
    seen = was_trained_on(policy, log)
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
    answer, better = answer_of(found) if not seen else (SEEN, False)
    content = {"better": better, "answer": answer, "trained_on_this_log": seen, **json.loads(found.to_json())}
    show(options, f"{found!r}\n{answer}", content)
    return 0 if better else 1


def answer_of(found: "Evaluation") -> tuple[str, bool]:
    """Return the answer in words, and whether the policy is better by the headline estimator."""
    from poem.estimators import ONLY_FOR

    line = _headline(found, "policy")
    than = "what was logged" if found.against == "logged" else "the other one"
    doubted = [name for name in found.diagnostics if _doubted(found, name)]
    if doubted:
        return f"Answer: not shown to be better than {than}: do not believe the estimates of {doubted[0]}.", False
    better = bool(line.difference_high < 0.0)
    word = "better" if better else "worse" if line.difference_low > 0.0 else "not shown to be better"
    word = f"estimated to be {word}" if found.interval not in ONLY_FOR and not word.startswith("not") else word
    return f"Answer: {word} than {than}, by {line.estimator} with {found.level:.0%} confidence.", better


def _doubted(found: "Evaluation", policy: str) -> bool:
    """Tell whether not to believe an interval; one that holds for any number of rows needs right propensities only."""
    from poem.estimators import ONLY_FOR

    diagnostics = found.diagnostics[policy]
    verdict = diagnostics["mean weight"].verdict if found.interval in ONLY_FOR else diagnostics.verdict
    return verdict == "don't"


def _headline(found: "Evaluation", policy: str) -> "Line":
    from poem.estimators import ONLY_FOR

    lines = {line.estimator: line for line in found.lines if line.policy == policy}
    first = (ONLY_FOR[found.interval], *HEADLINE) if found.interval in ONLY_FOR else HEADLINE
    return next((lines[name] for name in first if name in lines), next(iter(lines.values())))


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
    if (other.features, other.feature_names, other.labels) == (policy.features, policy.feature_names, policy.labels):
        if was_trained_on(other, log):
            remark(options, f"warning: {options.against} was trained on this very log; its estimates are too good.")
        return other
    if not log.structure.lists_outputs:
        return Chooser(other, log_for(other, options.against, raw, options))
    from poem.readers import log_of

    own = log_of(raw, features=recipe_of(other), labels=policy.labels, missing=True)
    check_recipe(other, options.against, own.features, raw.origin.name)
    return Classifier(other, own.X)


def was_trained_on(policy: "Policy | FlooredPolicy", log: "BanditLog") -> bool:
    """Tell whether a policy was trained on the very log it is judged on."""
    return bool(plain(policy).training.get("log") == log.fingerprint())
