"""poem report: one page to show."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import add_command, add_common, add_seed, share, show, working, writable
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
from poem.text import visible_line

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.packed import PackedLog


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "report",
        "POLICY LOG -o FILE",
        "one page to show: verdict, estimates, what changes",
        "Write one self-contained HTML page on what a policy would have done on a log that it was not trained on: the "
        "verdict, estimates with intervals, what changes and where, and the diagnostics behind it.",
        "poem report policy.poem log.parquet -o report.html",
        {0: "written; the verdict is on the page, and the status of poem evaluate"},
    )
    parser.add_argument("policy", type=Path, metavar="POLICY", help="a file that poem train wrote")
    parser.add_argument("log", type=place, metavar="LOG", help="file, folder of part files, or packed log")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE", help="where to write the page (.html)")
    parser.add_argument("--against", type=Path, metavar="POLICY", help="another policy to compare with")
    parser.add_argument("--title", help="title of the page")
    parser.add_argument("--level", type=share, default=0.95, metavar="P", help="of the intervals (default: 0.95)")
    add_seed(parser, "folds")
    add_common(parser)
    add_columns(parser, encoding=False)
    add_packed(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the page, and print where it is."""
    from poem.policies import check_packed_for, load_policy
    from poem.report import write_report

    writable(options.out, ".html", ".htm")
    policy = judged(options.policy, options)
    other = None if options.against is None else load_policy(options.against)
    packed = packed_log(options)
    log: BanditLog | PackedLog
    if packed is not None:
        check_packed_for(options.policy, policy, packed)
        warned_if_seen(policy, options.policy, packed, options)
        log = estimated(packed, options)
    else:
        log = log_for(policy, options.policy, read_raw_log(options, policy), options)
    with working(options, "reporting"):
        path = write_report(
            policy,
            log,
            options.out,
            other=other,
            level=options.level,
            title=options.title,
            n_jobs=options.jobs,
            seed=options.seed,
        )
    show(options, visible_line(str(path)), {"report": str(path)})
    return 0
