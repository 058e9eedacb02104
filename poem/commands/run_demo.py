"""poem demo: a whole round on real data."""

import argparse
from pathlib import Path
from typing import Any

from poem.commands.arguments import add_command, print_sheet, to_stdout
from poem.progress import tell_line
from poem.text import Sheet


def add(commands: Any) -> None:
    """Add the command."""
    demo = add_command(
        commands,
        "demo",
        "",
        "a whole round on real data in a minute",
        "Fit a weak logging policy on the digits, simulate its log, learn from the log with IPS and POEM, "
        "and compare off-policy estimates with the truth. The table goes to stdout, progress to stderr.",
        "poem demo --out pictures --seed 1",
        {0: "done"},
    )
    demo.add_argument(
        "--out", type=Path, default=Path("."), metavar="DIR", help="folder for poem-demo.png (default: .)"
    )
    demo.add_argument("--seed", type=int, default=0, help="seed of the split, the log and the fits (default: 0)")
    demo.add_argument("--jobs", type=int, default=-1, metavar="N", help="threads; -1 is all cores (default)")
    demo.add_argument("--quiet", action="store_true", help="no progress on stderr")
    demo.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run the demo, and print its table."""
    from poem.experiments import draw, run_demo, table_of

    options.out.mkdir(parents=True, exist_ok=True)
    demo = run_demo(seed=options.seed, n_jobs=options.jobs, progress=not options.quiet)
    with to_stdout():
        print_sheet(Sheet(table_of(demo.rows)))
    picture = draw(demo, options.out / "poem-demo.png")
    if not options.quiet:
        tell_line(f"picture: {picture}")
    return 0
