"""What says how a log is read: which column is what, and how columns become features."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from poem.commands.arguments import names, remark, size, whole_number, working
from poem.errors import InputError
from poem.readers import FORMATS

if TYPE_CHECKING:
    from poem.backends import Backend
    from poem.data import BanditLog
    from poem.data.features import Encoding, Features
    from poem.packed import PackedLog
    from poem.policies import FlooredPolicy, Policy
    from poem.readers import Columns, RawLog

MANY_COLUMNS = 20_000

L = TypeVar("L", "BanditLog", "PackedLog")


def add_columns(parser: argparse.ArgumentParser, encoding: bool = True) -> None:
    """Add what says which column of a log is what."""
    columns = parser.add_argument_group(
        "columns", "which column is what; one that is called output, loss, reward … need not be named"
    )
    columns.add_argument(
        "--context", type=names, metavar="NAMES", help="features, such as 'user_*,age' (default: all other columns)"
    )
    columns.add_argument("--output", type=names, metavar="NAME", help="what was decided; or several 0/1 columns a,b,c")
    outcome = columns.add_mutually_exclusive_group()
    outcome.add_argument("--loss", metavar="NAME", help="what it cost: lower is better")
    outcome.add_argument("--reward", metavar="NAME", help="what it earned: higher is better")
    columns.add_argument(
        "--propensity",
        metavar="NAME",
        help="probability with which it was decided; 'estimate' if that was not logged",
    )
    columns.add_argument(
        "--propensity-unit",
        choices=("probability", "percent", "log"),
        metavar="UNIT",
        help="probability (default), percent or log",
    )
    add_structure(columns)
    columns.add_argument("--group", metavar="NAME", help="user or session: rows of one are not independent")
    columns.add_argument("--time", metavar="NAME", help="when it was decided")
    columns.add_argument("--logger", metavar="NAME", help="which of several policies decided")
    columns.add_argument("--candidates", metavar="NAME", help="lists of what could have been chosen: ids, or structs")
    columns.add_argument("--distribution", metavar="NAME", help="lists of the candidates' probabilities")
    columns.add_argument(
        "--ignore", type=names, default=(), metavar="NAMES", help="columns to leave out, such as 'candidates.price'"
    )
    add_actions(columns)
    columns.add_argument(
        "--identity", action="store_true", help="give each action a feature of its own besides those that describe it"
    )
    add_format(columns, "LOG")
    columns.add_argument("--delimiter", metavar="C", help="of a CSV file (default: found in its first line)")
    columns.add_argument(
        "--actions-vary", action="store_true", help="of DSJSON: identify an action by its index and ignore its features"
    )
    columns.add_argument(
        "--side", type=Path, metavar="FILE", help="table beside a LibSVM file (default: the same name)"
    )
    if encoding:
        add_encoding(parser)


def add_actions(parser: Any) -> None:
    """Add what says what actions are."""
    parser.add_argument(
        "--actions", type=Path, metavar="FILE", help="catalogue beside the log: one row per action, with its features"
    )
    parser.add_argument("--action-id", metavar="NAME", help="ids of candidates and of the catalogue (default: id)")


def add_structure(parser: Any) -> None:
    """Add what says what an output is."""
    parser.add_argument(
        "--structure",
        metavar="NAME",
        help="what an output is, such as 'subset' for sets of one size (default: a class, or a set of any size)",
    )


def add_format(parser: Any, of: str) -> None:
    """Add what says how a file is read."""
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="F",
        help=f"of {of}: {', '.join(FORMATS)} (default: by suffix or content)",
    )
    add_max_size(parser)


def add_max_size(parser: Any) -> None:
    """Add how much memory what is read may take."""
    parser.add_argument(
        "--max-size",
        type=size,
        metavar="SIZE",
        help="memory that what is read may take, such as 20GB (default: half of what is free)",
    )


def add_encoding(parser: argparse.ArgumentParser) -> None:
    """Add what says how columns become features."""
    encoding = parser.add_argument_group(
        "features",
        "by default numbers as they are, strings one-hot, and hashed if there are many; missing values get their own",
    )
    encoding.add_argument("--scale", action="store_true", help="scale numbers to mean 0 and standard deviation 1")
    encoding.add_argument("--one-hot", type=names, default=(), metavar="NAMES", help="columns to take as categories")
    encoding.add_argument("--hash", type=names, default=(), metavar="NAMES", help="columns to hash")
    encoding.add_argument("--text", type=names, default=(), metavar="NAMES", help="columns whose words to hash")
    encoding.add_argument(
        "--hash-size", type=whole_number(1), metavar="N", help="features of each hashed column (default: 4096)"
    )


def named_columns(options: argparse.Namespace) -> "Columns":
    """Return the columns that were named."""
    from poem.readers import Columns

    output = options.output if options.output is None or len(options.output) > 1 else options.output[0]
    same = ("context", "loss", "reward", "propensity_unit", "group", "time", "logger")
    offered = ("candidates", "distribution", "action_id")
    propensity = None if options.propensity == "estimate" else options.propensity
    named = {role: getattr(options, role) for role in (*same, *offered)}
    return Columns(**named, output=output, propensity=propensity, ignore=options.ignore)


def encoding_of(options: argparse.Namespace, raw: "RawLog", recipe: "Features | None" = None) -> "Encoding | None":
    """Return how columns become features; refuse to be told where the features are made already."""
    if recipe is not None or raw.features is not None:
        why = f"{raw.origin.name} holds features already" if recipe is None else "the features are those of --start"
        check_no_encoding(options, why)
    return encoding_asked(options)


def check_no_encoding(options: argparse.Namespace, why: str) -> None:
    """Refuse options about features where the features are made already."""
    asked = _asked_encoding(options)
    if asked:
        raise InputError(f"--{asked[0]} has no effect: {why}. Leave it out.")


def encoding_asked(options: argparse.Namespace) -> "Encoding | None":
    """Return how columns are to become features, if anything was said about it."""
    from poem.data.features import Encoding

    given = {name.replace("-", "_"): getattr(options, name.replace("-", "_")) for name in _asked_encoding(options)}
    return Encoding(**{{"hash": "hashed"}.get(name, name): value for name, value in given.items()}) if given else None


def _asked_encoding(options: argparse.Namespace) -> list[str]:
    """Return the options about features that were given."""
    return [
        name
        for name in ("scale", "one-hot", "hash", "text", "hash-size")
        if getattr(options, name.replace("-", "_"), None)
    ]


# ---- packed logs ----------------------------------------------------------------------------------


def add_packed(parser: argparse.ArgumentParser) -> None:
    """Add what says how a packed log is worked on."""
    packed = parser.add_argument_group("packed logs", "where LOG is a folder that poem pack has written")
    packed.add_argument(
        "--memory", type=size, metavar="SIZE", help="memory to use, such as 4GB (default: half of what is free)"
    )
    packed.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler that runs the work, such as tcp://host:8786"
    )


def place(text: str) -> Path | str:
    """Read where a log is: a path, or the address of a packed log, such as s3://bucket/packed."""
    return text if "://" in text else Path(text)


