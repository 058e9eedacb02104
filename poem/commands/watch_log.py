"""poem watch: ship, keep running, or stop?"""

import argparse
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from poem.commands.arguments import (
    add_columns,
    add_command,
    add_common,
    add_loss_bounds,
    log_for,
    loss_bounds_of,
    number,
    read_raw_log,
    share,
    show,
    whole_number,
    working,
)
from poem.commands.evaluate_policy import was_trained_on
from poem.errors import InputError

if TYPE_CHECKING:
    from poem.data import BanditLog
    from poem.evaluation import Gate, Look

LOOKS = 10


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
    from poem.evaluation import Gate
    from poem.policies import load_policy

    policy = load_policy(options.policy)
    if options.propensity == "estimate":
        raise InputError("--propensity estimate cannot be used here: the answer rests on logged propensities.")
    log = log_for(policy, options.policy, read_raw_log(options, policy), options)
    if was_trained_on(policy, log):
        raise InputError(f"{options.policy} was trained on this very log. Pass rows that were logged later.")
    bounds = loss_bounds_of(options, log)
    gate = Gate(policy, loss_bounds=bounds, confidence=options.confidence, margin=options.margin)
    with working(options, "watching"):
        looks = looks_at(gate, in_time_order(log), options.every)
    answer = answer_of(gate)
    content: dict[str, Any] = {
        "answer": gate.answer,
        "confidence": gate.confidence,
        "margin": gate.margin,
        "text": answer,
    }
    content |= {"decided_at": gate.decided_at, **asdict(looks[-1]), "looks": [asdict(look) for look in looks]}
    show(options, f"{table(looks, gate)}\n{answer}", content)
    return 0 if gate.answer == "ship" else 1


def in_time_order(log: "BanditLog") -> "BanditLog":
    """Return the log sorted by time, if it has times; its rows are taken to be in time order otherwise."""
    import numpy as np

    if log.time is None or bool(np.all(np.diff(log.time) >= 0.0)):
        return log
    return log.take(np.argsort(log.time, kind="stable"))


def looks_at(gate: "Gate", log: "BanditLog", every: int | None) -> "list[Look]":
    """Feed a log to a gate, and look at it every so many rows or at rows that grow by a constant factor."""
    import numpy as np

    n = len(log)
    if every is None:
        ends = np.unique(np.geomspace(min(n, 10), n, LOOKS).round().astype(int))
    else:
        ends = np.append(np.arange(every, n, every), n)
    looks = []
    for first, last in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        gate.update(log.take(np.arange(first, last)))
        looks.append(gate.look())
    return looks


def table(looks: "list[Look]", gate: "Gate") -> str:
    """Return the looks as text."""
    from poem.text import aligned

    head = ("rows", "gain", f"{100.0 * gate.confidence:g} % at all times", "answer")
    return aligned(
        head,
        [
            (f"{look.rows:,}", f"{look.gain:+.4g}", f"[{look.lower:+.4g}, {look.upper:+.4g}]", look.answer)
            for look in looks
        ],
    )


def answer_of(gate: "Gate") -> str:
    """Return the answer in words."""
    sure = f"with {gate.confidence:.0%} confidence over all looks"
    than = "above 0" if gate.margin == 0.0 else f"above the margin of {gate.margin:g}"
    if gate.answer == "ship":
        return f"Answer: ship. The gain is {than} {sure}; this was clear after {gate.decided_at:,} rows."
    if gate.answer == "stop":
        return f"Answer: stop. The gain is not {than} {sure}; this was clear after {gate.decided_at:,} rows."
    return f"Answer: keep running. After {gate.rows:,} rows it is not clear whether the gain is {than}."
