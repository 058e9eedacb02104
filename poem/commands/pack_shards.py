"""poem pack: a log of any size → a folder of shards."""

import argparse
from pathlib import Path
from typing import Any

from poem.commands.arguments import add_command, add_common, show
from poem.commands.reading import add_columns, check_no_encoding, encoding_asked, named_columns

NO_PROPENSITIES = (
    "; no propensities. Pass --propensity estimate to inspect, train, evaluate and report: they estimate them."
)


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "pack",
        "LOG … -o DIR",
        "a log larger than memory → shards",
        "Pack a log of any size and format into a folder of shards, in bounded memory: checked, with encoded features. "
        "train, evaluate, inspect and report take the folder in place of a log.",
        "poem pack logs/*.csv.gz -o packed",
        {0: "packed"},
    )
    parser.add_argument("logs", type=Path, nargs="+", metavar="LOG", help="files of one format, or folders of them")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="DIR", help="a new or empty folder")
    parser.add_argument(
        "--policy",
        type=Path,
        metavar="POLICY",
        help="pack the log as this policy reads logs, to evaluate the policy on it: its columns, features and outputs",
    )
    add_common(parser)
    add_columns(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Pack the log, and print what it is."""
    from dataclasses import replace

    from poem.packed import pack_log
    from poem.policies import load_policy

    policy = None if options.policy is None else load_policy(options.policy)
    if policy is not None:
        check_no_encoding(options, f"the features are those of {options.policy}")
    columns = named_columns(options)
    if options.propensity == "estimate":
        columns = replace(columns, propensity="missing")
    log = pack_log(
        options.logs,
        options.out,
        policy=policy,
        columns=columns,
        structure=options.structure,
        features=encoding_asked(options),
        format=options.format,
        side=options.side,
        delimiter=options.delimiter,
        actions_vary=options.actions_vary,
        actions=options.actions,
        identity=options.identity,
        n_jobs=options.jobs,
        progress=not options.quiet,
    )
    content = {
        "log": str(options.out),
        "rows": len(log),
        "units": log.n_units,
        "shards": len(log.shards),
        "outputs": len(log.labels),
        "features": log.n_features,
        "propensities": log.propensities,
    }
    none = log.propensities == "missing"
    show(options, f"{log!r}{NO_PROPENSITIES if none else ''}", content)
    return 0