def packed_log(options: argparse.Namespace) -> "PackedLog | None":
    """Open the log that a command was given if it is a packed one."""
    from poem.packed import is_packed, open_log
    from poem.readers import files_of

    if not is_packed(options.log):
        if isinstance(options.log, str):
            raise InputError(f"{options.log} is no packed log. Only packed logs are read from addresses.")
        files_of(options.log)  # says what else is wrong
        for name in ("memory", "scheduler"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name} is for packed logs; {options.log} is none. Pack it first (poem pack).")
        return None
    _check_settled(options)
    return open_log(options.log, memory=options.memory, backend=_backend(options))


def _check_settled(options: argparse.Namespace) -> None:
    """Refuse options about columns and features: both are settled when a log is packed."""
    from poem.readers import Columns

    given = [f"--{name}" for name in ("format", "delimiter", "side", "actions", "structure") if getattr(options, name)]
    given += [f"--{name}" for name in _asked_encoding(options)]
    asked, plain = vars(named_columns(options)), vars(Columns())  # --propensity estimate is about none of them
    given += [f"--{name.replace('_', '-')}" for name in asked if asked[name] != plain[name]]
    if given:
        raise InputError(
            f"{given[0]} has no effect: {options.log} was packed with its columns and features. Leave it out."
        )


