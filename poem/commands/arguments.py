"""Arguments that several commands share, and what is read by them."""

import argparse
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.typed import as_typed
from poem.errors import InputError, WriteError
from poem.progress import Working, tell
from poem.readers import FORMATS
from poem.text import Sheet, as_json

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.data.features import Encoding, Features
    from poem.policies import FlooredPolicy, Policy
    from poem.readers import Columns, RawLog

WIDTH = 78  # columns of a help text
BAD_INPUT = "bad usage or bad input"


# ---- arguments ------------------------------------------------------------------------------------


def add_command(
    commands: Any, name: str, usage: str, short: str, text: str, example: str, status: Mapping[int, str]
) -> argparse.ArgumentParser:
    """Add a command whose help shows what its exit status means, and an example in one line, to be copied."""
    meaning = "\n".join(f"  {code}  {what}" for code, what in {**status, 2: BAD_INPUT}.items())
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        usage=" ".join(filter(None, ("poem", name, usage, "[options]"))),
        help=short,
        description=textwrap.fill(text, WIDTH),
        epilog=f"exit status:\n{meaning}\n\nExample: {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # so that a new option never changes what a script means
    )
    parser.set_defaults(parser=parser)
    return parser


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
    columns.add_argument("--candidates", metavar="NAME", help="lists of what could have been chosen")
    columns.add_argument("--distribution", metavar="NAME", help="lists of the candidates' probabilities")
    columns.add_argument("--ignore", type=names, default=(), metavar="NAMES", help="columns to leave out")
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


def add_encoding(parser: argparse.ArgumentParser) -> None:
    """Add what says how columns become features."""
    encoding = parser.add_argument_group(
        "features", "by default numbers as they are, strings one-hot, and hashed if there are many"
    )
    encoding.add_argument("--scale", action="store_true", help="scale numbers to mean 0 and standard deviation 1")
    encoding.add_argument("--one-hot", type=names, default=(), metavar="NAMES", help="columns to take as categories")
    encoding.add_argument("--hash", type=names, default=(), metavar="NAMES", help="columns to hash")
    encoding.add_argument("--text", type=names, default=(), metavar="NAMES", help="columns whose words to hash")
    encoding.add_argument(
        "--hash-size", type=whole_number(1), metavar="N", help="features of each hashed column (default: 4096)"
    )


def add_common(parser: argparse.ArgumentParser, jobs: bool = True) -> None:
    """Add what nearly every command has."""
    if jobs:
        parser.add_argument("--jobs", type=threads, default=-1, metavar="N", help="threads; -1 is all cores (default)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    parser.add_argument("--quiet", action="store_true", help="no progress and no remarks on stderr")


def add_seed(parser: argparse.ArgumentParser, of: str) -> None:
    """Add the seed of what is drawn."""
    parser.add_argument("--seed", type=whole_number(0), default=0, metavar="N", help=f"of {of} (default: 0)")


def add_loss_bounds(parser: argparse.ArgumentParser, required: bool = False) -> None:
    """Add what a loss can be."""
    default = "" if required else " (default: as in the log)"
    parser.add_argument(
        "--loss-bounds",
        type=number_pair,
        required=required,
        metavar="LOW,HIGH",
        help=f"what a loss, or a reward, can be, such as 0,1 or =-1,1{default}",
    )


def whole_number(least: int) -> Callable[[str], int]:
    """Return what reads a whole number from ``least`` on."""

    def read(text: str) -> int:
        try:
            if (value := int(text)) >= least:
                return value
        except ValueError:
            pass
        raise argparse.ArgumentTypeError(f"a whole number, {least} or above, is needed; found {text!r}")

    return read


def threads(text: str) -> int:
    """Read a number of threads."""
    return -1 if text == "-1" else whole_number(1)(text)


def share(text: str) -> float:
    """Read a number between 0 and 1."""
    try:
        if 0.0 < (value := float(text)) < 1.0:
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"a number between 0 and 1 is needed, such as 0.25; found {text!r}")


def number(text: str) -> float:
    """Read a finite number."""
    try:
        if math.isfinite(value := float(text)):
            return value
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"a number is needed, such as 0.1; found {text!r}")


def number_pair(text: str) -> tuple[float, float]:
    """Read two numbers, the lower one first."""
    try:
        low, high = map(float, text.split(","))
    except ValueError:
        low = high = math.nan
    if not (math.isfinite(high - low) and low < high):
        raise argparse.ArgumentTypeError(f"two numbers are needed, the lower one first, such as 0,1; found {text!r}")
    return low, high


