"""poem train: from a log to a policy file."""

import argparse
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import (
    add_columns,
    add_command,
    add_common,
    add_loss_bounds,
    add_seed,
    check_recipe,
    encoding_of,
    estimated,
    loss_bounds_of,
    read_raw_log,
    recipe_of,
    remark,
    share,
    shortened,
    show,
    working,
    writable,
)
from poem.errors import InputError

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.learning import Fit
    from poem.policies import FlooredPolicy, Policy
    from poem.readers import RawLog

LEARNERS = ("auto", "ips", "poem", "norm-poem", "direct", "dr", "ix", "ls")


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "train",
        "LOG -o FILE",
        "learn a policy from a log",
        "Learn a policy from a log, and certify on rows that it has not seen that it is better than what was logged. "
        "The file holds all that the other commands need: features, outputs, and the names of the columns.",
        "poem train log.parquet -o policy.poem",
        {
            0: "a better policy was certified and written, or one was written with --no-certificate",
            1: "nothing was certified: no file was written, unless --imitate asked for one",
        },
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="file or folder of part files")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="where to write the policy (.poem)"
    )
    parser.add_argument(
        "--learner",
        default="auto",
        choices=LEARNERS,
        metavar="NAME",
        help=f"{', '.join(LEARNERS[1:-1])} or {LEARNERS[-1]}; auto (default) lets several compete",
    )
    parser.add_argument(
        "--valid",
        type=share,
        metavar="SHARE",
        help="share of the users, contexts or rows that certifies (default: up to a half, as many as it takes)",
    )
    parser.add_argument(
        "--out-of-time",
        action="store_true",
        help="certify on the latest rows, whoever's they are (default share: 0.25); needs a column of times",
    )
    parser.add_argument(
        "--confidence",
        type=_confidence,
        default=0.95,
        metavar="P",
        help="confidence of the certificate (default: 0.95)",
    )
    parser.add_argument(
        "--refit",
        action="store_true",
        help="learn the certified recipe again from all rows; the certificate is for the policy before that",
    )
    parser.add_argument(
        "--imitate",
        action="store_true",
        help="if nothing is certified, write an imitation of the logging policy; it may be worse than that policy",
    )
    parser.add_argument(
        "--no-certificate",
        action="store_true",
        help="write the candidate with the best prospects, learnt from all rows; nothing is certified",
    )
    parser.add_argument(
        "--start",
        type=Path,
        metavar="FILE",
        help="a policy to start from, such as the last round's; its features, outputs and columns are used",
    )
    add_loss_bounds(parser)
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep finished candidates here, and resume")
    parser.add_argument("--force", action="store_true", help="go on although the log is not fit for learning")
    add_seed(parser, "folds and stochastic optimizers")
    add_common(parser)
    add_columns(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Learn a policy, write it, and print what was found."""
    from poem.learning import fit
    from poem.policies import Policy, load_policy
    from poem.readers import log_of

    writable(options.out, unlike=options.log)
    start = None if options.start is None else load_policy(options.start)
    raw = read_raw_log(options, start)
    recipe = None if start is None else recipe_of(start)
    with working(options, "checking"):
        log = log_of(
            raw,
            features=recipe,
            labels=None if start is None else start.labels,
            missing=options.propensity == "estimate",
            encoding=encoding_of(options, raw, recipe),
        )
    if start is not None:
        check_recipe(start, options.start, log.features, raw.origin.name)
    log = estimated(log, options)
    _refuse_unfit(log, options)
    remark(options, f"features: {log.n_features}" + (f"; {shortened(log.features)}" if log.features else ""))
    train, validation = _held_out(log, options)
    result = fit(
        train,
        learners=options.learner,
        validation=validation,
        confidence=options.confidence,
        loss_bounds=loss_bounds_of(options, log),
        certify=not options.no_certificate,
        refit=options.refit,
        imitate=options.imitate,
        start=start,
        logging_policy=start if start is not None and _made(start, log) else None,
        force=options.force,
        n_jobs=options.jobs,
        seed=options.seed,
        # A terminal is shown a bar after two seconds; a file gets a line now and then.
        progress=False if options.quiet else None if sys.stderr.isatty() else True,
        checkpoint=options.checkpoint,
    )
    # The logging policy is there already, in the file that it came from.
    written = isinstance(result.policy, Policy) and result.origin != "logging policy"
    if isinstance(result.policy, Policy) and written:
        _with_origin(result.policy, raw, log).save(options.out)
    show(options, result.explain(), _as_data(result, options.out if written else None))
    left = f"; {options.out} is an earlier file and was left as it is" if options.out.exists() else ""
    remark(options, f"policy: {options.out}" if written else f"no policy was written{left}")
    return 0 if result.certified or result.origin == "learnt" else 1


def _refuse_unfit(log: "BanditLog", options: argparse.Namespace) -> None:
    """Raise for a log that poem inspect calls unfit: wrong propensities make a gain of nothing."""
    from poem.evaluation import check_learnable
    from poem.health import inspect

    check_learnable(log, options.force)
    with working(options, "inspecting"):
        health = inspect(log)
    if health.verdict == "unfit" and not options.force:
        raise InputError(
            f"{options.log} is not fit for learning: {health.reasons[0]} poem inspect says more; --force goes on all "
            "the same."
        )
    for reason in health.reasons if health.verdict == "unfit" else ():
        remark(options, f"warning: {reason}")


def _made(policy: "Policy | FlooredPolicy", log: "BanditLog") -> bool:
    """Tell whether a policy is the one that made the log: its probabilities are the propensities."""
    import numpy as np

    return log.propensities == "logged" and bool(np.allclose(policy.log_prob_of(log), log.log_propensity, atol=1e-6))


def _held_out(log: "BanditLog", options: argparse.Namespace) -> tuple["BanditLog", Any]:
    """Return the rows to train on, and what to judge on."""
    if options.out_of_time:
        if log.time is None:
            raise InputError("--out-of-time needs a column of times, and none is named so. Name it with --time.")
        return log.split_by_time(0.25 if options.valid is None else options.valid)
    return log, "auto" if options.valid is None else options.valid


def _with_origin(policy: "Policy", raw: "RawLog", log: "BanditLog") -> "Policy":
    """Return the policy with the names of its log's columns, so that the next log need not be described again."""
    # With --out-of-time the policy saw a part only, but it is the whole log that it must not be judged on.
    return replace(policy, training={**policy.training, "columns": asdict(raw.roles), "log": log.fingerprint()})


def _as_data(result: "Fit", path: Path | None) -> dict[str, Any]:
    found = None if result.certificate is None else result.certificate.to_dict()
    if found is not None:
        found["logged"] = found["logged"] if result.outcome == "loss" else 0.0 - found["logged"]
    return {
        "policy": None if path is None else str(path),
        "origin": result.origin,
        "outcome": result.outcome,
        "learner": result.chosen.learner,
        "certified": result.certified,
        "certificate": found,
        "warnings": result.warnings(),
        "candidates": [_shown(row, result.outcome) for row in result.rows()],
    }


def _shown(row: dict[str, Any], outcome: str) -> dict[str, Any]:
    """Return a candidate's estimates in what the log called it: rewards are rewards."""
    if outcome == "loss" or row["validation"] is None:
        return row
    turned = {"validation": 0.0 - row["validation"]}
    for name, other in (("validation_low", "validation_high"), ("validation_high", "validation_low")):
        turned[name] = None if row[other] is None else 0.0 - row[other]
    return row | turned


def _confidence(text: str) -> float:
    if (value := share(text)) < 0.5:
        raise argparse.ArgumentTypeError(f"at least 0.5 is needed; found {text!r}")
    return value
