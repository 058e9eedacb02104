"""poem evaluate: would this policy have been better?"""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import (
    add_command,
    add_common,
    add_loss_bounds,
    add_seed,
    loss_bounds_of,
    names,
    share,
    show,
    working,
)
from poem.commands.reading import (
    add_columns,
    add_packed,
    estimated,
    judged,
    log_for,
    packed_log,
    place,
    read_raw_log,
    warned_if_seen,
)
from poem.text import Sheet

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.packed import PackedLog


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
    parser.add_argument("log", type=place, metavar="LOG", help="file, folder of part files, or packed log")
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
    add_packed(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the table of estimates."""
    from poem.evaluation import conclude, evaluate
    from poem.policies import check_all_packed, check_packed_for, load_policy, on_log, same_reading

    policy = judged(options.policy, options)
    other = None if options.against is None else load_policy(options.against)
    packed = packed_log(options)
    policies: dict[str, Any] = {"policy": policy} if other is None else {"policy": policy, "other": other}
    log: BanditLog | PackedLog
    if packed is not None:
        check_packed_for(options.policy, policy, packed)
        if other is not None:
            check_all_packed([(str(options.policy), policy), (str(options.against), other)], packed)
        seen = warned_if_seen(policy, options.policy, packed, options)
        log = estimated(packed, options)
    else:
        raw = read_raw_log(options, policy)
        log = log_for(policy, options.policy, raw, options)
        if other is not None and not same_reading(policy, other):
            policies["other"] = on_log(other, raw, log, name=options.against.name)
        seen = warned_if_seen(policy, options.policy, log, options)
    if other is not None and other is policies["other"]:
        warned_if_seen(other, options.against, log, options)
    with working(options, "evaluating"):
        found = evaluate(
            policies,
            log,
            estimators="all" if options.estimators is None else list(options.estimators),
            interval=options.interval,
            level=options.level,
            against="logged" if options.against is None else "other",
            loss_bounds=loss_bounds_of(options),
            n_jobs=options.jobs,
            seed=options.seed,
        )
    conclusion = conclude(found, seen=seen)
    content = {"better": conclusion.better, "answer": str(conclusion), "trained_on_this_log": seen}
    show(options, Sheet(*found.sheet().parts, str(conclusion)), content | json.loads(found.to_json()))
    return 0 if conclusion.better else 1