def names(text: str) -> tuple[str, ...]:
    """Read a list of names."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def loss_bounds_of(options: argparse.Namespace) -> Any:
    """Return what a loss, or a reward, can be."""
    return "auto" if options.loss_bounds is None else options.loss_bounds


def named_columns(options: argparse.Namespace) -> "Columns":
    """Return the columns that were named."""
    from poem.readers import Columns

    output = options.output if options.output is None or len(options.output) > 1 else options.output[0]
    same = ("context", "loss", "reward", "propensity_unit", "group", "time", "logger", "candidates", "distribution")
    propensity = None if options.propensity == "estimate" else options.propensity
    named = {role: getattr(options, role) for role in same}
    return Columns(**named, output=output, propensity=propensity, ignore=options.ignore)


def encoding_of(options: argparse.Namespace, raw: "RawLog", recipe: "Features | None" = None) -> "Encoding | None":
    """Return how columns become features; refuse to be told where the features are made already."""
    from poem.data.features import Encoding

    asked = {name: getattr(options, name) for name in ("scale", "one_hot", "hash", "text", "hash_size")}
    given = {name: value for name, value in asked.items() if value}
    if not given:
        return None
    if recipe is not None or raw.features is not None:
        why = f"{raw.origin.name} holds features already" if recipe is None else "the features are those of --start"
        option = next(iter(given)).replace("_", "-")
        raise InputError(f"--{option} has no effect: {why}. Leave it out.")
    return Encoding(**{{"hash": "hashed"}.get(name, name): value for name, value in given.items()})


# ---- logs and policies ----------------------------------------------------------------------------


def read_raw_log(options: argparse.Namespace, policy: "Policy | FlooredPolicy | None" = None) -> "RawLog":
    """Read the log that a command was given; a policy knows the columns of its own log."""
    from poem.policies import columns_of
    from poem.readers import read_raw

    return read_raw(
        options.log,
        named_columns(options),
        structure=options.structure,
        format=options.format,
        side=options.side,
        delimiter=options.delimiter,
        actions_vary=options.actions_vary,
        defaults=None if policy is None else columns_of(policy),
        recipe=None if policy is None else policy.features,
        progress=not options.quiet,
    )


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
    return estimated(log, options)


def estimated(log: "BanditLog", options: argparse.Namespace) -> "BanditLog":
    """Return the log with estimated propensities if that was asked for, and say so."""
    if options.propensity != "estimate":
        return log
    from poem.evaluation import estimate_propensities

    with working(options, "estimating propensities"):
        found = estimate_propensities(log)
    remark(options, f"propensities are estimated, not logged: {found!r}")
    return found.log


# ---- what is written ------------------------------------------------------------------------------


def writable(path: Path, *suffixes: str, unlike: Path | None = None) -> Path:
    """Return a path that can be written to, before any work is done; ``unlike`` is what must not be overwritten."""
    if suffixes and path.suffix.lower() not in suffixes:
        raise InputError(f"the name of the output must end in {' or '.join(suffixes)}; found {str(path)!r}.")
    if path.is_dir():
        raise InputError(f"cannot write {str(path)!r}: it is a folder. Name a file.")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {str(path)!r}: there is no folder {str(path.parent)!r}. Make it first.")
    if path.exists() and not path.is_file():
        raise InputError(f"cannot write {str(path)!r}: it is a device or a pipe. Name a file.")
    if unlike is not None and path.exists() and unlike.exists() and path.samefile(unlike):
        raise InputError(f"{str(path)!r} is what is read; it would be lost. Name another file to write to.")
    return path


def show(options: argparse.Namespace, found: str | Sheet, content: Any) -> None:
    """Print the answer: text for people, in colour on a terminal, and JSON for machines."""
    if options.json and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(encoding="utf-8")  # as all JSON is, whatever the terminal takes
    with to_stdout():
        if options.json:
            sys.stdout.write(as_json(content) + "\n")
            return
        parts = found.parts if isinstance(found, Sheet) else (found.rstrip("\n"),)
        print_sheet(Sheet(*(as_typed(part, options.parser) if isinstance(part, str) else part for part in parts)))


def print_sheet(sheet: Sheet) -> None:
    """Print a sheet as plain text, or as wide and as colourful as the terminal is."""
    if not sys.stdout.isatty():
        sys.stdout.write(f"{sheet}\n")
        return
    from rich.console import Console

    Console(highlight=False).print(sheet)


@contextmanager
def to_stdout() -> Iterator[None]:
    """Write to stdout inside of this; what goes wrong is said as of a file."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise WriteError(f"cannot write to stdout: {error.strerror or error}.") from error


def remark(options: argparse.Namespace, text: str) -> None:
    """Say something that is not the answer."""
    if not options.quiet:
        tell(as_typed(text, options.parser) + "\n")


def working(options: argparse.Namespace, title: str) -> Working:
    """Return what says that work goes on."""
    return Working(title, not options.quiet)
