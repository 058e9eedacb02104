"""The command line: a thin skin, one command a stage."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from poem import __version__
from poem.errors import PoemError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0 if all is well, 2 for bad input, 130 after Ctrl-C."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a λ must not end a command on an ASCII terminal
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except PoemError as error:
        print(f"poem: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has gone: nothing more to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"poem: {error}. Check the path and its permissions.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\npoem: interrupted; nothing was left half-written", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="poem", description="Learn better decisions from logs of past ones.", epilog="Example: poem demo --out ."
    )
    parser.add_argument("--version", action="version", version=f"poem {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    demo = commands.add_parser(
        "demo",
        help="a whole round on real data in a minute",
        description=(
            "Fit a weak logging policy on the digits, simulate its log, learn from the log with IPS and POEM, "
            "and compare off-policy estimates with the truth. The table goes to stdout, progress to stderr."
        ),
        epilog="Example: poem demo --out pictures --seed 1",
    )
    demo.add_argument(
        "--out", type=Path, default=Path("."), metavar="DIR", help="folder for poem-demo.png (default: .)"
    )
    demo.add_argument("--seed", type=int, default=0, help="seed of the split, the log and the fits (default: 0)")
    demo.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads; -1 is all cores (default)")
    demo.add_argument("--quiet", action="store_true", help="no progress on stderr")
    demo.set_defaults(run=_demo)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from poem.demo import draw, format_table, run_demo

    options.out.mkdir(parents=True, exist_ok=True)
    demo = run_demo(seed=options.seed, n_jobs=options.jobs, progress=not options.quiet)
    print(format_table(demo.rows), flush=True)
    picture = draw(demo, options.out / "poem-demo.png")
    if not options.quiet:
        print(f"picture: {picture}", file=sys.stderr)
    return 0
