"""Arguments that several commands share, and what they write."""

import argparse
import math
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from poem.commands.typed import as_typed, data_as_typed
from poem.errors import InputError, WriteError
from poem.progress import Working, tell_line
from poem.text import Sheet, as_json

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
        help=f"lowest and highest possible loss, or reward in a log of rewards, such as 0,1 or =-1,1{default}",
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


def size(text: str) -> int:
    """Read a number of bytes, such as 500MB."""
    from poem.files import size_of

    try:
        return size_of(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def names(text: str) -> tuple[str, ...]:
    """Read a list of names."""
    found = tuple(part.strip() for part in text.split(",") if part.strip())
    if not found:
        raise argparse.ArgumentTypeError(f"at least one name is needed; found {text!r}")
    return found


def loss_bounds_of(options: argparse.Namespace) -> Any:
    """Return what a loss, or a reward, can be."""
    return "auto" if options.loss_bounds is None else options.loss_bounds


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
            sys.stdout.write(as_json(data_as_typed(content, options.parser)) + "\n")
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
        tell_line(as_typed(text, options.parser))


def working(options: argparse.Namespace, title: str) -> Working:
    """Return what says that work goes on."""
    return Working(title, not options.quiet)