def _backend(options: argparse.Namespace) -> "Backend | None":
    if options.scheduler is None:
        return None
    from poem.backends import Dask

    return Dask(options.scheduler)


# ---- logs and policies ----------------------------------------------------------------------------


def read_raw_log(options: argparse.Namespace, policy: "Policy | FlooredPolicy | None" = None) -> "RawLog":
    """Read the log that a command was given; a policy knows the columns of its own log."""
    from poem.policies import how_to_read, with_action_id
    from poem.readers import read_raw

    columns = named_columns(options)
    raw = read_raw(
        options.log,
        columns if policy is None else with_action_id(policy, columns),
        structure=options.structure,
        format=options.format,
        side=options.side,
        delimiter=options.delimiter,
        actions_vary=options.actions_vary,
        actions=options.actions,
        identity=options.identity,
        **({} if policy is None else how_to_read(policy)),
        progress=not options.quiet,
    )
    if raw.table.num_columns > MANY_COLUMNS:
        remark(
            options,
            f"{raw.origin.name} has {raw.table.num_columns:,} columns, and each of them takes time. One column of "
            "lists, or LibSVM text, holds as many features and is faster.",
        )
    return raw


def log_for(
    policy: "Policy | FlooredPolicy",
    path: Path,
    raw: "RawLog",
    options: argparse.Namespace,
    encoding: "Encoding | None" = None,
) -> "BanditLog":
    """Return a log in the way that a policy's own log was read: its features and outputs."""
    from poem.policies import log_for

    missing = options.propensity == "estimate"
    with working(options, "checking"):
        log = log_for(policy, raw, missing=missing, encoding=encoding, name=path.name)
    remark_on_gaps(raw, policy, options)
    return estimated(log, options)


def remark_on_gaps(raw: "RawLog", policy: "Policy | FlooredPolicy", options: argparse.Namespace) -> None:
    """Say which values are missing that the policy's own log always had."""
    from poem.readers import note_on_gaps

    note = note_on_gaps(raw, policy.features, policy.action_features)
    if note is not None:
        remark(options, note)


def estimated(log: L, options: argparse.Namespace) -> L:
    """Return the log with estimated propensities if that was asked for, and say so."""
    if options.propensity != "estimate":
        return log
    from poem.evaluation import estimate_propensities

    with working(options, "estimating propensities"):
        found = estimate_propensities(log)
    remark(options, f"propensities are estimated, not logged: {found!r}")
    return cast("L", found.log)


def judged(path: Path, options: argparse.Namespace) -> "Policy | FlooredPolicy":
    """Load a policy that is to be judged on a log; say if its certificate rests on more than a judgement will."""
    from poem.policies import load_policy, without_floor

    policy = load_policy(path)
    if without_floor(policy).record.settings.get("additive") is True:
        remark(
            options,
            f"note: {path} was learnt by the promise that losses are sums over labels. This command does not use it, "
            "and takes far more rows; poem.certify(…, additive=True) in Python does use it.",
        )
    return policy


def warned_if_seen(
    policy: "Policy | FlooredPolicy", path: Path, log: "BanditLog | PackedLog", options: argparse.Namespace
) -> bool:
    """Say before any work is done that a policy was trained on this very log; return whether it was."""
    from poem.policies import was_trained_on

    seen = bool(was_trained_on(policy, log))
    if seen:
        remark(options, f"warning: {path} was trained on this very log; its estimates are too good.")
    return seen
