"""poem simulate: labelled data → the log of a weak policy."""

import argparse
from pathlib import Path
from typing import Any

from poem.commands.arguments import (
    add_command,
    add_common,
    add_seed,
    remark,
    share,
    show,
    whole_number,
    working,
    writable,
)
from poem.commands.reading import add_max_size, add_structure
from poem.errors import InputError


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "simulate",
        "DATA -o FILE",
        "labelled data → the log of a weak policy",
        "Fit a weak policy on a share of labelled data, let it decide, and log what it did and what that cost: a log "
        "whose truth is known. The data are one of the paper's sets by name (scene, yeast, tmc, lyrl), a LibSVM "
        "multi-label file, or a table with a column of true classes.",
        "poem simulate table.csv --label species -o log.parquet --policy h0.poem",
        {0: "written"},
    )
    parser.add_argument("data", metavar="DATA", help="name, LibSVM file, or table")
    parser.add_argument(
        "-o", "--out", type=Path, required=True, metavar="FILE", help="where to write the log (.parquet)"
    )
    parser.add_argument("--label", metavar="NAME", help="the column of true classes of a table")
    add_max_size(parser)
    parser.add_argument("--data-dir", type=Path, metavar="DIR", help="folder of named data (default: POEM_DATA, cache)")
    parser.add_argument(
        "--replay", type=whole_number(1), default=4, metavar="N", help="passes over the data (default: 4)"
    )
    parser.add_argument(
        "--fraction", type=share, default=0.05, metavar="F", help="of the rows, to fit the policy on (default: 0.05)"
    )
    parser.add_argument(
        "--temperature", type=float, default=1.0, metavar="A", help="below 1 the policy explores more (default: 1)"
    )
    parser.add_argument(
        "--loss",
        default="hamming",
        choices=("hamming", "zero-one", "f1"),
        metavar="NAME",
        help="hamming (default), zero-one or f1; for classes all are 0 if right and 1 if wrong",
    )
    add_structure(parser)
    parser.add_argument("--policy", type=Path, metavar="FILE", help="also write the logging policy here")
    add_seed(parser, "the rows to fit on, and of the decisions")
    add_common(parser, jobs=False)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write the log, and print what it is."""
    from poem.readers import write_log
    from poem.simulation import read_labelled, simulate_weak

    writable(options.out, ".parquet", ".pq", unlike=Path(options.data))
    if options.policy is not None:
        writable(options.policy, unlike=Path(options.data))
        if options.policy.resolve() == options.out.resolve():
            raise InputError("--policy and -o name the same file. Name two.")
    with working(options, f"reading {Path(options.data).name}"):
        data = read_labelled(options.data, options.label, folder=options.data_dir, progress=not options.quiet)
    with working(options, "simulating"):
        log, h0 = simulate_weak(
            data,
            structure=options.structure,
            fraction=options.fraction,
            temperature=options.temperature,
            replay=options.replay,
            loss=options.loss,
            seed=options.seed,
        )
        write_log(log, options.out)
    if options.policy is not None:
        h0.save(options.policy)
        remark(options, f"logging policy: {options.policy}")
    show(options, repr(log), {"log": str(options.out), "rows": len(log), "loss": float(log.loss.mean())})
    return 0
