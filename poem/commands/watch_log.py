"""poem watch: ship, keep running, or stop?"""

import argparse
from pathlib import Path
from typing import Any

from poem.commands.arguments import add_command, add_common, add_loss_bounds, number, share, show, whole_number, working
from poem.commands.reading import add_columns, judged, log_for, read_raw_log
from poem.errors import InputError

LOOKS = 10  # as poem.watch has it; the library is not imported for a help text


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "watch",
        "LOG --policy POLICY --loss-bounds LOW,HIGH",
        "ship, keep running, or stop?",
        "Compare a policy with what is being logged, row by row in time order. The answer may be asked for at any "
        "time and as often as you like: if logged propensities and loss bounds are right, it is wrong with "
        "probability 1 − confidence at the most, over all looks together.",
        "poem watch log.parquet --policy policy.poem --loss-bounds 0,1",
        {0: "ship: the policy is better by more than the margin", 1: "keep running, or stop"},
    )
    parser.add_argument("log", type=Path, metavar="LOG", help="file or folder of part files")
    parser.add_argument(
        "--policy", type=Path, required=True, metavar="POLICY", help="a file that poem train wrote, from other rows"
    )
    add_loss_bounds(parser, required=True)
    parser.add_argument("--confidence", type=share, default=0.95, metavar="P", help="of the answer (default: 0.95)")
    parser.add_argument("--margin", type=number, default=0.0, metavar="GAIN", help="gain to decide on (default: 0)")
    parser.add_argument(
        "--every", type=whole_number(1), metavar="N", help=f"show a look every N rows (default: {LOOKS} looks)"
    )
    add_common(parser, jobs=False)
    add_columns(parser, encoding=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Print the looks and the answer."""
    from poem.evaluation import watch
    from poem.policies import was_trained_on

    policy = judged(options.policy, options)
    if options.propensity == "estimate":
        raise InputError("--propensity estimate cannot be used here: the answer rests on logged propensities.")
    log = log_for(policy, options.policy, read_raw_log(options, policy), options)
    if was_trained_on(policy, log):
        raise InputError(f"{options.policy} was trained on this very log. Pass rows that were logged later.")
    with working(options, "watching"):
        found = watch(
            policy,
            log,
            loss_bounds=options.loss_bounds,
            confidence=options.confidence,
            margin=options.margin,
            every=options.every,
        )
    show(options, found.sheet(), found.to_dict())
    return 0 if found.answer == "ship" else 1
