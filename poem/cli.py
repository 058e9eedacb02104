"""The command line: a thin skin, one command a stage."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
    _add_reproduce(commands)
    return parser


def _add_reproduce(commands: Any) -> None:
    reproduce = commands.add_parser(
        "reproduce",
        help="the tables and figures of the paper",
        description=(
            "Run the experiments of the paper (Swaminathan & Joachims, ICML 2015) and put its own figures beside the "
            "results. Every run is appended to runs.csv in the output folder; the same command goes on where an "
            "interrupted one stopped. The tables go to stdout as Markdown, progress to stderr, and Markdown, HTML, PNG "
            "and SVG files to the output folder."
        ),
        epilog="Example: poem reproduce table2 figure1 --dataset yeast --runs 3 --protocol release --data DIR",
    )
    choices = ("table1", "table2", "table3", "table4", "figure1", "figure2", "figure3", "all")
    reproduce.add_argument(
        "items", nargs="*", default=["all"], metavar="ITEM", help=f"any of {', '.join(choices)} (default: all)"
    )
    reproduce.add_argument(
        "--dataset",
        choices=("scene", "yeast", "tmc", "lyrl", "all"),
        default="all",
        help="one set for everything; all is what the paper used for each table or figure (default)",
    )
    reproduce.add_argument("--runs", type=int, default=10, metavar="N", help="repetitions (default: 10)")
    reproduce.add_argument(
        "--protocol",
        choices=("paper", "release"),
        default="paper",
        help="as the paper's text says (default), or as its authors' code did where it differs",
    )
    reproduce.add_argument("--jobs", type=int, default=2, metavar="N", help="processes; -1 is all cores (default: 2)")
    reproduce.add_argument(
        "--data", type=Path, metavar="DIR", help="folder with the data (default: POEM_DATA, the cache, then a download)"
    )
    reproduce.add_argument(
        "--out", type=Path, default=Path("results"), metavar="DIR", help="folder for results (default: results)"
    )
    reproduce.add_argument("--seed", type=int, default=0, help="seed of the first run (default: 0)")
    reproduce.add_argument("--quiet", action="store_true", help="no progress on stderr")
    reproduce.set_defaults(run=_reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    from poem.experiments import reproduce

    found = reproduce(
        options.items,
        dataset=options.dataset,
        runs=options.runs,
        protocol=options.protocol,
        jobs=options.jobs,
        data=options.data,
        out=options.out,
        seed=options.seed,
        progress=not options.quiet,
    )
    print(found.markdown, end="", flush=True)
    if not options.quiet:
        print("files: " + ", ".join(map(str, found.files)), file=sys.stderr)
    return 0


def _demo(options: argparse.Namespace) -> int:
    from poem.demo import draw, format_table, run_demo

    options.out.mkdir(parents=True, exist_ok=True)
    demo = run_demo(seed=options.seed, n_jobs=options.jobs, progress=not options.quiet)
    print(format_table(demo.rows), flush=True)
    picture = draw(demo, options.out / "poem-demo.png")
    if not options.quiet:
        print(f"picture: {picture}", file=sys.stderr)
    return 0
