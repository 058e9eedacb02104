"""poem predict: decide for new contexts."""

import argparse
import io
import sys
from pathlib import Path
from typing import Any

from poem.commands.arguments import add_command, remark, share, to_stdout, whole_number, working, writable
from poem.commands.reading import add_actions, add_format, remark_on_gaps
from poem.errors import InputError
from poem.text import visible

KINDS = (".csv", ".jsonl", ".parquet")


def add(commands: Any) -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "predict",
        "POLICY CONTEXTS",
        "decide for new contexts",
        "Decide for each row of a table of contexts: the most probable output, or with --sample one that is drawn, "
        "with its propensity. The table comes back with the decisions, in columns called as in the policy's own log, "
        "as CSV (where it has lists, such as label sets, as JSON lines). Where contexts say what is available, there "
        "are its ranking and probabilities as well. Sampled decisions are the start of the next log: add a column of "
        "losses or rewards.",
        "poem predict policy.poem contexts.csv --sample --seed 7 --floor 0.01 -o decisions.csv",
        {0: "decided"},
    )
    parser.add_argument("policy", type=Path, metavar="POLICY", help="a file that poem train wrote")
    parser.add_argument(
        "contexts", type=Path, metavar="CONTEXTS", help="file or folder with the raw columns of contexts"
    )
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help=f"ends in {', '.join(KINDS)} (default: stdout)")
    parser.add_argument("--sample", action="store_true", help="draw outputs instead of taking the most probable ones")
    parser.add_argument(
        "--seed", type=whole_number(0), metavar="N", help="of --sample (default: a new one, which is said on stderr)"
    )
    parser.add_argument(
        "--floor", type=share, metavar="SHARE", help="with --sample: decide uniformly in this share of the cases"
    )
    parser.add_argument("--candidates", metavar="NAME", help="lists of what can be chosen (default: as in the log)")
    add_actions(parser)
    add_format(parser, "CONTEXTS")
    parser.add_argument("--delimiter", metavar="C", help="of a CSV file (default: found in its first line)")
    parser.add_argument("--json", action="store_true", help="print JSON lines instead of CSV")
    parser.add_argument("--quiet", action="store_true", help="no progress and no remarks on stderr")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Write one decision for each context."""
    from poem.policies import decide, explores_little, load_policy, new_seed, read_contexts_for
    from poem.readers import Columns

    if not options.sample and (options.seed is not None or options.floor is not None):
        raise InputError("--seed and --floor are for decisions that are drawn; add --sample.")
    if options.out is not None:
        writable(options.out, *KINDS, unlike=options.contexts)
    policy = load_policy(options.policy)
    raw = read_contexts_for(
        policy,
        options.contexts,
        Columns(candidates=options.candidates, action_id=options.action_id),
        format=options.format,
        delimiter=options.delimiter,
        actions=options.actions,
        progress=not options.quiet,
    )
    seed = options.seed
    if options.sample and seed is None:
        seed = new_seed()
        remark(options, f"seed: {seed}")
    with working(options, "deciding"):
        table = decide(policy, raw, sample=options.sample, seed=seed, floor=options.floor, name=options.policy.name)
    remark_on_gaps(raw, policy, options)
    if options.sample and explores_little(table):
        remark(
            options, "most decisions were nearly certain: little can be learnt from their log. --floor 0.05 explores."
        )
    _write(table, options)
    return 0


def _write(table: Any, options: argparse.Namespace) -> None:
    from poem.files import has_lists, write_csv, write_lines, write_table

    if options.out is not None:
        with working(options, "writing"):
            write_table(table, options.out)
        return
    write = write_lines if options.json or has_lists(table) else write_csv
    with to_stdout():
        if not sys.stdout.isatty():
            write(table, sys.stdout.buffer)
            return
        content = io.BytesIO()
        write(table, content)
        sys.stdout.write(visible(content.getvalue().decode()))
