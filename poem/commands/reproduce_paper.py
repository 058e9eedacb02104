"""poem reproduce: the tables and figures of the paper."""

import argparse
import sys
from pathlib import Path
from typing import Any

from poem.commands.arguments import add_command, to_stdout
from poem.progress import tell_line
from poem.text import visible


def add(commands: Any) -> None:
    """Add the command."""
    reproduce = add_command(
        commands,
        "reproduce",
        "[ITEM …]",
        "the tables and figures of the paper",
        "Run the experiments of the paper (Swaminathan & Joachims, ICML 2015) and put its own figures beside the "
        "results. Every run is appended to runs.csv in the output folder; the same command resumes where an "
        "interrupted one stopped. The tables go to stdout as Markdown, progress to stderr, and Markdown, HTML, PNG "
        "and SVG files to the output folder.",
        "poem reproduce table2 figure1 --dataset yeast --runs 3 --protocol release --data DIR",
        {0: "done"},
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
    reproduce.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the experiments, and print the tables."""
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
    with to_stdout():
        sys.stdout.write(visible(found.markdown))
    if not options.quiet:
        tell_line("files: " + ", ".join(map(str, found.files)))
    return 0
