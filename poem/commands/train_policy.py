"""poem train: from a log to a policy file."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import (
    add_command,
    add_common,
    add_loss_bounds,
    add_seed,
    loss_bounds_of,
    remark,
    share,
    show,
    working,
    writable,
)
from poem.commands.reading import (
    add_columns,
    add_packed,
    encoding_asked,
    encoding_of,
    estimated,
    log_for,
    packed_log,
    place,
    read_raw_log,
)
from poem.errors import InputError
from poem.learning import LEARNERS

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.learning import Fit
    from poem.packed import PackedLog
    from poem.policies import FlooredPolicy, Policy
    from poem.readers import RawLog


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
    parser.add_argument("log", type=place, metavar="LOG", help="file, folder of part files, or packed log")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="where to write the policy (.poem)"
    )
    parser.add_argument(
        "--learner",
        default="auto",
        choices=("auto", *LEARNERS),
        metavar="NAME",
        help=f"one of {', '.join(LEARNERS)}; auto (default) lets several compete",
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
        help="certify on the latest rows, not on a random share (default share: 0.25); needs a column of times",
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
    parser.add_argument(
        "--additive",
        action="store_true",
        help="losses of label sets are sums over labels: your promise; far fewer rows then certify (needs --start)",
    )
    parser.add_argument("--checkpoint", type=Path, metavar="DIR", help="keep finished candidates here, and resume")
    parser.add_argument("--force", action="store_true", help="continue even if the log is not fit for learning")
    add_seed(parser, "folds and stochastic optimizers")
    add_common(parser)
    add_columns(parser)
    add_packed(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Learn a policy, write it, and print what was found."""
    from poem.files import shown
    from poem.health import check_fit, notes_on_suspects
    from poem.policies import load_policy, made_log, shortened, with_columns
    from poem.readers import empty_columns, notes_on_text

    writable(options.out, unlike=None if isinstance(options.log, str) else options.log)
    _check_additive(options)
    start = None if options.start is None else load_policy(options.start)
    packed = packed_log(options)
    if packed is not None:
        return _on_packed(packed, start, options)
    raw = read_raw_log(options, start)
    log = _log_of(raw, start, options)
    with working(options, "inspecting"):
        health = check_fit(log, options.force, str(options.log))
    for reason in () if health.fit else health.reasons:
        remark(options, f"warning: {reason}")
    remark(options, f"features: {log.n_features}" + (f"; {shortened(log.features)}" if log.features else ""))
    if log.action_features:
        remark(options, f"features of actions: {log.structure.n_scores}; {shortened(log.action_features)}")
    left_out = empty_columns(raw) if start is None else []
    if left_out:
        remark(options, f"left out, as they are empty in all rows: {shown(left_out)}")
    notes = [*notes_on_text(raw, encoding_asked(options)), *notes_on_suspects(raw)]
    for note in notes if start is None else ():
        remark(options, f"note: {note}")
    train, validation = _held_out(log, options)
    result = _fitted(train, validation, start, start is not None and bool(made_log(start, log)), options)
    if result.learnt is not None:
        with_columns(result.learnt, raw, log).save(options.out)
    return _told(result, options)


def _check_additive(options: argparse.Namespace) -> None:
    """Refuse sums over labels without the policy that made the log, before anything is read."""
    if options.additive and options.start is None:
        raise InputError(
            "--additive takes the probabilities of single labels, which a log does not hold. Pass the policy that made "
            "the log, without a floor, as --start."
        )
    if options.additive and options.propensity == "estimate":
        raise InputError(
            "--additive takes the probabilities of single labels from the policy that made the log, and estimated "
            "propensities are not that policy's. Leave one of --additive and --propensity estimate out."
        )


def _fitted(
    log: "BanditLog | PackedLog",
    validation: Any,
    start: "Policy | FlooredPolicy | None",
    started_it: bool,
    options: argparse.Namespace,
) -> "Fit":
    """Fit as the options say; ``started_it`` says that the start is the policy that made the log."""
    from poem.learning import Selection, fit
    from poem.policies import without_floor

    logging_policy = start if started_it or options.additive else None
    if start is not None and without_floor(start).forest is not None:
        remark(options, f"{options.start} has trees, so that learning begins anew, with its columns and features")
        start = None
    return fit(
        log,
        learners=options.learner,
        selection=Selection(
            validation=validation,
            confidence=options.confidence,
            additive=options.additive,
            refit=options.refit,
            imitate=options.imitate,
            force=options.force,
        ),
        loss_bounds=loss_bounds_of(options),
        certify=not options.no_certificate,
        start=start,
        logging_policy=logging_policy,
        n_jobs=options.jobs,
        seed=options.seed,
        # A terminal is shown a bar after two seconds; a file gets a line now and then.
        progress=False if options.quiet else None if sys.stderr.isatty() else True,
        checkpoint=options.checkpoint,
    )


def _told(result: "Fit", options: argparse.Namespace) -> int:
    """Print what was found, and return the status."""
    show(options, result.explain(), _as_data(result, options))
    remark(options, _written(result, options.out))
    return 0 if result.success else 1


def _on_packed(log: "PackedLog", start: "Policy | FlooredPolicy | None", options: argparse.Namespace) -> int:
    """Learn from a packed log; it is inspected by a sample."""
    from poem.health import check_fit
    from poem.packed import sample_units
    from poem.policies import check_packed_for, made_log

    if options.out_of_time:
        raise InputError("--out-of-time needs rows in the order of time, which a packed log has not. Leave it out.")
    if start is not None:
        check_packed_for(options.start, start, log)
    log = estimated(log, options)
    with working(options, "inspecting"):
        some = sample_units(log, 200_000, log.memory / 8).log
        health = check_fit(some, options.force, str(options.log))
    for reason in () if health.fit else health.reasons:
        remark(options, f"warning: {reason}")
    made_it = start is not None and bool(made_log(start, some))
    result = _fitted(log, "auto" if options.valid is None else options.valid, start, made_it, options)
    if result.learnt is not None:
        result.learnt.save(options.out)
    return _told(result, options)


def _log_of(raw: "RawLog", start: "Policy | FlooredPolicy | None", options: argparse.Namespace) -> "BanditLog":
    """Return the log, with the features and outputs of the policy to start from if there is one."""
    from poem.policies import recipe_of
    from poem.readers import log_of

    encoding = encoding_of(options, raw, None if start is None else recipe_of(start))
    if start is not None:
        return log_for(start, options.start, raw, options, encoding)
    with working(options, "checking"):
        log = log_of(raw, missing=options.propensity == "estimate", encoding=encoding)
    return estimated(log, options)


def _held_out(log: "BanditLog", options: argparse.Namespace) -> tuple["BanditLog", Any]:
    """Return the rows to train on, and what to judge on."""
    if options.out_of_time:
        return log.split_by_time() if options.valid is None else log.split_by_time(options.valid)
    return log, "auto" if options.valid is None else options.valid


def _as_data(result: "Fit", options: argparse.Namespace) -> dict[str, Any]:
    return {"policy": None if result.learnt is None else str(options.out), **result.to_dict()}


def _written(result: "Fit", path: Path) -> str:
    if result.learnt is not None:
        return f"policy: {path}"
    return "no policy was written" + (f"; {path} is an earlier file and was left as it is" if path.exists() else "")


def _confidence(text: str) -> float:
    if (value := share(text)) < 0.5:
        raise argparse.ArgumentTypeError(f"at least 0.5 is needed; found {text!r}")
    return value
